"""Coroutines handle calls, one after another, and end with a call that is cancelled."""

from __future__ import annotations

import asyncio
import os
import select

import anyio
import anyio.lowlevel
import pytest

from hookproxy.network.epoll_loop import DirectLoop
from hookproxy.protocol.calls import Call
from hookproxy.session.coroutine_pool import CallCoroutine, CoroutinePool
from tests.support.proxy_rig import DIRECT_LOOP

pytestmark = pytest.mark.anyio


def call(number: int) -> Call:
    return Call(b"%d" % number, b"%d" % number, b"", "tool", b"{}", {}, stateless=False, task=False)


async def test_a_coroutine_handles_one_call_after_another() -> None:
    running: dict[Call, CallCoroutine] = {}
    seen: list[tuple[int, anyio.TaskInfo]] = []

    async def carry_out(call: Call) -> None:
        seen.append((int(call.key), anyio.get_current_task()))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            pool = CoroutinePool(tasks, carry_out, running)
            for number in (1, 2, 3):
                pool.start(call(number))
                await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert [number for number, _ in seen] == [1, 2, 3]
    assert len({task.id for _, task in seen}) == 1


async def test_calls_at_the_same_time_have_coroutines_of_their_own_and_few_of_them_stay() -> None:
    running: dict[Call, CallCoroutine] = {}
    begun = 0
    go = anyio.Event()

    async def carry_out(_call: Call) -> None:
        nonlocal begun
        begun += 1
        await go.wait()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            pool = CoroutinePool(tasks, carry_out, running)
            for number in range(100):
                pool.start(call(number))
            await anyio.wait_all_tasks_blocked()
            assert begun == 100
            go.set()
            await anyio.wait_all_tasks_blocked()
            assert len(anyio.get_running_tasks()) < 50
            tasks.cancel_scope.cancel()


async def test_a_call_that_is_cancelled_ends_its_coroutine_and_no_other_call() -> None:
    running: dict[Call, CallCoroutine] = {}
    ended: list[str] = []
    go = anyio.Event()

    async def carry_out(call: Call) -> None:
        try:
            await go.wait()
            ended.append(f"{call.id.decode()} went on")
        except anyio.get_cancelled_exc_class():
            ended.append(f"{call.id.decode()} was cancelled")
            raise

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            pool = CoroutinePool(tasks, carry_out, running)
            first, second, third = call(1), call(2), call(3)
            pool.start(first)
            pool.start(second)
            await anyio.wait_all_tasks_blocked()
            running[first].cancel()
            await anyio.wait_all_tasks_blocked()
            go.set()
            await anyio.wait_all_tasks_blocked()
            pool.start(third)
            assert running[third] is running[second]
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert ended == ["1 was cancelled", "2 went on", "3 went on"]


async def test_a_coroutine_that_is_cancelled_when_its_call_has_ended_gets_no_other_call() -> None:
    running: dict[Call, CallCoroutine] = {}
    first, second = call(1), call(2)

    async def carry_out(one: Call) -> None:
        if one is first:
            running[one].cancel()  # too late for the call, which does not wait any more

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            pool = CoroutinePool(tasks, carry_out, running)
            pool.start(first)
            await anyio.wait_all_tasks_blocked()
            pool.start(second)
            assert running[second] is not running[first]
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("anyio_backend", [DIRECT_LOOP])
async def test_an_idle_coroutine_that_gets_a_call_where_bytes_arrive_reaches_its_first_wait_at_once() -> None:
    running: dict[Call, CallCoroutine] = {}
    seen: list[str] = []
    go = anyio.Event()
    reader, writer = os.pipe()
    loop = asyncio.get_running_loop()
    assert isinstance(loop, DirectLoop)

    async def carry_out(one: Call) -> None:
        assert one in running, "whoever looks for it finds it, however soon it runs"
        seen.append(f"{one.id.decode()} began")
        await go.wait()

    def arrived() -> None:
        os.read(reader, 1)
        pool.start(call(2))
        seen.append("the callback goes on")

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            pool = CoroutinePool(tasks, carry_out, running)
            pool.start(call(1))
            go.set()
            await anyio.wait_all_tasks_blocked()
            go = anyio.Event()
            loop.direct.add_direct(reader, select.EPOLLIN, arrived)
            os.write(writer, b"x")
            await anyio.wait_all_tasks_blocked()
            loop.direct.remove_direct(reader)
            tasks.cancel_scope.cancel()
    os.close(reader)
    os.close(writer)
    assert seen == ["1 began", "2 began", "the callback goes on"]


async def test_resuming_twice_or_without_a_waiter_is_not_an_error() -> None:
    waiting: list[Call] = []
    coroutine = CallCoroutine()
    coroutine.resume(call(1))

    async def wait() -> None:
        waiting.append(await coroutine.wait())

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            coroutine.resume(call(2))
            coroutine.resume(call(3))
    assert [one.key for one in waiting] == [b"2"]
