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

from .. import process
from ..model import Ended, HookResult
from .watch import WRITABLE, Watch

# Seconds in which small hooks are done. Until then nobody looks at their output, which waits in the pipe: it
# saves two registrations and a wake-up, 5 % of such a hook. One that prints more than a pipe holds waits.
_QUICK: Final = 0.003
_PIECE: Final = 65_536  # bytes: what a pipe holds


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


class _Stage(Enum):
    """How far a run has come; `_Running.overdue` leads from each to the next."""

    QUICK = "quick"
    WATCHED = "watched"
    TERMINATED = "terminated"
    KILLED = "killed"
    ABANDONED = "abandoned"


class Running:
    """One run of a hook; lives in the callbacks of the event loop until the process is reaped."""

    __slots__ = (
        "_code",
        "_deadline",
        "_exit",
        "_input",
        "_outputs",
        "_over",
        "_pid",
        "_stage",
        "_unwritten",
        "_watch",
        "due",
    )

    def __init__(self, watch: Watch, pid: int, fds: list[int], unwritten: memoryview, timeout: float) -> None:
        self._watch = watch
        self._pid = pid
        self._input, out, err, self._exit = fds
        self._unwritten = unwritten
        self._outputs = (_Output(out), _Output(err))
        self._stage = _Stage.QUICK
        self._code: int | None = None
        self._over: asyncio.Future[None] = asyncio.Future(loop=watch.loop)
        now = monotonic()
        self._deadline = now + timeout
        self.due = now + _QUICK
        watch.add(self._exit, self._exited)
        if unwritten:
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
                self._over = asyncio.Future(loop=self._watch.loop)
                self._kill(monotonic())
                with anyio.CancelScope(shield=True):
                    await self._over
            raise

    def result(self, begun: float) -> HookResult:
        """What came of it, when it is over; `begun` is when it was decided to run it, on the loop's clock."""
        ms = (monotonic() - begun) * 1000
        out, err = self._outputs
        ended, code = self._ending()
        return HookResult(ended, code, b"".join(out.pieces), b"".join(err.pieces), ms, out.cut or err.cut)

    def _ending(self) -> tuple[Ended, int]:
        if self._code is None or self._stage in (_Stage.TERMINATED, _Stage.KILLED):
            return Ended.TIMED_OUT, 0
        return (Ended.EXITED, self._code) if self._code >= 0 else (Ended.SIGNALLED, -self._code)

    def overdue(self, now: float) -> None:
        """Its time for this stage is up."""
        match self._stage:
            case _Stage.QUICK:
                self._stage, self.due = _Stage.WATCHED, self._deadline
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
        close = os.close if self._stage is _Stage.QUICK else self._watch.close  # nobody has watched them yet
        for output in self._outputs:
            if output.open:
                while not output.cut and output.read():  # a child it leaves behind may print for ever
                    pass
                close(output.fd)
        self._tell()

    def _tell(self) -> None:
        if not self._over.done():
            self._over.set_result(None)
