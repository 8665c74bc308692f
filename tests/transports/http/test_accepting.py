"""What a listener that ends does with connections that have begun, and with those that begin meanwhile."""

from __future__ import annotations

import asyncio
import socket

import pytest

from hookproxy.transports.http.accepting import serve_sockets
from hookproxy.transports.http.listener import Listener
from hookproxy.transports.http.request_reader import Request
from hookproxy.transports.http.responder import Responder

REQUEST = b"POST /mcp/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"


def respond(_request: Request, responder: Responder) -> None:
    responder.respond(200, (), b"handled")


def listening() -> socket.socket:
    one = socket.create_server(("127.0.0.1", 0), backlog=64)
    one.setblocking(False)
    return one


async def answered(connection: socket.socket) -> bytes:
    reader, writer = await asyncio.open_connection(sock=connection)
    try:
        async with asyncio.timeout(20):
            head = await reader.readuntil(b"\r\n\r\n")
            return head + await reader.read(7)
    finally:
        writer.close()


async def test_connections_that_the_kernel_has_accepted_are_served() -> None:
    socket_ = listening()
    accepting = await serve_sockets(Listener(respond), socket_, None)
    connections = [socket.create_connection(socket_.getsockname()) for _ in range(40)]  # nobody runs the loop meanwhile
    for connection in connections:
        connection.sendall(REQUEST)
        connection.setblocking(False)
    await accepting.stop()
    for connection in connections:
        assert (await answered(connection)).endswith(b"handled")


async def test_afterwards_nobody_can_connect() -> None:
    socket_ = listening()
    address = socket_.getsockname()
    accepting = await serve_sockets(Listener(respond), socket_, None)
    await accepting.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)


@pytest.mark.slow
async def test_who_connects_meanwhile_is_served_or_refused_and_never_broken_off() -> None:
    socket_ = listening()
    address = socket_.getsockname()
    accepting = await serve_sockets(Listener(respond), socket_, None)
    outcomes: list[str] = []

    async def connect(after: float) -> None:
        await asyncio.sleep(after)
        try:
            reader, writer = await asyncio.open_connection(*address)
        except ConnectionRefusedError:
            outcomes.append("refused")
            return
        writer.write(REQUEST)
        outcomes.append((await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[0])
        writer.close()

    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        for number in range(60):
            tasks.create_task(connect(number / 300))
        tasks.create_task(accepting.stop())
    assert set(outcomes) <= {"refused", "HTTP/1.1 200 OK"}
    assert len(outcomes) == 60
    assert "refused" in outcomes
