"""Many descriptors and deadlines in one loop: what is called, and when."""

from __future__ import annotations

import asyncio
import os
from math import inf

import anyio
import pytest

from hookproxy.runners.event_watch import EventWatch, TimeLimit, get_watch
from hookproxy.transports.event_loop import new_loop

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[{}, {"loop_factory": new_loop}], ids=["any loop", "our loop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", request.param


class Steps:
    """A run that notes its steps, and has `left` of them."""

    def __init__(self, due: float, left: int) -> None:
        self.due = due
        self.left = left
        self.times: list[float] = []
        self.done = anyio.Event()

    def on_due(self, now: float) -> None:
        self.times.append(now)
        self.left -= 1
        self.due = now + 0.01 if self.left else inf
        if not self.left:
            self.done.set()


async def test_a_descriptor_closed_by_an_earlier_callback_gets_no_callback() -> None:
    watch = EventWatch(asyncio.get_running_loop())
    called: list[int] = []
    ends = [os.pipe() for _ in range(2)]
    both_ready = anyio.Event()

    def ready(mine: int, other: int) -> None:
        called.append(mine)
        watch.close_fd(mine)
        watch.close_fd(other)
        both_ready.set()

    (first, write_first), (second, write_second) = ends
    watch.add_fd(first, lambda: ready(first, second))
    watch.add_fd(second, lambda: ready(second, first))
    os.write(write_first, b"x")
    os.write(write_second, b"x")
    with anyio.fail_after(30):
        await both_ready.wait()
    assert len(called) == 1
    for fd in (write_first, write_second):
        watch.close_fd(fd)  # never watched


async def test_each_run_is_called_at_its_own_time_by_one_timer() -> None:
    watch = EventWatch(asyncio.get_running_loop())
    now = watch.loop.time()
    late, soon, gone = Steps(now + 0.03, 1), Steps(now + 0.01, 3), Steps(now + 0.01, 1)
    for run in (late, soon, gone):
        watch.add_run(run)
    watch.remove_run(gone)
    with anyio.fail_after(30):
        await late.done.wait()
        await soon.done.wait()
    assert late.times[0] >= now + 0.03
    assert len(soon.times) == 3
    assert gone.times == []


async def test_a_loop_has_one_watch() -> None:
    loop = asyncio.get_running_loop()
    assert get_watch(loop) is get_watch(loop)


async def test_a_time_limit_ends_what_takes_too_long_and_nothing_else() -> None:
    watch = EventWatch(asyncio.get_running_loop())
    with TimeLimit(watch, 10):
        await anyio.sleep(0.001)
    with pytest.raises(TimeoutError), TimeLimit(watch, 0.02):
        await anyio.sleep(10)
    with pytest.raises(ValueError, match="mine"), TimeLimit(watch, 10):
        raise ValueError("mine")
    task = asyncio.current_task()
    assert task
    assert task.cancelling() == 0


async def test_a_cancel_from_outside_passes_through_a_time_limit() -> None:
    watch = EventWatch(asyncio.get_running_loop())
    with anyio.move_on_after(0.02) as scope, TimeLimit(watch, 10):
        await anyio.sleep(10)
    assert scope.cancelled_caught


async def test_of_two_time_limits_the_earlier_one_counts() -> None:
    watch = EventWatch(asyncio.get_running_loop())
    with TimeLimit(watch, 10):
        with pytest.raises(TimeoutError), TimeLimit(watch, 0.02):
            await anyio.sleep(10)
        await anyio.sleep(0.001)
