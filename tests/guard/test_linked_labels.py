"""The labels of a run: those of its agent's session in the guard, and what becomes of them while there is none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from pathlib import Path

import anyio
import msgspec
import pytest
from anyio.abc import TaskGroup

from hookproxy import __version__
from hookproxy.config.load import Loaded, load
from hookproxy.flow.prints import prints_of_arguments, prints_of_output
from hookproxy.guard.agent_process import RunProcess
from hookproxy.guard.agent_sessions import AgentSessions
from hookproxy.guard.judge import Judge
from hookproxy.guard.link import GuardLink
from hookproxy.guard.linked_labels import LinkedLabels
from hookproxy.guard.run_messages import Join, Read, Request, Response
from hookproxy.guard.runs import NotARun, RunPeer, RunPeers
from hookproxy.model.flow import SEVERAL_SERVERS, ClearedFlow, KnownLabels, Reading
from hookproxy.model.hooks import Session
from hookproxy.policy.shared_state import StoreUnavailable
from hookproxy.processes.ancestry import Process

pytestmark = pytest.mark.anyio

AGENT = Process(10, 1)
SECRET = Reading(("secret",), "read_file", "files", "~/.env")
PAGE = Reading(("untrusted",), "fetch", "web", "example.com")


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    (tmp_path / "hookproxy.toml").write_text("")
    return load(str(tmp_path / "hookproxy.toml"), [], None, {"HOME": str(tmp_path)}, str(tmp_path))


class Guard:
    """A guard that listens, or not."""

    is_there = True
    number = 0

    def __init__(self, loaded: Loaded, tasks: TaskGroup) -> None:
        self._loaded, self._tasks = loaded, tasks
        self.restart()

    def restart(self) -> None:
        self.judge = Judge(self._loaded, self._tasks, print)
        self.number += 1

    @property
    def sessions(self) -> AgentSessions:
        return self.judge.sessions


class Link(GuardLink):
    """The link of a run, whose requests reach the guard without a socket."""

    def __init__(self, guard: Guard, loaded: Loaded, server: str) -> None:
        super().__init__("", Session("own", server, "/", "/"), loaded)
        self._guard, self._server, self._reached = guard, server, 0

    @property
    def is_away(self) -> bool:
        return not self._guard.is_there

    async def ask(self, request: Request) -> Response:
        if not self._guard.is_there:
            raise StoreUnavailable("no guard runs")
        if self._reached != self._guard.number:
            process = RunProcess(Process(20, 2), (AGENT,), (AGENT,))
            self._peer = RunPeer(process, lambda: self._guard.judge, RunPeers())
            self._peer.respond(msgspec.json.encode(Join(__version__, self._server, "own")))
            self._reached = self._guard.number
            self.connections += 1
        return msgspec.json.decode(self._peer.respond(msgspec.json.encode(request)), type=Response)


@pytest.fixture
async def guard(loaded: Loaded) -> AsyncIterator[Guard]:
    async with anyio.create_task_group() as tasks:
        yield Guard(loaded, tasks)
        tasks.cancel_scope.cancel()


def labels(guard: Guard, loaded: Loaded, server: str = "files") -> LinkedLabels:
    return LinkedLabels(Link(guard, loaded, server))


async def read(run: LinkedLabels, reading: Reading, text: str) -> None:
    prints = prints_of_output(msgspec.json.encode(text), await run.key())
    assert prints is not None
    await run.add(reading, prints, whole=False)


async def carried(run: LinkedLabels, text: str) -> set[str]:
    """The labels that a call with this text carries."""
    prints = prints_of_arguments([msgspec.json.encode(text)], await run.key())
    return of_carried(await run.known(prints))


def of_carried(known: KnownLabels) -> set[str]:
    return {label for reading in known.readings if reading.number in known.carried for label in reading.labels}


async def stuck(run: LinkedLabels, prints: Collection[int] | None = ()) -> set[str]:
    """The labels of the session."""
    return {label for reading in (await run.known(prints)).readings for label in reading.labels}


async def test_what_one_run_has_read_sticks_to_all_and_only_its_texts_carry_it(guard: Guard, loaded: Loaded) -> None:
    files, database = labels(guard, loaded), labels(guard, loaded, "sqlite")
    await read(files, SECRET, "the key is AKIA5MZXN8QRF3WBY6OE")
    assert await stuck(database) == {"secret"}
    assert await carried(database, "AKIA5MZXN8QRF3WBY6OE") == {"secret"}
    assert await carried(database, "something else") == set()


async def test_without_a_guard_a_run_keeps_its_own(guard: Guard, loaded: Loaded) -> None:
    guard.is_there = False
    files, database = labels(guard, loaded), labels(guard, loaded, "sqlite")
    await read(files, SECRET, "the key is AKIA5MZXN8QRF3WBY6OE")
    assert await carried(files, "AKIA5MZXN8QRF3WBY6OE") == {"secret"}
    assert await carried(files, "something else") == set()
    assert await stuck(database) == set()


async def test_a_guard_that_starts_later_is_told_and_of_those_texts_any_carry_it(guard: Guard, loaded: Loaded) -> None:
    guard.is_there = False
    files, database = labels(guard, loaded), labels(guard, loaded, "sqlite")
    await read(files, SECRET, "the key is AKIA5MZXN8QRF3WBY6OE")
    guard.is_there = True
    assert await stuck(files) == {"secret"}
    assert await stuck(database) == {"secret"}
    assert await carried(database, "something else") == {"secret"}


async def test_while_the_guard_is_away_any_text_carries_all_that_was_known(guard: Guard, loaded: Loaded) -> None:
    files, web = labels(guard, loaded), labels(guard, loaded, "web")
    await read(web, PAGE, "a page about everything")
    assert await carried(files, "something else") == set()
    await read(files, SECRET, "the key is AKIA5MZXN8QRF3WBY6OE")
    guard.is_there = False
    await read(files, Reading(("private",), "read_file", "files"), "later")
    assert await carried(files, "something else") == {"untrusted", "secret", "private"}
    guard.is_there = True
    assert await carried(files, "something else") == {"private"}, "what was read meanwhile is told, without its prints"
    assert await stuck(web) == {"untrusted", "secret", "private"}


async def test_a_guard_that_was_started_anew_is_told_what_each_run_knows(guard: Guard, loaded: Loaded) -> None:
    files, web, database = (labels(guard, loaded, name) for name in ("files", "web", "sqlite"))
    await read(files, SECRET, "the key is AKIA5MZXN8QRF3WBY6OE")
    assert await stuck(web) == {"secret"}
    guard.restart()
    assert await stuck(web) == {"secret"}
    assert await carried(database, "something else") == {"secret"}
    assert len((await files.known(())).readings) == 1, "it is the same reading, whoever tells of it"


async def test_another_session_of_the_agent_has_none_of_it(guard: Guard, loaded: Loaded) -> None:
    files = labels(guard, loaded)
    guard.sessions.of_event("claude", "first", {}, AGENT)
    await read(files, SECRET, "the key is AKIA5MZXN8QRF3WBY6OE")
    assert await stuck(files) == {"secret"}
    guard.sessions.of_event("claude", "second", {}, AGENT)
    assert await stuck(files) == set()
    await read(files, PAGE, "a page about everything")
    assert await stuck(files) == {"untrusted"}
    guard.sessions.of_event("claude", "first", {}, AGENT)
    assert await stuck(files) == {"secret"}


async def test_prints_of_another_session_may_stand_for_anything(guard: Guard, loaded: Loaded) -> None:
    files = labels(guard, loaded)
    guard.sessions.of_event("claude", "first", {}, AGENT)
    prints = prints_of_arguments([b'"something else"'], await files.key())
    guard.sessions.of_event("claude", "second", {}, AGENT)
    await labels(guard, loaded, "web").add(PAGE, (), whole=False)
    assert of_carried(await files.known(prints)) == {"untrusted"}
    await files.add(SECRET, (prints or frozenset()), whole=False)
    assert await carried(files, "another text altogether") == {"secret"}


async def test_what_a_person_allows_in_one_run_holds_in_all_but_for_what_the_administrator_requires(
    guard: Guard, loaded: Loaded
) -> None:
    files, database = labels(guard, loaded), labels(guard, loaded, "sqlite")
    await read(files, SECRET, "the key is AKIA5MZXN8QRF3WBY6OE")
    number = (await files.known(())).readings[0].number
    own, managed = (ClearedFlow((number,), "flow.sinks[0]", "send", "mail", is_managed) for is_managed in (False, True))
    await files.clear(own)
    await files.clear(managed)
    assert set((await files.known(())).cleared) == {own, managed}
    assert (await database.known(())).cleared == (own,)


async def test_what_was_allowed_in_one_session_is_not_in_another(guard: Guard, loaded: Loaded) -> None:
    files = labels(guard, loaded)
    guard.sessions.of_event("claude", "first", {}, AGENT)
    await read(files, SECRET, "the key is AKIA5MZXN8QRF3WBY6OE")
    [reading] = (await files.known(())).readings
    guard.sessions.of_event("claude", "second", {}, AGENT)
    await files.clear(ClearedFlow((reading.number,), "flow.sinks[0]", "send", "mail"))
    assert (await files.known(())).cleared == ()


async def test_a_label_that_a_hook_takes_away_is_gone_in_its_run_until_more_is_read(
    guard: Guard, loaded: Loaded
) -> None:
    files, database = labels(guard, loaded), labels(guard, loaded, "sqlite")
    await read(files, SECRET, "the key is AKIA5MZXN8QRF3WBY6OE")
    await files.remove(["secret"])
    assert await stuck(files) == set()
    assert await stuck(database) == {"secret"}, "others take no process's word for it"
    await read(database, SECRET, "ghp_Xa2bC3dEf4gH5iJk6Lm7nN8oP")
    assert await stuck(files) == {"secret"}


async def test_calls_at_the_same_time_see_what_the_run_has_read_before(guard: Guard, loaded: Loaded) -> None:
    guard.is_there = False
    files = labels(guard, loaded)
    await read(files, SECRET, "the key is AKIA5MZXN8QRF3WBY6OE")
    guard.is_there = True
    seen: list[set[str]] = []

    async def look() -> None:
        seen.append(await stuck(files))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(look)
    assert seen == [{"secret"}] * 5
    assert len((await files.known(())).readings) == 1


async def test_the_guard_keeps_no_long_texts_of_a_reading_and_loses_no_label(guard: Guard, loaded: Loaded) -> None:
    long = Reading(("secret",), "t" * 10_000, "s" * 10_000, "p" * 10_000, call="c" * 10_000)
    run = labels(guard, loaded)
    await run.add(long, (), whole=True)
    (kept,) = (await labels(guard, loaded, "sqlite").known(())).readings
    assert kept.labels == ("secret",)
    assert kept.server == SEVERAL_SERVERS
    assert {len(kept.tool), len(kept.place), len(kept.call)} == {256}


@pytest.mark.parametrize("wrong", [("l" * 65,), tuple(map(str, range(257)))])
async def test_who_tells_of_too_many_labels_is_no_run(guard: Guard, loaded: Loaded, wrong: tuple[str, ...]) -> None:
    with pytest.raises(NotARun):
        await Link(guard, loaded, "files").ask(Read(Reading(wrong, "t"), whole=True))
