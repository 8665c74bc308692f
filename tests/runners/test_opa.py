"""Rules of an Open Policy Agent against a real server that answers as OPA does, well and badly."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import anyio.abc
import pytest

from hookproxy.dialects.own import OWN
from hookproxy.model.hooks import Document, Event, HookSpec, Verdict
from hookproxy.runners.registry import Runners

pytestmark = pytest.mark.anyio

INPUT: Final = {"tool": "t", "server": "s", "arguments": {"a": 1}, "agent": "", "user": "", "groups": [], "session": ""}


@asynccontextmanager
async def answering(body: bytes, status: str = "200 OK") -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that answers each request so: its port, and the requests that it has got."""
    requests: list[bytes] = []

    async def serve(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            received = b""
            while not (b"\r\n\r\n" in received and received.endswith(b"}")):
                received += await stream.receive()
            requests.append(received)
            head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            await stream.send(head.encode() + body)

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield listener.extra(anyio.abc.SocketAttribute.local_port), requests
        tasks.cancel_scope.cancel()


async def judged(port: int, reason: str = "") -> Verdict:
    url = f"http://127.0.0.1:{port}/v1/data/mcp/allow"
    spec = HookSpec("hookproxy", "f: k", Event.PRE_TOOL_USE, "p", type="opa", url=url, timeout=30, deny_reason=reason)
    async with Runners([spec], lambda _spec, _text: None) as runners:
        document = Document(json.dumps(INPUT).encode() + b"\n", {})
        return OWN.read_output(spec, await runners.by_type["opa"](spec, document, {}))


@pytest.mark.parametrize(
    ("body", "decision"),
    [
        (b'{"result":true}', "ALLOW "),
        (b'{"decision_id":"1","result": true }', "ALLOW "),
        (b'{"result":false}', "DENY the policy 'p' refuses this call"),
        (b'{"result":{"allow":true}}', "ALLOW "),
        (b'{"result":{"allow":true,"reason":"staff"}}', "ALLOW staff"),
        (b'{"result":{"allow":false,"reason":"not on Fridays"}}', "DENY not on Fridays"),
        (b'{"result":{"reason":"","allow":false}}', "DENY the policy 'p' refuses this call"),
    ],
)
async def test_a_rule_allows_or_refuses(body: bytes, decision: str) -> None:
    async with answering(body) as (port, requests):
        verdict = await judged(port)
    assert verdict.permission is not None
    assert f"{verdict.permission.name} {verdict.reason}" == decision
    assert not verdict.failure
    head, _, sent = requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/data/mcp/allow HTTP/1.1\r\n")
    assert json.loads(sent) == {"input": INPUT}


async def test_the_configured_reason_holds_where_the_rule_gives_none() -> None:
    for body, reason in [(b'{"result":false}', "ask ann"), (b'{"result":{"allow":false,"reason":"x"}}', "x")]:
        async with answering(body) as (port, _requests):
            assert (await judged(port, "ask ann")).reason == reason


@pytest.mark.parametrize(
    ("body", "status", "failure"),
    [
        (b"{}", "200 OK", "has no result for this call"),
        (b'{"result":null}', "200 OK", "neither a boolean"),
        (b'{"result":"true"}', "200 OK", "neither a boolean"),
        (b'{"result":1}', "200 OK", "neither a boolean"),
        (b'{"result":[true]}', "200 OK", "neither a boolean"),
        (b'{"result":{"reason":"x"}}', "200 OK", "neither a boolean"),
        (b'{"result":{"allow":"true"}}', "200 OK", "neither a boolean"),
        (b'{"result":{"allow":true,"reason":5}}', "200 OK", "gave a `reason` that is not a text"),
        (b'{"result":false,"result":true}', "200 OK", "cannot be read"),
        (b'{"result":{"allow":false,"allow":true}}', "200 OK", "cannot be read"),
        (b"true", "200 OK", "cannot be read"),
        (b"", "200 OK", "cannot be read"),
        (b'{"result":true', "200 OK", "cannot be read"),
        (b'{"result":true}', "500 Oops", "answered with status 500"),
        (b'{"result":true}', "302 Found", "redirects are not followed"),
    ],
)
async def test_any_other_answer_is_a_failure(body: bytes, status: str, failure: str) -> None:
    async with answering(body, status) as (port, _requests):
        verdict = await judged(port)
    assert failure in verdict.failure
    assert verdict.permission is None


async def test_a_server_that_is_not_there_is_a_failure() -> None:
    async with answering(b"") as (port, _requests):
        pass
    assert "could not be called" in (await judged(port)).failure
