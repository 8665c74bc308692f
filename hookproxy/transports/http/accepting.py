"""Where connections of agents are accepted, and how that ends without a connection that is refused for nothing."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ...network import tcp
from ...network.epoll_loop import DirectLoop
from ...processes import platforms
from .listener import Listener

if TYPE_CHECKING:
    import ssl

_BACKLOG: Final = 1024  # connections that wait to be accepted: as many agents may come back at once after a restart
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


async def serve_sockets(listener: Listener, listening: socket.socket, tls: ssl.SSLContext | None) -> Accepting:
    """Accept connections at a socket that listens, until the loop ends or it is stopped.

    The start of TLS has the time of a head: connections are counted only after it.
    """
    loop = asyncio.get_running_loop()
    if tls is None and isinstance(loop, DirectLoop):
        acceptor = tcp.Acceptor(listening, listener, loop)

        async def close() -> None:
            acceptor.close()

        return Accepting(listening, close)
    seconds = listener.limits.head_seconds if tls is not None else None
    server = await loop.create_server(
        listener, sock=listening, ssl=tls, backlog=_BACKLOG, ssl_handshake_timeout=seconds
    )

    async def accept_last() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                server.close()  # at once: no other connection comes in between
                return
            connection.setblocking(False)
            with suppress(OSError):  # its TLS has failed
                await loop.connect_accepted_socket(listener, connection, ssl=tls, ssl_handshake_timeout=seconds)

    return Accepting(listening, accept_last)
