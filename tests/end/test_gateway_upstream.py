"""What a gateway sends to a server at an address, and what of its responses reaches the agent: nobody's credentials."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from tests.end.test_gateway_http import HttpGateway, call, stateless
from tests.support.http_server import Request, Server, serving

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CHALLENGE = 'WWW-Authenticate: Bearer resource_metadata="https://evil.example/"\r\nSet-Cookie: theirs=1\r\n'
OF_THE_AGENT = {
    "Cookie": "of-the-agent=1",
    "Forwarded": "for=192.0.2.43",
    "X-Forwarded-For": "192.0.2.43",
    "X-Api-Key": "of-the-agent",
    "Proxy-Authorization": "Basic of-the-agent",
    "Accept-Encoding": "gzip, br",
}
KNOWN_UPSTREAM = {
    *("host", "accept", "accept-encoding", "content-type", "content-length", "user-agent", "connection"),
    *("mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name", "x-of-the-gateway", "last-event-id"),
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def upstream(request: Request) -> None:
    """A server that demands a login for one tool."""
    method = request.message.get("method")
    if request.method != "POST":
        await request.status("405 Method Not Allowed")
    elif method == "initialize":
        result = '{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s"}}'
        await request.result(result, "Mcp-Session-Id: of-the-server\r\nSet-Cookie: theirs=1\r\n")
    elif method != "tools/call":
        await request.status("202 Accepted")
    elif request.message["params"]["name"] == "locked":
        await request.status("401 Unauthorized", CHALLENGE)
    elif request.message["params"]["name"] == "forbidden":
        await request.status("403 Forbidden", CHALLENGE)
    else:
        await request.result('{"content":[{"type":"text","text":"done"}]}')


@asynccontextmanager
async def gateway_to_upstream(folder: Path) -> AsyncIterator[tuple[HttpGateway, Server]]:
    async with serving(upstream) as server:
        config = (
            f'[servers.remote]\nurl = "http://127.0.0.1:{server.port}/mcp"\nallow_http = true\n'
            'headers = { X-Of-The-Gateway = "yes" }\n'
        )
        gateway = await asyncio.to_thread(HttpGateway, folder, config)
        try:
            with anyio.fail_after(60):
                yield gateway, server
        finally:
            gateway.kill()


async def test_nothing_that_identifies_the_agent_reaches_the_server_and_no_challenge_of_the_server_the_agent(
    tmp_path: Path,
) -> None:
    async with gateway_to_upstream(tmp_path) as (gateway, server):
        session = await asyncio.to_thread(gateway.opened, "alice", "remote")
        for name in ("open", "locked", "forbidden"):
            message, headers = stateless(name)
            for one, own, where in ((call(1, name), {}, session), (message, headers, "")):
                ask = partial(gateway.ask, "alice", one, where, "remote", headers={**own, **OF_THE_AGENT})
                status, found, body = await asyncio.to_thread(ask)
                assert status == 200, body
                assert ("error" in json.loads(body)) is (name != "open"), body
                assert not {"www-authenticate", "set-cookie"} & found.keys()
                assert "evil.example" not in body
        sent = [one for one in server.requests if one.method == "POST"]
        assert len(sent) >= 8
        for request in sent:
            assert request.target == "/mcp"
            assert request.headers["x-of-the-gateway"] == "yes"
            assert request.headers["accept-encoding"] == "identity"
            assert request.headers.get("mcp-session-id", "of-the-server") == "of-the-server"
            assert request.headers.get("cookie", "theirs=1") == "theirs=1"  # what the server has set itself
            assert not request.headers.keys() - KNOWN_UPSTREAM - {"cookie"}
            text = json.dumps(request.headers) + request.body.decode()
            assert "of-the-agent" not in text
            assert not [token for token in gateway.tokens.values() if token in text]


async def test_a_new_token_of_the_same_user_goes_on_with_the_session(tmp_path: Path) -> None:
    async with gateway_to_upstream(tmp_path) as (gateway, _):
        session = await asyncio.to_thread(gateway.opened, "alice", "remote")
        old = gateway.tokens["alice"]
        gateway.tokens["alice"] = await asyncio.to_thread(gateway._token, tmp_path, "alice")
        assert gateway.tokens["alice"] != old
        status, _, body = await asyncio.to_thread(gateway.ask, "alice", call(1, "open"), session, "remote")
        assert status == 200
        assert "done" in body
