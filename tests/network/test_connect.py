"""TLS that is verified, client certificates, and proxies: over real sockets."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.model.credentials import NoCredentials
from hookproxy.network.address import Address, Proxy
from hookproxy.network.connect import tls_context
from hookproxy.transports.http.channel import HttpChannel
from hookproxy.transports.http.pool import Remote
from tests.support.http_server import Request, serving

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate and its key, `localhost.pem`, and another one, `other.pem`."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("localhost", "other"):
        both = str(folder / f"{name}.pem")
        request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        names = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name},IP:127.0.0.1"]
        names = names if name == "localhost" else ["-subj", "/CN=other"]
        subprocess.run(
            [openssl, *request, *names, "-keyout", both, "-out", both + ".cert"], check=True, capture_output=True
        )
        with open(both, "a", encoding="ascii") as file:
            file.write(Path(both + ".cert").read_text("ascii"))
    return folder


async def answer(request: Request) -> None:
    await request.result()


@asynccontextmanager
async def lines_of(remote: Remote) -> AsyncIterator[list[bytes]]:
    """What comes back for one request."""
    lines: list[bytes] = []
    came = asyncio.Event()
    channel = HttpChannel(remote, lambda _text: None)

    def take(line: bytes) -> None:
        lines.append(line)
        came.set()

    channel.start(take, lambda: None, lambda _full: None, lambda: None)
    try:
        channel.write(b'{"jsonrpc":"2.0","id":7,"method":"ping"}\n')
        with anyio.fail_after(30):
            await came.wait()
        yield lines
    finally:
        channel.close()
        await anyio.wait_all_tasks_blocked()


def server_tls(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "localhost.pem")
    return context


async def test_a_server_with_a_certificate_of_the_given_file_is_trusted(folder: Path) -> None:
    async with serving(answer, server_tls(folder)) as server:
        tls = tls_context(str(folder / "localhost.pem"), None, None)
        remote = Remote(Address("https", "127.0.0.1", server.port, b"/"), NoCredentials(), tls=tls)
        async with lines_of(remote) as lines:
            assert b'"result"' in lines[0]


@pytest.mark.parametrize("ca", [None, "other.pem"])
async def test_another_certificate_is_an_error_and_nothing_is_sent(folder: Path, ca: str | None) -> None:
    async with serving(answer, server_tls(folder)) as server:
        tls = tls_context(ca and str(folder / ca), None, None)
        remote = Remote(Address("https", "127.0.0.1", server.port, b"/"), NoCredentials(), tls=tls)
        async with lines_of(remote) as lines:
            assert b"certificate verify failed: self-signed certificate (--ca FILE trusts" in lines[0]
            assert b"was not sent" in lines[0]
            assert not server.requests


async def test_a_certificate_for_another_host_is_an_error(folder: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "other.pem")
    async with serving(answer, context) as server:
        tls = tls_context(str(folder / "other.pem"), None, None)
        remote = Remote(Address("https", "127.0.0.1", server.port, b"/"), NoCredentials(), tls=tls)
        async with lines_of(remote) as lines:
            assert b"certificate verify failed: IP address mismatch" in lines[0]
            assert b"--ca" not in lines[0]


async def test_a_client_certificate_is_shown_to_a_server_that_wants_one(folder: Path) -> None:
    context = server_tls(folder)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(folder / "other.pem")
    async with serving(answer, context) as server:
        address = Address("https", "127.0.0.1", server.port, b"/")
        tls = tls_context(str(folder / "localhost.pem"), str(folder / "other.pem"), None)
        async with lines_of(Remote(address, NoCredentials(), tls=tls)) as lines:
            assert b'"result"' in lines[0]
        without = tls_context(str(folder / "localhost.pem"), None, None)
        async with lines_of(Remote(address, NoCredentials(), tls=without)) as lines:
            assert b'"error"' in lines[0]


async def closed(listener: asyncio.Server, writers: list[asyncio.StreamWriter]) -> None:
    """Close a server with all its connections, so that none is left to the next test."""
    listener.close()
    for writer in writers:
        writer.transport.abort()
    await asyncio.sleep(0)  # a transport closes its socket in the loop's next turn


@asynccontextmanager
async def proxying(status: str) -> AsyncIterator[tuple[int, list[str]]]:
    """A proxy that connects, or answers with another status; and the heads that it got."""
    heads: list[str] = []
    writers: list[asyncio.StreamWriter] = []

    async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while piece := await source.read(65536):
            sink.write(piece)
        sink.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        heads.append(head)
        writer.write(f"HTTP/1.1 {status}\r\n\r\n".encode())
        if not status.startswith("200"):
            writer.close()
            return
        host, port = head.split(" ")[1].rsplit(":", 1)
        theirs, ours = await asyncio.open_connection(host, int(port))
        writers.append(ours)
        await asyncio.gather(copy(reader, ours), copy(theirs, writer), return_exceptions=True)

    listener = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield listener.sockets[0].getsockname()[1], heads
    finally:
        await closed(listener, writers)


async def test_a_proxy_connects_to_the_server_and_sees_nothing_but_its_name(folder: Path) -> None:
    async with serving(answer, server_tls(folder)) as server, proxying("200 Connected") as (port, heads):
        tls = tls_context(str(folder / "localhost.pem"), None, None)
        address = Address("https", "127.0.0.1", server.port, b"/secret-path")
        remote = Remote(
            address,
            NoCredentials(),
            headers=(("Authorization", "Bearer hunter2"),),
            proxy=Proxy("127.0.0.1", port, b"Basic eA=="),
            tls=tls,
        )
        async with lines_of(remote) as lines:
            assert b'"result"' in lines[0]
        assert heads[0].startswith(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n")
        assert "Proxy-Authorization: Basic eA==" in heads[0]
        assert "hunter2" not in heads[0]
        assert server.requests[0].headers["authorization"] == "Bearer hunter2"
        assert "proxy-authorization" not in server.requests[0].headers


async def test_a_proxy_that_refuses_is_an_error_that_names_it() -> None:
    async with proxying("407 Proxy Authentication Required") as (port, _):
        remote = Remote(Address("http", "127.0.0.1", 9, b"/"), NoCredentials(), proxy=Proxy("127.0.0.1", port))
        async with lines_of(remote) as lines:
            assert f"the proxy 127.0.0.1:{port} has refused the connection (HTTP 407)".encode() in lines[0]


async def test_a_server_that_accepts_and_says_nothing_is_given_up_in_time() -> None:
    writers: list[asyncio.StreamWriter] = []

    async def silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await writer.wait_closed()

    listener = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    remote = Remote(Address("https", "127.0.0.1", port, b"/"), NoCredentials(), tls=tls_context(None, None, None))
    async with lines_of(replace(remote, connect_seconds=0.1)) as lines:
        assert b"there was no connection within 0.1 s" in lines[0]
    await closed(listener, writers)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_port_at_which_nothing_listens_is_named_once(host: str, scheme: str) -> None:
    tls = tls_context(None, None, None) if scheme == "https" else None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        async with lines_of(Remote(Address(scheme, host, port, b"/"), NoCredentials(), tls=tls)) as lines:
            said = f"could not connect to {scheme}://{host}:{port}: nothing listens there (connection refused). The"
            assert said.encode() in lines[0]


async def test_a_proxy_at_which_nothing_listens_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        proxy = Proxy("127.0.0.1", free.getsockname()[1])
        remote = Remote(Address("https", "example.com", 443, b"/"), NoCredentials(), proxy=proxy)
        async with lines_of(remote) as lines:
            said = f"nothing listens at the proxy 127.0.0.1:{proxy.port} (connection refused)"
            assert said.encode() in lines[0]


async def test_a_server_that_speaks_no_tls_is_named() -> None:
    def refuse(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        writers.append(writer)

    writers: list[asyncio.StreamWriter] = []
    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        remote = Remote(Address("https", "127.0.0.1", port, b"/"), NoCredentials(), tls=tls_context(None, None, None))
        async with lines_of(remote) as lines:
            assert b"it speaks no TLS (" in lines[0]
            assert b"its address may begin with http://. The request" in lines[0]
        for writer in writers:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
