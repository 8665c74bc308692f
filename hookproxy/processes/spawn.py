"""Starts the processes of hooks in the fastest way that this system and this Python offer."""

from __future__ import annotations

import errno
import os
import sys
from _posixsubprocess import fork_exec
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from . import guardian, platforms
from .process import RESET_SIGNALS, SHELL, prepare_for_children

if TYPE_CHECKING:
    from .confined import Starts
    from .service import Account

_ERROR_SIZE: Final = 1024  # bytes: more than the error text of a child that cannot execute its program
_PROBE_PROGRAMS: Final = 256  # programs without a name, tried one after another: a forked child takes long to fail
_PROBES: Final = 3  # children: on one processor a forked child may fail before we look, now and then
# A file in memory for the error text of a child, and a duplicate descriptor for the child: cheaper to read than a pipe.
_error_file: list[int] = []
# restore_signals and start_new_session; no other group, user, umask or preexec_fn; allow_vfork where it is an argument.
_FORK_OPTIONS: Final = (True, True, -1, None, None, None, -1, None, *((True,) if sys.version_info < (3, 14) else ()))
_KNOWN_PYTHON: Final[bool] = sys.version_info < (3, 15)  # later ones may have changed the arguments of that function
_fork: Callable[..., int] = fork_exec  # its arguments depend on the version of Python


def _own_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it has been deleted
        return os.environ.get("PWD", "")


_OWN_FOLDER: Final = _own_folder()
"""The path of our working directory when this module is imported, which is at start-up."""


def start_hook(
    program: bytes, argv: tuple[str | bytes, ...], env: Sequence[bytes], cwd: str, std_fds: tuple[int, int, int]
) -> int:
    """Start `program` in a session of its own, without a terminal, in `cwd` (empty: ours). Returns its process id.

    `env` has `NAME=value` for each variable. `std_fds` are descriptors for its standard input, output and error; the
    caller closes them. A script that names no interpreter is run by the shell. Raises OSError, and ValueError for a
    string that holds a NUL. Should we be killed, its whole session is ended (`guardian`).

    A process that is to start in our own folder stays in it even if the path is gone: whoever moves the folder must not
    be rid of its guards.
    """
    if cwd == _OWN_FOLDER:
        cwd = ""
    guardian.prepare_for_hook()
    try:
        pid = _start(program, argv, env, cwd, std_fds)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        pid = _start(SHELL.encode(), (SHELL, program, *argv[1:]), env, cwd, std_fds)
    guardian.guard_hook(pid)
    return pid


def start_confined(argv: tuple[str, ...], env: Mapping[str, str], starts: Starts, std_fds: tuple[int, int, int]) -> int:
    """As `start_hook`, for a command that `starts` confines. Descriptors that are to be inherited are, besides."""
    prepare_for_children()
    guardian.prepare_for_hook()
    actions = [(os.POSIX_SPAWN_DUP2, fd, to) for to, fd in enumerate(std_fds)]
    pid = starts(lambda: os.posix_spawn(argv[0], argv, env, file_actions=actions, setsid=True, setsigdef=RESET_SIGNALS))
    guardian.guard_hook(pid)
    return pid


def _start_first(
    program: bytes, argv: tuple[str | bytes, ...], env: Sequence[bytes], cwd: str, std_fds: tuple[int, int, int]
) -> int:
    """Choose the way to start hooks on this system, and start this one."""
    global _start
    prepare_for_children()
    if not platforms.linux:
        _start = _start_with_posix_spawn
    elif _reports_errors_at_once(std_fds):
        _start = _start_with_fork_exec
    else:
        _start = _start_with_popen
    return _start(program, argv, env, cwd, std_fds)


def start_without_probes() -> None:
    """Start hooks by Popen from now on. To find a faster way takes 3 ms, which pays only where many hooks start."""
    global _start
    prepare_for_children()
    _start = _start_with_popen


def start_as(account: Account) -> None:
    """Start hooks as this account from now on: with its groups, and nothing of our privileges. It needs root."""
    global _start, _account
    prepare_for_children()
    _account = account
    _start = _start_with_popen


def hooks_account() -> Account | None:
    """The account that hooks run as; None: our own."""
    return _account


def _reports_errors_at_once(std_fds: tuple[int, int, int]) -> bool:
    """True if a failed child's error is there when the start returns: with vfork, unless a sandbox makes it a fork."""
    if sys.platform == "linux" and _KNOWN_PYTHON:
        if not _error_file:
            _error_file.append(os.memfd_create("error"))
            _error_file.append(os.dup(_error_file[0]))
        return all(_probe(std_fds) for _ in range(_PROBES))
    return False


def _probe(std_fds: tuple[int, int, int]) -> bool:
    stdin, stdout, stderr = std_fds
    pipes = (stdin, -1, -1, stdout, -1, stderr, *_error_file)
    pid = _fork(("",), (b"",) * _PROBE_PROGRAMS, False, (), None, (), *pipes, *_FORK_OPTIONS)
    reported = bool(os.pread(_error_file[0], _ERROR_SIZE, 0))
    os.waitpid(pid, 0)
    _clear_error()
    return reported


def _clear_error() -> None:
    os.truncate(_error_file[0], 0)
    os.lseek(_error_file[0], 0, os.SEEK_SET)


def _start_with_fork_exec(
    program: bytes, argv: tuple[str | bytes, ...], env: Sequence[bytes], cwd: str, std_fds: tuple[int, int, int]
) -> int:
    """Start it with the function that `subprocess` itself calls: Popen costs 10 % more for a small hook.

    So does posix_spawn, which cannot change the folder either: it allocates a stack, and asks for the limit of
    descriptors once for each of them.
    """
    stdin, stdout, stderr = std_fds
    pipes = (stdin, -1, -1, stdout, -1, stderr, *_error_file)
    pid = _fork(argv, (program,), False, (), cwd or None, env, *pipes, *_FORK_OPTIONS)
    error_text = os.pread(_error_file[0], _ERROR_SIZE, 0)
    if not error_text:
        return pid
    os.waitpid(pid, 0)
    _clear_error()
    number = int(error_text.split(b":")[1], 16)
    raise OSError(number, os.strerror(number))


def _start_with_posix_spawn(
    program: bytes, argv: tuple[str | bytes, ...], env: Sequence[bytes], cwd: str, std_fds: tuple[int, int, int]
) -> int:
    """Start it by the system's own call. It copies nothing of this process, but cannot change the folder."""
    if not cwd:
        actions = [(os.POSIX_SPAWN_DUP2, fd, to) for to, fd in enumerate(std_fds)]
        variables = dict(entry.split(b"=", 1) for entry in env)
        try:
            return os.posix_spawn(program, argv, variables, file_actions=actions, setsid=True, setsigdef=RESET_SIGNALS)
        except NotImplementedError:  # a Python built for an older system, without `setsid`
            pass
    return _start_with_popen(program, argv, env, cwd, std_fds)


def _start_with_popen(
    program: bytes, argv: tuple[str | bytes, ...], env: Sequence[bytes], cwd: str, std_fds: tuple[int, int, int]
) -> int:
    import subprocess  # importing it takes 10 ms

    variables = dict(entry.split(b"=", 1) for entry in env)
    stdin, stdout, stderr = std_fds
    started = subprocess.Popen(
        argv,
        executable=program,
        env=variables,
        cwd=cwd or None,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        user=None if _account is None else _account.uid,
        group=None if _account is None else _account.gid,
        extra_groups=None if _account is None else _account.groups,
    )
    started.returncode = 0  # `process.reap` waits for it; Popen must not, and must not warn
    return started.pid


_start = _start_first
_account: Account | None = None
