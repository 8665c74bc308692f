"""Chooses the event loop: over epoll on Linux, else asyncio's own (kqueue on a Mac)."""

from __future__ import annotations

import asyncio

from ..network.epoll_loop import DirectLoop, DirectSelector
from ..processes import platforms
from ..processes.loop_callbacks import LoopCallbacks


def new_loop() -> asyncio.AbstractEventLoop:
    """The fastest loop of this platform."""
    return DirectLoop() if platforms.linux else asyncio.SelectorEventLoop()


def direct_callbacks(loop: asyncio.AbstractEventLoop) -> DirectSelector | LoopCallbacks:
    """What calls back for the descriptors of channels in this loop, whatever it is."""
    return loop.direct if isinstance(loop, DirectLoop) else LoopCallbacks(loop)
