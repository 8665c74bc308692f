"""The lock that writers of one audit file take: a file beside it, which whoever removes it replaces by a new one."""

from __future__ import annotations

import errno
import fcntl
import os
import select
from time import monotonic
from typing import Final

from .opened_file import FileOptions, make_folder, open_checked

LOCK_TIMEOUT: Final = 1.0
"""Seconds to wait for the lock: it is held for 0.1 ms, but its holder may get no processor meanwhile."""

BUSY_LOCK_TIMEOUT: Final = 0.005
"""Seconds to wait for the lock after a timeout, until it was free once: all calls wait meanwhile."""

_POLL: Final = 0.0005  # seconds between two tries to take the lock


class LockFile:
    """A lock that stays open between two lines. Whoever has waited in vain waits only shortly the next time."""

    def __init__(self, path: str, options: FileOptions) -> None:
        self._path = path
        self._options = options
        self._fd = -1
        self._was_busy = False

    def take(self) -> None:
        """Take the lock. Raises OSError, also if another process holds it for too long."""
        until = monotonic() + (BUSY_LOCK_TIMEOUT if self._was_busy else LOCK_TIMEOUT)
        while not self._try_once():
            if monotonic() >= until:
                self._was_busy = True
                raise OSError(errno.ETIMEDOUT, "another process holds the lock", self._path)
            select.select((), (), (), _POLL)  # sleep
        self._was_busy = False

    def release(self) -> None:
        """Let others take it."""
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file; the lock opens it again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _try_once(self) -> bool:
        if self._fd < 0:
            if not self._options.shared:
                make_folder(self._path)
            self._fd = open_checked(self._path, os.O_RDWR | os.O_NOFOLLOW, self._options)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if self._has_its_name():
            return True
        self.close()  # it was removed: other writers use a new one
        return False

    def _has_its_name(self) -> bool:
        try:
            there, ours = os.stat(self._path, follow_symlinks=False), os.fstat(self._fd)
        except FileNotFoundError:
            return False
        return (there.st_ino, there.st_dev) == (ours.st_ino, ours.st_dev)
