"""Callbacks for descriptors in any event loop: the portable counterpart of what a DirectLoop runs inside its wait."""

from __future__ import annotations

import errno
import os
import select
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio

READABLE: Final = select.POLLIN
"""Something can be read, or the other side is gone. epoll has the same number for it."""

WRITABLE: Final = select.POLLOUT
"""Something can be written. epoll has the same number for it."""


class LoopCallbacks:
    """Runs callbacks through the loop's own `add_reader` and `add_writer`: one turn of the loop for each."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._callbacks: dict[int, Callable[[], None]] = {}

    def add_direct(self, fd: int, events: int, callback: Callable[[], None]) -> None:
        """Run `callback` whenever one of `events` has happened to `fd`, or its reader is gone if it is a pipe's end.

        Raises PermissionError for what is always ready and cannot be waited for: a regular file, /dev/null.
        """
        mode = os.fstat(fd).st_mode
        if stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(fd)):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        self._callbacks[fd] = callback
        self._watch(fd, events, callback)

    def modify_direct(self, fd: int, events: int) -> None:
        """Wait for other events from now on; with 0 only for the end of a pipe's reader."""
        self._loop.remove_reader(fd)
        self._loop.remove_writer(fd)
        self._watch(fd, events, self._callbacks[fd])

    def remove_direct(self, fd: int) -> None:
        """Undo `add_direct`; it may have been undone already. Call it before the descriptor is closed."""
        if self._callbacks.pop(fd, None) is not None:
            self._loop.remove_reader(fd)
            self._loop.remove_writer(fd)

    def _watch(self, fd: int, events: int, callback: Callable[[], None]) -> None:
        if events & WRITABLE:
            self._loop.add_writer(fd, callback)
        elif events & READABLE or stat.S_ISFIFO(os.fstat(fd).st_mode):
            # A pipe's writing end is readable when nobody reads the pipe any more: asyncio's own pipes rely on that. A
            # socket's would also be readable for data: that its reader is gone shows when something is written.
            self._loop.add_reader(fd, callback)
