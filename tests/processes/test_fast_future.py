"""Promises: a task that awaits one goes on at once where bytes arrive, and in the loop's next turn anywhere else."""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial

import anyio
import pytest

from hookproxy.processes.fast_future import FastFuture, fast_future_factory
from hookproxy.transports.epoll_loop import DirectLoop
from tests.rig import DIRECT

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["any loop", "our loop"])
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return DIRECT if request.param == "our loop" else "asyncio"


class Bell:
    """Calls a function where bytes arrive: inside the wait of a DirectLoop, and in any other as its reader."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.fds: list[int] = []

    def on_ring(self, function: Callable[[], None]) -> Callable[[], object]:
        """Rings it."""
        reader, writer = os.pipe()
        self.fds += (reader, writer)

        def rung() -> None:
            os.read(reader, 1)
            function()

        if isinstance(self.loop, DirectLoop):
            self.loop.direct.add_direct(reader, select.EPOLLIN, rung)
        else:
            self.loop.add_reader(reader, rung)
        return partial(os.write, writer, b"x")

    def close(self) -> None:
        for fd in self.fds[::2]:
            if isinstance(self.loop, DirectLoop):
                self.loop.direct.remove_direct(fd)
            else:
                self.loop.remove_reader(fd)
        for fd in self.fds:
            os.close(fd)


@pytest.fixture
async def bell() -> AsyncIterator[Bell]:
    one = Bell()
    yield one
    one.close()


async def run_until_done(ring: Callable[[], object], *waiting: Callable[[], Coroutine[object, object, None]]) -> None:
    """Start these tasks, ring once all of them wait, and wait for their ends."""
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for one in waiting:
                tasks.start_soon(one)
            await anyio.wait_all_tasks_blocked()
            ring()


async def test_a_task_goes_on_with_what_was_kept(bell: Bell) -> None:
    seen: list[object] = []
    future = fast_future_factory()()

    def keep() -> None:
        future.set_result("kept")
        seen.append("the callback goes on")

    ring = bell.on_ring(keep)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                seen.append(await future)

            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            ring()
    in_order = ["kept", "the callback goes on"]
    assert seen == (in_order if isinstance(bell.loop, DirectLoop) else in_order[::-1])


async def test_a_task_that_keeps_anothers_promise_is_not_interrupted(bell: Bell) -> None:
    seen: list[str] = []
    first, second = fast_future_factory()(), fast_future_factory()()
    ring = bell.on_ring(lambda: first.set_result(None))

    async def keeps() -> None:
        await first
        seen.append("the first goes on")
        second.set_result(None)
        seen.append("the first still goes on")

    async def waits() -> None:
        await second
        seen.append("the second goes on")

    await run_until_done(ring, waits, keeps)
    assert seen == ["the first goes on", "the first still goes on", "the second goes on"]


async def test_of_several_that_are_told_together_each_goes_on(bell: Bell) -> None:
    seen: list[int] = []
    make = fast_future_factory()
    kept = [make() for _ in range(3)]
    rings = [bell.on_ring(partial(one.set_result, number)) for number, one in enumerate(kept)]

    async def wait(one: FastFuture[int]) -> None:
        seen.append(await one)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for one in kept:
                tasks.start_soon(wait, one)
            await anyio.wait_all_tasks_blocked()
            for ring in rings:
                ring()
    assert sorted(seen) == [0, 1, 2]


async def test_what_is_kept_before_anybody_waits_is_there_at_once() -> None:
    future = fast_future_factory()()
    future.set_result(7)
    assert await future == 7


async def test_who_is_cancelled_hears_of_it_and_what_is_kept_afterwards_is_an_error(bell: Bell) -> None:
    future = fast_future_factory()()
    ended: list[str] = []

    async def wait() -> None:
        try:
            await future
        except anyio.get_cancelled_exc_class():
            ended.append("cancelled")
            raise

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert ended == ["cancelled"]
    assert future.cancelled()
    with pytest.raises(asyncio.InvalidStateError):
        future.set_result(None)


async def test_a_task_that_fails_where_it_goes_on_ends_itself_alone(bell: Bell) -> None:
    future, fine = fast_future_factory()(), fast_future_factory()()
    went_on: list[str] = []

    def keep() -> None:
        future.set_result(None)
        went_on.append("the callback")

    async def fails() -> None:
        await future
        raise LookupError("its own fault")

    ring, again = bell.on_ring(keep), bell.on_ring(lambda: fine.set_result("fine"))
    task = asyncio.ensure_future(fails())
    with anyio.fail_after(5):
        await anyio.wait_all_tasks_blocked()
        ring()
        with pytest.raises(LookupError):
            await task
        again()
        assert await fine == "fine"
    assert went_on == ["the callback"]


async def test_who_awaits_a_promise_beside_another_goes_on_as_well(bell: Bell) -> None:
    seen: list[str] = []
    future = fast_future_factory()()
    ring = bell.on_ring(partial(future.set_result, "kept"))

    async def wait() -> None:
        seen.append(await future)

    await run_until_done(ring, wait, wait)
    assert seen == ["kept", "kept"]
