"""A channel over two raw descriptors that epoll can wait for: pipes, sockets, terminals.

Reads and writes happen in the loop's own callback; a peer that stops reading never blocks the other direction, and
what is kept for it is bounded because its counterpart is told to pause.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import stat
from collections import deque
from collections.abc import Callable

import anyio

from ..model.errors import UserError
from .channel import DRAINED, EMPTY, FULL, READ_AT_ONCE, Channel
from .epoll_loop import DirectLoop


def private(fd: int, flags: int) -> int:
    """A non-blocking descriptor for the same pipe or terminal that shares its flags with nobody; closes `fd`.

    O_NONBLOCK belongs to the open file description, which others may hold (`2>&1`): reopening gives one of our own.
    Sockets cannot be reopened; their description is ours alone, as a rule.
    """
    mode = os.fstat(fd).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        with contextlib.suppress(OSError):  # no /proc, or a pipe of another user
            own = os.open(f"/proc/self/fd/{fd}", flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            os.close(fd)
            return own
    os.set_blocking(fd, False)
    return fd


def aside(fd: int) -> Callable[[bytes], int]:
    """Writes to a descriptor that others hold too, without waiting for its reader, and without changing it for them.

    The write raises BlockingIOError where it would have to wait.
    """
    try:
        mode = os.fstat(fd).st_mode
    except OSError:  # closed before we started: nobody reads
        return len
    if stat.S_ISSOCK(mode):
        import socket  # few agents give us one

        shared = socket.socket(fileno=os.dup(fd))
        return lambda piece: shared.send(piece, socket.MSG_DONTWAIT)
    own = fd
    if not stat.S_ISREG(mode):
        with contextlib.suppress(OSError):  # no /proc, or a pipe of another user: then we wait for its reader
            own = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    return lambda piece: os.write(own, piece)


class Pipe:
    """A Channel over `source` (read) and `sink` (written), which it owns; both non-blocking."""

    def __init__(self, source: int, sink: int, loop: DirectLoop) -> None:
        self._source = source
        self._sink = sink
        self._direct = loop.direct
        self._loop = loop
        self._queue: deque[memoryview] = deque()
        self._on_full: Callable[[bool], None] = lambda _full: None
        self._on_gone: Callable[[], None] = lambda: None
        self._reading = False
        self._waitable = True
        self._full = False
        self._ended = False
        self._ending = False
        self._empty: anyio.Event | None = None
        self.queued = 0
        self.gone = False

    def start(
        self,
        on_bytes: Callable[[bytes], None],
        on_end: Callable[[], None],
        on_full: Callable[[bool], None],
        on_gone: Callable[[], None],
    ) -> None:
        """As in Channel."""
        self._on_bytes, self._on_end, self._on_full, self._on_gone = on_bytes, on_end, on_full, on_gone
        with contextlib.suppress(PermissionError):  # a file: it takes everything at once, and never hangs up
            self._direct.add_direct(self._sink, 0, self._writable)
        self.resume()

    def resume(self) -> None:
        """As in Channel."""
        if self._reading or self._ended or self._source < 0:
            return
        self._reading = True
        try:
            self._direct.add_direct(self._source, select.EPOLLIN, self._readable)
        except PermissionError:  # a file: there is always something to read, until there is the end
            self._waitable = False
            self._loop.call_soon(self._read_on)

    def pause(self) -> None:
        """As in Channel."""
        if self._reading:
            self._reading = False
            if self._waitable:
                self._direct.remove_direct(self._source)

    def drain(self) -> None:
        """As in Channel."""
        self.pause()
        for _ in range(DRAINED // READ_AT_ONCE):
            if self._ended or self._source < 0:
                return
            try:
                piece = os.read(self._source, READ_AT_ONCE)
            except OSError:  # nothing there now, or nobody
                return
            self._take(piece)

    def _read_on(self) -> None:
        """Read a file's next piece, and let others have their turn before the one after it."""
        if self._reading:
            self._readable()
            self._loop.call_soon(self._read_on)

    def _readable(self) -> None:
        try:
            piece = os.read(self._source, READ_AT_ONCE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # a terminal or socket whose other side is gone
            piece = b""
        self._take(piece)

    def _take(self, piece: bytes) -> None:
        if piece:
            self._on_bytes(piece)
        else:
            self._ended = True
            self.pause()
            self._on_end()

    def write(self, piece: bytes) -> None:
        """As in Channel."""
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
            self._lose_peer()
            return
        if written < len(piece):
            self._direct.modify_direct(self._sink, select.EPOLLOUT)
            self._enqueue(memoryview(piece)[written:])

    def _enqueue(self, rest: memoryview) -> None:
        self._queue.append(rest)
        self.queued += len(rest)
        if self.queued >= FULL and not self._full:
            self._full = True
            self._on_full(True)

    def _writable(self) -> None:
        """The peer takes bytes again, or it is gone."""
        if not self._queue or not self._write_queued():
            self._lose_peer()
            return
        if not self._queue:
            self._tell_empty()
            if self._ending:
                self._lose_peer()
                return
            self._direct.modify_direct(self._sink, 0)
        if self._full and self.queued <= EMPTY:
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

    def _lose_peer(self) -> None:
        """Close the writing side; what the peer was still to get is dropped, and the other direction goes on."""
        self._queue.clear()
        self.queued = 0
        self._tell_empty()
        was_there, self.gone = not self.gone, True
        if self._sink >= 0:
            self._direct.remove_direct(self._sink)
            os.close(self._sink)
            self._sink = -1
        if self._full:
            self._full = False
            self._on_full(False)
        if was_there:
            self._on_gone()

    async def flushed(self) -> None:
        """As in Channel."""
        if self._queue:
            self._empty = self._empty or anyio.Event()
            await self._empty.wait()

    def _tell_empty(self) -> None:
        if self._empty is not None:
            self._empty.set()
            self._empty = None

    def end_output(self) -> None:
        """As in Channel."""
        self._ending = True
        if not self._queue:
            self._lose_peer()

    def close(self) -> None:
        """As in Channel."""
        self.pause()
        self._lose_peer()
        if self._source >= 0:
            os.close(self._source)
            self._source = -1


def open_channel(source: int, sink: int) -> Channel:
    """A channel that reads `source` and writes `sink`, and owns both from now on. Call it in the event loop.

    Raises UserError where the system has no epoll.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, DirectLoop):
        raise UserError("this system has no epoll", "hookproxy runs on Linux; elsewhere use a Linux container")
    return Pipe(private(source, os.O_RDONLY), private(sink, os.O_WRONLY), loop)
