"""HTTP hooks against real servers on this machine: valid and invalid responses, connections, TLS."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import socket
import ssl
import struct
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import anyio.abc
import pytest
from msgspec.structs import replace

from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Document, Ended, Event, HookResult, HookSpec
from hookproxy.runners import http
from hookproxy.runners.event_watch import get_watch
from hookproxy.transports.event_loop import new_loop

pytestmark = pytest.mark.anyio

OK: Final = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{"a": 1}'


@pytest.fixture(params=[{}, {"loop_factory": new_loop}], ids=["any loop", "our loop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", request.param


class Server:
    """Responds to each request with the same bytes; `None`: never."""

    def __init__(self) -> None:
        self.response: bytes | None = OK
        self.closes = False
        self.connections = 0
        self.open = 0
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.port = 0

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        self.connections += 1
        self.open += 1
        try:
            async with stream:
                received = bytearray()
                while True:
                    while b"\r\n\r\n" not in received:
                        received += await stream.receive()
                    head, _, rest = bytes(received).partition(b"\r\n\r\n")
                    first, *lines = head.decode().split("\r\n")
                    headers = {
                        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
                    }
                    size = int(headers["content-length"])
                    body = bytearray(rest)
                    while len(body) < size:
                        body += await stream.receive()
                    received = bytearray(body[size:])
                    self.requests.append((first, headers, bytes(body[:size])))
                    if self.response is None:
                        await anyio.sleep_forever()
                        continue
                    await stream.send(self.response)
                    if self.closes:
                        return
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        finally:
            self.open -= 1


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server = Server()
    async with anyio.create_task_group() as tasks:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        server.port = listener.extra(anyio.abc.SocketAttribute.local_port)
        tasks.start_soon(listener.serve, server.serve)
        yield server
        tasks.cancel_scope.cancel()
    await listener.aclose()


def spec(server: Server, **changes: object) -> HookSpec:
    address = f"http://127.0.0.1:{server.port}/hook?x=1"
    hook = HookSpec("hookproxy", "f: k", Event.PRE_TOOL_USE, "h", type="http", url=address, timeout=10)
    return replace(hook, **changes)


async def run(hook: HookSpec, document: bytes = b"{}", env: dict[str, str] | None = None) -> HookResult:
    runner = http.open_runner([hook], lambda _spec, _text: None)
    try:
        with anyio.fail_after(30):
            return await runner.run(hook, Document(document, {}), env or {})
    finally:
        await runner.aclose()


@pytest.mark.parametrize("size", [2, 3_000_000])
async def test_the_document_is_posted_and_the_body_is_the_output(size: int) -> None:
    async with serving() as server:
        result = await run(spec(server), b"x" * size)
        ((first, headers, body),) = server.requests
    assert (result.ended, result.code, result.stdout) == (Ended.EXITED, 0, b'{"a": 1}')
    assert (first, len(body)) == ("POST /hook?x=1 HTTP/1.1", size)
    assert headers["content-type"] == "application/json"
    assert headers["accept-encoding"] == "identity"
    assert "cookie" not in headers


async def test_the_request_has_the_calls_trace_context() -> None:
    async with serving() as server:
        env = {"TRACEPARENT": f"00-{'1' * 32}-{'2' * 16}-01", "TRACESTATE": "", "OTHER": "x"}
        runner = http.open_runner([hook := spec(server)], lambda _spec, _text: None)
        await runner.run(hook, Document(b"{}", env), {"TRACEPARENT": "inherited"})
        await runner.aclose()
        ((_, headers, _),) = server.requests
    assert headers["traceparent"] == env["TRACEPARENT"]
    assert not {"tracestate", "other"} & headers.keys()


@pytest.mark.slow
async def test_a_thousand_calls_use_few_connections_and_leave_none() -> None:
    async with serving() as server:
        hook = spec(server)
        runner = http.open_runner([hook], lambda _spec, _text: None)
        get_watch(asyncio.get_running_loop())  # which is runner, and in the place of that of an earlier loop
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(500):
            assert (await runner.run(hook, Document(b"{}", {}), {})).stdout == b'{"a": 1}'
        assert server.connections == 1
        for _ in range(50):
            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(runner.run, hook, Document(b"{}", {}), {})
        assert (server.connections <= 20, len(server.requests)) == (True, 1000)
        await runner.aclose()
        with anyio.fail_after(30):
            while server.open:  # noqa: ASYNC110 - there is no event for it
                await anyio.sleep(0.001)
        assert len(os.listdir("/proc/self/fd")) == before


async def test_a_connection_that_the_server_closed_is_replaced() -> None:
    async with serving() as server:
        server.closes = True
        hook = spec(server)
        runner = http.open_runner([hook], lambda _spec, _text: None)
        for _ in range(5):
            assert (await runner.run(hook, Document(b"{}", {}), {})).ended is Ended.EXITED
            await anyio.wait_all_tasks_blocked()
        await runner.aclose()


@pytest.mark.parametrize(
    ("response", "detail"),
    [
        (b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", "answered with status 500"),
        (b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", "answered with status 404"),
        (
            b"HTTP/1.1 302 Go\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
            "answered with status 302, and redirects are not followed",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", "answered with a compressed body"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=x\r\nContent-Length: 1\r\n\r\nx", "an HTML page"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 11000000\r\n\r\n" + b"x" * 11_000_000, "answered with more than"),
        (b"nonsense\r\n\r\n", "could not be called"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Length: 8\r\n\r\n12345678", "could not be called"),
        (b"", "could not be called"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_invalid_response_is_a_failure(response: bytes, detail: str) -> None:
    async with serving() as server:
        server.response, server.closes = response, True
        result = await run(spec(server))
    assert result.ended is Ended.FAILED
    assert detail in result.detail
    assert len(server.requests) == 1


async def test_an_empty_body_is_an_empty_output() -> None:
    async with serving() as server:
        server.response = b"HTTP/1.1 204 No Content\r\n\r\n"
        result = await run(spec(server))
    assert (result.ended, result.stdout) == (Ended.EXITED, b"")


async def test_a_server_that_never_responds_times_out() -> None:
    async with serving() as server:
        server.response = None
        assert (await run(spec(server, timeout=0.1))).ended is Ended.TIMED_OUT


async def test_a_cancelled_call_closes_its_connection() -> None:
    async with serving() as server:
        server.response = None
        hook = spec(server)
        runner = http.open_runner([hook], lambda _spec, _text: None)
        with anyio.move_on_after(0.1):
            await runner.run(hook, Document(b"{}", {}), {})
        server.response = OK
        assert (await runner.run(hook, Document(b"{}", {}), {})).ended is Ended.EXITED
        await runner.aclose()


async def test_a_refused_connection_is_a_failure() -> None:
    async with serving() as server:
        hook = spec(server)
    result = await run(hook)
    assert result.ended is Ended.FAILED
    assert "could not be called" in result.detail


async def test_headers_hold_the_variables_that_are_allowed() -> None:
    async with serving() as server:
        hook = spec(
            server, headers=(("Authorization", "Bearer $T-${U}"), ("user-agent", "me")), allowed_env_vars=("T", "U")
        )
        await run(hook, env={"T": "a$U", "U": "b", "V": "c"})
        headers = server.requests[0][1]
    assert (headers["authorization"], headers["user-agent"]) == ("Bearer a$U-b", "me")


@pytest.mark.parametrize(("value", "why"), [(None, "is not set"), ("", "is not set"), ("a\r\nX: y", "a header cannot")])
async def test_a_variable_that_cannot_be_sent_is_a_failure_and_nothing_is_posted(value: str | None, why: str) -> None:
    async with serving() as server:
        hook = spec(server, headers=(("A", "$T"),), allowed_env_vars=("T",))
        result = await run(hook, env={} if value is None else {"T": value})
        assert (result.ended, why in result.detail, server.requests) == (Ended.FAILED, True, [])


async def test_the_environments_proxy_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with serving() as server:
        assert (await run(spec(server))).ended is Ended.EXITED


async def test_tls_is_verified_and_there_is_no_fallback_to_plain_http() -> None:
    async with serving() as server:
        result = await run(spec(server, url=f"https://127.0.0.1:{server.port}/", timeout=0.5))
    assert result.ended in (Ended.FAILED, Ended.TIMED_OUT)
    assert server.requests == []


def test_the_url_is_checked_again() -> None:
    for url in ("http:///x", "http://localhost@example.com/", "ftp://localhost/"):
        with pytest.raises(ConfigError):
            http.open_runner([spec(Server(), url=url)], lambda _spec, _text: None)


PACKET = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class PacketServer(asyncio.Protocol):
    """Responds to each packet; `packets` are those received."""

    packets: list[bytes]
    extra = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        packet_servers.append(self)
        self.packets = []

    def data_received(self, data: bytes) -> None:
        self.packets.append(data)
        self.transport.write(PACKET + self.extra)


packet_servers: list[PacketServer] = []


@asynccontextmanager
async def serving_packets(
    protocol: type[asyncio.Protocol] = PacketServer, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    packet_servers.clear()
    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for one in packet_servers:
            one.transport.abort()
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not condition():  # noqa: ASYNC110 - there is no event for it
            await anyio.sleep(0.001)


@asynccontextmanager
async def posting(port: int, **changes: object) -> AsyncIterator[Callable[[], Awaitable[HookResult]]]:
    hook = HookSpec("hookproxy", "f: k", Event.PRE_TOOL_USE, "h", type="http", url=f"http://127.0.0.1:{port}/")
    hook = replace(hook, **changes)
    runner = http.open_runner([hook], lambda _spec, _text: None)

    async def post() -> HookResult:
        with anyio.fail_after(30):
            return await runner.run(hook, Document(b"abc", {}), {})

    yield post
    await runner.aclose()


async def test_a_request_is_one_packet_and_the_connection_serves_the_next() -> None:
    async with serving_packets() as port, posting(port) as post:
        for _ in range(3):
            assert (await post()).stdout == b"{}"
        (packet_server,) = packet_servers
        assert [packet.endswith(b"\r\n\r\nabc") for packet in packet_server.packets] == [True] * 3


async def test_a_response_with_more_bytes_than_its_own_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PacketServer, "extra", PACKET)
    async with serving_packets() as port, posting(port) as post:
        result = await post()
    assert (result.ended, result.detail) == (Ended.FAILED, "could not be called: it has sent a second response")


async def test_what_a_server_sends_unasked_is_not_taken_for_the_next_response() -> None:
    async with serving_packets() as port, posting(port) as post:
        await post()
        packet_servers[0].transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad")
        assert (await post()).stdout == b"{}"
        assert len(packet_servers) == 2


async def test_a_connection_that_the_other_side_has_closed_is_not_used_again() -> None:
    async with serving_packets() as port, posting(port) as post:
        await post()
        packet_servers[0].transport.abort()
        await anyio.wait_all_tasks_blocked()
        assert (await post()).stdout == b"{}"
        assert len(packet_servers) == 2


class BreakingServer(PacketServer):
    """Sends the head of a response that ends with its connection, and is killed then."""

    def data_received(self, data: bytes) -> None:
        self.transport.write(b"HTTP/1.1 200 OK\r\n\r\n")
        linger = struct.pack("ii", 1, 0)  # so that the system sends no orderly end
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.transport.abort()


async def test_a_response_whose_connection_broke_is_incomplete() -> None:
    async with serving_packets(BreakingServer) as port, posting(port) as post:
        result = await post()
    assert result.ended is Ended.FAILED
    assert "could not be called: the connection broke" in result.detail


async def test_a_connection_that_was_idle_too_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_IDLE_SECONDS", -1.0)
    async with serving_packets() as port, posting(port) as post:
        for _ in range(2):
            assert (await post()).stdout == b"{}"
        assert len(packet_servers) == 2


async def test_a_connection_that_times_out_leaves_nothing_open() -> None:
    get_watch(asyncio.get_running_loop())  # it keeps a descriptor
    before = os.listdir("/proc/self/fd")
    async with (
        serving_packets(asyncio.Protocol) as port,  # it never begins its part of the handshake
        posting(port, url=f"https://127.0.0.1:{port}/", timeout=0.25) as post,
    ):
        assert (await post()).detail == "could not be called: there was no connection within 0.1 s"
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
async def test_a_tls_server_gets_the_document_only_if_its_certificate_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, trusted: bool
) -> None:
    both = certificate(tmp_path, name)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(both)
    async with serving_packets(tls=context) as port:
        hook = HookSpec("hookproxy", "f: k", Event.PRE_TOOL_USE, "h", type="http", url=f"https://127.0.0.1:{port}/")
        runner = http.open_runner([hook], lambda _spec, _text: None)
        good = trusted and name == "IP:127.0.0.1"
        for _ in range(3):
            result = await runner.run(hook, Document(b"{}", {}), {})
            assert (result.ended is Ended.EXITED) is good
            assert good or "certificate verify failed" in result.detail
        await runner.aclose()
        assert len(packet_servers) == (1 if good else 0)
