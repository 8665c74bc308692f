"""Whatever a request to the gateway says, a mistake of its author is a 4xx and never a defect of ours."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from tests.gateway.test_http_agents import INITIALIZE, Rig

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

METHODS = (b"GET", b"POST", b"HEAD", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"BREW")
TARGETS = (
    *(b"/", b"//", b"*", b"/mcp", b"/mcp/", b"/mcp/pipe", b"/mcp/pipe/", b"/mcp/pipe?x=1", b"/mcp/%00", b"/mcp/\xff"),
    *(b"/mcp/../pipe", b"/mcp//pipe", b"/x/mcp/pipe", b"/mcp/" + b"a" * 3000, b"http://a/mcp/pipe", b"/mcp/no-such"),
    *(b"/healthz", b"/readyz", b"/metrics", b"/healthz/", b"/metrics?a=b", b"/%ff", b"/\xc3\xa9"),
    *(b"/.well-known", b"/.well-known/", b"/.well-known/oauth-protected-resource", b"/.well-known/\xff/mcp/pipe"),
    *(b"/.well-known/oauth-protected-resource/mcp/pipe", b"/.well-known/oauth-protected-resource/mcp/%00"),
)
BODIES = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"null",
    b"[]",
    b"5",
    b'"tools/call"',
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"{}",
    b'{"jsonrpc":"2.0","id":1}',
    b'{"jsonrpc":"2.0","id":{},"method":"tools/call"}',
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"a","name":"b"}}',
    b'{"jsonrpc":"2.0","id":1e400,"method":"initialize","params":[]}',
    b'{"jsonrpc":"2.0","id":"\\ud800","method":"\\ud800","params":null}',
    b'{"jsonrpc":"2.0","id":1,"method":5}',
    b'{"jsonrpc":"2.0","result":{}}',
    b'[{"jsonrpc":"2.0","id":1,"method":"tools/call"}]',
    b"9" * 5000,
)
HEADERS = (
    (b"authorization", b"Bearer"),
    (b"authorization", b"Bearer \xff\xfe"),
    (b"authorization", b"Basic YTpi"),
    (b"authorization", b"Bearer " + b"a" * 5000),
    (b"authorization", b"Bearer a.b.c"),
    (b"mcp-session-id", b""),
    (b"mcp-session-id", b"\xff" * 100),
    (b"mcp-session-id", b"../../x"),
    (b"mcp-protocol-version", b"\xff"),
    (b"mcp-protocol-version", b"9999-99-99"),
    (b"mcp-protocol-version", b"2026-07-28"),
    (b"mcp-method", b"=?base64?\xff?="),
    (b"mcp-name", b"=?base64?!!?="),
    (b"last-event-id", b"\xff"),
    (b"last-event-id", b"9" * 400),
    (b"accept", b"\xff;q=\xff"),
    (b"content-type", b"\xff/\xff; charset=utf-7"),
    (b"content-encoding", b"gzip"),
    (b"origin", b"\xff"),
    (b"host", b"[::1"),
    (b"host", b"\xff"),
    (b"x-forwarded-for", b"999.999.999.999, \xff"),
    (b"content-length", b"-1"),
    (b"content-length", b"1_0"),
    (b"content-length", b"9" * 400),
    (b"transfer-encoding", b"chunked, \xff"),
    (b"expect", b"200-maybe"),
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path, "pipe", int)
    async with made.serving('command = ["cat"]\n'):
        yield made


async def response_to(rig: Rig, request: bytes) -> bytes:
    """The first bytes of the response on a connection of its own."""
    with anyio.fail_after(30):
        async with await anyio.connect_tcp("127.0.0.1", rig.port) as stream:
            await stream.send(request)
            return await stream.receive()


async def status_of(
    rig: Rig, method: bytes, target: bytes, body: bytes = b"", headers: dict[bytes, bytes] | None = None
) -> int:
    given = {
        b"host": f"127.0.0.1:{rig.port}".encode(),
        b"authorization": f"Bearer {rig.token}".encode(),
        b"accept": b"application/json, text/event-stream",
        b"content-type": b"application/json",
        b"content-length": str(len(body)).encode(),
        **(headers or {}),
    }
    head = b"".join(b"%s: %s\r\n" % line for line in given.items())
    response = await response_to(rig, b"%s %s HTTP/1.1\r\n%s\r\n%s" % (method, target, head, body))
    return int(response.split()[1])


def of_defects(statuses: dict[bytes, int]) -> dict[bytes, int]:
    """All but 501, which is for methods that HTTP has and nobody implements (RFC 9110 section 9.1)."""
    return {what: status for what, status in statuses.items() if not (200 <= status < 500 or status == 501)}


@pytest.mark.parametrize("method", METHODS)
async def test_no_address_is_a_defect(rig: Rig, method: bytes) -> None:
    assert of_defects({target: await status_of(rig, method, target) for target in TARGETS}) == {}


async def test_no_body_is_a_defect(rig: Rig) -> None:
    statuses = {body[:60]: await status_of(rig, b"POST", b"/mcp/pipe", body) for body in BODIES}
    assert [status for status in statuses.values() if not 400 <= status < 500] == []


async def test_no_header_is_a_defect(rig: Rig) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    statuses = {}
    for method in (b"GET", b"POST", b"DELETE"):
        for name, value in HEADERS:
            what = b"%s %s: %s" % (method, name, value[:30])
            statuses[what] = await status_of(rig, method, b"/mcp/pipe", body * (method == b"POST"), {name: value})
    assert of_defects(statuses) == {}


async def test_no_request_of_an_unknown_session_is_a_defect(rig: Rig) -> None:
    statuses = {}
    for body in BODIES:
        for session in (b"", b"no-such-session"):
            headers = {b"mcp-session-id": session, b"mcp-protocol-version": b"2025-11-25"}
            statuses[body[:60] + session] = await status_of(rig, b"POST", b"/mcp/pipe", body, headers)
    assert of_defects(statuses) == {}
    initialize = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
    assert "mcp-session-id" in str(await response_to_initialize(rig, initialize))


async def response_to_initialize(rig: Rig, message: dict[str, object]) -> dict[str, str]:
    agent = await rig.connect()
    agent.send(message)
    head = await agent.head()
    return dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)


@pytest.mark.parametrize(
    "request_text",
    [
        b"\0\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n:\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_a_400_or_the_end_of_the_connection(rig: Rig, request_text: bytes) -> None:
    try:
        response = await response_to(rig, request_text)
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return
    assert 400 <= int(response.split()[1]) <= 505
    assert int(response.split()[1]) != 500
