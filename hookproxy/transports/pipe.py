"""A channel over two raw descriptors that an event loop can wait for (pipes, sockets, terminals), or files.

Reads and writes happen in the event loop's own callback. A peer that stops reading never blocks the other direction,
and what is queued for it is bounded, because its counterpart is paused.
"""

# ruff: noqa: D102  # methods without a docstring are described by Channel
from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import select
import stat
from collections import deque
from collections.abc import Callable
from functools import partial

import anyio

from ..processes import platforms
from ..processes.loop_callbacks import READABLE, WRITABLE
from .channel import DRAIN_LIMIT, HIGH_WATER, LOW_WATER, READ_SIZE, Channel, OnBytes, OnEnd, OnFull
from .event_loop import direct_callbacks


def reopen_nonblocking(fd: int, flags: int) -> int:
    """Reopen a pipe or terminal as a non-blocking descriptor that shares its flags with nobody; closes `fd`.

    O_NONBLOCK belongs to the open file description, which other processes may share (`2>&1`); reopening makes a new
    one. Sockets cannot be reopened, and are usually not shared. Without /proc, pipes cannot be reopened either.
    """
    mode = os.fstat(fd).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        with contextlib.suppress(OSError):  # no /proc, or a pipe of another user
            reopened = os.open(_path_of(fd), flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            os.close(fd)
            return reopened
    os.set_blocking(fd, False)
    return fd


def _path_of(fd: int) -> str:
    """The path by which the pipe or terminal can be opened again. Raises OSError if it has none."""
    return f"/proc/self/fd/{fd}" if platforms.linux else os.ttyname(fd)


def open_shared_writer(fd: int) -> Callable[[bytes], int]:
    """A function that writes to a shared descriptor without blocking, and without changing its flags for others.

    It raises BlockingIOError if it would have to wait.
    """
    try:
        mode = os.fstat(fd).st_mode
    except OSError:  # closed before we started: writes are dropped
        return len
    if stat.S_ISSOCK(mode):
        import socket  # few agents use one

        shared = socket.socket(fileno=os.dup(fd))
        return lambda piece: shared.send(piece, socket.MSG_DONTWAIT)
    if stat.S_ISREG(mode):
        return lambda piece: os.write(fd, piece)
    try:
        own = os.open(_path_of(fd), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:  # no /proc, or a pipe of another user
        return partial(_write_without_waiting, fd)
    return lambda piece: os.write(own, piece)


def _write_without_waiting(fd: int, piece: bytes) -> int:
    """Write what a pipe takes at once. Returns how much; raises BlockingIOError if that is nothing.

    A pipe that is ready has room for PIPE_BUF bytes, unless another process fills it between the two calls.
    """
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    written = 0
    while written < len(piece):
        if not poll.poll(0):
            if written:
                return written
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        written += os.write(fd, piece[written : written + select.PIPE_BUF])
    return written


class Pipe:
    """A Channel that reads `source` and writes `sink`, and owns both; they are non-blocking."""

    reads_lines = True
    is_substitute = False

    def __init__(self, source: int, sink: int, loop: asyncio.AbstractEventLoop) -> None:
        self._source = source
        self._sink = sink
        self._direct = direct_callbacks(loop)
        self._loop = loop
        self._queue: deque[memoryview] = deque()
        self._on_full: Callable[[bool], None] = lambda _full: None
        self._on_gone: Callable[[], None] = lambda: None
        self._reading = False
        self._waitable = True
        self._full = False
        self._ended = False
        self._ending = False
        self._flushed: anyio.Event | None = None
        self.queued = 0
        self.gone = False

    def start(self, on_bytes: OnBytes, on_end: OnEnd, on_full: OnFull, on_gone: OnEnd) -> None:
        self._on_bytes, self._on_end, self._on_full, self._on_gone = on_bytes, on_end, on_full, on_gone
        with contextlib.suppress(PermissionError):  # a file: it is always writable, and never hangs up
            self._direct.add_direct(self._sink, 0, self._writable)
        self.resume()

    def resume(self) -> None:
        if self._reading or self._ended or self._source < 0:
            return
        self._reading = True
        try:
            self._direct.add_direct(self._source, READABLE, self._readable)
        except PermissionError:  # a file: it is always readable
            self._waitable = False
            self._loop.call_soon(self._read_file)

    def pause(self) -> None:
        if self._reading:
            self._reading = False
            if self._waitable:
                self._direct.remove_direct(self._source)

    def drain(self) -> None:
        self.pause()
        for _ in range(DRAIN_LIMIT // READ_SIZE):
            if self._ended or self._source < 0:
                return
            try:
                piece = os.read(self._source, READ_SIZE)
            except OSError:  # nothing to read now, or the other side is gone
                return
            self._handle_piece(piece)

    def _read_file(self) -> None:
        """Read a file's next piece, and let other callbacks run before the one after it."""
        if self._reading:
            self._readable()
            self._loop.call_soon(self._read_file)

    def _readable(self) -> None:
        try:
            piece = os.read(self._source, READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # a terminal or socket whose other side is gone
            piece = b""
        self._handle_piece(piece)

    def _handle_piece(self, piece: bytes) -> None:
        if piece:
            self._on_bytes(piece)
        else:
            self._ended = True
            self.pause()
            self._on_end()

    def write(self, piece: bytes) -> None:
        if self.gone:
            return
        if self._queue:
            self._enqueue(memoryview(piece))
            return
        try:
            written = os.write(self._sink, piece)
        except (BlockingIOError, InterruptedError):
            written = 0
        except OSError:
            self._close_sink()
            return
        if written < len(piece):
            self._direct.modify_direct(self._sink, WRITABLE)
            self._enqueue(memoryview(piece)[written:])

    def _enqueue(self, rest: memoryview) -> None:
        self._queue.append(rest)
        self.queued += len(rest)
        if self.queued >= HIGH_WATER and not self._full:
            self._full = True
            self._on_full(True)

    def _writable(self) -> None:
        """The peer reads again, or it is gone."""
        if not self._queue or not self._write_queued():
            self._close_sink()
            return
        if not self._queue:
            self._set_flushed()
            if self._ending:
                self._close_sink()
                return
            self._direct.modify_direct(self._sink, 0)
        if self._full and self.queued <= LOW_WATER:
            self._full = False
            self._on_full(False)

    def _write_queued(self) -> bool:
        """Write what the peer takes now; False if it is gone."""
        try:
            while self._queue:
                written = os.write(self._sink, self._queue[0])
                self.queued -= written
                if written < len(self._queue[0]):
                    self._queue[0] = self._queue[0][written:]
                else:
                    self._queue.popleft()
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        return True

    def _close_sink(self) -> None:
        """Close the writing side and drop what is queued; the other direction continues."""
        self._queue.clear()
        self.queued = 0
        self._set_flushed()
        was_open, self.gone = not self.gone, True
        if self._sink >= 0:
            self._direct.remove_direct(self._sink)
            os.close(self._sink)
            self._sink = -1
        if self._full:
            self._full = False
            self._on_full(False)
        if was_open:
            self._on_gone()

    async def flushed(self) -> None:
        if self._queue:
            self._flushed = self._flushed or anyio.Event()
            await self._flushed.wait()

    def _set_flushed(self) -> None:
        if self._flushed is not None:
            self._flushed.set()
            self._flushed = None

    def end_output(self) -> None:
        self._ending = True
        if not self._queue:
            self._close_sink()

    def fail(self) -> None:
        """Whoever reads from it has failed: it is as if the peer were gone, in both directions."""
        ended, self._ended = self._ended, True
        self.pause()
        self._close_sink()
        if not ended:
            self._on_end()

    def close(self) -> None:
        self.pause()
        self._close_sink()
        if self._source >= 0:
            os.close(self._source)
            self._source = -1


def open_channel(source: int, sink: int) -> Channel:
    """A channel that reads `source` and writes `sink`, and owns both from now on. Call it in the event loop."""
    loop = asyncio.get_running_loop()
    return Pipe(reopen_nonblocking(source, os.O_RDONLY), reopen_nonblocking(sink, os.O_WRONLY), loop)
