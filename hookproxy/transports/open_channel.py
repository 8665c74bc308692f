"""Kinds of channels, one file each."""

from __future__ import annotations

import asyncio
import os

from ..model.errors import UserError
from .channel import Channel
from .epoll_loop import DirectLoop
from .pipe import Pipe, private


def open_channel(source: int, sink: int) -> Channel:
    """A channel that reads `source` and writes `sink`, and owns both from now on. Call it in the event loop.

    Raises UserError where the system has no epoll.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, DirectLoop):
        raise UserError("this system has no epoll", "hookproxy runs on Linux; elsewhere use a Linux container")
    return Pipe(private(source, os.O_RDONLY), private(sink, os.O_WRONLY), loop)
