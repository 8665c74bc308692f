"""Watches many short runs in one event loop for the price of one descriptor and one timer.

The loop's own `add_reader` and `call_later` for each descriptor and each run would cost 8 % of a small hook.
"""

from __future__ import annotations

import os
import select
from asyncio import CancelledError, current_task
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from ..processes.process import settle

if TYPE_CHECKING:
    import asyncio

READABLE = select.EPOLLIN
WRITABLE = select.EPOLLOUT


class Run(Protocol):
    """What has a next step at a certain time."""

    due: float
    """Seconds of `monotonic`, which is the loop's clock."""

    def overdue(self, now: float) -> None:
        """Take the next step, and set `due` to the time of the one after it."""


class Direct(Protocol):
    """What a loop offers that runs callbacks inside its wait (`transports.direct`)."""

    def add_direct(self, fd: int, events: int, callback: Callable[[], None]) -> None:
        """Run `callback` whenever one of `events` is reported for `fd`."""

    def remove_direct(self, fd: int) -> None:
        """No longer; fine if it never did."""


class _Nested:
    """The same for any other loop: an epoll that the loop waits for as for one descriptor."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._ready: dict[int, Callable[[], None]] = {}
        self._set = select.epoll()
        loop.add_reader(self._set.fileno(), self._look)

    def add_direct(self, fd: int, events: int, callback: Callable[[], None]) -> None:
        self._set.register(fd, events)
        self._ready[fd] = callback

    def remove_direct(self, fd: int) -> None:
        if self._ready.pop(fd, None):
            self._set.unregister(fd)

    def _look(self) -> None:
        for fd, _ in self._set.poll(0, 64):
            if ready := self._ready.get(fd):  # else a callback before this one has closed it
                ready()


class Watch:
    """The runs of one event loop, with the descriptors that they wait for. Not for other threads."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        settle()
        self.loop = loop
        self._runs: set[Run] = set()
        direct: Direct | None = getattr(loop, "direct", None)
        self._descriptors = _Nested(loop) if direct is None else direct
        self._timer: asyncio.TimerHandle | None = None
        self._next = inf  # when it is due

    def begin(self, run: Run) -> None:
        """From now on, tell `run` when it is overdue."""
        self._runs.add(run)
        if run.due < self._next:
            self.wake(run.due)

    def end(self, run: Run) -> None:
        """Tell it no longer."""
        self._runs.discard(run)

    def add(self, fd: int, ready: Callable[[], None], for_what: int = READABLE) -> None:
        """Call `ready` whenever `fd` is, until it is closed through `close`."""
        self._descriptors.add_direct(fd, for_what, ready)

    def forget(self, fd: int) -> None:
        """Watch `fd` no longer, and leave it open."""
        self._descriptors.remove_direct(fd)

    def close(self, fd: int) -> None:
        """Close `fd`, watched or not. Watching ends first, because the next pipe may get the same number."""
        self._descriptors.remove_direct(fd)
        os.close(fd)

    def wake(self, due: float) -> None:
        """Call overdue runs no later than `due`; also to be called where a run's `due` has come nearer."""
        if self._next <= due:
            return  # kept although its run may be over: in a burst of small hooks one timer serves several
        if self._timer is not None:
            self._timer.cancel()
        self._next = due
        self._timer = self.loop.call_at(due, self._tick)

    def _tick(self) -> None:
        self._timer, self._next = None, inf
        now = monotonic()
        for run in [run for run in self._runs if run.due <= now]:
            run.overdue(now)
        due = min((run.due for run in self._runs), default=inf)
        if due < inf:
            self.wake(due)


class Limit:
    """`asyncio.timeout` for a third of its price: a run whose only step is to cancel what takes too long.

    `with Limit(watch, seconds):` raises TimeoutError where its block has not ended in time.
    """

    __slots__ = ("_cancelling", "_expired", "_task", "_watch", "due")

    def __init__(self, watch: Watch, seconds: float) -> None:
        self.due = watch.loop.time() + seconds
        self._watch = watch
        self._expired = False

    def __enter__(self) -> None:
        """It counts from when it was made."""
        task = current_task(self._watch.loop)
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        self._watch.begin(self)

    def overdue(self, _now: float) -> None:
        """Too long."""
        self.due = inf
        self._expired = True
        self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, _trace: object) -> None:
        """Somebody else's cancel goes on as such."""
        self._watch.end(self)
        if self._expired and self._task.uncancel() <= self._cancelling and kind is CancelledError:
            raise TimeoutError from problem


_latest: Watch | None = None  # a process has one loop; only tests have one after another


def watch_of(loop: asyncio.AbstractEventLoop) -> Watch:
    """The loop's watch, made where there is none."""
    global _latest
    if _latest is None or _latest.loop is not loop:
        _latest = Watch(loop)
    return _latest
