"""What all tests of a worker share and a test may not leave changed, or the outcome of others depends on it."""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

_LIMITS: Final = (
    resource.RLIMIT_AS,
    resource.RLIMIT_CORE,
    resource.RLIMIT_FSIZE,
    resource.RLIMIT_NOFILE,
    resource.RLIMIT_NPROC,
    resource.RLIMIT_STACK,
)
_SIGNALS: Final = (
    signal.SIGCHLD,
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGPIPE,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)
_OF_PYTEST: Final = b"PYTEST_CURRENT_TEST"  # which it sets for each phase of a test


class ProcessState(NamedTuple):
    """It takes about thirty microseconds."""

    path: list[str]
    folder: str
    environment: dict[bytes, bytes]
    limits: list[tuple[int, int]]
    umask: int
    handlers: list[Any]
    blocked_signals: set[signal.Signals | int]
    recursion_limit: int
    switch_interval: float
    collects_garbage: bool


def current() -> ProcessState:
    """The state as it is now."""
    environment: dict[bytes, bytes] = dict(vars(os.environ)["_data"])  # to decode it would take five times as long
    environment.pop(_OF_PYTEST, None)
    umask = os.umask(0o077)
    os.umask(umask)
    try:
        folder = os.getcwd()
    except FileNotFoundError:
        folder = "a folder that is gone"
    return ProcessState(
        list(sys.path),
        folder,
        environment,
        [resource.getrlimit(limit) for limit in _LIMITS],
        umask,
        [signal.getsignal(number) for number in _SIGNALS],
        signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        sys.getrecursionlimit(),
        sys.getswitchinterval(),
        gc.isenabled(),
    )


def differences(before: ProcessState, after: ProcessState) -> list[str]:
    """What has changed, in words."""
    found = []
    for name, old, new in zip(ProcessState._fields, before, after, strict=True):
        if old == new:
            continue
        if name == "environment":  # its values may be secret
            changed = dict(before.environment.items() ^ after.environment.items())
            found.append(f"environment: {', '.join(sorted(map(os.fsdecode, changed)))}")
        else:
            found.append(f"{name}: {new} instead of {old}")
    return found


def restore(before: ProcessState) -> None:
    """Make everything as it was, for the tests that follow."""
    sys.path[:] = before.path
    os.chdir(before.folder)
    for name in set(os.environb) - set(before.environment) - {_OF_PYTEST}:
        del os.environb[name]
    os.environb.update(before.environment)
    os.umask(before.umask)
    _each(lambda limit, value: resource.setrlimit(limit, value), zip(_LIMITS, before.limits, strict=True))
    _each(lambda number, handler: signal.signal(number, handler), zip(_SIGNALS, before.handlers, strict=True))
    signal.pthread_sigmask(signal.SIG_SETMASK, before.blocked_signals)
    sys.setrecursionlimit(before.recursion_limit)
    sys.setswitchinterval(before.switch_interval)
    (gc.enable if before.collects_garbage else gc.disable)()


def _each(put_back: Callable[[Any, Any], object], values: Iterable[tuple[Any, Any]]) -> None:
    for key, value in values:
        if value is not None:  # a handler that was not set by Python
            put_back(key, value)
