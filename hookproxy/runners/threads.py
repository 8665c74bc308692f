"""Threads in which functions run that may block: kept for the next one, and left alone where one never returns.

A thread cannot be ended. These are daemons, so that one that never returns does not keep the process from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from math import inf
from queue import SimpleQueue
from typing import Final

from .event_watch import watch_of

_MOST_STUCK: Final = 32  # threads that nobody waits for any more: a function that always hangs must not fill memory
_FAREWELL: Final = 0.2  # seconds for threads that have nothing to do to end


class TooManyStuck(Exception):
    """No further function is run; the message says why, to stand as `Verdict.trouble`."""


class Threads:
    """Threads of one event loop, started when there is none to spare."""

    def __init__(self) -> None:
        self._idle: list[_Thread] = []
        self._returned: deque[_Run] = deque()
        self._bell = -1  # rung by threads when something has returned: half the price of asyncio's own way
        self._under_way = 0
        self._closed = False
        self.stuck = 0
        """How many threads run a function whose result nobody waits for any more."""

    async def run(self, function: Callable[[], object], seconds: float) -> bytes:
        """What the function gives. Raises TimeoutError, TooManyStuck, and what the function raises.

        After a timeout, and on cancel, the function runs on, and is counted as stuck until it returns.
        """
        if self.stuck >= _MOST_STUCK:
            raise TooManyStuck(f"is not called, for {self.stuck} calls that took too long have still not returned")
        watch = watch_of(asyncio.get_running_loop())
        if self._bell < 0:
            self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            watch.add(self._bell, self._collect)
        run = _Run(self, function, watch.loop.create_future(), watch.loop.time() + seconds)
        thread = self._idle.pop() if self._idle else _Thread(self._returned, self._bell)
        watch.begin(run)
        self._under_way += 1
        thread.give(run)
        try:
            return await run.ended
        except asyncio.CancelledError:
            self.stuck += run.ended.cancelled()
            raise
        finally:
            watch.end(run)

    def _collect(self) -> None:
        """Functions have returned, and their threads are free; runs in the loop."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        while self._returned:
            run = self._returned.popleft()
            self._under_way -= 1
            if self._closed:
                run.thread.end()
            else:
                self._idle.append(run.thread)
            if run.ended.done():
                self.stuck -= 1
            elif run.problem is not None:
                run.ended.set_exception(run.problem)
            else:
                run.ended.set_result(run.answer)

    def close(self) -> None:
        """End the threads that have nothing to do; others end when their functions return, or with the process."""
        self._closed = True
        for thread in self._idle:
            thread.end()
        for thread in self._idle:
            thread.join(_FAREWELL)
        self._idle.clear()
        if self._bell >= 0 and not self._under_way:  # else somebody may still ring, and its number be another's by then
            watch_of(asyncio.get_running_loop()).close(self._bell)
            self._bell = -1


class _Run:
    """One function's run, which is overdue at some time."""

    __slots__ = ("_owner", "answer", "due", "ended", "function", "problem", "thread")

    def __init__(
        self, owner: Threads, function: Callable[[], object], ended: asyncio.Future[bytes], due: float
    ) -> None:
        self._owner = owner
        self.function = function
        self.ended = ended
        self.due = due
        self.thread: _Thread
        self.answer = b""
        self.problem: Exception | None = None

    def call(self) -> None:
        """Run the function, in a thread."""
        try:
            given = self.function()
            assert isinstance(given, bytes)
            self.answer = given
        except Exception as raised:  # handed over: it is raised where the function is waited for
            self.problem = raised

    def overdue(self, _now: float) -> None:
        """Nobody waits any longer."""
        self.due = inf
        if not self.ended.done():
            self._owner.stuck += 1
            self.ended.set_exception(TimeoutError())


class _Thread:
    """A thread that does one run after another."""

    def __init__(self, returned: deque[_Run], bell: int) -> None:
        self._runs: SimpleQueue[_Run | None] = SimpleQueue()
        self._returned = returned
        self._bell = bell
        self._thread = threading.Thread(target=self._work, name="runs a Python hook", daemon=True)
        self._thread.start()

    def give(self, run: _Run) -> None:
        """Do this; only when it has nothing to do."""
        run.thread = self
        self._runs.put(run)

    def end(self) -> None:
        """End when there is nothing to do."""
        self._runs.put(None)

    def join(self, seconds: float) -> None:
        """Wait until it has ended, so long at most."""
        self._thread.join(seconds)

    def _work(self) -> None:
        while (run := self._runs.get()) is not None:
            run.call()
            self._returned.append(run)
            del run  # it holds a document
            os.eventfd_write(self._bell, 1)
