"""Whoever waits for a condition goes on when it holds."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from hookproxy.protocol.calls import Call
from hookproxy.session.change_event import ChangeEvent

pytestmark = pytest.mark.anyio


def call(number: int) -> Call:
    return Call(b"%d" % number, b"%d" % number, b"", "tool", b"{}", {}, stateless=False, task=False)


async def test_a_condition_that_holds_already_is_not_waited_for() -> None:
    looks: list[bool] = []
    with anyio.fail_after(30):
        await ChangeEvent().until(lambda: looks.append(True) is None)  # type: ignore[func-returns-value]
    assert looks == [True]


async def test_a_condition_is_checked_again_after_each_notify() -> None:
    changes = ChangeEvent()
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
        assert looks == [0, 0], "nobody has called notify"
        changes.notify()
        await anyio.wait_all_tasks_blocked()
        assert (looks, over) == ([0, 0, 1, 1], ["one"])
        values.append(2)
        changes.notify()
        changes.notify()
        with anyio.fail_after(30):
            while over != ["one", "two"]:
                await anyio.lowlevel.checkpoint()


async def test_a_change_between_the_check_and_the_wait_of_another_is_not_lost() -> None:
    changes = ChangeEvent()
    done: list[str] = []

    async def first() -> None:
        await changes.until(lambda: "go" in done)
        done.append("first")
        changes.notify()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first)
            tasks.start_soon(changes.until, lambda: "first" in done)
            await anyio.wait_all_tasks_blocked()
            done.append("go")
            changes.notify()


async def test_waiting_can_be_cancelled_and_notify_without_a_waiter_is_fine() -> None:
    changes = ChangeEvent()
    changes.notify()
    with anyio.move_on_after(0.01) as scope:
        await changes.until(lambda: False)
    assert scope.cancelled_caught
    changes.notify()
