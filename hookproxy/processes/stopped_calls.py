"""Calls that the kernel stops until we have answered, as seccomp's user notification does, and what is in them.

Whoever made the call is another process: its memory and its names are read through /proc, and may be gone.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

AT_CWD: Final = -100
"""In place of a folder's descriptor: the working folder."""

_RECEIVE, _SEND = 0xC0502100, 0xC0182101  # ioctl numbers of the listener
_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
_RESPONSE: Final = struct.Struct("=QqiI")
_GO_ON: Final = 1
_LONGEST_PATH: Final = 4096  # bytes, as in the kernel
_PAGE: Final = 4096


class StoppedCall(NamedTuple):
    """A call that waits for its answer."""

    id: int
    pid: int
    number: int
    arguments: Sequence[int]


def next_call(listener: int) -> StoppedCall | None:
    """The next call at this listener; None: whoever made it was killed meanwhile. Raises OSError."""
    notification = bytearray(_NOTIFICATION.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, notification)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINTR):
            return None
        raise
    call_id, pid, _, number, _, _, *arguments = _NOTIFICATION.unpack(notification)
    return StoppedCall(call_id, pid, number, arguments)


def let_go_on(listener: int, call: StoppedCall) -> None:
    """Let the kernel do it as it was called."""
    _send(listener, _RESPONSE.pack(call.id, 0, 0, _GO_ON))


def end_with(listener: int, call: StoppedCall, error: int) -> None:
    """End it with this error (as in `errno`), or successfully with 0, without the kernel's doing anything."""
    _send(listener, _RESPONSE.pack(call.id, 0, -error, 0))


def _send(listener: int, response: bytes) -> None:
    with suppress(OSError):  # whoever made the call was killed meanwhile
        fcntl.ioctl(listener, _SEND, bytearray(response))


def descriptor(argument: int) -> int:
    """The descriptor that an argument is, or AT_CWD: the lower half of it, with its sign."""
    number: int = struct.unpack("=i", struct.pack("=I", argument & 0xFFFFFFFF))[0]
    return number


def path_of_argument(pid: int, folder: int, pointer: int) -> str:
    """The absolute path that an argument names, links unresolved; empty: it names none. Raises OSError."""
    path = _text(pid, pointer)
    folder = descriptor(folder)
    if not path:
        return ""
    for alias in ("/proc/self", "/proc/thread-self"):
        if path == alias or path.startswith(f"{alias}/"):
            path = f"/proc/{pid}{path[len(alias) :]}"
    if os.path.isabs(path):
        root = os.readlink(f"/proc/{pid}/root")
        return path if root == "/" else f"{root}{path}"
    return os.path.join(os.readlink(f"/proc/{pid}/cwd" if folder == AT_CWD else f"/proc/{pid}/fd/{folder}"), path)


def _text(pid: int, pointer: int) -> str:
    """The text at an address, up to its NUL. It is read page by page: the next one may not exist."""
    found = b""
    while b"\0" not in found and len(found) < _LONGEST_PATH:
        at = pointer + len(found)
        found += memory(pid, at, _PAGE - at % _PAGE)
    return os.fsdecode(found.partition(b"\0")[0])


def memory(pid: int, pointer: int, size: int) -> bytes:
    """So many bytes of a process's memory, or fewer, if that ends before. Raises OSError."""
    file = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.pread(file, size, pointer)
    finally:
        os.close(file)
    if not data:
        raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
    return data
