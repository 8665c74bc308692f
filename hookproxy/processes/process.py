"""Starts the server, ends and reaps processes, and knows their limits. Hooks are started by `starting`.

`run` starts the server before it imports anything heavy: what is imported here delays the server.
"""

from __future__ import annotations

import errno
import os

from ..model.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, UserError

TYPE_CHECKING = False  # `typing` itself takes 9 ms to import
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable, Sequence
    from typing import Final
else:
    import _signal as signal  # `signal` makes enumerations of it, which takes 1 ms

OUTPUT_LIMIT: Final = 10 * 1024 * 1024  # bytes kept of each output: above any answer, below what hurts us
GRACE: Final = 2.0  # seconds from TERM to KILL: enough to remove a lock file, not enough to look like a hang
REAP_LIMIT: Final = 1.0  # seconds from KILL until we go on without the status: only a stuck disk takes so long
SHELL: Final = "/bin/sh"

# Signals that end us where nobody hears them; the last one by an exception, in the middle of anything.
ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
# Python ignores these two, and an ignored signal stays ignored in children: `yes | head` would not end.
_TO_DEFAULT: Final = (signal.SIGPIPE, signal.SIGXFSZ)
# What Python writes into LC_CTYPE when it finds the C locale (PEP 538).
_COERCED_LOCALES: Final = ("C.UTF-8", "C.utf8", "UTF-8")


class Server:
    """A started server: its process, and our ends of its standard input and output."""

    __slots__ = ("from_server", "pid", "to_server")

    def __init__(self, pid: int, to_server: int, from_server: int) -> None:
        self.pid = pid
        self.to_server = to_server
        self.from_server = from_server


def start_server(argv: Sequence[str], started: Callable[[int], None] = lambda _pid: None) -> Server:
    """Start the server as the agent would: our environment, folder, process group and standard error.

    `started` is told its process id before any signal that asks us to end is heard.
    Raises UserError with the status that a shell would end with.
    """
    if not argv[0]:
        raise UserError(
            "cannot start the server: its command is empty", "name a program after the two dashes", EXIT_NOT_FOUND
        )
    settle()
    stdin, to_server = os.pipe()
    from_server, stdout = os.pipe()
    try:
        pid = _spawn_unheard(tuple(argv), ((os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, stdout, 1)), started)
    except (OSError, ValueError) as error:
        close_all((stdin, to_server, from_server, stdout))
        status = EXIT_NOT_FOUND if isinstance(error, FileNotFoundError) else EXIT_NOT_EXECUTABLE
        hint = f"{_remedy(error, argv[0])}; the server's command line is: {' '.join(argv)}"
        raise UserError(f"cannot start the server: {why_not_started(error, argv[0])}", hint, status) from None
    close_all((stdin, stdout))
    return Server(pid, to_server, from_server)


def _spawn_unheard(
    argv: tuple[str, ...], actions: Sequence[tuple[int, int, int]], started: Callable[[int], None]
) -> int:
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        pid = _spawn_server(argv, actions, mask)
        started(pid)
        return pid
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _spawn_server(argv: tuple[str, ...], actions: Sequence[tuple[int, int, int]], mask: Iterable[int]) -> int:
    try:
        return os.posix_spawnp(argv[0], argv, os.environb, file_actions=actions, setsigdef=_TO_DEFAULT, setsigmask=mask)
    except OSError as error:
        program = find_program(argv[0], os.environ.get("PATH"))
        if error.errno != errno.ENOEXEC or program is None:
            raise
    argv = (SHELL, program, *argv[1:])
    return os.posix_spawn(SHELL, argv, os.environb, file_actions=actions, setsigdef=_TO_DEFAULT, setsigmask=mask)


def find_program(word: str, path: str | None, cwd: str = "") -> str | None:
    """The file that a shell would run for `word`, searched in `path` as seen from `cwd`; or None."""
    folders = (path if path is not None else os.defpath).split(os.pathsep)
    for program in (word,) if "/" in word else (os.path.join(folder, word) for folder in folders):
        seen_from_here = os.path.join(cwd, program)
        if os.path.isfile(seen_from_here) and os.access(seen_from_here, os.X_OK):
            return program
    return None


def why_not_started(error: OSError | ValueError, word: str, cwd: str = "") -> str:
    """The reason in a few words, naming the command or the folder."""
    if not isinstance(error, OSError):
        return f"{word!r}: {error}"  # a NUL, or a variable without a name: Python says which
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


def _remedy(error: OSError | ValueError, word: str) -> str:
    """What helps where a command cannot be started."""
    if isinstance(error, FileNotFoundError):
        return "mend that line" if "/" in word and os.path.exists(word) else "install it, or write its whole path"
    if isinstance(error, PermissionError):
        return "that is a folder" if os.path.isdir(word) else f"chmod +x {word}, or name the program that runs it"
    return "that is what is to be changed"


def widen(pipe: int, size: int) -> None:
    """Let the pipe hold so many bytes, if the system has them: each filling costs two switches to its other side."""
    import fcntl  # not before the server is started

    try:  # noqa: SIM105 - contextlib is an import
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, size)
    except (OSError, AttributeError):  # the user's pipes hold too much already; no Linux
        pass


def close_all(descriptors: Sequence[int]) -> None:
    """Close each of them."""
    for descriptor in descriptors:
        os.close(descriptor)


def end_tree(pid: int, number: int) -> None:
    """Send a signal to all processes of a hook's group. Nobody left to get it is fine."""
    try:  # noqa: SIM105 - contextlib is an import
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):  # gone; or all that is left runs as somebody else
        pass


def open_exit(pid: int) -> int:
    """A descriptor that can be read once our child `pid` has ended; it is not reaped. Raises OSError."""
    try:
        return os.pidfd_open(pid)
    except AttributeError:  # a Python built without it
        pass
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):  # an old kernel, a sandbox
            raise
    return _open_exit_by_thread(pid)


def _open_exit_by_thread(pid: int) -> int:
    """The same where pidfds are missing: a thread waits, and its end of a pipe closes."""
    import threading

    ended, living = os.pipe()

    def wait() -> None:
        try:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            pass
        finally:
            os.close(living)

    threading.Thread(target=wait, name=f"waits for {pid}", daemon=True).start()
    return ended


def reap(pid: int) -> int:
    """Our child's exit code, or the negative number of the signal that ended it.

    Blocks until it has ended: ask when `open_exit` says so.
    """
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:  # somebody else in this process took it: lost, which must not look like success
        return -signal.SIGKILL


def reap_soon(pid: int) -> None:
    """Take the status of a child that was killed, if it ends within REAP_LIMIT."""
    import time

    end = time.monotonic() + REAP_LIMIT
    try:
        while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < end:
            time.sleep(0.01)
    except ChildProcessError:
        pass


def settle() -> None:
    """Make ready for the starting of children, whatever we have inherited; call it before the first."""
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # then the kernel throws away how children end
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Where a standard descriptor is missing, a pipe would take its number, and a child's own be laid over it.
    while (gap := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(gap)
    _forget_coerced_locale()


def _forget_coerced_locale() -> None:
    """Remove the LC_CTYPE that Python itself may have set: our children get the environment that we got."""
    if os.environ.get("LC_CTYPE") in _COERCED_LOCALES:
        try:
            with open("/proc/self/environ", "rb") as inherited:
                names = {variable.partition(b"=")[0] for variable in inherited.read().split(b"\0")}
        except OSError:
            return
        if b"LC_CTYPE" not in names:
            del os.environ["LC_CTYPE"]
