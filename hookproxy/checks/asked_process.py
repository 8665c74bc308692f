"""A server that is started to be asked what it offers, and is ended again: for `check` and `lock`.

The server is not trusted: it may hang, exit, print anything or ask something. Whatever happens, its whole process group
is ended, and nothing that it printed reaches a terminal raw.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

import anyio
import anyio.lowlevel

from ..model.errors import UserError, printable
from ..processes import environment, process, spawn
from ..processes.ending import end_server

_T = TypeVar("_T")

MOST_BYTES: Final = 64 * 1024 * 1024  # of one line and of all pages: as much as one message may have

_CLOSED_SECONDS: Final = 0.1  # from the end of its output to its exit, if it exits by itself
_MAX_SHOWN: Final = 500  # characters of its standard error: enough to recognise the cause

_PYTHON_FRAME: Final = re.compile(r'^[ |]*File ".*", line \d+', re.MULTILINE)
_PYTHON_ERROR: Final = re.compile(r"^[ |]*([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b.*)", re.MULTILINE)
"""In a traceback, also of a group: the line that says what happened, at the end of the lines that say where."""
_PIECE: Final = 65_536  # bytes per read: what a pipe holds


Starter = Callable[[tuple[int, int, int]], int]
"""Starts a server in a way of its own, as in a sandbox, in a session of its own and with these descriptors as its
standard input, output and error. Returns its process id. Raises UserError, OSError, ValueError."""


class ServerFailed(Exception):
    """The server does not say what it offers; the text says what it did. Empty: a pipe to it is closed."""


class AskedProcess:
    """The process of a server, in a process group of its own."""

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str], cwd: str = "", starter: Starter | None = None
    ) -> None:
        """Start it, in our folder or in `cwd`; with a `starter`, as that does. Raises UserError."""
        self._command = command
        self._pid, (self._stdin, self._stdout, self._stderr, self._exit) = _start(
            command, starter or partial(_spawn, command, environ, cwd)
        )
        self._output = bytearray()
        self._stderr_end = b""
        self._exit_status: int | None = None  # of a server that has ended by itself

    async def next_line(self) -> bytes:
        """The next line that it prints. Raises ServerFailed."""
        searched = 0
        while (end := self._output.find(b"\n", searched)) < 0:
            searched = len(self._output)
            if searched > MOST_BYTES:
                raise ServerFailed(f"printed more than {MOST_BYTES} bytes on one line")
            piece = await _read(self._stdout)
            if not piece:
                raise ServerFailed
            self._output += piece
        line = bytes(self._output[:end])
        del self._output[: end + 1]
        return line

    async def write(self, line: bytes) -> None:
        """Write a line to it. Raises ServerFailed."""
        while line:
            try:
                line = line[os.write(self._stdin, line) :]
            except BlockingIOError:
                await anyio.wait_writable(self._stdin)
            except BrokenPipeError:
                raise ServerFailed from None

    async def keep_stderr(self) -> None:
        """Read its standard error, and keep the end."""
        while piece := await _read(self._stderr):
            self._stderr_end = (self._stderr_end + piece)[-4 * _MAX_SHOWN :]

    async def end(self) -> None:
        """End it as at the end of a run: close its input, then TERM, then KILL for its whole group; reap it."""
        by_itself = await self._has_exited(_CLOSED_SECONDS)
        process.close_all((self._stdin, self._stdout))
        await end_server(self._has_exited, partial(process.signal_group, self._pid))
        if await self._has_exited(process.REAP_LIMIT):
            process.signal_group(self._pid, signal.SIGKILL)  # what is left of its group; its id is not reused yet
            status = process.reap(self._pid)
            self._exit_status = status if by_itself else None
        os.close(self._exit)

    def close(self) -> None:
        """Close its standard error, which nobody reads any more."""
        os.close(self._stderr)

    async def _has_exited(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await anyio.wait_readable(self._exit)
            return True
        return False

    def error(self, what: str, doing: str) -> UserError:
        """The error for people, with the end of what the server has printed on standard error.

        `what` is what it did; empty: its end, before it had done what `doing` says.
        """
        if not what:
            status = self._exit_status
            how = "closed its input or output" if status is None else f"exited with status {status}"
            how = how if status is None or status >= 0 else f"was ended by signal {-status}"
            what = f"{how} before it had {doing}"
        stderr = _end(self._stderr_end.decode(errors="replace"))
        printed = f"its standard error ends with: {stderr}" if stderr else "it printed nothing on standard error"
        return UserError(printable(f"the server {what}"), _cleaned(f"{printed}; {_command_line(self._command)}"))


async def answer_of(
    server: AskedProcess,
    ask: Callable[[], Awaitable[_T]],
    doing: str,
    meanwhile: Callable[[], Coroutine[object, object, None]] = anyio.lowlevel.checkpoint,
) -> _T:
    """What `ask` returns, which may raise ServerFailed; then the server is ended, also on cancel. Raises UserError.

    `doing` is what it had not done, in the past participle. `meanwhile` runs beside it, and is cancelled with its end.
    """
    answers = list[_T]()
    failure = ""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.keep_stderr)
        tasks.start_soon(meanwhile)
        try:
            answers.append(await ask())
        except ServerFailed as error:  # here: out of the group it would come in a group of exceptions
            failure = str(error)
        finally:
            with anyio.CancelScope(shield=True):
                await server.end()
        tasks.cancel_scope.cancel()
    server.close()
    if not answers:
        raise server.error(failure, doing)
    return answers[0]


def _end(stderr: str) -> str:
    """The end of a text on standard error, in one line: of a traceback of Python only the error, else whole lines."""
    if errors := _PYTHON_ERROR.findall(stderr) if _PYTHON_FRAME.search(stderr) else []:
        return str(errors[-1])[:_MAX_SHOWN]
    shown = ""
    for line in reversed([" ".join(line.split()) for line in stderr.splitlines()]):
        if shown and len(line) + len(shown) >= _MAX_SHOWN:
            break
        shown = f"{line} {shown}".strip()
    return shown[-_MAX_SHOWN:]


def _spawn(command: Sequence[str], environ: Mapping[str, str], cwd: str, std_fds: tuple[int, int, int]) -> int:
    program = process.find_program(command[0], environ.get("PATH")) or command[0]
    return spawn.start_hook(os.fsencode(program), tuple(command), environment.entries(environ), cwd, std_fds)


def _start(command: Sequence[str], starter: Starter) -> tuple[int, tuple[int, int, int, int]]:
    """Start the server. Returns its process id, our ends of its standard streams, and a descriptor for its exit.

    Raises UserError.
    """
    fds: list[int] = []
    try:
        for _ in range(3):
            fds += os.pipe()
        stdin, to_stdin, from_stdout, stdout, from_stderr, stderr = fds
        for fd in (to_stdin, from_stdout, from_stderr):
            os.set_blocking(fd, False)
        pid = starter((stdin, stdout, stderr))
    except UserError:
        process.close_all(fds)
        raise
    except (OSError, ValueError) as error:
        process.close_all(fds)
        why = process.why_not_started(error, command[0])
        hint = process.start_hint(error, command)
        raise UserError(_cleaned(f"cannot start the server: {why}"), _cleaned(hint)) from None
    process.close_all((stdin, stdout, stderr))
    return pid, (to_stdin, from_stdout, from_stderr, process.open_exit_fd(pid))


def _cleaned(text: str) -> str:
    """A text with a command line, or with what a server has printed, for people: without what looks like a secret."""
    from ..secrets.mask import Masking  # for errors only

    return printable(Masking().text(text))


async def _read(fd: int) -> bytes:
    """The next bytes, at least one; none at the end."""
    while True:
        await anyio.lowlevel.checkpoint()  # a server that prints without end must not keep the deadline from passing
        try:
            return os.read(fd, _PIECE)
        except BlockingIOError:
            await anyio.wait_readable(fd)


def _command_line(command: Sequence[str]) -> str:
    return f"the server's command line is: {' '.join(command)}"
