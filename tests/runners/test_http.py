"""HTTP hooks against a real server on this machine, one that answers well and one that does not."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import anyio.abc
import pytest
from msgspec.structs import replace

from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Document, Ended, Event, HookResult, HookSpec
from hookproxy.runners import http
from hookproxy.runners.event_watch import get_watch
from hookproxy.transports.epoll_loop import new_loop

pytestmark = pytest.mark.anyio

OK: Final = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{"a": 1}'


@pytest.fixture(params=[{}, {"loop_factory": new_loop}], ids=["any loop", "our loop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", request.param


class Server:
    """Answers each request with the same bytes; `None`: never."""

    def __init__(self) -> None:
        self.answer: bytes | None = OK
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
                    if self.answer is None:
                        await anyio.sleep_forever()
                        continue
                    await stream.send(self.answer)
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


async def ask(hook: HookSpec, document: bytes = b"{}", env: dict[str, str] | None = None) -> HookResult:
    kept = http.open_runner([hook], lambda _spec, _text: None)
    try:
        with anyio.fail_after(20):
            return await kept.run(hook, Document(document, {}), env or {})
    finally:
        await kept.aclose()


@pytest.mark.parametrize("size", [2, 3_000_000])
async def test_the_document_is_posted_and_the_body_is_the_answer(size: int) -> None:
    async with serving() as server:
        result = await ask(spec(server), b"x" * size)
        ((first, headers, body),) = server.requests
    assert (result.ended, result.code, result.stdout) == (Ended.EXITED, 0, b'{"a": 1}')
    assert (first, len(body)) == ("POST /hook?x=1 HTTP/1.1", size)
    assert headers["content-type"] == "application/json"
    assert headers["accept-encoding"] == "identity"
    assert "cookie" not in headers


async def test_it_goes_on_with_the_calls_trace() -> None:
    async with serving() as server:
        env = {"TRACEPARENT": f"00-{'1' * 32}-{'2' * 16}-01", "TRACESTATE": "", "OTHER": "x"}
        kept = http.open_runner([hook := spec(server)], lambda _spec, _text: None)
        await kept.run(hook, Document(b"{}", env), {"TRACEPARENT": "inherited"})
        await kept.aclose()
        ((_, headers, _),) = server.requests
    assert headers["traceparent"] == env["TRACEPARENT"]
    assert not {"tracestate", "other"} & headers.keys()


async def test_a_thousand_calls_use_few_connections_and_leave_none() -> None:
    async with serving() as server:
        hook = spec(server)
        kept = http.open_runner([hook], lambda _spec, _text: None)
        get_watch(asyncio.get_running_loop())  # which is kept, and in the place of that of an earlier loop
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(500):
            assert (await kept.run(hook, Document(b"{}", {}), {})).stdout == b'{"a": 1}'
        assert server.connections == 1
        for _ in range(50):
            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(kept.run, hook, Document(b"{}", {}), {})
        assert (server.connections <= 20, len(server.requests)) == (True, 1000)
        await kept.aclose()
        with anyio.fail_after(5):
            while server.open:  # noqa: ASYNC110 - nobody tells
                await anyio.sleep(0.001)
        assert len(os.listdir("/proc/self/fd")) == before


async def test_a_connection_that_the_server_closed_is_opened_anew() -> None:
    async with serving() as server:
        server.closes = True
        hook = spec(server)
        kept = http.open_runner([hook], lambda _spec, _text: None)
        for _ in range(5):
            assert (await kept.run(hook, Document(b"{}", {}), {})).ended is Ended.EXITED
            await anyio.wait_all_tasks_blocked()
        await kept.aclose()


@pytest.mark.parametrize(
    ("answer", "detail"),
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
async def test_an_invalid_response_is_a_failure(answer: bytes, detail: str) -> None:
    async with serving() as server:
        server.answer, server.closes = answer, True
        result = await ask(spec(server))
    assert result.ended is Ended.FAILED
    assert detail in result.detail
    assert len(server.requests) == 1


async def test_an_empty_body_says_nothing() -> None:
    async with serving() as server:
        server.answer = b"HTTP/1.1 204 No Content\r\n\r\n"
        result = await ask(spec(server))
    assert (result.ended, result.stdout) == (Ended.EXITED, b"")


async def test_a_server_that_never_answers_is_given_up() -> None:
    async with serving() as server:
        server.answer = None
        assert (await ask(spec(server, timeout=0.1))).ended is Ended.TIMED_OUT


async def test_a_cancelled_call_closes_its_connection() -> None:
    async with serving() as server:
        server.answer = None
        hook = spec(server)
        kept = http.open_runner([hook], lambda _spec, _text: None)
        with anyio.move_on_after(0.1):
            await kept.run(hook, Document(b"{}", {}), {})
        server.answer = OK
        assert (await kept.run(hook, Document(b"{}", {}), {})).ended is Ended.EXITED
        await kept.aclose()


async def test_a_refused_connection_is_a_failure() -> None:
    async with serving() as server:
        hook = spec(server)
    result = await ask(hook)
    assert result.ended is Ended.FAILED
    assert "could not be called" in result.detail


async def test_headers_hold_the_variables_that_are_allowed() -> None:
    async with serving() as server:
        hook = spec(
            server, headers=(("Authorization", "Bearer $T-${U}"), ("user-agent", "me")), allowed_env_vars=("T", "U")
        )
        await ask(hook, env={"T": "a$U", "U": "b", "V": "c"})
        headers = server.requests[0][1]
    assert (headers["authorization"], headers["user-agent"]) == ("Bearer a$U-b", "me")


@pytest.mark.parametrize(("value", "why"), [(None, "is not set"), ("", "is not set"), ("a\r\nX: y", "no header can")])
async def test_a_variable_that_cannot_be_sent_is_a_failure_and_nothing_is_posted(value: str | None, why: str) -> None:
    async with serving() as server:
        hook = spec(server, headers=(("A", "$T"),), allowed_env_vars=("T",))
        result = await ask(hook, env={} if value is None else {"T": value})
        assert (result.ended, why in result.detail, server.requests) == (Ended.FAILED, True, [])


async def test_the_environments_proxy_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with serving() as server:
        assert (await ask(spec(server))).ended is Ended.EXITED


async def test_tls_is_verified_and_never_given_up_for_plain() -> None:
    async with serving() as server:
        result = await ask(spec(server, url=f"https://127.0.0.1:{server.port}/", timeout=0.5))
    assert result.ended in (Ended.FAILED, Ended.TIMED_OUT)
    assert server.requests == []


def test_an_address_is_judged_again_as_it_is_connected_to() -> None:
    for url in ("http://example.com/", "http://localhost@example.com/", "ftp://localhost/"):
        with pytest.raises(ConfigError):
            http.open_runner([spec(Server(), url=url)], lambda _spec, _text: None)
