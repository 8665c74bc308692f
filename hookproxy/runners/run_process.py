"""One run of a hook's process: the event loop writes its input, reads its output and waits until the process has ended.

Law: however it ends (by itself, by timeout, by cancel), it is reaped and its descriptors are closed.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from enum import Enum
from functools import partial
from math import inf
from time import monotonic
from typing import Final

import anyio
from msgspec import Struct

from ..model.hooks import Ended, HookResult
from ..processes import process
from ..processes.fast_future import FastFuture
from ..processes.loop_callbacks import WRITABLE
from ..processes.process import PIPE_SIZE
from .event_watch import EventWatch

# Seconds in which small hooks end, even several at a time. Until then their output is not read and stays in the pipe:
# this saves two registrations, a wake-up and most timers, 8 % of such a hook. A hook that prints more than a pipe holds
# waits meanwhile. A hook with a long document often prints much, so its output is read from the start.
_UNREAD_TIME: Final = 0.02
_NO_BYTES: Final = memoryview(b"")
_LONGEST_FIRST_LINE: Final = 4096  # bytes in which a hook asks to be detached: it needs less than a hundred


class _Output(Struct):
    """The standard output or error of a hook, kept up to the limit."""

    fd: int
    remaining: int
    open: bool = True
    pieces: list[bytes] = []
    cut: bool = False

    def read(self) -> bool:
        """Read what is there, and drop what exceeds the limit; False: nothing is there now."""
        try:
            piece = os.read(self.fd, PIPE_SIZE)
        except BlockingIOError:
            return False
        if not piece:
            self.open = False
            return False
        if len(piece) > self.remaining:
            self.cut = True
            piece = piece[: self.remaining]
        if piece:
            self.remaining -= len(piece)
            self.pieces.append(piece)
        return True

    def drain(self) -> None:
        """Read all that is there, up to the limit: a child that the hook left behind may print for ever."""
        while not self.cut and self.read():
            pass


_NO_OUTPUT: Final = _Output(-1, 0, open=False)


def _read_rest(fd: int, limit: int) -> _Output:
    """Read what is in a pipe that was not read before, and close it. Later output of children is not waited for."""
    try:
        piece = os.read(fd, PIPE_SIZE)
    except BlockingIOError:
        piece = b""
    output = _NO_OUTPUT  # most hooks print on one of the two at most
    if piece:
        output = _Output(fd, limit - len(piece), pieces=[piece])
        output.drain()  # the pipe may hold more than one read returns
    os.close(fd)
    return output


class _Phase(Enum):
    """How far a run has come; `HookProcess.on_due` moves it from each phase to the next."""

    UNREAD = "unread"  # its output stays in the pipes
    READ = "read"  # its output is read as it comes
    DETACHING = "detaching"  # the same, and it has asked for the background
    TERMINATED = "terminated"  # after its timeout it got TERM
    KILLED = "killed"  # it got KILL
    STUCK = "stuck"  # KILL has not ended it within the limit


_TIMED_OUT: Final = (_Phase.TERMINATED, _Phase.KILLED)


class HookProcess:
    """The process of one run of a hook; lives in callbacks of the event loop until the process is reaped."""

    __slots__ = (
        "_begun", "_code", "_deadline", "_detaches", "_done", "_err", "_exit", "_input", "_limit", "_out", "_outputs",
        "_phase", "_pid", "_unwritten", "_watch", "detached", "due",
    )  # fmt: skip

    def __init__(
        self,
        watch: EventWatch,
        started: tuple[int, list[int], int],
        document: bytes | bytearray,
        timeout: float,
        begun: float,
        detaches: Callable[[bytes], float | None] | None = None,
    ) -> None:
        """`started` is what `command.start` returns. `timeout` seconds count from `begun`, on the loop's clock.

        `detaches`: as in HookSpec.
        """
        self._watch = watch
        self._begun = begun
        self._pid, (self._input, self._out, self._err, self._exit), written = started
        self._unwritten = _NO_BYTES if written == len(document) else memoryview(document)[written:]
        self._outputs: tuple[_Output, ...] = ()  # set once they are read
        self._limit = process.output_limit(len(document))
        self._phase = _Phase.UNREAD
        self._code: int | None = None
        self._detaches = detaches
        self.detached = False
        """It has asked for the background: `wait` has returned early; called again, it waits for the end."""
        self._done: FastFuture[None] = FastFuture(loop=watch.loop)
        self._deadline = begun + timeout
        self.due = min(begun + _UNREAD_TIME, self._deadline) if len(document) <= PIPE_SIZE else begun
        watch.add_fd(self._exit, self._on_exit)
        if self._unwritten:
            watch.add_fd(self._input, self._on_writable, WRITABLE)
        else:  # it is not watched yet
            os.close(self._input)
            self._input = -1
        watch.add_run(self)

    async def wait(self) -> None:
        """Wait until the run is over. On cancel the process is killed and reaped before the cancellation continues."""
        try:
            await self._done
        except asyncio.CancelledError:
            if self._code is None:
                self._done = FastFuture(loop=self._watch.loop)
                self._kill(monotonic())
                with anyio.CancelScope(shield=True):
                    await self._done
            raise

    def result(self) -> HookResult:
        """The result, once the run is over."""
        ms = (monotonic() - self._begun) * 1000
        code = self._code
        out, err = self._outputs
        ended = Ended.EXITED
        if code is None or self._phase in _TIMED_OUT:
            ended, code = Ended.TIMED_OUT, 0
        elif code < 0:
            ended, code = Ended.SIGNALLED, -code
        return HookResult(ended, code, b"".join(out.pieces), b"".join(err.pieces), ms, out.cut)

    def on_due(self, now: float) -> None:
        """The time for this phase is up."""
        match self._phase:
            case _Phase.UNREAD:
                self._phase, self.due = _Phase.READ, self._deadline
                self._outputs = (_Output(self._out, self._limit), _Output(self._err, self._limit))
                for output in self._outputs:
                    self._watch.add_fd(output.fd, partial(self._on_output, output))
            case _Phase.DETACHING:
                self._phase, self.due = _Phase.READ, self._deadline
                self.detached = True
                awaited, self._done = self._done, FastFuture(loop=self._watch.loop)
                awaited.set_result(None)
            case _Phase.READ:
                self._phase, self.due = _Phase.TERMINATED, now + process.GRACE
                process.signal_group(self._pid, signal.SIGTERM)
            case _Phase.TERMINATED:
                self._kill(now)
            case _Phase.KILLED | _Phase.STUCK:  # it is reaped when it ends; nobody waits for that
                self._phase, self.due = _Phase.STUCK, inf
                self._set_done()

    def _kill(self, now: float) -> None:
        self._phase, self.due = _Phase.KILLED, now + process.REAP_LIMIT
        self._watch.wake_by(self.due)
        process.signal_group(self._pid, signal.SIGKILL)
        if self._exit < 0:
            self._finish()

    def _on_exit(self) -> None:
        """The hook itself has ended; other processes of its group may live, and hold its output open."""
        self._watch.close_fd(self._exit)
        self._exit = -1
        # After TERM the others have the grace period too. Not reaping it keeps the group's id from being reused.
        if self._phase is not _Phase.TERMINATED or self._outputs_closed():
            self._finish()

    def _on_output(self, output: _Output) -> None:
        output.read()
        if self._detaches is not None and output is self._outputs[0]:
            self._detach_if_asked(self._detaches, b"".join(output.pieces))
        if not output.open:
            self._watch.close_fd(output.fd)
            if self._exit < 0 and self._outputs_closed():
                self._finish()

    def _detach_if_asked(self, detaches: Callable[[bytes], float | None], printed: bytes) -> None:
        """Let `wait` return soon if the hook asks for the background in its first line, which may not be complete yet.

        Not at once: a guard that prints what it judges, and then blocks it, must not be detached by the agent's text.
        """
        line, line_end, _ = printed.partition(b"\n")
        seconds = detaches(line) if self._phase is _Phase.READ else None
        if seconds is not None or line_end or len(line) > _LONGEST_FIRST_LINE:
            self._detaches = None
        if seconds is None or self._done.done():
            return
        now = monotonic()
        self._phase, self._deadline = _Phase.DETACHING, min(self._deadline, now + seconds)
        self.due = now + _UNREAD_TIME
        self._watch.wake_by(self.due)

    def _outputs_closed(self) -> bool:
        """No process holds its outputs open any more."""
        return not any(output.open for output in self._outputs)

    def _on_writable(self) -> None:
        try:
            self._unwritten = self._unwritten[os.write(self._input, self._unwritten) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # a hook need not read
            self._unwritten = self._unwritten[:0]
        if not self._unwritten:
            self._close_input()

    def _close_input(self) -> None:
        self._watch.close_fd(self._input)
        self._input = -1

    def _finish(self) -> None:
        """Read what is left in the pipes, close everything, reap the process."""
        if self._phase is _Phase.TERMINATED:
            process.signal_group(self._pid, signal.SIGKILL)  # those that closed the output but still run
        self._code = process.reap(self._pid)
        self._watch.remove_run(self)
        if self._input >= 0:
            self._close_input()
        if not self._outputs:  # they were not read before
            self._outputs = _read_rest(self._out, self._limit), _read_rest(self._err, self._limit)
        else:
            for output in self._outputs:
                if output.open:
                    output.drain()
                    self._watch.close_fd(output.fd)
        self._set_done()

    def _set_done(self) -> None:
        if not self._done.done():
            self._done.set_result(None)
