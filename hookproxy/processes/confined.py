"""Starts processes from a thread that has confined itself: what it starts inherits that, and nobody can take it off.

Privileges, Landlock and seccomp are properties of a thread on Linux. So no program has to stand between us and a
server, and our other threads stay as they are. There are two kinds of threads:

- one for each start, which ends at once;
- one for all starts with the same confinement, which lives as long as we do: a process that wants to die with its
  parent (PR_SET_PDEATHSIG) dies with the thread that has started it.

Law: where a step fails, the process is not started.
"""

from __future__ import annotations

import ctypes
import os
import queue
import struct
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final, Protocol, TypeVar

from msgspec import Struct

Started = TypeVar("Started")


class Starts(Protocol):
    """Calls a function that starts a process."""

    def __call__(self, start: Callable[[], Started], /) -> Started:
        """Return what the function returns."""
        ...


_NONE: Final = subprocess.DEVNULL
_CREATE_RULESET: Final = 444  # the numbers of these three system calls are the same on all machines
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_VERSION: Final = 1  # flag: return the newest ABI
_PATH_BENEATH: Final = 1
_SET_NO_NEW_PRIVS: Final = 38
_SET_SECCOMP: Final = 22
_FILTER: Final = 2
_SECCOMP: Final = {"x86_64": 317, "aarch64": 277}  # the number of the system call
_SET_FILTER: Final = 1
_NEW_LISTENER: Final = 8
_WAIT_KILLABLE: Final = 32  # a call that waits for its answer is not begun again for each signal of Go's runtime
_DROP_FROM_BOUNDING_SET: Final = 24
_LAST_CAPABILITY: Final = 63  # the kernel refuses numbers that it does not know


class Confinement(Struct, frozen=True):
    """What a thread gives up."""

    handled: int = 0
    """Rights over files that are forbidden unless a rule allows them, as bits of Landlock."""
    scoped: int = 0
    """Ways to other processes that are forbidden, as bits of Landlock."""
    rules: Sequence[tuple[int, int]] = ()
    """A descriptor of a folder or file, and the rights that are allowed there."""
    filter: bytes = b""
    """A program for seccomp; empty: none."""
    asking: bytes = b""
    """The same, but it asks about some calls; it is used where the kernel lets it, and somebody answers."""
    answer: Callable[[int], None] | None = None
    """Gets the descriptor at which it asks, closes it at the end, and does not wait."""
    drops_capabilities: bool = True


@cache
def landlock_abi() -> int:
    """The newest ABI of Landlock that the kernel has; 0: none."""
    try:
        return max(int(_system().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)), 0)
    except (OSError, AttributeError):
        return 0


def start_once(confinement: Confinement, start: Callable[[], Started], /) -> Started:
    """Start a process from a thread of its own. Raises what `start` raises, and OSError."""
    results: queue.SimpleQueue[Started] = queue.SimpleQueue()
    errors: list[BaseException] = []
    asked: list[int] = []

    def run() -> None:
        try:
            if (descriptor := _confine(confinement)) >= 0:
                asked.append(descriptor)
            results.put(start())
        except BaseException as error:  # it is raised where the start was asked for
            errors.append(error)

    thread = threading.Thread(target=run, name="starts a server", daemon=True)
    thread.start()
    thread.join()
    for descriptor in asked:
        if errors or confinement.answer is None:
            os.close(descriptor)
        else:
            confinement.answer(descriptor)  # not in that thread, whose own calls are confined, too
    if errors:
        raise errors[0]
    return results.get()


def status_of(confinement: Confinement, command: Sequence[str], env: Mapping[str, str], seconds: float) -> int:
    """The exit status of a confined command that reads and prints nothing. Raises OSError, TimeoutError too."""
    process = start_once(
        confinement, lambda: subprocess.Popen(command, env=env, stdin=_NONE, stdout=_NONE, stderr=_NONE)
    )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise TimeoutError("it takes too long") from None


class Starter:
    """A thread that starts processes as long as this process lives."""

    def __init__(self, confinement: Confinement) -> None:
        """Raises OSError if it cannot be confined."""
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="starts servers", daemon=True).start()
        self.start(lambda: _confine(confinement))

    def start(self, start: Callable[[], Started], /) -> Started:
        """Start a process. Raises what `start` raises. Only one thread may call this."""
        outcome: queue.SimpleQueue[tuple[Started] | BaseException] = queue.SimpleQueue()  # of this start alone

        def work() -> None:
            try:
                outcome.put((start(),))
            except BaseException as error:  # it is raised where the work was asked for
                outcome.put(error)

        self._work.put(work)
        result = outcome.get()
        if isinstance(result, BaseException):
            raise result
        return result[0]

    def _run(self) -> None:
        while True:
            self._work.get()()


def _confine(confinement: Confinement) -> int:
    """Confine this thread, for ever. Returns the descriptor where its filter asks; -1: it does not. Raises OSError."""
    system = _system()
    if confinement.drops_capabilities and os.geteuid() == 0:  # what it starts gets none; this thread keeps its own
        for number in range(_LAST_CAPABILITY + 1):
            system.prctl(_DROP_FROM_BOUNDING_SET, number, 0, 0, 0)
    _check(system.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    if confinement.handled or confinement.scoped:
        attributes = struct.pack("=QQQ", confinement.handled, 0, confinement.scoped)
        rules = _check(system.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0))
        try:
            for descriptor, rights in confinement.rules:
                rule = struct.pack("=Qi", rights, descriptor)
                _check(system.syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, 0))
            _check(system.syscall(_RESTRICT_SELF, rules, 0))
        finally:
            os.close(rules)
    if confinement.answer is not None and confinement.asking and (call := _SECCOMP.get(os.uname().machine)):
        instructions, _kept = _instructions(confinement.asking)
        flags = _NEW_LISTENER | _WAIT_KILLABLE
        if (asked := int(system.syscall(call, _SET_FILTER, ctypes.c_long(flags), instructions))) >= 0:
            return asked  # else something around us asks already: there is one for a process and all that it starts
    if confinement.filter:
        instructions, _kept = _instructions(confinement.filter)
        _check(system.prctl(_SET_SECCOMP, _FILTER, instructions, 0, 0))
    return -1


def _instructions(program: bytes) -> tuple[bytes, object]:
    """What the kernel wants for a program, and what must be kept meanwhile."""
    code = ctypes.create_string_buffer(program, len(program))
    return struct.pack("@HP", len(program) // 8, ctypes.addressof(code)), code


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


@cache
def _system() -> ctypes.CDLL:
    system = ctypes.CDLL(None, use_errno=True)
    system.syscall.restype = ctypes.c_long
    return system
