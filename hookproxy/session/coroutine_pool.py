"""Tasks that handle calls, one call after another: each call has a task of its own until it ends (law 1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import anyio.abc

from ..processes.fast_future import FastFuture, fast_future_factory
from ..protocol.calls import Call

_MAX_IDLE: Final = 16  # tasks kept for later calls: as many calls as are often in flight


class CallCoroutine:
    """A task that handles calls, one after another: to start a task for each would cost a tenth of a call."""

    task: anyio.TaskHandle[None]
    cancelled = False
    _awaited: FastFuture[Call] | None = None

    def __init__(self) -> None:
        self._promise = fast_future_factory()

    def cancel(self) -> None:
        """Cancel the call, and with it the task."""
        self.cancelled = True
        self.task.cancel()

    async def wait(self) -> Call:
        """Wait for `resume`: either its call has a response, or the next call is there."""
        self._awaited = self._promise()
        try:
            return await self._awaited
        finally:
            self._awaited = None

    def resume(self, call: Call) -> None:
        """Let `wait` return this call; does nothing if nobody waits."""
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(call)


class CoroutinePool:
    """The coroutines that handle a proxy's calls; they end with `tasks`."""

    def __init__(
        self,
        tasks: anyio.abc.TaskGroup,
        run_call: Callable[[Call], Awaitable[None]],
        running: dict[Call, CallCoroutine],
    ) -> None:
        """`running` gets each call with its coroutine; `run_call` removes it."""
        self._tasks = tasks
        self._run_call = run_call
        self._running = running
        self._idle: list[CallCoroutine] = []

    def start(self, call: Call) -> None:
        """Handle this call. An idle coroutine may reach its first wait, or its end, before this returns."""
        if self._idle:
            self._running[call] = coroutine = self._idle.pop()
            coroutine.resume(call)
        else:
            self._running[call] = coroutine = CallCoroutine()
            coroutine.task = self._tasks.start_soon(self._work, coroutine, call)

    async def _work(self, coroutine: CallCoroutine, call: Call) -> None:
        await self._run_call(call)
        while not coroutine.cancelled and len(self._idle) < _MAX_IDLE:
            self._idle.append(coroutine)
            try:
                call = await coroutine.wait()
            except anyio.get_cancelled_exc_class():
                self._idle.remove(coroutine)
                raise
            await self._run_call(call)
