"""Waiting: whoever waits for a condition goes on when it holds, and clerks when there is a call."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from hookproxy.calls import Call
from hookproxy.changes import Changes, Clerk, Clerks

pytestmark = pytest.mark.anyio


def call(number: int) -> Call:
    return Call(b"%d" % number, b"%d" % number, b"", "tool", b"{}", {}, stateless=False, task=False)


async def test_what_holds_already_is_not_waited_for() -> None:
    looks: list[bool] = []
    with anyio.fail_after(1):
        await Changes().until(lambda: looks.append(True) is None)  # type: ignore[func-returns-value]
    assert looks == [True]


async def test_a_condition_is_looked_at_again_whenever_something_has_changed() -> None:
    changes = Changes()
    values: list[int] = []
    looks: list[int] = []
    over: list[str] = []

    async def wait(name: str, least: int) -> None:
        def holds() -> bool:
            looks.append(len(values))
            return len(values) >= least

        await changes.until(holds)
        over.append(name)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait, "two", 2)
        tasks.start_soon(wait, "one", 1)
        await anyio.wait_all_tasks_blocked()
        assert looks == [0, 0]
        values.append(1)
        await anyio.wait_all_tasks_blocked()
        assert looks == [0, 0], "nobody has told of it"
        changes.tell()
        await anyio.wait_all_tasks_blocked()
        assert (looks, over) == ([0, 0, 1, 1], ["one"])
        values.append(2)
        changes.tell()
        changes.tell()
        with anyio.fail_after(1):
            while over != ["one", "two"]:
                await anyio.lowlevel.checkpoint()


async def test_a_change_that_comes_between_look_and_wait_of_another_is_not_lost() -> None:
    changes = Changes()
    done: list[str] = []

    async def first() -> None:
        await changes.until(lambda: "go" in done)
        done.append("first")
        changes.tell()

    with anyio.fail_after(1):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first)
            tasks.start_soon(changes.until, lambda: "first" in done)
            await anyio.wait_all_tasks_blocked()
            done.append("go")
            changes.tell()


async def test_waiting_can_be_cancelled_and_telling_nobody_is_fine() -> None:
    changes = Changes()
    changes.tell()
    with anyio.move_on_after(0.01) as scope:
        await changes.until(lambda: False)
    assert scope.cancelled_caught
    changes.tell()


async def test_a_clerk_sees_one_call_after_another_through() -> None:
    seen: list[tuple[int, anyio.TaskInfo]] = []

    async def see_through(call: Call) -> None:
        seen.append((int(call.key), anyio.get_current_task()))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            clerks = Clerks(tasks, see_through)
            for number in (1, 2, 3):
                clerks.begin(call(number))
                await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert [number for number, _ in seen] == [1, 2, 3]
    assert len({task.id for _, task in seen}) == 1


async def test_calls_at_the_same_time_have_clerks_of_their_own_and_few_of_them_stay() -> None:
    begun = 0
    go = anyio.Event()

    async def see_through(_call: Call) -> None:
        nonlocal begun
        begun += 1
        await go.wait()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            clerks = Clerks(tasks, see_through)
            for number in range(100):
                clerks.begin(call(number))
            await anyio.wait_all_tasks_blocked()
            assert begun == 100
            go.set()
            await anyio.wait_all_tasks_blocked()
            assert len(anyio.get_running_tasks()) < 50
            tasks.cancel_scope.cancel()


async def test_a_call_that_is_cancelled_takes_its_clerk_along_and_no_other_call() -> None:
    ended: list[str] = []
    go = anyio.Event()

    async def see_through(call: Call) -> None:
        try:
            await go.wait()
            ended.append(f"{call.id.decode()} went on")
        except anyio.get_cancelled_exc_class():
            ended.append(f"{call.id.decode()} was cancelled")
            raise

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            clerks = Clerks(tasks, see_through)
            first, second = clerks.begin(call(1)), clerks.begin(call(2))
            await anyio.wait_all_tasks_blocked()
            first.cancel()
            await anyio.wait_all_tasks_blocked()
            go.set()
            await anyio.wait_all_tasks_blocked()
            assert clerks.begin(call(3)) is second
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert ended == ["1 was cancelled", "2 went on", "3 went on"]


async def test_a_clerk_that_is_cancelled_when_its_call_has_ended_gets_no_other() -> None:
    clerk: Clerk | None = None

    async def see_through(_call: Call) -> None:
        if clerk is not None:
            clerk.cancel()  # too late for the call, which does not wait any more

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            clerks = Clerks(tasks, see_through)
            clerk = clerks.begin(call(1))
            await anyio.wait_all_tasks_blocked()
            assert clerks.begin(call(2)) is not clerk
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()


async def test_what_is_told_twice_or_to_nobody_is_no_error() -> None:
    waiting: list[Call] = []
    clerk = Clerk()
    clerk.tell(call(1))

    async def wait() -> None:
        waiting.append(await clerk.told())

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            clerk.tell(call(2))
            clerk.tell(call(3))
    assert [one.key for one in waiting] == [b"2"]
