"""Watches the descriptors and deadlines of many short runs in one event loop, with one timer for all of them.

Law: a run that has ended before its deadline is not overdue. This process may be stopped or busy while a run ends; then
the event that it has ended and its deadline both wait. The loop handles what has happened before a deadline counts.

The loop's own `add_reader` and `call_later` for each descriptor and each run would cost 8 % of a small hook.
"""

from __future__ import annotations

import os
from asyncio import CancelledError, current_task, get_running_loop, sleep
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol

from ..processes.loop_callbacks import READABLE, LoopCallbacks
from ..processes.process import prepare_for_children

if TYPE_CHECKING:
    import asyncio


# Turns of the event loop from an event to the end of the run that waits for it: the loop reports a descriptor, its
# callback wakes a task, the task continues; one more for a callback that runs through the loop's queue.
_TURNS: Final = 4
# Seconds that a run gets at most if its deadline was noticed late: what waited for us to read its output ends then.
_LONGEST_DELAY: Final = 0.5


class TimedRun(Protocol):
    """A run that has a next step at a certain time."""

    due: float
    """Seconds of `monotonic`, which is the loop's clock."""

    def on_due(self, now: float) -> None:
        """Take the next step, and set `due` to the time of the one after it.

        Whatever happened before `due` has been handled: the run has not ended.
        """


class DirectCallbacks(Protocol):
    """What an event loop offers that runs callbacks inside its wait (`transports.event_loop`)."""

    def add_direct(self, fd: int, events: int, callback: Callable[[], None]) -> None:
        """Run `callback` whenever one of `events` is reported for `fd`."""

    def remove_direct(self, fd: int) -> None:
        """Stop calling it; `fd` need not be registered."""


class EventWatch:
    """The runs of one event loop, with the descriptors that they wait for. Not thread-safe."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        prepare_for_children()
        self.loop = loop
        self._runs: set[TimedRun] = set()
        direct: DirectCallbacks | None = getattr(loop, "direct", None)
        self._fds = LoopCallbacks(loop) if direct is None else direct
        self._timer: asyncio.TimerHandle | None = None
        self._next_due = inf  # when the timer fires
        self._asked: set[TimedRun] = set()  # due runs whose step is taken soon, if they have not ended by then

    def add_run(self, run: TimedRun) -> None:
        """From now on, call `run.on_due` when it is due."""
        self._runs.add(run)
        if run.due < self._next_due:
            self.wake_by(run.due)

    def remove_run(self, run: TimedRun) -> None:
        """Stop calling it."""
        self._runs.discard(run)

    def add_fd(self, fd: int, callback: Callable[[], None], events: int = READABLE) -> None:
        """Call `callback` whenever one of `events` is reported for `fd`, until `remove_fd` or `close_fd`."""
        self._fds.add_direct(fd, events, callback)

    def remove_fd(self, fd: int) -> None:
        """Stop watching `fd`, and leave it open."""
        self._fds.remove_direct(fd)

    def close_fd(self, fd: int) -> None:
        """Close `fd`, watched or not. Watching stops first, because the next pipe may get the same number."""
        self._fds.remove_direct(fd)
        os.close(fd)

    def wake_by(self, due: float) -> None:
        """Call due runs no later than `due`. Also to be called when a run's `due` moves to an earlier time."""
        if self._next_due <= due:
            return  # the timer stays although its run may be over: in a burst of small hooks one timer serves several
        if self._timer is not None:
            self._timer.cancel()
        self._next_due = due
        self._timer = self.loop.call_at(due, self._tick)

    def _tick(self) -> None:
        self._timer, self._next_due = None, inf
        now = monotonic()
        due = [(run, run.due) for run in self._runs if run.due <= now and run not in self._asked]
        if due:
            self._asked.update(run for run, _ in due)
            late = now - min(when for _, when in due)
            self.loop.call_later(min(late, _LONGEST_DELAY), self._look_again, due, _TURNS)
        self._wake_for_next()

    def _look_again(self, due: list[tuple[TimedRun, float]], turns: int) -> None:
        """After so many turns of the loop, take the next step of the runs that have not ended or moved on by then."""
        if turns:
            self.loop.call_soon(self._look_again, due, turns - 1)
            return
        self._asked.difference_update(run for run, _ in due)
        for run, when in due:
            if run in self._runs and run.due == when:
                run.on_due(monotonic())
        self._wake_for_next()

    def _wake_for_next(self) -> None:
        due = min((run.due for run in self._runs if run not in self._asked), default=inf)
        if due < inf:
            self.wake_by(due)


class TimeLimit:
    """A timeout as `asyncio.timeout`, at a third of its cost: a run whose only step is to cancel the task.

    `with TimeLimit(watch, seconds):` raises TimeoutError if its block has not ended in time.
    """

    __slots__ = ("_cancelling", "_expired", "_task", "_watch", "due")

    def __init__(self, watch: EventWatch, seconds: float) -> None:
        self.due = watch.loop.time() + seconds
        self._watch = watch
        self._expired = False

    def __enter__(self) -> None:
        """The time counts from when the TimeLimit was made."""
        task = current_task(self._watch.loop)
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        self._watch.add_run(self)

    def on_due(self, _now: float) -> None:
        """The time is up."""
        self.due = inf
        self._expired = True
        self._task.cancel()

    def __exit__(self, error_type: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        """A cancellation from outside passes through."""
        self._watch.remove_run(self)
        if self._expired and self._task.uncancel() <= self._cancelling and error_type is CancelledError:
            raise TimeoutError from error


_latest: EventWatch | None = None  # a process has one event loop; only tests have several, one after another


def get_watch(loop: asyncio.AbstractEventLoop) -> EventWatch:
    """The EventWatch of the loop, made on first use."""
    global _latest
    if _latest is None or _latest.loop is not loop:
        _latest = EventWatch(loop)
    return _latest


def time_limit(seconds: float) -> TimeLimit:
    """A TimeLimit in the running event loop."""
    return TimeLimit(get_watch(get_running_loop()), seconds)


async def settle() -> None:
    """Let the running loop handle what has already happened: for other deadlines than those of an EventWatch."""
    for _ in range(_TURNS):
        await sleep(0)
