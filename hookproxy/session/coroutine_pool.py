"""Tasks that see judged calls through, one call after another: each call has one to itself while it lasts (law 1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import anyio.abc

from ..processes.fast_future import FastFuture, fast_future_factory
from ..protocol.calls import Call

_IDLE: Final = 16  # tasks that wait for a call: as many as are often in flight


class CallCoroutine:
    """A task that sees calls through, one after another: to make one would cost a tenth of a call."""

    task: anyio.TaskHandle[None]
    cancelled = False
    _awaited: FastFuture[Call] | None = None

    def __init__(self) -> None:
        self._promise = fast_future_factory()

    def cancel(self) -> None:
        """End the call, and with it the task."""
        self.cancelled = True
        self.task.cancel()

    async def told(self) -> Call:
        """Wait for what `tell` says: the answer to its call, or the next one."""
        self._awaited = self._promise()
        try:
            return await self._awaited
        finally:
            self._awaited = None

    def tell(self, call: Call) -> None:
        """What it waits for is there, if it waits."""
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(call)


class CoroutinePool:
    """The clerks of a proxy; they end with `tasks`."""

    def __init__(
        self,
        tasks: anyio.abc.TaskGroup,
        see_through: Callable[[Call], Awaitable[None]],
        running: dict[Call, CallCoroutine],
    ) -> None:
        """`running` gets each call with its clerk; `see_through` takes it out."""
        self._tasks = tasks
        self._see_through = see_through
        self._running = running
        self._idle: list[CallCoroutine] = []

    def begin(self, call: Call) -> None:
        """Let one see this call through: an idle one may come to its first wait, or its end, before this returns."""
        if self._idle:
            self._running[call] = coroutine = self._idle.pop()
            coroutine.tell(call)
        else:
            self._running[call] = coroutine = CallCoroutine()
            coroutine.task = self._tasks.start_soon(self._work, coroutine, call)

    async def _work(self, coroutine: CallCoroutine, call: Call) -> None:
        await self._see_through(call)
        while not coroutine.cancelled and len(self._idle) < _IDLE:
            self._idle.append(coroutine)
            try:
                call = await coroutine.told()
            except anyio.get_cancelled_exc_class():
                self._idle.remove(coroutine)
                raise
            await self._see_through(call)
