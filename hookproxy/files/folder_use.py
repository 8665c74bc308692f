"""A folder that is in use: whoever would remove it asks first. A process that is killed uses nothing any more."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FolderUse:
    """A shared lock of a folder for as long as this object lives. All of them are equal: it is not part of a value."""

    __slots__ = ("_lock",)

    def __init__(self, folder: str) -> None:
        """A folder that cannot be locked is used without a lock."""
        self._lock = -1
        with suppress(OSError):
            self._lock = os.open(folder, _OPEN)
            fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FolderUse)

    __hash__ = None  # type: ignore[assignment]  # nobody looks for one

    def __del__(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)


def is_used(folder: str) -> bool:
    """Whether somebody uses the folder, in this process or another one."""
    try:
        descriptor = os.open(folder, _OPEN)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
