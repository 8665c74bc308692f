"""The floor of a bridge: the least that asyncio and httptools cost between standard input and a server at an address.

It parses no JSON, keeps its connections, and knows neither sessions nor errors. Usage: http_floor.py URL
"""

from __future__ import annotations

import asyncio
import os
import sys
from urllib.parse import urlsplit

import httptools

CHUNK = 65536
"""A Linux pipe's capacity, in bytes: more never arrives in one read."""


class Connection(asyncio.Protocol):
    """A kept connection with one request at a time."""

    def __init__(self, idle: list[Connection]) -> None:
        self.idle = idle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It can be used."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def post(self, head: bytes, line: bytes) -> None:
        """Send a request."""
        self.parser = httptools.HttpResponseParser(self)
        self.pieces: list[bytes] = []
        self.transport.write(head % len(line) + line)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, which calls the methods below."""
        self.parser.feed_data(data)

    def on_body(self, piece: bytes) -> None:
        """Keep a piece of the body."""
        self.pieces.append(piece)

    def on_message_complete(self) -> None:
        """Write the response as one line, and wait for another request."""
        self.idle.append(self)
        body = b"".join(self.pieces)
        if body.startswith(b"event:"):
            body = body.partition(b"data: ")[2].rstrip(b"\n")
        if body:
            rest = memoryview(body + b"\n")
            while rest:
                rest = rest[os.write(1, rest) :]


async def relay(url: str) -> None:
    """Post each line at once, on a connection that nobody uses."""
    where, loop, idle, held = urlsplit(url), asyncio.get_running_loop(), list[Connection](), b""
    head = (
        f"POST {where.path or '/'} HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n"
    ).encode()
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    def readable() -> None:
        nonlocal held
        piece = os.read(0, CHUNK)
        *whole, held = (held + piece).split(b"\n")
        for line in whole:
            if idle:
                idle.pop().post(head, line)
            else:
                lines.put_nowait(line)
        if not piece:
            lines.put_nowait(None)
            loop.remove_reader(0)

    loop.add_reader(0, readable)
    while (line := await lines.get()) is not None:
        _, connection = await loop.create_connection(lambda: Connection(idle), where.hostname, where.port)
        connection.post(head, line)


if __name__ == "__main__":
    asyncio.run(relay(sys.argv[1]))
