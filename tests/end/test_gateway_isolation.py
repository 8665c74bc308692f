"""Users of one gateway, as attackers: what a shared server says of others, and folders that an agent names itself."""

from __future__ import annotations

import http.client
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end.test_gateway_http import INITIALIZE, HttpGateway, call, request, text_of

pytestmark = pytest.mark.slow

SERVER = Path(__file__).with_name("gossip_server.py")
SECRET = "the secret of alice"
EVIL = {"roots": [{"uri": "file:///etc/hookproxy"}]}
CAPABILITIES = {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
}
STATELESS = {"MCP-Protocol-Version": "2026-07-28"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpGateway]:
    command = f"command = {json.dumps([sys.executable, '-S', '-E', str(SERVER)])}\n"
    config = f'[servers.all]\n{command}share = "all"\n[servers.own]\n{command}'
    config += f'[servers.listed]\n{command}roots = ["/srv/projects"]\n'
    gateway = HttpGateway(tmp_path_factory.mktemp("gateway"), config)
    try:
        yield gateway
        assert gateway.end() == 0, gateway.log
    finally:
        gateway.kill()


def opened(gateway: HttpGateway, user: str, server: str) -> str:
    """A session of an agent that can do everything."""
    message = request(0, "initialize", {**INITIALIZE, "capabilities": CAPABILITIES})
    status, headers, body = gateway.ask(user, message, server=server)
    assert status == 200, body
    gateway.ask(user, {"jsonrpc": "2.0", "method": "notifications/initialized"}, headers["mcp-session-id"], server)
    return headers["mcp-session-id"]


def listening(gateway: HttpGateway, user: str, session: str, lines: list[bytes]) -> threading.Thread:
    """Listens to what comes by itself, until the session ends."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    headers = {"Authorization": f"Bearer {gateway.tokens[user]}", "Mcp-Session-Id": session}
    connection.request("GET", "/mcp/all", headers={**headers, "Accept": "text/event-stream"})
    response = connection.getresponse()
    assert response.status == 200

    def read() -> None:
        lines.extend(iter(response.readline, b""))
        connection.close()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def test_what_a_shared_server_says_of_another_user_reaches_nobody(gateway: HttpGateway) -> None:
    sessions = {user: opened(gateway, user, "all") for user in ("alice", "bob")}
    lines: list[bytes] = []
    threads = [listening(gateway, user, session, lines) for user, session in sessions.items()]
    for number in range(20):
        gateway.ask("alice", call(number, "tell", text=SECRET), sessions["alice"], "all")
        status, _, body = gateway.ask("bob", call(number, "gossip"), sessions["bob"], "all")
        assert (status, SECRET in body) == (200, False)
        assert json.loads(text_of(body)) == ["-32603", "-32603", "-32601", "{}"]
    assert gateway.ask("bob", call(99, "echo", text="the end"), sessions["bob"], "all")[0] == 200
    for user, session in sessions.items():
        assert gateway.ask(user, None, session, "all", "DELETE")[0] == 200
    for thread in threads:
        thread.join(30)
    heard = b"".join(lines)
    assert b"tools/list_changed" in heard
    assert SECRET.encode() not in heard
    assert b"elicitation" not in heard
    assert 'hookproxy_shared_dropped_total{server="all"} 80' in gateway.ask("bob", method="GET", target="/metrics")[2]
    assert "all is for all: once several people use it, its log messages reach nobody" in gateway.log


@pytest.mark.parametrize(
    ("server", "given"),
    [("own", '"code":-32601'), ("listed", '"result":{"roots":[{"uri":"file:///srv/projects","name":"projects"}]}')],
)
def test_folders_that_an_agent_names_reach_no_server(gateway: HttpGateway, server: str, given: str) -> None:
    session = opened(gateway, "alice", server)
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        {"jsonrpc": "2.0", "id": "r", "result": EVIL},
        {"jsonrpc": "2.0", "id": "r", "result": {**EVIL, "action": "accept"}},
    ):
        assert gateway.ask("alice", message, session, server)[0] == 202
    body = gateway.ask("alice", call(1, "roots"), session, server)[2]
    assert given in text_of(body)
    params: dict[str, object] = {"name": "seen", "arguments": {}, "_meta": META}
    headers = {**STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": "seen"}
    rounds: list[dict[str, object]] = [
        {},
        {"inputResponses": {"x": EVIL}},
        {"inputResponses": {"x": {"Roots": []}, "y": EVIL}},
    ]
    for number, more in enumerate(rounds):
        found = gateway.ask("alice", request(number, "tools/call", {**params, **more}), "", server, headers=headers)
        assert found[0] == 200, found
        assert "etc/hookproxy" not in found[2]
        assert ('"roots\\\\\\": {' in found[2] or '"roots\\\\\\":{' in found[2]) is (server == "listed")
    seen = text_of(gateway.ask("alice", call(2, "seen"), session, server)[2])
    assert "etc/hookproxy" not in seen
    assert "roots/list_changed" not in seen
    assert "listChanged" not in seen


@pytest.mark.parametrize("server", ["own", "all"])
def test_a_removed_method_gets_the_answer_of_the_server(gateway: HttpGateway, server: str) -> None:
    message = request(1, "tasks/result", {"taskId": "nobodys", "_meta": META})
    status, _, body = gateway.ask("alice", message, "", server, headers={**STATELESS, "Mcp-Method": "tasks/result"})
    assert (status, json.loads(body)["error"]) == (404, {"code": -32601, "message": "There is no tasks/result here"})
