"""A request of an agent that does not come whole at once is decided by its head."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from hookproxy.authorization.authenticate import Authenticator
from hookproxy.authorization.bearer_tokens import BearerTokens
from hookproxy.authorization.token_file import create_token
from hookproxy.config.gateway import load_gateway
from hookproxy.gateway.gateway import Gateway
from hookproxy.gateway.http_agents import HttpAgents
from hookproxy.gateway.http_listeners import HttpAddress, client_address, listener_limits, networks
from hookproxy.gateway.log import GatewayLog
from hookproxy.gateway.pace import Pace
from hookproxy.gateway.servers import Servers
from hookproxy.transports.event_loop import new_loop
from hookproxy.transports.http.accepting import serve_sockets
from hookproxy.transports.http.listener import Listener
from hookproxy.transports.http.request_reader import Peer, Request

pytestmark = pytest.mark.anyio

LONG: Final = 300_000
HEAD: Final = (
    "POST {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}Content-Type: application/json\r\n"
    "Accept: application/json, text/event-stream\r\nContent-Length: 300000\r\n\r\n"
)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": new_loop}


class Rig:
    """A gateway's listener, and what is in its log."""

    def __init__(self, folder: Path, port: int, gateway: Gateway, listener: Listener, token: str) -> None:
        self.folder, self.port, self.gateway, self.listener, self.token = folder, port, gateway, listener, token

    async def begin(self, headers: str = "", target: str = "/mcp/tools") -> bytes:
        """Send a head and the beginning of its body; the response, up to the end of the connection."""
        head = HEAD.format(target=target, port=self.port, headers=headers).encode()
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            await stream.send(head + b"{")
            received = b""
            with anyio.fail_after(30):
                while piece := await _received(stream):
                    received += piece
            return received

    @property
    def authorized(self) -> str:
        return f"Authorization: Bearer {self.token}\r\n"


async def _received(stream: anyio.abc.SocketStream) -> bytes:
    try:
        return await stream.receive()
    except anyio.EndOfStream:
        return b""


@asynccontextmanager
async def gateway_with(folder: Path, more: str = "", server: str = "") -> AsyncIterator[Rig]:
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    port = listening.getsockname()[1]
    token = create_token(str(folder / "tokens"), "alice", (), None, "", time.time())[0]
    path = folder / "gateway.toml"
    path.write_text(
        f'[gateway]\nlisten = ["http://127.0.0.1:{port}"]\ntokens = "tokens"\n{more}\n'
        f'[audit]\nfile = "audit.jsonl"\n[servers.tools]\ncommand = ["true"]\n{server}'
    )
    config = load_gateway(str(path), {}, str(folder))
    lines: list[str] = []
    report = GatewayLog(as_json=False)
    async with anyio.create_task_group() as tasks:
        gateway = Gateway(config, Servers(tasks, report), report)
        authenticator = Authenticator(BearerTokens(str(folder / "tokens"), lines.append), None)
        address = HttpAddress("127.0.0.1", port, tls=False)
        agents = HttpAgents(gateway, authenticator, [(address, listening)], tasks, report)
        listener = Listener(agents.handle, listener_limits(config, 1 << 26), agents.refusals.unread, agents.admit)
        listener.is_proxy = agents.senders.is_proxy
        accepting = await serve_sockets(listener, listening, None)
        yield Rig(folder, port, gateway, listener, token)
        await accepting.stop()
        listener.close()
        tasks.cancel_scope.cancel()


async def test_the_body_of_whoever_is_unknown_is_not_read(tmp_path: Path) -> None:
    async with gateway_with(tmp_path) as rig:
        for headers in ("", "Authorization: Bearer hp_nobody\r\n"):
            response = await rig.begin(headers)
            assert response.startswith(b"HTTP/1.1 401 ")
            assert b"Connection: close" in response
            assert b"www-authenticate" in response.lower()
        assert rig.listener.held.total == 0
        assert rig.gateway.metrics.refused_requests["401"] == 2


async def test_what_the_head_of_a_known_user_forbids_is_refused_before_the_body_and_in_the_audit(
    tmp_path: Path,
) -> None:
    async with gateway_with(tmp_path) as rig:
        response = await rig.begin(rig.authorized + "Mcp-Method: a\r\nMcp-Method: b\r\n")
        assert response.startswith(b"HTTP/1.1 400 ")
        (line,) = (tmp_path / "audit.jsonl").read_text().splitlines()
        record: dict[str, Any] = json.loads(line)
        assert (record["user"], record["result"]) == ("alice", "refused")


async def test_a_server_that_the_user_may_not_use_does_not_exist(tmp_path: Path) -> None:
    async with gateway_with(tmp_path, server='allow = ["bob"]\n') as rig:
        assert (await rig.begin(rig.authorized)).startswith(b"HTTP/1.1 404 ")


async def test_the_body_of_a_known_user_is_counted_for_the_user(tmp_path: Path) -> None:
    async with gateway_with(tmp_path) as rig:
        counted = anyio.Event()
        change = rig.listener.held.change

        def noted(payer: str, size: int) -> None:
            change(payer, size)
            if rig.listener.held.of("token:alice"):
                counted.set()

        rig.listener.held.change = noted  # type: ignore[method-assign]
        async with await anyio.connect_tcp("127.0.0.1", rig.port) as stream:
            await stream.send(HEAD.format(target="/mcp/tools", port=rig.port, headers=rig.authorized).encode() + b"{")
            with anyio.fail_after(30):
                await counted.wait()


async def test_a_probe_has_no_body(tmp_path: Path) -> None:
    async with gateway_with(tmp_path) as rig:
        assert (await rig.begin(target="/readyz")).startswith(b"HTTP/1.1 400 ")


async def test_a_connection_whose_token_is_refused_is_closed(tmp_path: Path) -> None:
    async with gateway_with(tmp_path) as rig:
        head = HEAD.format(target="/mcp/tools", port=rig.port, headers="").replace("300000", "2").encode()
        async with await anyio.connect_tcp("127.0.0.1", rig.port) as stream:
            await stream.send(head + b"{}")
            with anyio.fail_after(30):
                received = b"".join([piece async for piece in stream])
        assert received.startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("10.0.0.5", b"192.0.2.1", "192.0.2.1"),
        ("10.0.0.5", b"203.0.113.9, 192.0.2.1", "192.0.2.1"),  # what comes before, the client may have written
        ("10.0.0.5", b"192.0.2.1, 10.0.0.6", "192.0.2.1"),  # through two proxies
        ("10.0.0.5", b"nonsense", "10.0.0.5"),
        ("10.0.0.5", b"192.0.2.1, nonsense", "10.0.0.5"),
        ("10.0.0.5", b"", "10.0.0.5"),
        ("10.0.0.5", b"2001:db8::1", "2001:db8::1"),
        ("192.0.2.7", b"192.0.2.1", "192.0.2.7"),  # no proxy of ours: nobody believes it
        ("127.0.0.1", b"192.0.2.1", "127.0.0.1"),
    ],
)
async def test_behind_a_trusted_proxy_the_client_counts(
    tmp_path: Path, peer: str, forwarded: bytes, address: str
) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text('[gateway]\ntrusted_proxies = ["10.0.0.0/24"]\n[servers.x]\ncommand = ["true"]\n')
    trusted = networks(load_gateway(str(path), {}, str(tmp_path)))
    request = Request(b"POST", b"/", [(b"x-forwarded-for", forwarded)], b"", Peer(peer))
    assert client_address(request, trusted) == address


@contextmanager
def descriptors(count: int) -> Iterator[None]:
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_connections_of_agents_leave_descriptors_for_their_servers(tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text('[servers.x]\ncommand = ["true"]\n')
    config = load_gateway(str(path), {}, str(tmp_path))
    with descriptors(1024):
        limits = listener_limits(config, 1 << 26)
    assert (limits.connections, limits.strangers, limits.strangers_of_network) == (448, 224, 56)
    assert limits.body_bytes == 8 << 20


def test_a_user_whose_requests_take_long_waits_until_their_share_is_small_again() -> None:
    now = [100.0]
    pace = Pace(lambda: now[0])
    pace.spend("alice", 0.08)
    assert pace.delay("alice") == 0.0
    pace.spend("alice", 0.07)
    assert pace.delay("alice") == pytest.approx(10.0)
    assert pace.delay("bob") == 0.0
    now[0] += 4.0
    assert pace.delay("alice") == pytest.approx(6.0)
    now[0] += 6.0
    assert pace.delay("alice") == pytest.approx(0.0, abs=1e-9)


def test_nobody_waits_longer_than_an_agent_does_and_nothing_is_kept_of_who_has_waited() -> None:
    now = [100.0]
    pace = Pace(lambda: now[0])
    pace.spend("alice", 1000.0)
    assert pace.delay("alice") == 30.0
    now[0] += 1000.0
    assert pace.delay("alice") == 0.0
    assert not pace._credits
