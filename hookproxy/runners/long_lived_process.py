"""A process that lives longer than one occasion: fed and read by the event loop, reaped by it when it ends.

Law: however it ends, its whole group is ended, it is reaped, and its descriptors are closed.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Final

import anyio

from ..processes import process
from .event_watch import WRITABLE, Watch

_PIECE: Final = 65_536  # bytes: what a pipe holds
_NOISE: Final = 65_536  # bytes of standard error that are kept, of which the last count
_LINGER: Final = 0.1  # seconds between the end of its output and that of a process that is ending


class Child:
    """One process. Its owner is told what it prints and that it has died, but nothing after `kill`."""

    def __init__(
        self,
        watch: Watch,
        pid: int,
        fds: list[int],
        read: Callable[[Child], None],
        died: Callable[[Child, str], None],
    ) -> None:
        """`read` is called when there is more in `printed`, `died` with what happened, once. Neither may raise."""
        self.printed = bytearray()
        """Its output so far; the owner takes out what it has read."""
        self.unwritten = b""
        """What it has not taken from its standard input."""
        self.gone: asyncio.Future[None] = watch.loop.create_future()
        """Done when it is reaped."""
        self._watch = watch
        self._pid = pid
        self._feed, self._out, self._err, self._exit = fds
        self._read, self._died = read, died
        self._told = False  # the owner knows that it is dead, or has killed it
        self._noise = bytearray()
        watch.add(self._exit, self._exited)
        watch.add(self._out, self._on_output)
        watch.add(self._err, self._on_noise)

    def write(self, line: bytes) -> None:
        """Give it a line, now or when it reads."""
        if self.unwritten:
            self.unwritten += line
            return
        self.unwritten = line
        self._push()
        if self.unwritten and self._feed >= 0:
            self._watch.add(self._feed, self._writable, WRITABLE)

    def said(self) -> bytes:
        """What it has printed on standard error since this was last asked, or the end of that."""
        if self._err >= 0:
            self._on_noise()
        noise = bytes(self._noise)
        self._noise.clear()
        return noise

    def kill(self) -> None:
        """End its whole group at once; the loop reaps it."""
        self._told = True
        for fd in (self._feed, self._out, self._err):
            if fd >= 0:
                self._watch.close(fd)
        self._feed = self._out = self._err = -1
        if not self.gone.done():
            process.end_tree(self._pid, signal.SIGKILL)

    async def aclose(self, patience: float) -> None:
        """End its input, and give it so many seconds before it is killed; it is reaped when this is over."""
        self._told = True
        if self._feed >= 0:
            self._watch.close(self._feed)
            self._feed = -1
        with anyio.move_on_after(patience):
            await asyncio.wait([self.gone])
        self.kill()
        await self.reaped()

    async def reaped(self) -> None:
        """Wait until it is, also where we are being cancelled; it has been killed."""
        with anyio.move_on_after(process.REAP_LIMIT, shield=True):
            await asyncio.wait([self.gone])

    # --- the loop's callbacks ---

    def _writable(self) -> None:
        self._push()
        if not self.unwritten and self._feed >= 0:
            self._watch.forget(self._feed)

    def _push(self) -> None:
        try:
            self.unwritten = self.unwritten[os.write(self._feed, self.unwritten) :]
        except BlockingIOError:
            pass
        except OSError:  # it has closed its input, or has ended: which, its end tells
            self.unwritten = b""
            self._watch.loop.call_later(_LINGER, self._end, "has closed its input")

    def _on_output(self) -> None:
        try:
            piece = os.read(self._out, _PIECE)
        except BlockingIOError:
            return
        if not piece:
            self._watch.close(self._out)
            self._out = -1
            self._watch.loop.call_later(_LINGER, self._end, "has closed its output")
        elif not self._told:
            self.printed += piece
            self._read(self)
            if len(self.printed) > process.OUTPUT_LIMIT:
                self._end(f"printed more than {process.OUTPUT_LIMIT} bytes on one line")

    def _on_noise(self) -> None:
        try:
            piece = os.read(self._err, _PIECE)
        except BlockingIOError:
            return
        if not piece:
            self._watch.close(self._err)
            self._err = -1
        self._noise += piece
        del self._noise[:-_NOISE]

    def _exited(self) -> None:
        self._watch.close(self._exit)
        if self._out >= 0 and not self._told:  # its last words
            self._on_output()
        if self._err >= 0:
            self._on_noise()
        process.end_tree(self._pid, signal.SIGKILL)  # unreaped, it keeps the group's number from being reused
        code = process.reap(self._pid)
        self.gone.set_result(None)
        self._end(f"exited with status {code}" if code >= 0 else f"was ended by signal {-code}")

    def _end(self, how: str) -> None:
        """Nothing good comes from it any more."""
        if not self._told:
            self.kill()
            self._died(self, how)
        elif self.gone.done():
            self.kill()
