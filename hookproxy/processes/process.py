"""Starts the server, signals and reaps processes, and knows their limits. `spawn` starts hooks.

`hookproxy run` starts the server before it imports anything heavy: each import here delays the server.
"""

from __future__ import annotations

import errno
import os
import sys

from ..model.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, UserError
from . import guardian, platforms

TYPE_CHECKING = False  # `typing` itself takes 9 ms to import
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Final

    from .confined import Starts
else:
    import _signal as signal  # `signal` makes enumerations of it, which takes 1 ms

OUTPUT_LIMIT: Final = 10 * 1024 * 1024  # bytes kept of each output of a hook: more than any useful output
_OUTPUT_FACTOR: Final = 4  # JSON that escapes all but ASCII takes three times the bytes of its text in UTF-8
GRACE: Final = 2.0  # seconds from TERM to KILL: enough to remove a lock file, not enough to look like a hang
REAP_LIMIT: Final = 1.0  # seconds after KILL that the exit status is waited for: only a stuck disk takes longer
PIPE_SIZE: Final = 65_536  # bytes that a new pipe holds
LARGEST_PIPE: Final = 1_048_576  # bytes: the most without privileges; 10 MB take a tenth of the writes
SHELL: Final = "/bin/sh"

# Signals that end this process unless they are handled; SIGINT by an exception, at any point.
TERMINATION_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
# Python ignores these two, and an ignored signal stays ignored in children: `yes | head` would not end.
RESET_SIGNALS: Final = (signal.SIGPIPE, signal.SIGXFSZ)
# What Python writes into LC_CTYPE when it finds the C locale (PEP 538).
_COERCED_LOCALES: Final = ("C.UTF-8", "C.utf8", "UTF-8")


class Server:
    """A started server: its process id, and our ends of its standard input and output."""

    __slots__ = ("from_server", "pid", "to_server")

    def __init__(self, pid: int, to_server: int, from_server: int) -> None:
        self.pid = pid
        self.to_server = to_server
        self.from_server = from_server


def start_server(
    argv: Sequence[str],
    started: Callable[[int], None] = lambda _pid: None,
    *,
    confined: tuple[Mapping[str, str], Starts] | None = None,
) -> Server:
    """Start the server as the agent would: our environment, folder, process group and standard error.

    `started` is called with its process id before any termination signal is handled. `confined` is for a server in a
    sandbox: its environment, and what calls the function that starts it; it has a session of its own then.
    Raises UserError with the exit status that a shell would give.
    """
    if not argv[0]:
        raise UserError(
            "cannot start the server: its command is empty", "name a program after the two dashes", EXIT_NOT_FOUND
        )
    prepare_for_children()
    guardian.start()  # before the server, so that the server never runs without it
    stdin, to_server = os.pipe()
    from_server, stdout = os.pipe()
    try:
        pid = _spawn_with_signals_blocked(
            tuple(argv), ((os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, stdout, 1)), started, confined
        )
    except (OSError, ValueError) as error:
        close_all((stdin, to_server, from_server, stdout))
        status = EXIT_NOT_FOUND if isinstance(error, FileNotFoundError) else EXIT_NOT_EXECUTABLE
        problem = f"cannot start the server: {why_not_started(error, argv[0])}"
        raise UserError(problem, start_hint(error, argv), status) from None
    close_all((stdin, stdout))
    guardian.guard_server(pid)
    return Server(pid, to_server, from_server)


def _spawn_with_signals_blocked(
    argv: tuple[str, ...],
    actions: Sequence[tuple[int, int, int]],
    started: Callable[[int], None],
    confined: tuple[Mapping[str, str], Starts] | None,
) -> int:
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, TERMINATION_SIGNALS)
    try:
        if confined is None:
            pid = _spawn_server(argv, actions, mask)
        else:
            env, starts = confined
            pid = starts(
                lambda: os.posix_spawn(
                    argv[0], argv, env, file_actions=actions, setsid=True, setsigdef=RESET_SIGNALS, setsigmask=mask
                )
            )
        started(pid)
        return pid
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _spawn_server(argv: tuple[str, ...], actions: Sequence[tuple[int, int, int]], mask: Iterable[int]) -> int:
    try:
        return os.posix_spawnp(
            argv[0], argv, os.environb, file_actions=actions, setsigdef=RESET_SIGNALS, setsigmask=mask
        )
    except OSError as error:
        program = find_program(argv[0], os.environ.get("PATH"))
        if error.errno != errno.ENOEXEC or program is None:
            raise
    argv = (SHELL, program, *argv[1:])
    return os.posix_spawn(SHELL, argv, os.environb, file_actions=actions, setsigdef=RESET_SIGNALS, setsigmask=mask)


def find_program(word: str, path: str | None, cwd: str = "") -> str | None:
    """The file that a shell would run for `word`, searched in `path` relative to `cwd`; or None."""
    folders = (path if path is not None else os.defpath).split(os.pathsep)
    for program in (word,) if "/" in word else (os.path.join(folder, word) for folder in folders):
        seen_from_here = os.path.join(cwd, program)
        if os.path.isfile(seen_from_here) and os.access(seen_from_here, os.X_OK):
            return program
    return None


def why_not_started(error: OSError | ValueError, word: str, cwd: str = "") -> str:
    """Why a command cannot be started, in a few words that name the command or the folder."""
    if not isinstance(error, OSError):
        return f"{word!r}: {error}"  # a NUL, or a variable without a name; Python's text says which
    if cwd and not os.path.isdir(cwd):
        return f"no such folder: {cwd}"
    if error.errno == errno.ENOENT:
        there = "/" in word and os.path.exists(os.path.join(cwd, word))
        return f"the interpreter in its first line is missing: {word}" if there else f"command not found: {word}"
    if error.errno == errno.EACCES:
        return f"not executable: {word}"
    if error.errno == errno.E2BIG:
        return f"its arguments and environment are longer than the system allows: {word}"
    return f"{os.strerror(error.errno or 0)}: {word}"


def start_hint(error: OSError | ValueError, command: Sequence[str]) -> str:
    """What helps when the server's command cannot be started, and the whole command."""
    hint = _hint(error, command[0])
    return f"{hint}{';' * (not hint.endswith('?'))} the server's command line is: {' '.join(command)}"


def _hint(error: OSError | ValueError, word: str) -> str:
    """What helps when the server's command cannot be started."""
    if isinstance(error, FileNotFoundError):
        if " " in word and not os.path.exists(word):
            return "leave out the quotes, which make one word of it"
        from ..model.similar_names import similar_program  # for errors only

        if "/" not in word and (near := similar_program(word, os.environ.get("PATH", ""))):
            return near
        return "correct that line" if "/" in word and os.path.exists(word) else "install it, or give its full path"
    if isinstance(error, PermissionError):
        return "it is a folder" if os.path.isdir(word) else f"chmod +x {word}, or name the program that runs it"
    return "change the command line"


def output_limit(document_size: int) -> int:
    """How many bytes of each output of a hook are kept that gets a document of this size: it may rewrite all of it."""
    return max(OUTPUT_LIMIT, _OUTPUT_FACTOR * document_size)


def widen_pipe(pipe: int, size: int) -> None:
    """Let the pipe hold so many bytes, if the system allows it: a larger pipe needs fewer process switches."""
    if sys.platform == "linux" and platforms.linux:
        import fcntl  # only after the server has started

        try:  # noqa: SIM105 - contextlib is an import
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, size)
        except OSError:  # the user's limit for pipes is reached
            pass


def close_all(descriptors: Sequence[int]) -> None:
    """Close each descriptor."""
    for descriptor in descriptors:
        os.close(descriptor)


def signal_group(pid: int, signal_number: int) -> None:
    """Send a signal to all processes of a hook's process group, if there are any left."""
    try:  # noqa: SIM105 - contextlib is an import
        os.killpg(pid, signal_number)
    except (ProcessLookupError, PermissionError):  # none is left, or all that are left belong to another user
        pass


def _open_exit_fd_by_thread(pid: int) -> int:
    """As `open_exit_fd`, without pidfds: a thread waits for the child, and closes its end of a pipe then."""
    import threading

    ended, living = os.pipe()

    def wait() -> None:
        try:
            _has_ended(pid, True)
        except ChildProcessError:
            pass
        finally:
            os.close(living)

    try:
        threading.Thread(target=wait, name=f"waits for {pid}", daemon=True).start()
    except RuntimeError:  # the limit of processes counts threads, too
        close_all((ended, living))
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
    return ended


if sys.platform == "linux" and platforms.linux:

    def open_exit_fd(pid: int) -> int:
        """A descriptor that becomes readable when our child `pid` has ended. Does not reap it. Raises OSError."""
        try:
            return os.pidfd_open(pid)
        except AttributeError:  # a Python built without it
            pass
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.EPERM):  # an old kernel, a sandbox
                raise
        return _open_exit_fd_by_thread(pid)
else:
    open_exit_fd = _open_exit_fd_by_thread


def has_ended(pid: int) -> bool:
    """True if our child has ended and is not reaped yet, whether its descriptor has been reported or not."""
    return _has_ended(pid, False)


def _has_ended(pid: int, wait: bool) -> bool:
    """True if the child has ended; with `wait`, return only then. It stays unreaped. Raises ChildProcessError."""
    if sys.platform == "darwin" and sys.version_info < (3, 13):  # these Pythons leave the function out
        from . import libc_waitid

        return libc_waitid.has_ended(pid, wait)
    else:  # noqa: RET505 - so that type checkers see two ways
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | (0 if wait else os.WNOHANG)) is not None


def reap(pid: int) -> int:
    """Our child's exit code, or the negative number of the signal that ended it.

    Blocks until it has ended: call it when the descriptor of `open_exit_fd` is readable.
    """
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:  # other code of this process took the status: a lost one must not look like success
        return -signal.SIGKILL
    finally:
        guardian.release(pid)


def reap_killed(pid: int) -> None:
    """Reap a child that was killed, if it ends within REAP_LIMIT. Blocks: it is for where there is no event loop."""
    import time

    end = time.monotonic() + REAP_LIMIT
    try:
        while not (ended := has_ended(pid)) and time.monotonic() < end:
            time.sleep(0.01)
    except ChildProcessError:
        return
    if ended:
        reap(pid)


def prepare_for_children() -> None:
    """Undo what this process inherited and children must not meet. Call it before the first child is started."""
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # else the kernel drops exit statuses
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # If a standard descriptor is closed, a pipe would get its number, and collide with a child's own.
    while (gap := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(gap)
    _forget_coerced_locale()


def _forget_coerced_locale() -> None:
    """Remove the LC_CTYPE that Python itself may have set: children get the environment that we got."""
    if platforms.linux and os.environ.get("LC_CTYPE") in _COERCED_LOCALES:  # elsewhere nothing says who has set it
        try:
            with open("/proc/self/environ", "rb") as inherited:
                names = {variable.partition(b"=")[0] for variable in inherited.read().split(b"\0")}
        except OSError:
            return
        if b"LC_CTYPE" not in names:
            del os.environ["LC_CTYPE"]
