"""Long responses of a server at an address pass the gateway while they come, but not where anything judges calls."""

from __future__ import annotations

import asyncio
import contextlib
import json
import select
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.end.test_gateway_http import ACCEPT, HttpGateway, call
from tests.support.http_server import Request, Server, serving

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

TEXT = "x" * 200_000
HOOK = """
[[hooks.PreToolUse]]
matcher = "other"
command = "exit 2"
"""
AUDIT = """
[audit]
file = "audit.jsonl"
calls = "all"
"""
RULE = """
[permissions]
deny = ["forbidden"]
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Upstream:
    """A server whose long responses wait in their middle until the test lets them go on."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.go_on = asyncio.Event()
        self.drops = False

    async def __call__(self, request: Request) -> None:
        method = request.message.get("method")
        if request.method != "POST":
            await request.status("405 Method Not Allowed")
        elif method == "initialize":
            await request.result('{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s"}}')
        elif method != "tools/call":
            await request.status("202 Accepted")
        elif request.message["params"]["name"] != "long":
            await request.result('{"content":[]}')
        else:
            await self._long(request)

    async def _long(self, request: Request) -> None:
        result = {"content": [{"type": "text", "text": TEXT}]}
        message = json.dumps({"jsonrpc": "2.0", "id": request.id, "result": result}, separators=(",", ":")).encode()
        if self.kind == "stream":
            await request.stream(b"event: message\ndata: " + message[:150_000])
        else:
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            await request.send(head % len(message), message[:150_000])
        await self.go_on.wait()
        if self.drops:
            request.drop()
        elif self.kind == "stream":
            await request.events(message[150_000:] + b"\n\n")
            await request.end()
        else:
            await request.send(message[150_000:])


POSTS: list[Post] = []
"""Those of the running test."""


class Post:
    """A POST whose response can be read in parts."""

    def __init__(self, gateway: HttpGateway, message: object, session: str) -> None:
        body = json.dumps(message, separators=(",", ":"))
        own = {"Host": f"127.0.0.1:{gateway.port}", "Authorization": f"Bearer {gateway.tokens['alice']}"}
        found = {**own, **ACCEPT, "Mcp-Session-Id": session, "Content-Length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in found.items())
        self.request = f"POST /mcp/remote HTTP/1.1\r\n{head}\r\n{body}".encode()
        self.connection = socket.create_connection(("127.0.0.1", gateway.port), timeout=30)
        self.connection.sendall(self.request)
        self.received = b""
        POSTS.append(self)

    async def read(self, size: int) -> bytes:
        """Read at least so many bytes; fewer if the gateway closes the connection."""
        while len(self.received) < size and (piece := await asyncio.to_thread(self.connection.recv, 65_536)):
            self.received += piece
        return self.received

    async def body(self) -> bytes:
        """The whole body, whose length is in the head."""
        while b"\r\n\r\n" not in self.received:
            await self.read(len(self.received) + 1)
        head, _, _ = self.received.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        return (await self.read(len(head) + 4 + length))[len(head) + 4 :]

    async def chunks(self) -> bytes:
        """The whole body, which comes in chunks."""
        while not (await self.read(len(self.received) + 1)).endswith(b"\r\n0\r\n\r\n"):
            pass
        rest, body = self.received.partition(b"\r\n\r\n")[2], b""
        while (size := int(rest.partition(b"\r\n")[0], 16)) > 0:
            start = rest.index(b"\r\n") + 2
            body, rest = body + rest[start : start + size], rest[start + size + 2 :]
        return body


def config_of(server: Server, policy: str) -> str:
    return f'{policy}\n[servers.remote]\nurl = "http://127.0.0.1:{server.port}/mcp"\nallow_http = true\n'


@asynccontextmanager
async def gateway_to(kind: str, folder: Path, policy: str = "") -> AsyncIterator[tuple[HttpGateway, Upstream, Server]]:
    upstream = Upstream(kind)
    async with serving(upstream) as server:
        gateway = await asyncio.to_thread(HttpGateway, folder, config_of(server, policy))
        try:
            with anyio.fail_after(60):
                yield gateway, upstream, server
        finally:
            gateway.kill()
            while POSTS:
                POSTS.pop().connection.close()


def result_of(body: bytes) -> object:
    return json.loads(body)["result"]["content"][0]["text"]


async def opened(gateway: HttpGateway) -> str:
    return await asyncio.to_thread(gateway.opened, "alice", "remote")


@pytest.mark.parametrize("kind", ["json", "stream"])
async def test_the_beginning_comes_before_the_end_where_nothing_is_judged(kind: str, tmp_path: Path) -> None:
    async with gateway_to(kind, tmp_path) as (gateway, upstream, _):
        session = await opened(gateway)
        post = Post(gateway, call(1, "long"), session)
        assert b'"id":1,"result"' in (await post.read(100_000))[:1000]
        quick = Post(gateway, call(2, "short"), session)
        assert json.loads(await quick.body())["id"] == 2, "others do not wait"
        upstream.go_on.set()
        assert result_of(await (post.chunks() if kind == "stream" else post.body())) == TEXT
        again = Post(gateway, call(1, "short"), session)
        assert json.loads(await again.body())["id"] == 1, "the id is free again"


@pytest.mark.parametrize("policy", [HOOK, RULE, AUDIT], ids=["hook", "rule", "audit"])
@pytest.mark.parametrize("kind", ["json", "stream"])
async def test_where_anything_is_judged_it_comes_whole(kind: str, policy: str, tmp_path: Path) -> None:
    async with gateway_to(kind, tmp_path, policy) as (gateway, upstream, _):
        session = await opened(gateway)
        post = Post(gateway, call(1, "long"), session)
        upstream.go_on.set()
        assert result_of(await post.body()) == TEXT


@pytest.mark.parametrize("kind", ["json", "stream"])
async def test_a_response_that_breaks_off_is_broken_off_for_the_agent_too(kind: str, tmp_path: Path) -> None:
    async with gateway_to(kind, tmp_path) as (gateway, upstream, _):
        session = await opened(gateway)
        post = Post(gateway, call(1, "long"), session)
        await post.read(100_000)
        upstream.drops = True
        upstream.go_on.set()
        with contextlib.suppress(ConnectionResetError):
            await post.read(10_000_000)
        assert not post.received.endswith(b"\r\n0\r\n\r\n")
        assert len(post.received) < len(TEXT), "with the length that was sent, it is not whole either"
        await asyncio.to_thread(gateway.logged, "a response of the server was broken off")
        again = Post(gateway, call(1, "short"), session)
        assert json.loads(await again.body())["id"] == 1


async def test_a_new_policy_is_in_force_before_the_next_call_is_read(tmp_path: Path) -> None:
    async with gateway_to("json", tmp_path) as (gateway, upstream, server):
        session = await opened(gateway)
        post = Post(gateway, call(1, "long"), session)
        await post.read(100_000)
        await asyncio.to_thread(gateway.reload, config_of(server, RULE))
        refused = Post(gateway, call(2, "forbidden"), session)
        other = Post(gateway, call(1, "short"), await opened(gateway))
        assert json.loads(await other.body())["id"] == 1
        waiting, _, _ = select.select([refused.connection], [], [], 0)
        assert not waiting, "its response could be a part of the one that nobody reads"
        upstream.go_on.set()
        assert result_of(await post.body()) == TEXT, "it ends under the policy with which it began"
        assert json.loads(await refused.body())["result"]["isError"] is True
        later = Post(gateway, call(3, "long"), session)
        assert result_of(await later.body()) == TEXT, "now it comes whole"
        assert "forbidden" not in str([one.body for one in server.requests])
