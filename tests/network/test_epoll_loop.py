"""The event loop that serves relay descriptors inside its wait, and is asyncio's own loop in all else."""

from __future__ import annotations

import asyncio
import os
import select
import selectors
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest

from hookproxy.network.epoll_loop import DirectLoop, DirectSelector
from hookproxy.transports.event_loop import new_loop
from tests.support.proxy_rig import DIRECT_LOOP


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


@pytest.fixture
def selector() -> Iterator[DirectSelector]:
    one = DirectSelector()
    yield one
    one.close()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for fd in (reader, writer):
        try:
            os.close(fd)
        except OSError:
            continue


def test_a_direct_callback_runs_inside_the_wait(selector: DirectSelector, pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    read: list[bytes] = []
    selector.add_direct(reader, select.EPOLLIN, lambda: read.append(os.read(reader, 10)))
    os.write(writer, b"x")
    assert selector.select(0) == []
    assert read == [b"x"]


def test_the_wait_ends_when_a_callback_gives_the_loop_something_to_do(
    selector: DirectSelector, pipe: tuple[int, int]
) -> None:
    reader, writer = pipe
    calls: list[int] = []

    def callback() -> None:
        os.read(reader, 1)
        calls.append(len(calls))
        selector.woken = len(calls) == 3
        os.write(writer, b"x")

    selector.add_direct(reader, select.EPOLLIN, callback)
    os.write(writer, b"x")
    assert selector.select(None) == []
    assert calls == [0, 1, 2]


def test_ordinary_descriptors_are_reported_beside_direct_ones(selector: DirectSelector, pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    one, two = socket.socketpair()
    with one, two:
        ran: list[str] = []
        selector.add_direct(reader, select.EPOLLIN, lambda: ran.append("direct"))
        selector.register(one, selectors.EVENT_READ | selectors.EVENT_WRITE, "mine")
        os.write(writer, b"x")
        two.send(b"y")
        (found,) = selector.select(1)
        assert found[0].data == "mine"
        assert found[1] == selectors.EVENT_READ | selectors.EVENT_WRITE
        assert ran == ["direct"]
        selector.modify(one, selectors.EVENT_WRITE, "other")
        ((key, events),) = selector.select(1)
        assert (key.data, events) == ("other", selectors.EVENT_WRITE)
        assert selector.get_key(one) == key
        assert list(selector.get_map()) == [one.fileno()]
        selector.unregister(one)
        assert selector.select(0) == []


def test_a_hang_up_is_both_readable_and_writable(selector: DirectSelector) -> None:
    one, two = socket.socketpair()
    with one:
        selector.register(one, selectors.EVENT_READ | selectors.EVENT_WRITE)
        two.close()
        ((_, events),) = selector.select(1)
        assert events == selectors.EVENT_READ | selectors.EVENT_WRITE


def test_a_descriptor_that_was_closed_first_can_be_unregistered(selector: DirectSelector) -> None:
    reader, writer = os.pipe()
    selector.register(reader, selectors.EVENT_READ)
    os.close(reader)
    selector.unregister(reader)
    os.close(writer)
    with pytest.raises(KeyError):
        selector.unregister(reader)


def test_a_descriptor_is_registered_once(selector: DirectSelector, pipe: tuple[int, int]) -> None:
    selector.register(pipe[0], selectors.EVENT_READ)
    with pytest.raises(KeyError, match="already"):
        selector.register(pipe[0], selectors.EVENT_READ)


def test_a_descriptor_that_epoll_refuses_is_an_error(selector: DirectSelector, tmp_path: Path) -> None:
    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    with pytest.raises(PermissionError):
        selector.add_direct(file, select.EPOLLIN, lambda: None)
    selector.remove_direct(file)
    os.close(file)


def test_a_removed_callback_does_not_run(selector: DirectSelector, pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    ran: list[int] = []
    selector.add_direct(reader, select.EPOLLIN, lambda: ran.append(1))
    selector.remove_direct(reader)
    selector.remove_direct(reader)
    os.write(writer, b"x")
    assert selector.select(0) == []
    assert ran == []


def test_a_callback_that_removes_the_next_one_keeps_it_from_running(selector: DirectSelector) -> None:
    pipes = [os.pipe() for _ in range(2)]
    ran: list[int] = []

    def callback(number: int) -> None:
        ran.append(number)
        selector.remove_direct(pipes[1 - number][0])

    for number, (reader, writer) in enumerate(pipes):
        os.write(writer, b"x")
        selector.add_direct(reader, select.EPOLLIN, lambda number=number: callback(number))  # type: ignore[misc]
    assert selector.select(0) == []
    assert len(ran) == 1
    for fds in pipes:
        for fd in fds:
            os.close(fd)


def test_a_hang_up_is_reported_although_no_event_is_waited_for(selector: DirectSelector, pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    ran: list[int] = []

    def gone() -> None:
        ran.append(1)
        selector.remove_direct(writer)

    selector.add_direct(writer, 0, gone)
    assert selector.select(0) == []
    assert ran == []
    os.close(reader)
    assert selector.select(0) == []
    assert ran == [1]


@pytest.mark.anyio
async def test_tasks_timers_and_threads_run_while_direct_callbacks_run() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, DirectLoop)
    reader, writer = os.pipe()
    seen: list[bytes] = []
    done = anyio.Event()

    def callback() -> None:
        seen.append(os.read(reader, 1))
        if len(seen) < 1000:
            os.write(writer, b"x")  # it never gives the wait a rest
        else:
            done.set()

    loop.direct.add_direct(reader, select.EPOLLIN, callback)
    os.write(writer, b"x")
    with anyio.fail_after(30):
        await anyio.to_thread.run_sync(lambda: None)
        with anyio.move_on_after(0.001):
            await anyio.sleep_forever()
        await done.wait()
    loop.direct.remove_direct(reader)
    os.close(reader)
    os.close(writer)
    assert len(seen) == 1000


@pytest.mark.anyio
async def test_an_event_set_in_a_direct_callback_wakes_its_task() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, DirectLoop)
    reader, writer = os.pipe()
    event = anyio.Event()

    def callback() -> None:
        os.read(reader, 1)
        event.set()

    loop.direct.add_direct(reader, select.EPOLLIN, callback)
    loop.call_soon(os.write, writer, b"x")
    with anyio.fail_after(30):
        await event.wait()
    loop.direct.remove_direct(reader)
    os.close(reader)
    os.close(writer)


def test_with_epoll_the_loop_is_a_direct_loop() -> None:
    loop = new_loop()
    assert isinstance(loop, DirectLoop)
    loop.close()


def test_a_new_descriptor_gets_no_events_of_the_closed_one_with_the_same_number(selector: DirectSelector) -> None:
    pipes = [os.pipe() for _ in range(2)]
    events: list[str] = []
    fresh: list[int] = []

    def first(part: int, other: int) -> None:
        """Closes the other, and opens what gets its number: nothing is there to read."""
        os.read(part, 1)
        selector.remove_direct(other)
        os.close(other)
        fresh.extend(os.pipe())
        assert fresh[0] == other
        selector.add_direct(fresh[0], select.EPOLLIN, lambda: events.append("spurious"))

    (one, feed_one), (two, feed_two) = pipes

    def once(part: int, other: int) -> None:
        if not fresh:
            first(part, other)

    selector.add_direct(one, select.EPOLLIN, partial(once, one, two))
    selector.add_direct(two, select.EPOLLIN, partial(once, two, one))
    os.write(feed_one, b"x")
    os.write(feed_two, b"x")
    assert selector.select(0) == []
    assert events == []
    os.write(fresh[1], b"x")
    selector.select(0)
    assert events == ["spurious"], "its own events are reported"
    left = {one, two, feed_one, feed_two, *fresh}
    for fd in left:
        os.close(fd)


def fail() -> None:
    raise ValueError("a defect")


def test_a_callback_that_fails_ends_the_wait_where_nobody_contains_it(
    selector: DirectSelector, pipe: tuple[int, int]
) -> None:
    reader, writer = pipe
    selector.add_direct(reader, select.EPOLLIN, fail)
    os.write(writer, b"x")
    with pytest.raises(ValueError, match="a defect"):
        selector.select(0)


def test_a_callback_that_fails_ends_its_own_descriptor_alone(selector: DirectSelector, pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    other, other_writer = os.pipe()
    failed: list[Exception] = []
    read: list[bytes] = []
    selector.on_failure = lambda _callback, problem: failed.append(problem)
    selector.add_direct(reader, select.EPOLLIN, fail)
    selector.add_direct(other, select.EPOLLIN, lambda: read.append(os.read(other, 10)))
    for fd in (writer, other_writer):
        os.write(fd, b"x")
    assert selector.select(0) == selector.select(0) == []
    assert [type(problem) for problem in failed] == [ValueError]
    assert read == [b"x"]
    os.close(other)
    os.close(other_writer)
