"""A process that lives longer than one event: the event loop writes to it, reads from it and reaps it when it ends.

Law: however it ends, its whole process group is killed, it is reaped, and its descriptors are closed.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Final

import anyio

from ..processes import process
from ..processes.process import PIPE_SIZE
from .event_watch import WRITABLE, EventWatch

_STDERR_LIMIT: Final = 65_536  # bytes of standard error that are kept: the last ones
_EXIT_DELAY: Final = 0.1  # seconds that a process may take to exit after it closed its output


class LongLivedProcess:
    """One process. It calls its owner when there is output and when it has died, but not after `kill`."""

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
        for fd in (self._stdin_fd, self._stdout_fd, self._stderr_fd):
            if fd >= 0:
                self._watch.close_fd(fd)
        self._stdin_fd = self._stdout_fd = self._stderr_fd = -1
        if not self.reaped.done():
            process.signal_group(self._pid, signal.SIGKILL)

    async def aclose(self, seconds: float) -> None:
        """Close its input, and kill it if it has not ended after so many seconds; it is reaped when this returns."""
        self._detached = True
        if self._stdin_fd >= 0:
            self._watch.close_fd(self._stdin_fd)
            self._stdin_fd = -1
        with anyio.move_on_after(seconds):
            await asyncio.wait([self.reaped])
        self.kill()
        await self.wait_reaped()

    async def wait_reaped(self) -> None:
        """Wait until the killed process is reaped, also while this task is being cancelled."""
        with anyio.move_on_after(process.REAP_LIMIT, shield=True):
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
            self._watch.loop.call_later(_EXIT_DELAY, self._end, "has closed its input")

    def _on_output(self) -> None:
        try:
            piece = os.read(self._stdout_fd, PIPE_SIZE)
        except BlockingIOError:
            return
        if not piece:
            self._watch.close_fd(self._stdout_fd)
            self._stdout_fd = -1
            self._watch.loop.call_later(_EXIT_DELAY, self._end, "has closed its output")
        elif not self._detached:
            self.output += piece
            self._call_on_output(self)
            if len(self.output) > process.OUTPUT_LIMIT:
                self._end(f"printed more than {process.OUTPUT_LIMIT} bytes on one line")

    def _on_stderr(self) -> None:
        try:
            piece = os.read(self._stderr_fd, PIPE_SIZE)
        except BlockingIOError:
            return
        if not piece:
            self._watch.close_fd(self._stderr_fd)
            self._stderr_fd = -1
        self._stderr += piece
        del self._stderr[:-_STDERR_LIMIT]

    def _on_exit(self) -> None:
        self._watch.close_fd(self._exit_fd)
        if self._stdout_fd >= 0 and not self._detached:  # what it printed last
            self._on_output()
        if self._stderr_fd >= 0:
            self._on_stderr()
        process.signal_group(self._pid, signal.SIGKILL)  # not reaped yet, so the group's id is not reused
        code = process.reap(self._pid)
        self.reaped.set_result(None)
        self._end(f"exited with status {code}" if code >= 0 else f"was ended by signal {-code}")

    def _end(self, what_happened: str) -> None:
        """It cannot be used any more."""
        if not self._detached:
            self.kill()
            self._call_on_death(self, what_happened)
        elif self.reaped.done():
            self.kill()
