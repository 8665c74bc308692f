"""What one task awaits and another side keeps, once; kept in a callback of a direct loop, the task goes on at once.

asyncio wakes a task by way of its queue, which costs a trip around the loop: three of them a tenth of a hooked call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from contextvars import Context

_Kept = TypeVar("_Kept")


class Promise(asyncio.Future[_Kept]):
    """A future that one task awaits, as a rule. All else about it is asyncio's own, cancelling included."""

    _wake: tuple[Callable[[Promise[_Kept]], object], Context] | None = None

    def add_done_callback(self, fn: Callable[[Promise[_Kept]], object], /, *, context: Context | None = None) -> None:
        """As asyncio's; whoever awaits it first may go on at once."""
        if context is None or self._wake is not None or self.done():
            super().add_done_callback(fn, context=context)
        else:
            self._wake = fn, context

    def set_result(self, result: _Kept, /) -> None:
        """Keep it. In a callback that runs inside the loop's wait, the task runs on before this returns."""
        asyncio.Future.set_result(self, result)  # `super` costs as much as all of this
        if self._wake is not None:
            wake, context = self._wake
            loop: Any = self.get_loop()
            direct = getattr(loop, "direct", None)
            if direct is not None and direct.serving:
                direct.serving = False  # the task that runs now may keep promises as well
                context.run(wake, self)  # which raises nothing but what ends the loop
                direct.serving = True
            else:
                loop.call_soon(wake, self, context=context)

    def cancel(self, msg: object = None) -> bool:
        """As asyncio's: the task hears of it in the next turn of the loop."""
        cancelled = super().cancel(msg)
        if cancelled and self._wake is not None:
            wake, context = self._wake
            self.get_loop().call_soon(wake, self, context=context)
        return cancelled


def promises() -> Callable[[], Promise[Any]]:
    """What makes them in the running loop."""
    return partial(Promise, loop=asyncio.get_running_loop())  # to ask for it each time is a call of the system
