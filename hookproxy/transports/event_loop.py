"""Chooses the event loop: over epoll on Linux, else asyncio's own (kqueue on a Mac)."""

from __future__ import annotations

import asyncio
from typing import Any

from ..model.errors import resource_shortage
from ..network.epoll_loop import DirectLoop, DirectSelector
from ..processes import platforms
from ..processes.loop_callbacks import LoopCallbacks


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


def direct_callbacks(loop: asyncio.AbstractEventLoop) -> DirectSelector | LoopCallbacks:
    """What calls back for the descriptors of channels in this loop, whatever it is."""
    return loop.direct if isinstance(loop, DirectLoop) else LoopCallbacks(loop)
