"""Threads in which functions run that may block: kept for the next one, and left alone where one never returns.

A thread cannot be ended. These are daemons, so that one that never returns does not keep the process from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

_MOST_STUCK: Final = 32  # threads that nobody waits for any more: a function that always hangs must not fill memory
_FAREWELL: Final = 0.2  # seconds for threads that have nothing to do to end

_Task = Callable[[], None]


class TooManyStuck(Exception):
    """No further function is run; the message says why, to stand as `Verdict.trouble`."""


class Threads:
    """Threads of one event loop, started when there is none to spare."""

    def __init__(self) -> None:
        self._idle: list[_Thread] = []
        self._closed = False
        self.stuck = 0
        """How many threads run a function whose result nobody waits for any more."""

    async def run(self, function: Callable[[], object], seconds: float) -> bytes:
        """What the function gives. Raises TimeoutError, TooManyStuck, and what the function raises.

        After a timeout, and on cancel, the function runs on, and is counted as stuck until it returns.
        """
        if self.stuck >= _MOST_STUCK:
            raise TooManyStuck(f"is not called, for {self.stuck} calls that took too long have still not returned")
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[bytes] = loop.create_future()
        thread = self._idle.pop() if self._idle else _Thread()
        overdue = loop.call_later(seconds, self._give_up, ended)
        thread.give(lambda: _see_through(function, loop, ended, lambda: self._returned(thread, ended)))
        try:
            return await ended
        except asyncio.CancelledError:
            if ended.cancelled():
                self.stuck += 1
            raise
        finally:
            overdue.cancel()

    def _give_up(self, ended: asyncio.Future[bytes]) -> None:
        if not ended.done():
            self.stuck += 1
            ended.set_exception(TimeoutError())

    def _returned(self, thread: _Thread, ended: asyncio.Future[bytes]) -> None:
        """A function has returned, and its thread is free; runs in the loop."""
        if ended.done():
            self.stuck -= 1
        if self._closed:
            thread.end()
        else:
            self._idle.append(thread)

    def close(self) -> None:
        """End the threads that have nothing to do; others end when their functions return, or with the process."""
        self._closed = True
        for thread in self._idle:
            thread.end()
        for thread in self._idle:
            thread.join(_FAREWELL)
        self._idle.clear()


class _Thread:
    """A thread that does one task after another."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="runs a Python hook", daemon=True)
        self._thread.start()

    def give(self, task: _Task) -> None:
        """Do this; only when it has nothing to do."""
        self._tasks.put(task)

    def end(self) -> None:
        """End when there is nothing to do."""
        self._tasks.put(None)

    def join(self, seconds: float) -> None:
        """Wait until it has ended, so long at most."""
        self._thread.join(seconds)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()
            del task  # it holds a document


def _see_through(
    function: Callable[[], object],
    loop: asyncio.AbstractEventLoop,
    ended: asyncio.Future[bytes],
    returned: Callable[[], None],
) -> None:
    """Run the function in this thread, and tell the loop what came of it."""
    answer, problem = b"", None
    try:
        given = function()
        assert isinstance(given, bytes)
        answer = given
    except Exception as raised:  # handed over: it is raised where the function is waited for
        problem = raised

    def tell() -> None:
        returned()
        if ended.done():
            return
        if problem is None:
            ended.set_result(answer)
        else:
            ended.set_exception(problem)

    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
        loop.call_soon_threadsafe(tell)
