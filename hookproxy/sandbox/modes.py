"""Changes modes of files for a server under Landlock, in the folders that it writes: what it installs can be executed.

Landlock does not look at modes, and a filter cannot tell whose file a call is about. So the kernel stops calls of
chmod(2) and its relatives until a thread of ours has looked (seccomp's user notification), and has done it in place of
the server, or nothing.

Law: only a file of our own account that lies in one of these folders is changed, and nothing but its nine bits of
permissions. It is held open while that is found out, so it is the one that changes, whatever happens to its name.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final

from ..processes.stopped_calls import AT_CWD, descriptor, end_with, next_call, path_of_argument
from .folders import within_any

CALLS: Final[Mapping[str, tuple[int, int, int]]] = {
    "chmod": (-1, 0, -1),
    "fchmod": (0, -1, -1),
    "fchmodat": (0, 1, -1),
    "fchmodat2": (0, 1, 3),
}
"""The numbers of the arguments with the folder or file, with the path and with flags (-1: there is none). The mode
comes after the path, or after the file."""

_PATH_ONLY: Final[int] = getattr(os, "O_PATH", 0)  # of Linux, where alone this runs
_NOFOLLOW: Final = 0x100
_PERMISSIONS: Final = 0o777
_PARTS: Final = 10
"""Servers that ask without end get a tenth of one processor at most, all together: the gateway needs the rest."""


class Pace:
    """How long the answers to all servers must pause, by the processor's time that they took."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free_at = 0.0

    def pause(self, taken: float, now: float) -> float:
        """Seconds to wait after an answer that took so many."""
        with self._lock:
            self._free_at = max(self._free_at, now) + taken * (_PARTS - 1)
            return self._free_at - now


_PACE: Final = Pace()


def answer(listener: int, names: Mapping[int, str], folders: Sequence[str]) -> None:
    """Answer at this descriptor from now on, until all who ask have ended, and close it. `names` are those of calls."""
    threading.Thread(
        target=_change_modes, args=(listener, names, folders), name="changes modes for a server", daemon=True
    ).start()


def _change_modes(listener: int, names: Mapping[int, str], folders: Sequence[str]) -> None:
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    try:
        while poll.poll()[0][1] & select.POLLIN:  # else all of them have ended
            begun = time.thread_time()  # not what a file system that hangs lets us wait
            _handle_next_call(listener, names, folders)
            seconds = time.thread_time() - begun
            time.sleep(_PACE.pause(seconds, time.monotonic()))  # noqa: TID251  # in a thread of its own
    finally:
        os.close(listener)


def _handle_next_call(listener: int, names: Mapping[int, str], folders: Sequence[str]) -> None:
    call = next_call(listener)
    if call is None:
        return
    failure = 0
    try:
        _change(call.pid, names[call.number], call.arguments, folders)
    except FileNotFoundError as error:
        failure = error.errno or errno.ENOENT
    except (OSError, ValueError):  # what we cannot read or change stays as it is
        pass
    end_with(listener, call, failure)


def _change(pid: int, name: str, arguments: Sequence[int], folders: Sequence[str]) -> None:
    at, path_at, flags_at = CALLS[name]
    base = descriptor(arguments[at]) if at >= 0 else AT_CWD
    path = path_of_argument(pid, base, arguments[path_at]) if path_at >= 0 else ""
    mode = arguments[max(at, path_at) + 1] & _PERMISSIONS
    follows = os.O_NOFOLLOW if flags_at >= 0 and arguments[flags_at] & _NOFOLLOW else 0
    file = os.open(path or f"/proc/{pid}/fd/{base}", _PATH_ONLY | os.O_CLOEXEC | follows)
    try:
        status = os.fstat(file)
        ours = status.st_uid == os.geteuid() and not stat.S_ISLNK(status.st_mode)
        if ours and within_any(os.readlink(f"/proc/self/fd/{file}"), folders):
            os.chmod(f"/proc/self/fd/{file}", mode)
    finally:
        os.close(file)
