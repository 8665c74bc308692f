"""FastFutures: a task that awaits one continues at once in a direct callback, else in the loop's next turn."""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial

import anyio
import pytest

from hookproxy.network.epoll_loop import DirectLoop
from hookproxy.processes.fast_future import FastFuture, fast_future_factory
from tests.support.proxy_rig import DIRECT_LOOP

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["any loop", "our loop"])
def anyio_backend(request: pytest.FixtureRequest) -> object:
    return DIRECT_LOOP if request.param == "our loop" else "asyncio"


class Trigger:
    """Calls a function when a byte arrives: inside the wait of a DirectLoop, or as a reader of any other loop."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.fds: list[int] = []

    def on_fire(self, function: Callable[[], None]) -> Callable[[], object]:
        """Register the function, and return what triggers it."""
        reader, writer = os.pipe()
        self.fds += (reader, writer)

        def on_readable() -> None:
            os.read(reader, 1)
            function()

        if isinstance(self.loop, DirectLoop):
            self.loop.direct.add_direct(reader, select.EPOLLIN, on_readable)
        else:
            self.loop.add_reader(reader, on_readable)
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
async def trigger() -> AsyncIterator[Trigger]:
    one = Trigger()
    yield one
    one.close()


async def run_until_done(fire: Callable[[], object], *waiting: Callable[[], Coroutine[object, object, None]]) -> None:
    """Start these tasks, fire once all of them wait, and wait for their ends."""
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for one in waiting:
                tasks.start_soon(one)
            await anyio.wait_all_tasks_blocked()
            fire()


async def test_a_task_continues_with_the_result(trigger: Trigger) -> None:
    seen: list[object] = []
    future = fast_future_factory()()

    def set_result() -> None:
        future.set_result("result")
        seen.append("the callback continues")

    fire = trigger.on_fire(set_result)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                seen.append(await future)

            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            fire()
    in_order = ["result", "the callback continues"]
    assert seen == (in_order if isinstance(trigger.loop, DirectLoop) else in_order[::-1])


async def test_a_task_that_sets_the_result_of_another_future_is_not_interrupted(trigger: Trigger) -> None:
    seen: list[str] = []
    first, second = fast_future_factory()(), fast_future_factory()()
    fire = trigger.on_fire(lambda: first.set_result(None))

    async def sets() -> None:
        await first
        seen.append("the first continues")
        second.set_result(None)
        seen.append("the first still continues")

    async def waits() -> None:
        await second
        seen.append("the second continues")

    await run_until_done(fire, waits, sets)
    assert seen == ["the first continues", "the first still continues", "the second continues"]


async def test_of_several_futures_done_together_each_task_continues(trigger: Trigger) -> None:
    seen: list[int] = []
    make = fast_future_factory()
    futures = [make() for _ in range(3)]
    triggers = [trigger.on_fire(partial(one.set_result, number)) for number, one in enumerate(futures)]

    async def wait(one: FastFuture[int]) -> None:
        seen.append(await one)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for one in futures:
                tasks.start_soon(wait, one)
            await anyio.wait_all_tasks_blocked()
            for fire in triggers:
                fire()
    assert sorted(seen) == [0, 1, 2]


async def test_a_result_that_is_set_before_the_await_is_there_at_once() -> None:
    future = fast_future_factory()()
    future.set_result(7)
    assert await future == 7


async def test_a_cancelled_task_gets_the_cancellation_and_a_later_result_is_an_error(trigger: Trigger) -> None:
    future = fast_future_factory()()
    ended: list[str] = []

    async def wait() -> None:
        try:
            await future
        except anyio.get_cancelled_exc_class():
            ended.append("cancelled")
            raise

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert ended == ["cancelled"]
    assert future.cancelled()
    with pytest.raises(asyncio.InvalidStateError):
        future.set_result(None)


async def test_a_task_that_fails_when_it_continues_ends_only_itself(trigger: Trigger) -> None:
    future, fine = fast_future_factory()(), fast_future_factory()()
    went_on: list[str] = []

    def set_result() -> None:
        future.set_result(None)
        went_on.append("the callback")

    async def fails() -> None:
        await future
        raise LookupError("its own fault")

    fire, again = trigger.on_fire(set_result), trigger.on_fire(lambda: fine.set_result("fine"))
    task = asyncio.ensure_future(fails())
    with anyio.fail_after(30):
        await anyio.wait_all_tasks_blocked()
        fire()
        with pytest.raises(LookupError):
            await task
        again()
        assert await fine == "fine"
    assert went_on == ["the callback"]


async def test_a_second_task_that_awaits_the_future_continues_as_well(trigger: Trigger) -> None:
    seen: list[str] = []
    future = fast_future_factory()()
    fire = trigger.on_fire(partial(future.set_result, "result"))

    async def wait() -> None:
        seen.append(await future)

    await run_until_done(fire, wait, wait)
    assert seen == ["result", "result"]
