"""Starts the processes of hooks, in the quickest way that this system and this Python have (design section 5)."""

from __future__ import annotations

import errno
import os
import sys
from _posixsubprocess import fork_exec
from collections.abc import Callable, Sequence
from typing import Final

from .process import SHELL, settle

_LONGEST_WHY: Final = 1024  # bytes: more than a child says that cannot become the program
_TRIES: Final = 256  # programs that are none, tried one after another: a child beside us takes long to come to its end
_PROBES: Final = 3  # children: where all of us have one processor, one that is beside us may come first now and then
_why: list[int] = []  # a file in memory in which it says so, and the same for the child: to look costs less than a pipe
# Signals as programs expect them, and a session; no other group, user or mask, and no Python in between; by vfork.
_AS_ITSELF: Final = (True, True, -1, None, None, None, -1, None, *((True,) if sys.version_info < (3, 14) else ()))
_fork: Callable[..., int] = fork_exec  # other Pythons take other arguments than this one's


def start_hook(
    program: bytes, argv: tuple[str | bytes, ...], env: Sequence[bytes], cwd: str, standard: tuple[int, int, int]
) -> int:
    """Start `program` in a session of its own, without a terminal, in `cwd` (empty: ours); gives its id.

    `env` is `NAME=value` of each variable. `standard` are descriptors for its standard input, output and error; the
    caller closes them. A script that names no interpreter is run by the shell. Raises OSError, and ValueError where
    a string holds a NUL.
    """
    try:
        return _start(program, argv, env, cwd, standard)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    return _start(SHELL.encode(), (SHELL, program, *argv[1:]), env, cwd, standard)


def _start_first(
    program: bytes, argv: tuple[str | bytes, ...], env: Sequence[bytes], cwd: str, standard: tuple[int, int, int]
) -> int:
    """Find out how hooks are started here, and start this one so."""
    global _start
    settle()
    _start = _start_directly if _tells_at_once(standard) else _start_by_class
    return _start(program, argv, env, cwd, standard)


def _tells_at_once(standard: tuple[int, int, int]) -> bool:
    """A child that cannot become its program has said so when we go on. Not where a sandbox makes vfork a fork."""
    if sys.version_info >= (3, 15) or not hasattr(os, "memfd_create"):  # which may call it otherwise; no Linux
        return False
    if not _why:
        _why.append(os.memfd_create("why"))
        _why.append(os.dup(_why[0]))
    return all(_told_at_once(standard) for _ in range(_PROBES))


def _told_at_once(standard: tuple[int, int, int]) -> bool:
    stdin, stdout, stderr = standard
    pipes = (stdin, -1, -1, stdout, -1, stderr, *_why)
    pid = _fork(("",), (b"",) * _TRIES, False, (), None, (), *pipes, *_AS_ITSELF)
    told = bool(os.pread(_why[0], _LONGEST_WHY, 0))
    os.waitpid(pid, 0)
    _forget_why()
    return told


def _forget_why() -> None:
    os.truncate(_why[0], 0)
    os.lseek(_why[0], 0, os.SEEK_SET)


def _start_directly(
    program: bytes, argv: tuple[str | bytes, ...], env: Sequence[bytes], cwd: str, standard: tuple[int, int, int]
) -> int:
    """By what `subprocess` itself calls: for a small hook its class costs 10 % more.

    So does posix_spawn, which cannot change the folder either: it takes a stack of its own, and asks for each
    descriptor what their limit is.
    """
    stdin, stdout, stderr = standard
    pipes = (stdin, -1, -1, stdout, -1, stderr, *_why)
    pid = _fork(argv, (program,), False, (), cwd or None, env, *pipes, *_AS_ITSELF)
    why = os.pread(_why[0], _LONGEST_WHY, 0)
    if not why:
        return pid
    os.waitpid(pid, 0)
    _forget_why()
    number = int(why.split(b":")[1], 16)
    raise OSError(number, os.strerror(number))


def _start_by_class(
    program: bytes, argv: tuple[str | bytes, ...], env: Sequence[bytes], cwd: str, standard: tuple[int, int, int]
) -> int:
    import subprocess  # 10 ms that no start-up should pay

    variables = dict(entry.split(b"=", 1) for entry in env)
    stdin, stdout, stderr = standard
    started = subprocess.Popen(
        argv,
        executable=program,
        env=variables,
        cwd=cwd or None,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )
    started.returncode = 0  # `reap` waits for it: without this, Popen would do so too, and warn
    return started.pid


_start = _start_first
