"""A scripted HTTP server in the test's own event loop: it writes whatever bytes a test wants, at the right moment."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any


@dataclass
class Request:
    """One request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    writer: asyncio.StreamWriter
    closed: asyncio.Event

    @property
    def message(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body or b"{}")
        return found

    @property
    def id(self) -> object:
        return self.message.get("id")

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def json(self, body: bytes, status: str = "200 OK", extra: str = "") -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{extra}Content-Length: {len(body)}\r\n\r\n"
        await self.send(head.encode() + body)

    async def result(self, result: str = "{}", extra: str = "") -> None:
        await self.json(
            b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (json.dumps(self.id).encode(), result.encode()), extra=extra
        )

    async def status(self, status: str, extra: str = "") -> None:
        await self.send(f"HTTP/1.1 {status}\r\n{extra}Content-Length: 0\r\n\r\n".encode())

    async def stream(self, *events: bytes, extra: str = "") -> None:
        """The head of a stream of events, and some events; the stream stays open."""
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{extra}Transfer-Encoding: chunked\r\n\r\n"
        await self.send(head.encode())
        await self.events(*events)

    async def events(self, *events: bytes) -> None:
        for event in events:
            await self.send(b"%x\r\n%b\r\n" % (len(event), event))

    async def end(self) -> None:
        """The end of a stream."""
        await self.send(b"0\r\n\r\n")

    def drop(self) -> None:
        """Close the connection without another word."""
        self.writer.transport.abort()


Respond = Callable[[Request], Awaitable[None]]


@dataclass
class Server:
    """What has come, and where it came."""

    port: int
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    stop: Callable[[], Awaitable[None]] = lambda: asyncio.sleep(0)
    """Accept no more connections, and close those that are open. Afterwards the client's system knows it."""

    def of(self, method: str) -> list[Request]:
        """The requests with this MCP method, or this HTTP method."""
        return [one for one in self.requests if method in (one.method, one.message.get("method"))]


@asynccontextmanager
async def serving(  # noqa: C901  # all of it is one server
    respond: Respond, tls: SSLContext | None = None
) -> AsyncIterator[Server]:
    """Serve in this event loop; `respond` is called for each request, and writes the response."""
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        closed = asyncio.Event()
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        begun = b""
        try:
            while True:
                head = (begun + await reader.readuntil(b"\r\n\r\n")).decode()
                first, *lines = head.strip().split("\r\n")
                method, target, _ = first.split(" ")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                request = Request(method, target, headers, body, writer, closed)
                server.requests.append(request)
                responding = asyncio.create_task(respond_to(request))
                tasks.add(responding)
                begun = await reader.read(
                    1
                )  # no client here sends a request before the response: it is the end, or waits
                if not begun:
                    closed.set()
                await responding
                if not begun:
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            closed.set()
            tasks.discard(task)
            writer.transport.abort()

    async def respond_to(request: Request) -> None:
        with contextlib.suppress(ConnectionError):
            await respond(request)

    listener = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)

    async def stop() -> None:
        listener.close()
        ending = list(tasks)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        await asyncio.sleep(0)  # an aborted transport closes its socket in the loop's next turn

    server = Server(listener.sockets[0].getsockname()[1], stop=stop)
    try:
        yield server
    finally:
        await stop()
