"""A server of interceptors over HTTP, asked by our own host, and by whom it must not answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping

import anyio
import pytest

from hookproxy.dialects.interceptors import interceptor_group
from hookproxy.interceptors import over_http
from hookproxy.interceptors.service import Invocation, Offered, Service
from hookproxy.model.errors import ConfigError, UserError
from hookproxy.model.hooks import Document, Ended, Event
from hookproxy.protocol.interceptors import Descriptor, both
from hookproxy.runners.interceptor import open_runner

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def handle(invocation: Invocation) -> Mapping[str, object]:
    return {"valid": b"bad" not in invocation.payload, "severity": "error"}


@pytest.fixture
async def port() -> AsyncIterator[int]:
    service = Service([Offered(Descriptor("v", "validation", both("*")), handle)], lambda _text: None)
    listener = over_http.listen("127.0.0.1:0")
    started = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(over_http.serve, service, listener, 10_000, started.set)
        await started.wait()
        yield listener.getsockname()[1]
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(("text", "denied"), [("good", False), ("bad", True)])
async def test_our_own_host_is_answered(port: int, text: str, denied: bool) -> None:
    table = {"name": "remote", "url": f"http://127.0.0.1:{port}/mcp"}
    hooks = list(interceptor_group([table], "x", "x", "/").hooks)
    runner = open_runner(hooks, lambda _spec, _text: None)
    message = {"event": "tools/call", "phase": "request", "key": "k", "context": {}}
    payload = {"name": "echo", "arguments": {"text": text}}
    document = Document(json.dumps({**message, "payload": payload}).encode(), {})
    try:
        result = await runner.run(next(spec for spec in hooks if spec.event is Event.PRE_TOOL_USE), document, {})
    finally:
        await runner.aclose()
    assert result.ended is Ended.EXITED, result.detail
    assert (b'"deny"' in result.stdout) is denied


async def answered(port: int, *headers: str, body: str = '{"jsonrpc":"2.0","id":1,"method":"ping"}') -> int:
    """The status that a POST gets."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = ["POST / HTTP/1.1", *headers, f"Content-Length: {len(body)}", "Connection: close", "", body]
    writer.write("\r\n".join(lines).encode())
    status = int((await reader.readline()).split()[1])
    writer.close()
    return status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (("Host: 127.0.0.1:1", "Content-Type: application/json"), 200),
        (("Host: localhost", "Content-Type: application/json; charset=utf-8"), 200),
        (("Host: evil.example", "Content-Type: application/json"), 403),
        (("Host: 127.0.0.1.evil.example", "Content-Type: application/json"), 403),
        (("Host: localhost", "Origin: http://localhost", "Content-Type: application/json"), 403),
        (("Host: localhost", "Content-Type: text/plain"), 415),
    ],
)
async def test_a_page_in_a_browser_is_not_answered(port: int, headers: tuple[str, ...], status: int) -> None:
    assert await answered(port, *headers) == status


async def test_a_message_that_is_too_long_is_not_read(port: int) -> None:
    headers = ("Host: localhost", "Content-Type: application/json")
    assert await answered(port, *headers, body=" " * 20_000) == 413


@pytest.mark.parametrize("address", ["0.0.0.0:1", "8650", "example.com:80", "127.0.0.1:x", "127.0.0.1:65536", ":80"])
def test_only_addresses_of_this_machine_are_listened_at(address: str) -> None:
    with pytest.raises(UserError, match="--listen"):
        over_http.listen(address)


@pytest.mark.parametrize(
    "table",
    [
        {"name": "a"},
        {"name": "a", "argv": ["x"], "url": "https://example.com/"},
        {"name": "a", "argv": ["x"], "headers": {"A": "b"}},
        {"name": "a", "url": "https://example.com/", "env": {"A": "b"}},
        {"name": "a", "url": "http://example.com/"},
        {"name": "a", "url": "https://example.com/", "headers": {"Authorization": "$TOKEN"}},
    ],
)
def test_a_table_that_says_no_place_or_two_is_an_error(table: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        interceptor_group([table], "x", "x", "/")
