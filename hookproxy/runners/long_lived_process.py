"""A hook's process that stays alive: one such process, and its starts and ends for whoever waits for its output.

How it works: `LongLivedProcess` is one process, from its start until it is reaped. `RestartedProcess` has at most one
of them that may be used (`current`), and the outputs that are awaited (`pending`). When that process dies or is killed,
nothing is current, all that is pending fails, and its owner may start another one. What must hold: each process is
reaped, also a former one, and nothing is started after `aclose`.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar

import anyio

from ..model.hooks import Document, HookSpec
from ..processes.loop_callbacks import WRITABLE
from ..processes.process import OUTPUT_LIMIT, PIPE_SIZE, REAP_LIMIT, has_ended, reap, signal_group
from . import command
from .event_watch import EventWatch, get_watch
from .runner import HookFailed

_CLOSE_GRACE: Final = 0.3  # seconds from the end of its input until it is killed: enough to save its state
_STDERR_LIMIT: Final = 65_536  # bytes of standard error that are kept: the last ones
_EXIT_DELAY: Final = 0.1  # seconds that a process may take to exit after it closed its output

_Output = TypeVar("_Output")


class RestartedProcess(Generic[_Output]):
    """The process of one hook, which its owner starts when it is needed, also again after its end."""

    def __init__(
        self,
        spec: HookSpec,
        on_output: Callable[[LongLivedProcess], None],
        on_end: Callable[[LongLivedProcess, str], type[HookFailed]],
    ) -> None:
        """`on_output` is called when the process has printed something, `on_end` when it is dead, with what happened:
        it returns what is raised with that text where output is pending. Neither may raise.
        """
        self.current: LongLivedProcess | None = None
        """The process that may be used; None: there is none, and the next output needs a start."""
        self.pending: dict[str, asyncio.Future[_Output]] = {}
        """The outputs to come, by the ids of what they respond to."""
        self.is_closed = False
        """It is not to be started again."""
        self._spec, self._on_output, self._on_end = spec, on_output, on_end
        self._watch = get_watch(asyncio.get_running_loop())
        self._unreaped: list[LongLivedProcess] = []  # those that are possibly not reaped yet

    def start(self, document: Document, env: Mapping[str, str]) -> LongLivedProcess:
        """Start it with the variables of this document. Raises OSError or ValueError."""
        pid, fds, _ = command.start(command.prepare(self._spec, document, env))
        self.current = LongLivedProcess(self._watch, pid, fds, self._on_output, self._on_death)
        self._unreaped = [process for process in self._unreaped if not process.reaped.done()] + [self.current]
        return self.current

    def kill(self, why: str) -> LongLivedProcess | None:
        """Kill the current process, which is returned. What is pending fails."""
        process = self.current
        if process is not None:
            process.kill()
            self._on_death(process, why)
        return process

    async def aclose(self) -> None:
        """Close its input, wait a little, kill it."""
        self.is_closed = True
        for process in self._unreaped:  # only the last one may still live
            await process.aclose(_CLOSE_GRACE)

    def _on_death(self, process: LongLivedProcess, why: str) -> None:
        if process is not self.current:
            return
        self.current = None
        failure = self._on_end(process, why)
        for output in self.pending.values():
            if not output.done():
                output.set_exception(failure(why))


class LongLivedProcess:
    """One process, to which the event loop writes and from which it reads; it is reaped when it ends.

    It calls its owner when there is output and when it has died, but not after `kill`. However it ends, its whole
    process group is killed, it is reaped, and its descriptors are closed.
    """

    def __init__(
        self,
        watch: EventWatch,
        pid: int,
        fds: list[int],
        on_output: Callable[[LongLivedProcess], None],
        on_death: Callable[[LongLivedProcess, str], None],
    ) -> None:
        """`on_output` is called when `output` has grown, `on_death` once, with what happened. Neither may raise."""
        self.output = bytearray()
        """Its standard output so far; the owner removes what it has read."""
        self.unwritten = b""
        """Bytes for its standard input that it has not taken yet."""
        self.output_limit = OUTPUT_LIMIT
        """How many bytes of output are kept for one line."""
        self.overflowed = False
        """It printed more than that."""
        self.reaped: asyncio.Future[None] = watch.loop.create_future()
        """Done when it is reaped."""
        self._watch = watch
        self._pid = pid
        self._stdin_fd, self._stdout_fd, self._stderr_fd, self._exit_fd = fds
        self._call_on_output, self._call_on_death = on_output, on_death
        self._detached = False  # the owner gets no more calls
        self._stderr = bytearray()
        watch.add_fd(self._exit_fd, self._on_exit)
        watch.add_fd(self._stdout_fd, self._on_output)
        watch.add_fd(self._stderr_fd, self._on_stderr)

    def write(self, line: bytes) -> None:
        """Write a line to its standard input, now or when it reads."""
        if self.unwritten:
            self.unwritten += line
            return
        self.unwritten = line
        self._write_pending()
        if self.unwritten and self._stdin_fd >= 0:
            self._watch.add_fd(self._stdin_fd, self._on_writable, WRITABLE)

    def take_stderr(self) -> bytes:
        """What it has printed on standard error since the last call of this method, or the end of it."""
        if self._stderr_fd >= 0:
            self._on_stderr()
        stderr = bytes(self._stderr)
        self._stderr.clear()
        return stderr

    def kill(self) -> None:
        """Kill its whole process group; the event loop reaps it."""
        self._detached = True
        self._stdin_fd, self._stdout_fd, self._stderr_fd = map(
            self._close, (self._stdin_fd, self._stdout_fd, self._stderr_fd)
        )
        if not self.reaped.done():
            signal_group(self._pid, signal.SIGKILL)

    async def aclose(self, seconds: float) -> None:
        """Close its input, and kill it if it has not ended after so many seconds; it is reaped when this returns."""
        self._detached = True
        self._stdin_fd = self._close(self._stdin_fd)
        with anyio.move_on_after(seconds):
            await asyncio.wait([self.reaped])
        self.kill()
        await self.wait_reaped()

    async def wait_reaped(self) -> None:
        """Wait until the killed process is reaped, also while this task is being cancelled."""
        with anyio.move_on_after(REAP_LIMIT, shield=True):
            await asyncio.wait([self.reaped])

    # --- callbacks of the event loop ---

    def _on_writable(self) -> None:
        self._write_pending()
        if not self.unwritten and self._stdin_fd >= 0:
            self._watch.remove_fd(self._stdin_fd)

    def _write_pending(self) -> None:
        try:
            self.unwritten = self.unwritten[os.write(self._stdin_fd, self.unwritten) :]
        except BlockingIOError:
            pass
        except OSError:  # it has closed its input or has ended; `_on_exit` finds out which
            self.unwritten = b""
            self._watch.loop.call_later(_EXIT_DELAY, self._end_running, "has closed its input")

    def _on_output(self) -> None:
        piece = _read(self._stdout_fd)
        if piece == b"":
            self._stdout_fd = self._close(self._stdout_fd)
            self._watch.loop.call_later(_EXIT_DELAY, self._end_running, "has closed its output")
        elif piece and not self._detached:
            self.output += piece
            self._call_on_output(self)
            if len(self.output) > self.output_limit:
                self.overflowed = True
                self._end(f"printed more than {self.output_limit} bytes on one line")

    def _on_stderr(self) -> None:
        piece = _read(self._stderr_fd)
        if piece == b"":
            self._stderr_fd = self._close(self._stderr_fd)
        self._stderr += piece or b""
        del self._stderr[:-_STDERR_LIMIT]

    def _close(self, fd: int) -> int:
        """Close the descriptor, if it is one. Returns what stands for none."""
        if fd >= 0:
            self._watch.close_fd(fd)
        return -1

    def _on_exit(self) -> None:
        self._watch.close_fd(self._exit_fd)
        if self._stdout_fd >= 0 and not self._detached:  # what it printed last
            self._on_output()
        if self._stderr_fd >= 0:
            self._on_stderr()
        signal_group(self._pid, signal.SIGKILL)  # not reaped yet, so the group's id is not reused
        code = reap(self._pid)
        self.reaped.set_result(None)
        self._end(f"exited with status {code}" if code >= 0 else f"was ended by signal {-code}")

    def _end_running(self, what_happened: str) -> None:
        """End it, unless it has exited: then `_on_exit` says how."""
        if self.reaped.done() or not has_ended(self._pid):
            self._end(what_happened)

    def _end(self, what_happened: str) -> None:
        """It cannot be used any more."""
        if not self._detached:
            self.kill()
            self._call_on_death(self, what_happened)
        elif self.reaped.done():
            self.kill()


def _read(fd: int) -> bytes | None:
    """The next bytes; none at the end, and None if there are none yet."""
    try:
        return os.read(fd, PIPE_SIZE)
    except BlockingIOError:
        return None
