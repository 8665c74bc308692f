"""`waitid` of the C library, for Pythons that leave it out on a Mac (before 3.13): it waits for a child unreaped."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import sys
from typing import Final

_P_PID: Final = 1
_WNOHANG: Final = 1
_WEXITED: Final = 4
_WNOWAIT: Final = 0x20 if sys.platform == "darwin" else 0x0100_0000
_SIGINFO_BYTES: Final = 128  # of a siginfo_t on Linux; on a Mac it has 104. It begins with the number of the signal.

_libc: Final = ctypes.CDLL(None, use_errno=True)


def has_ended(pid: int, wait: bool) -> bool:
    """True if the child has ended; with `wait`, return only then. It stays unreaped. Raises ChildProcessError."""
    info = ctypes.create_string_buffer(_SIGINFO_BYTES)
    flags = _WEXITED | _WNOWAIT | (0 if wait else _WNOHANG)
    while _libc.waitid(_P_PID, ctypes.c_uint(pid), info, flags) != 0:
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))
    return int.from_bytes(info.raw[:4], sys.byteorder) == signal.SIGCHLD
