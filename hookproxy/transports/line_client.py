"""Asks whoever listens at a Unix socket, by lines, and gets the answers in the same order. Whoever listens must have
this account.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque

from . import unix_socket


class LineClient(asyncio.Protocol):
    """A connection; when it is lost, nothing can be asked by it any more."""

    def __init__(self, longest: int) -> None:
        """A line of more than `longest` bytes ends it."""
        self._longest = longest
        self._waiting: deque[asyncio.Future[bytes]] = deque()
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self.is_lost = False
        """It has ended."""

    async def ask(self, line: bytes) -> bytes:
        """The answer to a line, both without line ends. Raises ConnectionError.

        On cancel, nobody gets the answer.
        """
        if self._transport is None or self.is_lost:
            raise ConnectionResetError
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        self._transport.write(line + b"\n")
        return await answer

    def tell(self, line: bytes) -> None:
        """Send a line whose answer nobody needs; nobody gets it if the connection is lost."""
        if self._transport is not None and not self.is_lost:
            nobody = asyncio.get_running_loop().create_future()
            nobody.cancel()
            self._waiting.append(nobody)
            self._transport.write(line + b"\n")

    def close(self) -> None:
        """End it: whoever waits for an answer gets none."""
        self.is_lost = True
        if self._transport is not None:
            self._transport.abort()

    # --- what asyncio calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As in asyncio.Protocol."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """As in asyncio.Protocol."""
        self._received += data
        lines: list[bytearray] = []
        if b"\n" in data:  # else all of a long line would be searched and copied for each piece of it
            *lines, self._received = self._received.split(b"\n")
        for line in lines:
            if not self._waiting:  # nobody has asked
                self.close()
                return
            answer = self._waiting.popleft()
            if not answer.done():
                answer.set_result(bytes(line))
        if len(self._received) > self._longest:
            self.close()

    def connection_lost(self, _problem: Exception | None) -> None:
        """As in asyncio.Protocol."""
        self.is_lost = True
        for answer in self._waiting:
            if not answer.done():
                answer.set_exception(ConnectionResetError())
        self._waiting.clear()


async def connect(path: str, greeting: bytes, longest: int) -> LineClient:
    """Connect, and send a greeting, which gets no answer. Raises OSError: nobody listens, or another account does."""
    connecting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connecting.setblocking(False)
        connecting.connect(path)
        if unix_socket.uid_of_peer(connecting) != os.geteuid():
            raise PermissionError("another account listens there")
        loop = asyncio.get_running_loop()
        transport, client = await loop.create_unix_connection(lambda: LineClient(longest), sock=connecting)
    except BaseException:
        connecting.close()
        raise
    transport.write(greeting)
    return client
