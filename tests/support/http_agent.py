"""An agent that speaks Streamable HTTP byte by byte, and a listener that hands its requests to a channel."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from hookproxy.transports.http import messages
from hookproxy.transports.http.agent_lines import TooManyRequests
from hookproxy.transports.http.listener import Listener
from hookproxy.transports.http.listener_limits import ListenerLimits
from hookproxy.transports.http.messages import Message
from hookproxy.transports.http.request_reader import Request
from hookproxy.transports.http.responder import Responder

_SECONDS = 5.0  # that a response may take


class PostChannel(Protocol):
    """What takes POSTs."""

    def post(self, line: bytes, message: Message, responder: Responder) -> None: ...


class Exchange:
    """One request on a connection of its own, and its response as it comes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._left = b""
        self.status = 0
        self.headers: dict[str, str] = {}

    async def head(self) -> Exchange:
        """Read the status and the headers."""
        async with asyncio.timeout(_SECONDS):
            lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:-2])}
        return self

    async def body(self) -> bytes:
        """Read the whole body."""
        async with asyncio.timeout(_SECONDS):
            if self.headers.get("transfer-encoding") == "chunked":
                pieces = []
                while piece := await self._chunk():
                    pieces.append(piece)
                return b"".join(pieces)
            return await self._reader.readexactly(int(self.headers["content-length"]))

    async def _chunk(self) -> bytes:
        size = int(await self._reader.readuntil(b"\r\n"), 16)
        return (await self._reader.readexactly(size + 2))[:-2]

    async def block(self) -> str | None:
        """What comes up to the next empty line: an event or a comment. None: the stream has ended."""
        async with asyncio.timeout(_SECONDS):
            while b"\n\n" not in self._left:
                piece = await self._chunk()
                if not piece:
                    assert not self._left
                    return None
                self._left += piece
            text, _, self._left = self._left.partition(b"\n\n")
            return text.decode()

    async def event(self) -> tuple[str, str] | None:
        """The id and the data of the next event that is no comment; None: the stream has ended."""
        while (text := await self.block()) is not None:
            fields = dict(line.split(": ", 1) for line in text.split("\n"))
            if "data" in fields:
                return fields.get("id", ""), fields["data"]
        return None

    async def message(self) -> dict[str, object] | None:
        """The next message on the stream; None: it has ended."""
        while (event := await self.event()) is not None:
            if event[1]:
                found: dict[str, object] = json.loads(event[1])
                return found
        return None

    def leave(self) -> None:
        """Break off the connection."""
        self._writer.transport.abort()


class HttpAgent:
    """Sends requests to one port."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._exchanges: list[Exchange] = []

    async def send(
        self, method: str, body: bytes = b"", headers: dict[str, str] | None = None, target: str = "/mcp/x"
    ) -> Exchange:
        """Send a request, and do not wait for its response."""
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self._port))
        reader, writer = await asyncio.open_connection(sock=connection)
        found = {"Host": f"127.0.0.1:{self._port}", "Content-Length": str(len(body)), **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in found.items())
        writer.write(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + body)
        exchange = Exchange(reader, writer)
        self._exchanges.append(exchange)
        return exchange

    async def post(self, message: object) -> Exchange:
        """POST a message."""
        return await self.send("POST", json.dumps(message).encode())

    async def get(self, last_event_id: str = "") -> Exchange:
        """Open a stream, or resume one, and read its head."""
        exchange = await self.send("GET", headers={"Last-Event-ID": last_event_id} if last_event_id else {})
        return await exchange.head()

    def close(self) -> None:
        """Break off all connections."""
        for exchange in self._exchanges:
            exchange.leave()


@asynccontextmanager
async def agent_of(
    channel: PostChannel, listen: Callable[[Responder, bytes], bool] | None = None
) -> AsyncIterator[HttpAgent]:
    """An agent whose requests go to this channel over a real listener."""

    def handle(request: Request, responder: Responder) -> None:
        if request.method == b"POST":
            try:
                channel.post(request.body + b"\n", messages.read(request.body), responder)
            except TooManyRequests:
                responder.respond(429)
        elif listen is None or not listen(responder, dict(request.headers).get(b"last-event-id", b"")):
            responder.respond(400)

    listener = Listener(handle, ListenerLimits(), lambda _peer, _status, _why: None)
    server = await asyncio.get_running_loop().create_server(listener, "127.0.0.1", 0)
    agent = HttpAgent(server.sockets[0].getsockname()[1])
    try:
        yield agent
    finally:
        agent.close()
        server.close()
        listener.close()
        async with asyncio.timeout(_SECONDS):
            await listener.closed()


class Server:
    """The session's side of a channel: what came from the agent, and whether the channel is full."""

    def __init__(self) -> None:
        self.lines: list[dict[str, object]] = []
        self.ends = 0
        self.full = False

    def on_bytes(self, line: bytes) -> None:
        self.lines.append(json.loads(line))

    def on_end(self) -> None:
        self.ends += 1

    def on_full(self, full: bool) -> None:
        self.full = full

    def on_gone(self) -> None: ...

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until this is true."""
        async with asyncio.timeout(_SECONDS):
            while not condition():  # noqa: ASYNC110  # a connection that breaks has no event here
                await asyncio.sleep(0)


def line(**members: object) -> bytes:
    """A message of the server."""
    return json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"
