"""Where connections of agents are accepted, and how that ends without a connection that is refused for nothing."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from ...network import tcp
from ...network.epoll_loop import DirectLoop
from ...processes import platforms
from .listener import Listener, refusal
from .request_reader import Peer

if TYPE_CHECKING:
    import ssl

_RECORD_HEAD: Final = 5  # bytes of the head of a record of TLS: its type, a version, and its length
_HANDSHAKE: Final = b"\x16"  # its type
_LONGEST_RECORD: Final = 16_384
_TOO_MANY: Final = "too many connections are open"
_TLS_BUFFER: Final = 32 * 1024
"""Bytes that a connection with TLS reads at once: two records. asyncio's 256 KiB are taken when TLS begins, so that ten
thousand that only begin would take gigabytes."""
_CONNECT_SECONDS: Final = 0.1  # from the first to the third packet of a connection, from the balancers of a gateway
_SO_ATTACH_FILTER: Final = 26  # of Linux; Python has no name for it
_FILTER: Final = struct.Struct("HP")  # sock_fprog: how many steps, and where they are
_FILTER_STEP: Final = struct.Struct("HBBI")  # sock_filter
_DROP_SYN: Final = (  # classic BPF, on the header of TCP
    (0x30, 0, 0, 13),  # load the byte with the flags
    (0x54, 0, 0, 0x12),  # SYN and ACK of them
    (0x15, 0, 1, 0x02),  # SYN without ACK:
    (0x06, 0, 0, 0),  # drop it
    (0x06, 0, 0, 0xFFFFFFFF),  # everything else: take it whole
)


def _refuse_new_connections(listening: socket.socket) -> bool:
    """Let the kernel drop the first packet of each new connection; the others go on. False: it cannot do that."""
    if not platforms.linux:
        return False
    import ctypes  # 5 ms, for the end only

    program = b"".join(_FILTER_STEP.pack(*step) for step in _DROP_SYN)
    steps = ctypes.create_string_buffer(program, len(program))
    try:
        option = _FILTER.pack(len(_DROP_SYN), ctypes.addressof(steps))
        listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, option)
    except OSError:
        return False
    return True


class Accepting:
    """A socket at which connections are accepted."""

    def __init__(self, listening: socket.socket, accept_last: Callable[[], Awaitable[None]]) -> None:
        """`accept_last` accepts the connections that wait, and ends."""
        self._listening = listening
        self._accept_last = accept_last

    async def stop(self) -> None:
        """Accept no more connections, after those that have begun: their peers believe that they have sent a request.

        Whoever begins to connect meanwhile hears nothing, tries it again after a second, and is refused then.
        """
        if _refuse_new_connections(self._listening):
            await asyncio.sleep(_CONNECT_SECONDS)
        await self._accept_last()


async def serve_sockets(
    listener: Listener,
    listening: socket.socket,
    tls: ssl.SSLContext | None,
    make_room: Callable[[], bool] | None = None,
    is_busy: Callable[[], bool] = lambda: False,
) -> Accepting:
    """Accept connections at a socket that listens, until the loop ends or it is stopped.

    Each is counted from now on, also while TLS begins. `make_room` is asked when descriptors are short; default: idle
    connections of the listener are closed. While `is_busy`, connections wait in the kernel.
    """
    loop = asyncio.get_running_loop()
    starts = _Starts(listener, tls, loop)
    take = tcp.direct(listener, loop) if tls is None and isinstance(loop, DirectLoop) else starts.take
    acceptor = tcp.Acceptor(
        listening, take, loop, make_room or listener.make_room, lambda: is_busy() or listener.is_crowded()
    )

    async def accept_last() -> None:
        acceptor.close()
        await starts.finished()

    return Accepting(listening, accept_last)


class _Starts:
    """Connections that asyncio makes of what was accepted: those with TLS, and all in another loop than our own."""

    def __init__(self, listener: Listener, tls: ssl.SSLContext | None, loop: asyncio.AbstractEventLoop) -> None:
        self.listener = listener
        self.tls = tls
        self.loop = loop
        self._open: set[_Start] = set()
        if tls is not None:
            from asyncio import sslproto

            sslproto.SSLProtocol.max_size = min(sslproto.SSLProtocol.max_size, _TLS_BUFFER)

    def take(self, sock: socket.socket, peer: object) -> None:
        """Begin TLS, or read at once without it."""
        start = _Start(self, sock)
        address = str(peer[0]) if isinstance(peer, tuple) else ""
        if not self.listener.crowd.enter(start, self.listener.counted_network(address), self.loop.time()):
            self.listener.on_refused(Peer(address, self.tls is not None), 503, _TOO_MANY)
            if self.tls is None:
                with suppress(OSError):
                    sock.send(refusal(503, _TOO_MANY))
            sock.close()
            return
        self._open.add(start)
        sock.setblocking(False)
        if self.tls is None:
            self._begin(start)
        else:
            start.await_hello(self._begin, self.listener.limits.head_seconds)

    def _begin(self, start: _Start) -> None:
        start.task = self.loop.create_task(self._begin_protocol(start))

    async def _begin_protocol(self, start: _Start) -> None:
        seconds = self.listener.limits.head_seconds
        try:
            async with asyncio.timeout(seconds):
                await self.loop.connect_accepted_socket(
                    partial(self.listener.connection, start),
                    start.sock,
                    ssl=self.tls,
                    ssl_handshake_timeout=seconds if self.tls is not None else None,
                )
        except (OSError, TimeoutError):  # its TLS has failed, or it is gone
            start.sock.close()
        except asyncio.CancelledError:
            start.sock.close()
            raise
        finally:
            self.forget(start)

    def forget(self, start: _Start) -> None:
        """It has become a connection, or is closed."""
        self._open.discard(start)
        self.listener.crowd.leave(start)

    async def finished(self) -> None:
        """Wait for those that have begun: each has its time. The others have said nothing that could be lost."""
        tasks = [start.task for start in self._open if start.task is not None]
        for start in [start for start in self._open if start.task is None]:
            start.close()
        if tasks:
            await asyncio.wait(tasks)


class _Start:
    """A connection that was accepted, and is not a connection of the listener yet.

    TLS takes a hundred kilobytes and a millisecond, so it begins when the whole first message of the client is there.
    Until then the message stays in the kernel.
    """

    is_idle = False

    def __init__(self, starts: _Starts, sock: socket.socket) -> None:
        self._starts = starts
        self.sock = sock
        self.task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._begin: Callable[[_Start], None] = lambda _start: None

    def await_hello(self, begin: Callable[[_Start], None], seconds: float) -> None:
        """Call `begin` when the client's first message has come whole; after so many seconds, close it."""
        self._begin = begin
        self._timer = self._starts.loop.call_later(seconds, self.close)
        self._starts.loop.add_reader(self.sock, self._look)

    def _look(self) -> None:
        try:
            seen = self.sock.recv(_RECORD_HEAD + _LONGEST_RECORD, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError:
            seen = b""
        size = _RECORD_HEAD + int.from_bytes(seen[3:_RECORD_HEAD], "big")
        if seen[:1] != _HANDSHAKE or size > _RECORD_HEAD + _LONGEST_RECORD or len(seen) == self._seen:
            self.close()  # it is no TLS, or it is gone
        elif len(seen) >= max(size, _RECORD_HEAD + 1):
            self._stop_waiting()
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
            self._begin(self)
        else:  # the kernel calls again when so much is there, or the client is gone
            self._seen = len(seen)
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, max(size, _RECORD_HEAD + 1))

    _seen = -1  # bytes of the message, at the last look

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._starts.loop.remove_reader(self.sock)

    def close(self) -> None:
        """End it."""
        self._stop_waiting()
        if self.task is not None:
            self.task.cancel()
        else:
            self.sock.close()
            self._starts.forget(self)

    def shed(self, why: str) -> None:
        """Close it, in the words of the log alone: TLS has not begun."""
        with suppress(OSError):
            address = self.sock.getpeername()[0]
            self._starts.listener.on_refused(Peer(str(address), self._starts.tls is not None), 503, why)
        self.close()
