"""Replaces what a process inherits from whoever starts it by known values: for an administrator's hooks, and for a
server in a sandbox, which would have the open files of its agent.

Law: a user must not weaken managed hooks or their audit by limits, signals, descriptors or a umask.
"""

from __future__ import annotations

import os
import resource
import signal
from contextlib import suppress
from typing import Final

from . import platforms

_UMASK: Final = 0o022  # the usual one: others may read what hooks write, and nobody else may change it
# Some programs close each descriptor up to the limit, one by one. A Mac may refuse more than its OPEN_MAX.
_MOST_DESCRIPTORS: Final = 65_536 if platforms.linux else 10_240
_LIMITS: Final = ("CPU", "FSIZE", "DATA", "AS", "NPROC", "NOFILE")
# Python ignores these itself; in children they have their default action.
_IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)


def reset() -> None:
    """Set limits, umask, signals and descriptors to known values, for this process and what it starts from now on.

    A hard limit cannot be raised: what fails because of it fails closed, as any failure of a managed hook.
    """
    os.umask(_UMASK)
    for name in _LIMITS:
        if (number := getattr(resource, f"RLIMIT_{name}", None)) is not None:
            with suppress(OSError, ValueError):
                _raise_limit(number, name)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals():
        if number not in _IGNORED_BY_PYTHON and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    keep_descriptors()


def keep_descriptors() -> None:
    """Let nothing that starts from now on inherit other descriptors than the standard ones."""
    for fd in _open_descriptors():
        with suppress(OSError):  # it was open only while they were listed
            if fd > 2:
                os.set_inheritable(fd, False)


def _raise_limit(number: int, name: str) -> None:
    _, hard = resource.getrlimit(number)
    most = min(hard, _MOST_DESCRIPTORS) if hard != resource.RLIM_INFINITY else _MOST_DESCRIPTORS
    resource.setrlimit(number, (most if name == "NOFILE" else hard, hard))


def _open_descriptors() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd" if platforms.linux else "/dev/fd")]
    except OSError:  # it is not mounted
        return list(range(3, 1024))
