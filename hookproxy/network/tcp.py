"""TCP connections whose bytes are read within the event loop's wait: without a handle, a queue and a turn of the loop.

For protocols they are like asyncio's own: the same calls in the same order. Only loops of `epoll_loop` have them; on
other loops, and for TLS, the connections are asyncio's.

It repeats what asyncio has because of what that costs: a small call through `run --url` takes 110 µs with it and 160 µs
with asyncio's transports, a hook that is a web service 22 and 45 µs of processor time, a request that the gateway's
listener answers at once 8.3 and 11.6 µs.
"""

# ruff: noqa: D102  # methods without a docstring are described by asyncio.Transport
from __future__ import annotations

import asyncio
import errno
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from ..processes.loop_callbacks import READABLE, WRITABLE
from .epoll_loop import DirectLoop

_READ_SIZE: Final = 120 * 1024
"""Bytes per read. From 128 KiB on, malloc asks the system for each block, and touching fresh pages takes as long as the
copying: asyncio's 256 KiB take a quarter more time for a long response."""
_MUCH: Final = _READ_SIZE // 2  # bytes of the last read, after which room for a whole one is made and nothing copied
_AT_ONCE: Final = 8  # connections that are accepted before others are served: a flood takes a millisecond of each turn
_NO_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_ACCEPT_AGAIN_SECONDS: Final = 1.0  # after an error for want of descriptors or memory, as in asyncio
_BUSY_SECONDS: Final = 0.02  # until it is looked again whether more connections can be taken
_HIGH_WATER: Final = 64 * 1024  # bytes, as in asyncio, until the protocol sets others

_NOTHING: Final[deque[memoryview]] = deque()
"""The queue of nearly every connection. It is replaced before something is queued: a deque takes 600 bytes."""

_P = TypeVar("_P", bound=asyncio.Protocol)


class _Buffer(threading.local):
    """Where all connections of a thread read to: what is read is copied, and takes no more memory than it needs."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(_READ_SIZE))


_BUFFER: Final = _Buffer()


class TcpTransport(asyncio.Transport):
    """One connection."""

    def __init__(self, sock: socket.socket, protocol: asyncio.BaseProtocol, loop: DirectLoop, peer: object) -> None:
        """Take over a connected socket, and call `connection_made`."""
        super().__init__()
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock, self._fd, self._peer = sock, sock.fileno(), peer
        self._loop = loop
        self._view = _BUFFER.view
        self._queue = _NOTHING
        self._queued = 0
        self._reads_much = False
        self._high, self._low = _HIGH_WATER, _HIGH_WATER // 4
        self._events = 0  # that epoll is asked for; 0: it does not know the descriptor
        self._reading, self._full, self._eof, self._closing = True, False, False, False
        self.set_protocol(protocol)
        protocol.connection_made(self)
        self._watch()

    # --- what protocols call ---

    def get_extra_info(self, name: str, default: object = None) -> object:
        """The socket, and its peer's address."""
        return {"socket": self._sock, "peername": self._peer}.get(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self._reading = False
        self._watch()

    def resume_reading(self) -> None:
        self._reading = True
        self._watch()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high if high is not None else (4 * low if low is not None else _HIGH_WATER)
        self._low = low if low is not None else self._high // 4

    def get_write_buffer_size(self) -> int:
        return self._queued

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """At once what the peer takes, the rest later."""
        if self._closing or self._eof:
            return
        sent = 0
        if not self._queue:
            try:
                sent = self._sock.send(data)
            except (BlockingIOError, InterruptedError):
                pass
            except OSError as problem:
                self._lose(problem)
                return
            if sent == len(data):
                return
        if self._queue is _NOTHING:
            self._queue = deque()
        self._queue.append(memoryview(bytes(data) if isinstance(data, bytearray) else data)[sent:])
        self._queued += len(data) - sent
        self._watch()
        if self._queued > self._high and not self._full:
            self._full = True
            self._protocol.pause_writing()

    def writelines(self, parts: Iterable[bytes | bytearray | memoryview]) -> None:
        """With one call of the system, and without a copy of all parts together."""
        left = list(parts)
        if not (self._closing or self._eof or self._queue):
            try:
                sent = self._sock.sendmsg(left)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError as problem:
                self._lose(problem)
                return
            while left and sent >= len(left[0]):
                sent -= len(left.pop(0))
            if sent:
                left[0] = memoryview(left[0])[sent:]
        for part in left:
            self.write(part)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not (self._closing or self._eof):
            self._eof = True
            if not self._queue:
                self._shut_down()

    def close(self) -> None:
        """What is queued is still sent."""
        if not self._closing:
            self._closing = True
            if self._queue:
                self._watch()
            else:
                self._end(None)

    def abort(self) -> None:
        self._lose(None)

    # --- what epoll reports ---

    def _watch(self) -> None:
        """Ask epoll for what is waited for now."""
        if self._fd < 0:
            return
        reading = self._reading and not self._closing
        events = (READABLE if reading else 0) | (WRITABLE if self._queue else 0)
        if events == self._events:
            return
        before, self._events = self._events, events
        if not before:
            self._loop.direct.add_direct(self._fd, events, self._ready)
        elif events:
            self._loop.direct.modify_direct(self._fd, events)
        else:  # else it would go on to report that the peer has hung up
            self._loop.direct.remove_direct(self._fd)

    def _ready(self) -> None:
        try:
            if self._queue:
                self._write_queued()
            if self._events & READABLE:
                self._read()
        except Exception as problem:  # of the protocol: it concerns this connection alone
            context = {"message": "A protocol failed", "exception": problem, "protocol": self._protocol}
            self._loop.call_exception_handler({**context, "transport": self})
            self._lose(problem)

    def _read(self) -> None:
        try:
            if self._reads_much:
                data = self._sock.recv(_READ_SIZE)
                size = len(data)
            else:
                size = self._sock.recv_into(self._view)
                data = bytes(self._view[:size])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as problem:
            self._lose(problem)
            return
        if size:
            self._reads_much = size >= _MUCH
            self._protocol.data_received(data)
            return
        self._reading = False
        self._watch()
        if not self._protocol.eof_received():
            self.close()

    def _write_queued(self) -> None:
        try:
            self._send_queued()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as problem:
            self._lose(problem)
            return
        if self._full and self._queued <= self._low:
            self._full = False
            self._protocol.resume_writing()
        if self._queue:
            return
        if self._closing:
            self._end(None)
        else:
            if self._eof:
                self._shut_down()
            self._watch()

    def _send_queued(self) -> None:
        while self._queue:
            first = self._queue[0]
            sent = self._sock.send(first)
            self._queued -= sent
            if sent < len(first):
                self._queue[0] = first[sent:]
            else:
                self._queue.popleft()

    def _shut_down(self) -> None:
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError as problem:  # the peer is gone
            self._lose(problem)

    # --- the end ---

    def _lose(self, problem: Exception | None) -> None:
        """End it at once."""
        self._closing = True
        self._queue.clear()
        self._queued = 0
        self._end(problem)

    def _end(self, problem: Exception | None) -> None:
        if self._fd < 0:
            return
        if self._events:
            self._events = 0
            self._loop.direct.remove_direct(self._fd)
        self._fd = -1
        self._loop.call_soon(self._tell_end, problem)

    def _tell_end(self, problem: Exception | None) -> None:
        try:
            self._protocol.connection_lost(problem)
        finally:
            self._sock.close()


def direct(factory: Callable[[], asyncio.Protocol], loop: DirectLoop) -> Callable[[socket.socket, object], None]:
    """What an `Acceptor` does with a connection that is read within this loop's wait."""

    def take(sock: socket.socket, peer: object) -> None:
        try:
            TcpTransport(sock, factory(), loop, peer)
        except OSError:  # it is gone already
            sock.close()

    return take


class Acceptor:
    """Accepts the connections at a socket that listens, and does not block, until the loop ends or it is closed.

    `take` owns each of them, with the address of its peer. `make_room` is asked when descriptors or memory are short:
    True if something is being closed for it. While `is_busy`, connections wait in the kernel.
    """

    def __init__(
        self,
        listening: socket.socket,
        take: Callable[[socket.socket, object], None],
        loop: asyncio.AbstractEventLoop,
        make_room: Callable[[], bool] = lambda: False,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self._listening = listening
        self._take = take
        self._loop = loop
        self._make_room = make_room
        self._is_busy = is_busy
        self._again: asyncio.TimerHandle | None = None
        self._is_short = False  # of a resource, such as descriptors
        self._is_closed = False
        loop.add_reader(listening, self._accept)

    def close(self) -> None:
        """Accept the connections that wait, and no more."""
        self._is_closed = True
        if self._again is not None:
            self._again.cancel()
        self._loop.remove_reader(self._listening)
        while True:
            try:
                sock, peer = self._listening.accept()
            except OSError:
                self._listening.close()  # at once: no other connection comes in between
                return
            self._take(sock, peer)

    def _accept(self) -> None:
        self._again = None
        for _ in range(_AT_ONCE):
            if self._is_busy():
                self._pause(_BUSY_SECONDS)
                return
            try:
                sock, peer = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as problem:
                if problem.errno not in _NO_RESOURCES:
                    raise
                self._lack(problem)
                return
            self._is_short = False
            self._take(sock, peer)

    def _lack(self, problem: OSError) -> None:
        if not self._is_short:  # once, not at each attempt
            message = "A connection cannot be accepted"
            self._loop.call_exception_handler({"message": message, "exception": problem})
        self._is_short = True
        if not self._make_room():  # else the loop's next turn finds room
            self._pause(_ACCEPT_AGAIN_SECONDS)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listening)
        self._again = self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._listening, self._accept)


class _Silent(asyncio.Protocol):
    """A connection before its protocol is known."""

    spoke = False

    def data_received(self, data: bytes) -> None:
        self.spoke = True


async def connect(factory: Callable[[], _P], host: str, port: int, second_address_delay: float | None) -> _P:
    """Connect to a host. Raises OSError; then, and on cancel, nothing is left open.

    `second_address_delay` is as `happy_eyeballs_delay` of asyncio.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, DirectLoop):
        _, protocol = await loop.create_connection(factory, host, port, happy_eyeballs_delay=second_address_delay)
        return protocol
    transport, before = await loop.create_connection(_Silent, host, port, happy_eyeballs_delay=second_address_delay)
    try:
        if before.spoke:
            raise ConnectionError("it has sent something before it was asked")
        opened = transport.get_extra_info("socket")
        sock = socket.socket(fileno=os.dup(opened.fileno()))
    finally:
        transport.abort()  # it closes its own descriptor only
    protocol = factory()
    TcpTransport(sock, protocol, loop, transport.get_extra_info("peername"))
    return protocol
