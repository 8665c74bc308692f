"""What agents can do to a gateway over HTTP, and what is left of it: slow readers, refused floods, lost rights."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.end.agent import SERVER
from tests.end.test_gateway_http import ACCEPT, INITIALIZE, HttpGateway, call, request, stateless, text_of

pytestmark = pytest.mark.slow

PATIENCE = 30
BIG = 4_000_000
"""Bytes of a response: more than the sockets on both sides hold."""


def config(allow: str = "") -> str:
    command = f"command = {json.dumps(SERVER)}\n{allow}"
    return f'[servers.own]\n{command}[servers.all]\n{command}share = "all"\n[servers.user]\n{command}share = "user"\n'


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpGateway]:
    gateway = HttpGateway(tmp_path_factory.mktemp("gateway"), config())
    try:
        yield gateway
        assert gateway.end() == 0, gateway.log
    finally:
        gateway.kill()


def sent(gateway: HttpGateway, user: str, server: str, message: object, more: dict[str, str]) -> socket.socket:
    """A connection with little room for a response, on which a request was sent."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(PATIENCE)
    connection.connect(("127.0.0.1", gateway.port))
    connection.sendall(written(gateway, user, server, message, more))
    return connection


def written(gateway: HttpGateway, user: str, server: str, message: object, more: dict[str, str]) -> bytes:
    body = json.dumps(message).encode()
    own = {"Host": f"127.0.0.1:{gateway.port}", "Authorization": f"Bearer {gateway.tokens[user]}"}
    found = {**own, **ACCEPT, "Content-Length": str(len(body)), **more}
    head = "".join(f"{name}: {value}\r\n" for name, value in found.items())
    return f"POST /mcp/{server} HTTP/1.1\r\n{head}\r\n".encode() + body


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def open_sessions(gateway: HttpGateway) -> int:
    metrics = gateway.ask("alice", method="GET", target="/metrics")[2]
    return sum(int(line.split()[-1]) for line in metrics.splitlines() if line.startswith("hookproxy_sessions{"))


@pytest.mark.parametrize("server", ["own", "all", "user"])
@pytest.mark.parametrize("era", ["handshake", "stateless"])
def test_a_slow_reader_holds_up_nobody(gateway: HttpGateway, server: str, era: str) -> None:
    with ExitStack() as stack:
        slow = []
        for number in range(2):
            message, headers = stateless("big", size=BIG)
            if era == "handshake":
                message, headers = call(number, "big", size=BIG), {"Mcp-Session-Id": gateway.opened("alice", server)}
            slow.append(stack.enter_context(sent(gateway, "alice", server, message, headers)))
        for one in slow:
            assert one.recv(1) == b"H"  # the response has begun, and is read no further
        for user in ("alice", "bob"):
            session = gateway.opened(user, server)
            for number in range(20):
                assert "quick" in text_of(gateway.ask(user, call(number, "echo", text="quick"), session, server)[2])
            message, headers = stateless("echo", text="quick")
            assert "quick" in text_of(gateway.ask(user, message, server=server, headers=headers)[2])
        for one in slow:  # what waits for the slow ones comes whole all the same
            received = 0
            while received < BIG:
                piece = one.recv(1 << 20)
                assert piece
                received += len(piece)


def test_ten_thousand_refused_requests_leave_nothing(gateway: HttpGateway) -> None:
    refused = written(gateway, "alice", "own", request(0, "initialize", INITIALIZE), {"Origin": "https://evil.example"})
    wrong = refused.replace(gateway.tokens["alice"].encode(), b"hkp_" + b"x" * 40)

    def flood(times: int) -> None:
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=PATIENCE) as connection:
            for _ in range(times // 2):
                connection.sendall(refused)
                assert connection.recv(65536).split(b" ", 2)[1] == b"403"
        for _ in range(times // 2):  # each of them ends its connection
            with socket.create_connection(("127.0.0.1", gateway.port), timeout=PATIENCE) as connection:
                connection.sendall(wrong)
                assert connection.recv(65536).split(b" ", 2)[1] == b"401"

    flood(1000)
    open_before = open_sessions(gateway)
    before, descriptors = resident_mb(gateway.pid), gateway.descriptors
    flood(9000)
    assert resident_mb(gateway.pid) < before + 2  # megabytes: 230 bytes a request would be more
    gateway.settles_at(descriptors)
    assert open_sessions(gateway) <= open_before


@pytest.mark.parametrize("server", ["own", "all", "user"])
def test_a_lost_right_ends_open_streams_and_subscriptions(tmp_path: Path, server: str) -> None:
    gateway = HttpGateway(tmp_path, config())
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = request(1, "subscriptions/listen", {"notifications": {"toolsListChanged": True}, "_meta": meta})
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}
    try:
        with ExitStack() as stack:
            streams = {
                user: stack.enter_context(sent(gateway, user, server, message, headers)) for user in ("alice", "bob")
            }
            for stream in streams.values():
                assert b" 200 " in stream.recv(4096)
            gateway.reload(config('allow = ["bob"]\n'))
            received = b""
            while not received.endswith(b"\r\n0\r\n\r\n"):  # the end of the stream
                piece = streams["alice"].recv(4096)
                assert piece
                received += piece
            assert b"error" in received
            assert gateway.ask("alice", message, server=server, headers=headers)[0] == 404
            streams["bob"].setblocking(False)
            with suppress(BlockingIOError):
                assert not streams["bob"].recv(4096).endswith(b"0\r\n\r\n")  # a comment of the beginning, or nothing
        assert gateway.end() == 0
    finally:
        gateway.kill()


READERS = 16
LONG = 10_000_000
"""Bytes of a response of which the sockets hold less than half."""


def asked(gateway: HttpGateway, user: str, server: str) -> tuple[int, dict[str, str], str]:
    """The response to a short call that stands alone."""
    message, headers = stateless("echo", text="short")
    return gateway.ask(user, message, server=server, headers=headers)


def whole(connection: socket.socket) -> bytearray:
    """The rest of a response, which ends with the message."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    received = bytearray()
    while not received.endswith((b"]}}", b"}}\n\n", b"\r\n0\r\n\r\n", b'"}}')):
        piece = connection.recv(1 << 20)
        assert piece, received[-200:]
        received += piece
    return received


@pytest.mark.parametrize(("era", "server"), [("handshake", "all"), ("stateless", "user")])
def test_what_one_user_does_not_read_takes_no_more_than_allowed(tmp_path: Path, era: str, server: str) -> None:
    gateway = HttpGateway(tmp_path, f"max_unread_bytes = {LONG // 2}\n{config()}")
    try:
        with ExitStack() as stack:
            sessions = [gateway.opened("alice", server) for _ in range(READERS)] if era == "handshake" else []
            assert asked(gateway, "alice", server)[0] == 200
            before = resident_mb(gateway.pid)
            slow = []
            for number in range(READERS):
                message, headers = stateless("big", size=LONG)
                if era == "handshake":
                    message, headers = call(number, "big", size=LONG), {"Mcp-Session-Id": sessions[number]}
                slow.append(stack.enter_context(sent(gateway, "alice", server, message, headers)))
            for one in slow:
                assert one.recv(1) == b"H"
            grown = resident_mb(gateway.pid) - before
            assert grown < 100, "all of them have 160 MB"
            status, headers, body = asked(gateway, "alice", server)
            assert (status, headers["retry-after"]) == (429, "1"), body
            assert "do not read" in body
            assert asked(gateway, "bob", server)[0] == 200
            bodies = [whole(one) for one in slow]
            withheld = [body for body in bodies if b"The tool was run and the server has answered" in body]
            assert 0 < len(withheld) < READERS
            assert all(len(body) > LONG for body in bodies if body not in withheld)
            assert asked(gateway, "alice", server)[0] == 200
        assert "max_unread_bytes" in gateway.log
    finally:
        gateway.kill()


def test_a_process_waits_for_the_agent_that_does_not_read_and_nothing_is_lost(gateway: HttpGateway) -> None:
    with ExitStack() as stack:
        slow = []
        for number in range(4):
            session = {"Mcp-Session-Id": gateway.opened("alice", "own")}
            message = call(number, "big", size=LONG)
            slow.append(stack.enter_context(sent(gateway, "alice", "own", message, session)))
        for one in slow:
            assert one.recv(1) == b"H"
        assert asked(gateway, "bob", "own")[0] == 200
        assert all(len(whole(one)) > LONG for one in slow)
