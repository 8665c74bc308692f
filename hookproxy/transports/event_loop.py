"""Chooses the event loop: over epoll on Linux, else asyncio's own (kqueue on a Mac)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from ..model.errors import resource_shortage
from ..network.epoll_loop import DirectLoop
from ..processes import platforms
from ..processes.loop_callbacks import LoopCallbacks


class DirectCallbacks(Protocol):
    """What calls back for the descriptors of channels: the selector of a DirectLoop, or a LoopCallbacks."""

    def add_direct(self, fd: int, events: int, callback: Callable[[], None]) -> None:
        """Run `callback` on one of `events` (`loop_callbacks.READABLE`, `WRITABLE`), or when a pipe's reader is gone.

        Raises PermissionError for what cannot be waited for: a regular file, /dev/null.
        """

    def modify_direct(self, fd: int, events: int) -> None:
        """Wait for other events from now on; 0: only for the end of a pipe's reader."""

    def remove_direct(self, fd: int) -> None:
        """Undo `add_direct`; it may have been undone already. Call it before the descriptor is closed."""


def new_loop() -> asyncio.AbstractEventLoop:
    """The fastest loop of this platform."""
    loop = DirectLoop() if platforms.linux else asyncio.SelectorEventLoop()
    loop.set_exception_handler(_report_exception)
    return loop


def _report_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """As asyncio does, except for tasks that fail when a shortage of resources ends the loop: its caller reports it."""
    ends = "shutdown" in context["message"]
    if not (ends and "exception" in context and resource_shortage(context["exception"])):
        loop.default_exception_handler(context)


def direct_callbacks(loop: asyncio.AbstractEventLoop) -> DirectCallbacks:
    """The direct callbacks of this loop, whatever it is."""
    direct: DirectCallbacks | None = getattr(loop, "direct", None)
    return LoopCallbacks(loop) if direct is None else direct
