"""A future whose awaiting task continues at once when the result is set in a direct callback of a DirectLoop.

asyncio wakes a task through its queue, which costs one turn of the loop: three turns are a tenth of a hooked call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from contextvars import Context

_Result = TypeVar("_Result")


class FastFuture(asyncio.Future[_Result]):
    """A future that usually one task awaits. Everything else about it is asyncio's own, including cancellation."""

    _callback: tuple[Callable[[FastFuture[_Result]], object], Context] | None = None

    def add_done_callback(
        self, fn: Callable[[FastFuture[_Result]], object], /, *, context: Context | None = None
    ) -> None:
        """As asyncio's; the first callback may run at once."""
        if context is None or self._callback is not None or self.done():
            super().add_done_callback(fn, context=context)
        else:
            self._callback = fn, context

    def set_result(self, result: _Result, /) -> None:
        """Set the result. In a direct callback, inside the loop's wait, the task continues before this returns."""
        asyncio.Future.set_result(self, result)  # `super` costs as much as all of this
        if self._callback is not None:
            callback, context = self._callback
            loop: Any = self.get_loop()
            direct = getattr(loop, "direct", None)
            if direct is not None and direct.serving:
                direct.serving = False  # the task that continues now may set results as well
                context.run(callback, self)  # raises only what ends the loop
                direct.serving = True
            else:
                loop.call_soon(callback, self, context=context)

    def cancel(self, msg: object = None) -> bool:
        """As asyncio's: the task is cancelled in the next turn of the loop."""
        cancelled = super().cancel(msg)
        if cancelled and self._callback is not None:
            callback, context = self._callback
            self.get_loop().call_soon(callback, self, context=context)
        return cancelled


def fast_future_factory() -> Callable[[], FastFuture[Any]]:
    """A function that makes FastFutures for the running loop."""
    return partial(FastFuture, loop=asyncio.get_running_loop())  # looking it up each time costs a system call
