"""Labels of stateless requests hold at every gateway with the same store, and no bound or failure makes one less."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from hookproxy.gateway import shared_labels
from hookproxy.gateway.shared_labels import StoreLabels
from hookproxy.gateway.store import Store
from hookproxy.model.flow import SEVERAL_SERVERS, ClearedFlow, Reading
from hookproxy.policy.shared_state import StoreUnavailable
from tests.gateway.test_store import open_store
from tests.support.store_process import PROGRAM, StoreProcess

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="neither valkey-server nor redis-server is installed"),
]

READ = Reading(("secret", "private"), "read_file", "files", "/home/u/.ssh/config", 1.5, call="c-1")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StoreProcess]:
    process = StoreProcess(tmp_path)
    try:
        yield process
    finally:
        process.kill()


def labels_of(store: Store, user: str = "uid:1", name: str = "files") -> StoreLabels:
    return StoreLabels(store, name, user, 60)


async def test_what_one_gateway_notes_another_one_knows_without_the_place(server: StoreProcess) -> None:
    async with open_store(server) as store, open_store(server) as other:
        assert await labels_of(store).key() == await labels_of(other).key()
        await labels_of(store).add(READ, {1, 2**64 - 1}, False)
        await labels_of(store).add(Reading(("a",), "t"), {2}, False)
        known = await labels_of(other).known({2**64 - 1})
        assert [(one.labels, one.tool, one.place, one.call) for one in known.readings] == [
            (("secret", "private"), "read_file", "", ""),
            (("a",), "t", "", ""),
        ]
        first, second = (one.number for one in known.readings)
        assert first < second
        assert known.carried == {first}
        assert (await labels_of(other).known(None)).carried == {first, second}
        assert (await labels_of(other).known(())).carried == set()


async def test_users_and_servers_know_nothing_of_each_other(server: StoreProcess) -> None:
    async with open_store(server) as store:
        await labels_of(store).add(READ, {1}, False)
        assert not (await labels_of(store, user="uid:2").known({1})).readings
        assert not (await labels_of(store, name="web").known({1})).readings
        assert await labels_of(store).key() != await labels_of(store, user="uid:2").key()


async def test_labels_are_removed_and_others_stay(server: StoreProcess) -> None:
    async with open_store(server) as store:
        await labels_of(store).add(READ, {1}, False)
        await labels_of(store).add(Reading(("secret",), "t"), {1}, False)
        await labels_of(store).remove({"secret"})
        known = await labels_of(store).known({1})
        assert [one.labels for one in known.readings] == [("private",)]
        assert known.carried >= {known.readings[0].number}


async def test_what_a_person_clears_is_cleared_everywhere(server: StoreProcess) -> None:
    cleared = ClearedFlow((1, 2), "flow.sinks[0]", "fetch", "web")
    async with open_store(server) as store, open_store(server) as other:
        await labels_of(store).clear(cleared)
        assert (await labels_of(other).known(())).cleared == (cleared,)


async def test_what_a_person_clears_after_the_store_has_forgotten_all_is_not_what_is_read_then(
    server: StoreProcess,
) -> None:
    async with open_store(server) as store:
        await labels_of(store).add(READ, {1}, False)
        (known,) = (await labels_of(store).known(())).readings
        await store.run_script(int, "return redis.call('DEL', unpack(KEYS))", labels_of(store)._keys)
        await labels_of(store).clear(ClearedFlow((known.number,), "flow.sinks[0]", "send", "mail"))
        await labels_of(store).add(READ, {1}, False)
        (later,) = (await labels_of(store).known(())).readings
        assert later.number != known.number


async def test_what_was_read_is_found_as_long_as_it_is_known_that_it_was_read(server: StoreProcess) -> None:
    async with open_store(server) as store:
        labels = StoreLabels(store, "files", "uid:1", 0.6)
        key = await labels.key()
        await labels.add(READ, {1}, False)
        for _ in range(4):  # calls to a sink that does not look at what they carry
            await anyio.sleep(0.3)
            assert (await labels.known(())).readings
        assert await labels.key() == key


async def test_a_label_ends_with_its_time(server: StoreProcess) -> None:
    async with open_store(server) as store:
        await labels_of(store).add(Reading(("a",), "t", seconds=0.001), (), True)
        await labels_of(store).add(Reading(("b",), "t", seconds=1000), (), True)
        while len(readings := (await labels_of(store).known(())).readings) > 1:
            pass  # a millisecond passes
        assert readings[0].labels == ("b",)


async def test_beyond_the_bound_further_readings_are_one_whose_labels_do_not_end(
    server: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_labels, "_MOST_READINGS", 2)
    async with open_store(server) as store:
        labels = labels_of(store)
        await labels.add(Reading(("a",), "t", "s", seconds=9), {1}, False)
        await labels.add(Reading(("b",), "t", "s"), {2}, False)
        for _ in range(3):
            await labels.add(Reading(("a",), "t", "s", seconds=9), {2, 5}, False)
        known = await labels.known({5})
        assert [one.labels for one in known.readings] == [("a",), ("b",), ("a",)]
        assert (known.readings[2].server, known.readings[2].seconds) == (SEVERAL_SERVERS, 0)
        _, second, further = (one.number for one in known.readings)
        assert known.carried == {further}
        assert (await labels.known({2})).carried == {second, further}
        assert (await labels.known({9})).carried == set()


async def test_beyond_the_bound_of_prints_any_text_carries_a_reading(
    server: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_labels, "_MOST_PRINTS", 3)
    async with open_store(server) as store:
        labels = labels_of(store)
        await labels.add(Reading(("a",), "t"), {1, 2}, False)
        await labels.add(Reading(("b",), "t"), {3, 4}, False)
        await labels.add(Reading(("c",), "t"), range(9), False)
        known = await labels.known(())
        assert known.carried == {one.number for one in known.readings[1:]}


async def test_without_the_store_nothing_is_known(server: StoreProcess) -> None:
    async with open_store(server) as store:
        labels = labels_of(store)
        server.kill()
        for act in (labels.known(()), labels.add(READ, (), True), labels.remove({"a"}), labels.key()):
            with pytest.raises(StoreUnavailable):
                await act
