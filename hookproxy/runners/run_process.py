"""One run of a process that is a hook: fed and drained by the event loop, over when the process itself has ended.

Law: however it ends (by itself, by timeout, by cancel), it is reaped and its descriptors are closed.
"""

from __future__ import annotations

import asyncio
import os
import signal
from enum import Enum
from functools import partial
from math import inf
from time import monotonic
from typing import Final

import anyio
from msgspec import Struct

from ..model.hooks import Ended, HookResult
from ..processes import process
from ..processes.fast_future import Promise
from .event_watch import WRITABLE, Watch

# Seconds in which small hooks are done, even several at a time. Until then nobody looks at their output, which waits
# in the pipe: it saves two registrations, a wake-up and most timers, 8 % of such a hook. One that prints more than a
# pipe holds waits; but who reads much often prints as much, and is looked at from the start.
_QUICK: Final = 0.02
_PIECE: Final = 65_536  # bytes: what a pipe holds
_NOTHING: Final = memoryview(b"")


class _Output(Struct):
    """One of a hook's outputs, kept up to the limit."""

    fd: int
    open: bool = True
    pieces: list[bytes] = []
    room: int = process.OUTPUT_LIMIT
    cut: bool = False

    def read(self) -> bool:
        """Take what is there, and throw away what is over the limit; False: nothing is there now."""
        try:
            piece = os.read(self.fd, _PIECE)
        except BlockingIOError:
            return False
        if not piece:
            self.open = False
            return False
        if len(piece) > self.room:
            self.cut = True
            piece = piece[: self.room]
        if piece:
            self.room -= len(piece)
            self.pieces.append(piece)
        return True

    def drain(self) -> None:
        """Take all that is there; a child that a hook leaves behind may print for ever."""
        while not self.cut and self.read():
            pass


_SILENT: Final = _Output(-1, open=False)


def _left(fd: int) -> _Output:
    """What is left in a pipe that nobody has read, which is closed; what a child left behind may print yet is not."""
    try:
        piece = os.read(fd, _PIECE)
    except BlockingIOError:
        piece = b""
    output = _SILENT  # as of most hooks
    if piece:
        output = _Output(fd, pieces=[piece], room=process.OUTPUT_LIMIT - len(piece))
        output.drain()  # a hook may have widened it, some systems' pipes hold more, and some give a write at a time
    os.close(fd)
    return output


class _Stage(Enum):
    """How far a run has come; `_Running.overdue` leads from each to the next."""

    QUICK = "quick"
    WATCHED = "watched"
    TERMINATED = "terminated"
    KILLED = "killed"
    ABANDONED = "abandoned"


_STOPPED: Final = (_Stage.TERMINATED, _Stage.KILLED)


class Running:
    """One run of a hook; lives in the callbacks of the event loop until the process is reaped."""

    __slots__ = (
        "_begun",
        "_code",
        "_deadline",
        "_err",
        "_exit",
        "_input",
        "_out",
        "_outputs",
        "_over",
        "_pid",
        "_stage",
        "_unwritten",
        "_watch",
        "due",
    )

    def __init__(
        self,
        watch: Watch,
        started: tuple[int, list[int], int],
        document: bytes | bytearray,
        timeout: float,
        begun: float,
    ) -> None:
        """`started` is what `command.start` gives. `timeout` seconds count from `begun`, on the loop's clock."""
        self._watch = watch
        self._begun = begun
        self._pid, (self._input, self._out, self._err, self._exit), written = started
        self._unwritten = _NOTHING if written == len(document) else memoryview(document)[written:]
        self._outputs: tuple[_Output, ...] = ()  # of one that is watched, or over
        self._stage = _Stage.QUICK
        self._code: int | None = None
        self._over: Promise[None] = Promise(loop=watch.loop)
        self._deadline = begun + timeout
        self.due = min(begun + _QUICK, self._deadline) if len(document) <= _PIECE else begun
        watch.add(self._exit, self._exited)
        if self._unwritten:
            watch.add(self._input, self._write, WRITABLE)
        else:  # nobody has watched it
            os.close(self._input)
            self._input = -1
        watch.begin(self)

    async def end(self) -> None:
        """Wait until the run is over. On cancel: KILL, and it is over when the cancellation goes on."""
        try:
            await self._over
        except asyncio.CancelledError:
            if self._code is None:
                self._over = Promise(loop=self._watch.loop)
                self._kill(monotonic())
                with anyio.CancelScope(shield=True):
                    await self._over
            raise

    def result(self) -> HookResult:
        """What came of it, when it is over."""
        ms = (monotonic() - self._begun) * 1000
        code = self._code
        out, err = self._outputs
        ended = Ended.EXITED
        if code is None or self._stage in _STOPPED:
            ended, code = Ended.TIMED_OUT, 0
        elif code < 0:
            ended, code = Ended.SIGNALLED, -code
        return HookResult(ended, code, b"".join(out.pieces), b"".join(err.pieces), ms, out.cut or err.cut)

    def overdue(self, now: float) -> None:
        """Its time for this stage is up."""
        match self._stage:
            case _Stage.QUICK:
                self._stage, self.due = _Stage.WATCHED, self._deadline
                self._outputs = (_Output(self._out), _Output(self._err))
                for output in self._outputs:
                    self._watch.add(output.fd, partial(self._printed, output))
            case _Stage.WATCHED:
                self._stage, self.due = _Stage.TERMINATED, now + process.GRACE
                process.end_tree(self._pid, signal.SIGTERM)
            case _Stage.TERMINATED:
                self._kill(now)
            case _Stage.KILLED | _Stage.ABANDONED:  # it is reaped when it does end; nobody waits for that
                self._stage, self.due = _Stage.ABANDONED, inf
                self._tell()

    def _kill(self, now: float) -> None:
        self._stage, self.due = _Stage.KILLED, now + process.REAP_LIMIT
        self._watch.wake(self.due)
        process.end_tree(self._pid, signal.SIGKILL)
        if self._exit < 0:
            self._finish()

    def _exited(self) -> None:
        """The hook itself has ended; others of its group may live, and hold its output."""
        self._watch.close(self._exit)
        self._exit = -1
        # After TERM the others have their grace too. Unreaped, it keeps the group's number from being reused.
        if self._stage is not _Stage.TERMINATED or self._silent():
            self._finish()

    def _printed(self, output: _Output) -> None:
        output.read()
        if not output.open:
            self._watch.close(output.fd)
            if self._exit < 0 and self._silent():
                self._finish()

    def _silent(self) -> bool:
        """Nobody holds its outputs any more."""
        return not any(output.open for output in self._outputs)

    def _write(self) -> None:
        try:
            self._unwritten = self._unwritten[os.write(self._input, self._unwritten) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it need not read
            self._unwritten = self._unwritten[:0]
        if not self._unwritten:
            self._close_input()

    def _close_input(self) -> None:
        self._watch.close(self._input)
        self._input = -1

    def _finish(self) -> None:
        """Take what it has left in its pipes, close everything, reap."""
        if self._stage is _Stage.TERMINATED:
            process.end_tree(self._pid, signal.SIGKILL)  # who of its group closed the output, but stayed
        self._code = process.reap(self._pid)
        self._watch.end(self)
        if self._input >= 0:
            self._close_input()
        if not self._outputs:  # nobody has watched them
            self._outputs = _left(self._out), _left(self._err)
        else:
            for output in self._outputs:
                if output.open:
                    output.drain()
                    self._watch.close(output.fd)
        self._tell()

    def _tell(self) -> None:
        if not self._over.done():
            self._over.set_result(None)
