"""Connections to web services: a packet for a request, verified TLS, and nothing kept that cannot be trusted."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import ssl
import struct
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import h11
import pytest

from hookproxy.model.hooks import Document, Ended, Event, HookSpec
from hookproxy.runners import http
from hookproxy.runners.http import Connection, connect
from hookproxy.transports.epoll_loop import new_loop

pytestmark = pytest.mark.anyio

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture(params=[{}, {"loop_factory": new_loop}], ids=["any loop", "our loop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", request.param


class Service(asyncio.Protocol):
    """Answers each packet; `packets` are those that came."""

    packets: list[bytes]
    extra = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        services.append(self)
        self.packets = []

    def data_received(self, data: bytes) -> None:
        self.packets.append(data)
        self.transport.write(ANSWER + self.extra)


services: list[Service] = []


@asynccontextmanager
async def serving(kind: type[asyncio.Protocol] = Service, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    services.clear()
    server = await asyncio.get_running_loop().create_server(kind, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for one in services:
            one.transport.abort()
        await asyncio.sleep(0)


async def post(connection: Connection) -> bytes:
    headers = [("Host", "x"), ("Content-Length", "3")]
    answer = await connection.send(h11.Request(method="POST", target="/", headers=headers), b"abc")
    assert answer.status_code == 200
    body = await connection.body(1000)
    assert body is not None
    return body


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(5):
        while not condition():  # noqa: ASYNC110 - nobody tells
            await anyio.sleep(0.001)


async def test_a_request_is_one_packet_and_the_connection_serves_the_next() -> None:
    async with serving() as port:
        connection = await connect("127.0.0.1", port, None, 5)
        for _ in range(3):
            assert await post(connection) == b"{}"
            assert connection.make_idle()
            assert connection.is_reusable(60)
        (service,) = services
        assert [packet.endswith(b"\r\n\r\nabc") for packet in service.packets] == [True] * 3
        connection.close()
        assert not connection.make_idle()


@pytest.mark.parametrize("when", ["with the answer", "later"])
async def test_what_nobody_asked_for_ends_the_connection(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if when == "with the answer":
        monkeypatch.setattr(Service, "extra", ANSWER)
    async with serving() as port:
        connection = await connect("127.0.0.1", port, None, 5)
        await post(connection)
        if when == "later":
            assert connection.make_idle()
            services[0].transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad")
            await until(lambda: not connection.is_reusable(60))
        else:
            assert not connection.make_idle()
        connection.close()


async def test_a_connection_that_the_other_side_has_ended_is_not_used_again() -> None:
    async with serving() as port:
        connection = await connect("127.0.0.1", port, None, 5)
        await post(connection)
        assert connection.make_idle()
        services[0].transport.close()
        await until(lambda: not connection.is_reusable(60))
        connection.close()


class Breaking(Service):
    """Sends the head of an answer that ends with its connection, and is killed then."""

    def data_received(self, data: bytes) -> None:
        self.transport.write(b"HTTP/1.1 200 OK\r\n\r\n")
        linger = struct.pack("ii", 1, 0)  # so that the system sends no orderly end
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.transport.abort()


async def test_an_answer_whose_connection_broke_is_not_whole_and_says_nothing() -> None:
    async with serving(Breaking) as port:
        connection = await connect("127.0.0.1", port, None, 5)
        with pytest.raises(OSError, match="broke before the response was complete"):
            await post(connection)
        connection.close()


async def test_a_connection_that_has_rested_too_long_is_not_used_again() -> None:
    async with serving() as port:
        connection = await connect("127.0.0.1", port, None, 5)
        await post(connection)
        assert connection.make_idle()
        await until(lambda: not connection.is_reusable(0.001))
        connection.close()


async def test_what_does_not_connect_in_time_leaves_nothing() -> None:
    before = os.listdir("/proc/self/fd")
    async with serving(asyncio.Protocol) as port:  # it never begins its part of the handshake
        with pytest.raises(OSError, match=r"there was no connection within 0\.05 s"):
            await connect("127.0.0.1", port, ssl.create_default_context(), 0.05)
    await until(lambda: len(os.listdir("/proc/self/fd")) <= len(before))


def certificate(folder: Path, name: str) -> Path:
    """A key and a certificate that it signed itself, for this name."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate with")
    both = folder / "both.pem"
    request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=test", "-addext", f"subjectAltName={name}"]
    subprocess.run(
        [openssl, *request, *names, "-keyout", str(both), "-out", str(folder / "cert.pem")],
        check=True,
        capture_output=True,
    )
    both.write_text(both.read_text() + (folder / "cert.pem").read_text())
    return both


@pytest.mark.parametrize(("name", "trusted"), [("IP:127.0.0.1", True), ("IP:127.0.0.2", True), ("IP:127.0.0.1", False)])
async def test_a_service_under_tls_is_asked_if_its_certificate_is_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, trusted: bool
) -> None:
    both = certificate(tmp_path, name)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(both)
    async with serving(tls=context) as port:
        hook = HookSpec("hookproxy", "f: k", Event.PRE_TOOL_USE, "h", type="http", url=f"https://127.0.0.1:{port}/")
        kept = http.open_runner([hook], lambda _spec, _text: None)
        good = trusted and name == "IP:127.0.0.1"
        for _ in range(3):
            result = await kept.run(hook, Document(b"{}", {}), {})
            assert (result.ended is Ended.EXITED) is good
            assert good or "certificate verify failed" in result.detail
        await kept.aclose()
        assert len(services) == (1 if good else 0)
