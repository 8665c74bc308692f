"""A session's labels are bounded in memory, and no bound makes one less; they end with time, or are removed."""

from __future__ import annotations

import pytest

from hookproxy.flow.session_labels import MOST_PRINTS, MOST_READINGS, SessionLabels
from hookproxy.model.flow import SEVERAL_SERVERS, Reading

pytestmark = pytest.mark.anyio


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def reading(*labels: str, seconds: float = 0, server: str = "files", tool: str = "read") -> Reading:
    return Reading(labels, tool, server, seconds=seconds)


async def test_a_print_tells_which_readings_a_text_carries() -> None:
    labels = SessionLabels()
    await labels.add(reading("a"), {1, 2}, False)
    await labels.add(reading("b"), {2, 3}, False)
    await labels.add(reading("c"), (), True)
    assert (await labels.known({2})).carried == {1, 2, 3}
    assert (await labels.known({1})).carried == {1, 3}
    assert (await labels.known(())).carried == {3}
    assert (await labels.known(None)).carried == {1, 2, 3}


async def test_a_label_ends_with_its_time() -> None:
    clock = Clock()
    labels = SessionLabels(clock)
    await labels.add(reading("a", seconds=10), {1}, False)
    await labels.add(reading("b"), {1}, False)
    clock.now = 9.9
    assert len((await labels.known({1})).readings) == 2
    clock.now = 10.0
    known = await labels.known({1})
    assert [one.labels for one in known.readings] == [("b",)]
    assert known.carried == {2}


async def test_a_label_is_removed_and_others_stay() -> None:
    labels = SessionLabels()
    await labels.add(reading("a", "b"), {1}, False)
    await labels.add(reading("a"), {1}, False)
    await labels.remove({"a"})
    known = await labels.known({1})
    assert [one.labels for one in known.readings] == [("b",)]
    assert known.carried == {1}


@pytest.mark.slow
async def test_beyond_the_bound_of_prints_any_text_carries_a_reading() -> None:
    labels = SessionLabels()
    await labels.add(reading("a"), range(MOST_PRINTS), False)
    await labels.add(reading("b"), {-1}, False)
    assert (await labels.known({5})).carried == {1, 2}
    await labels.remove({"a"})
    await labels.add(reading("c"), {-2}, False)
    assert (await labels.known({-2})).carried == {2, 3}
    assert (await labels.known(())).carried == {2}


async def test_beyond_the_bound_of_readings_no_label_is_lost() -> None:
    clock = Clock()
    labels = SessionLabels(clock)
    await labels.add(reading("first", seconds=100, server="a"), {1}, False)
    for number in range(MOST_READINGS + 40):
        clock.now += 0.1
        await labels.add(reading("x" if number % 2 else "y", seconds=50, server=f"s{number}"), {number}, False)
    known = await labels.known(())
    assert len(known.readings) <= MOST_READINGS
    assert {label for one in known.readings for label in one.labels} == {"first", "x", "y"}
    merged = known.readings[0]
    assert merged.server == SEVERAL_SERVERS
    assert not known.carried
    assert (await labels.known({1})).carried >= {merged.number}
    clock.now = 99.9
    assert "first" in {label for one in (await labels.known(())).readings for label in one.labels}


async def test_what_was_read_long_ago_is_still_found_and_nothing_else_is() -> None:
    labels = SessionLabels()
    for number in range(10 * MOST_READINGS):
        await labels.add(reading("a" if number % 3 else "b"), {number}, False)
    known = await labels.known({7})
    (carried,) = [one for one in known.readings if one.number in known.carried]
    assert carried.labels == ("a",)
    assert not (await labels.known({-1})).carried


async def test_readings_that_stand_for_others_must_be_approved_anew() -> None:
    labels = SessionLabels()
    await labels.add(reading("a"), {0}, False)
    numbers = {one.number for one in (await labels.known({0})).readings}
    for number in range(1, MOST_READINGS + 1):
        await labels.add(reading("a"), {number}, False)
    assert not (await labels.known({0})).carried & numbers


async def test_what_is_told_again_is_one_reading_that_any_text_carries() -> None:
    labels = SessionLabels()
    await labels.add(reading("a"), {1}, False)
    assert (await labels.known({2})).carried == set()
    for _ in range(3):
        await labels.add(reading("a"), (), True)
    known = await labels.known({2})
    assert len(known.readings) == 1
    assert known.carried == {1}
    await labels.add(reading("a"), {2}, False)
    assert len((await labels.known(())).readings) == 2, "another result of the same tool is another one"
