"""The gateway over HTTP, as agents meet it: one process for all tests here, real servers, both eras."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.free_ports import free_port
from tests.support.gateway_process import HOOKPROXY, GatewayProcess

pytestmark = pytest.mark.slow

SERVER = Path(__file__).with_name("tool_server.py")
SECRET = "sekret-of-the-server"
ACCEPT = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class HttpGateway(GatewayProcess):
    """A gateway that also listens at a free port of loopback, and its users' tokens."""

    def __init__(self, folder: Path, config: str) -> None:
        self.port = free_port()
        self.tokens = {user: self._token(folder, user) for user in ("alice", "bob", "carol")}
        super().__init__(folder, config)

    @staticmethod
    def _token(folder: Path, user: str) -> str:
        command = [HOOKPROXY, "token", "new", user, "--file", str(folder / "tokens")]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def write(self, config: str) -> None:
        super().write(config)
        text = self.path.read_text().replace('"]\n', f'", "http://127.0.0.1:{self.port}"]\ntokens = "tokens"\n', 1)
        self.path.write_text(text)

    def ask(  # noqa: PLR0913  # the parts of a request
        self,
        user: str,
        message: object = None,
        session: str = "",
        server: str = "tools",
        method: str = "POST",
        headers: dict[str, str] | None = None,
        target: str = "",
    ) -> tuple[int, dict[str, str], str]:
        """Send one request on a connection of its own: the status, the headers and the body of the response."""
        found = {**ACCEPT, "Authorization": f"Bearer {self.tokens[user]}", **(headers or {})}
        if session:
            found["Mcp-Session-Id"] = session
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            body = b"" if message is None else json.dumps(message).encode()
            connection.request(method, target or f"/mcp/{server}", body, found)
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read().decode()
        finally:
            connection.close()

    def opened(self, user: str, server: str = "tools") -> str:
        """The id of a new session."""
        status, headers, body = self.ask(user, request(0, "initialize", INITIALIZE), server=server)
        assert status == 200, body
        session = headers["mcp-session-id"]
        self.ask(user, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session, server)
        return session


def request(number: int, method: str, params: object = None) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}


def call(number: int, name: str, **arguments: object) -> dict[str, object]:
    return request(number, "tools/call", {"name": name, "arguments": arguments})


def stateless(name: str, **arguments: object) -> tuple[dict[str, object], dict[str, str]]:
    """A call of the era without sessions, and its headers."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = request(1, "tools/call", {"name": name, "arguments": arguments, "_meta": meta})
    return message, {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name}


def calls_of(gateway: HttpGateway) -> int:
    """How many calls the server has got."""
    path = gateway.folder / "shared" / "calls"
    return path.read_text().count("tools/call") if path.exists() else 0


def text_of(body: str) -> str:
    if body.startswith(("id:", ":")):
        body = [line[6:] for line in body.splitlines() if line.startswith("data: {")][-1]
    found: dict[str, Any] = json.loads(body)
    assert "result" in found, found
    return str(found["result"]["content"][0]["text"])


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpGateway]:
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "secret").write_text(SECRET)
    (folder / "secret").chmod(0o600)
    command = json.dumps([sys.executable, "-S", "-E", str(SERVER)])
    (folder / "shared").mkdir()
    log = json.dumps(str(folder / "shared" / "calls"))
    config = f"""
max_sessions_per_user = 20
queue_seconds = 0.1
[audit]
file = "audit.jsonl"
calls = "all"
[permissions]
deny = ["forbidden"]
[servers.tools]
command = {command}
credentials = {{ TOKEN = "file:secret" }}
env = {{ E2E_LOG = {log} }}
sandbox = {{ write = ["shared"] }}
[servers.bobs]
command = {command}
allow = ["bob"]
[servers.all]
command = {command}
share = "all"
[servers.user]
command = {command}
share = "user"
[servers.few]
command = {command}
max_sessions = 1
[servers.mine]
from_caller = true
[servers.bobs_own]
from_caller = true
allow = ["bob"]
[servers.broken]
command = ["/nonexistent/server"]
"""
    gateway = HttpGateway(folder, config)
    try:
        yield gateway
        assert gateway.end() == 0, gateway.log
        log_text, audit = gateway.log, json.dumps(gateway.audit())
        for secret in (SECRET, *gateway.tokens.values()):
            assert secret not in log_text
            assert secret not in audit
    finally:
        gateway.kill()


def test_a_call_in_the_handshake_era(gateway: HttpGateway) -> None:
    session = gateway.opened("alice")
    status, _, body = gateway.ask("alice", call(1, "echo", text="hello"), session)
    assert status == 200
    assert "hello" in text_of(body)
    status, _, body = gateway.ask("alice", call(2, "forbidden"), session)
    assert status == 200
    assert "forbidden" in text_of(body)
    assert gateway.ask("alice", method="DELETE", session=session)[0] == 200


def test_a_call_in_the_stateless_era(gateway: HttpGateway) -> None:
    for server in ("tools", "all", "user"):
        message, headers = stateless("echo", text="hello")
        status, _, body = gateway.ask("alice", message, server=server, headers=headers)
        assert status == 200, body
        assert "hello" in text_of(body)
    message, headers = stateless("forbidden")
    assert "forbidden" in text_of(gateway.ask("alice", message, headers=headers)[2])


def test_both_eras_at_once_at_a_shared_server(gateway: HttpGateway) -> None:
    session = gateway.opened("bob", "all")
    message, headers = stateless("echo", text="hello")
    assert gateway.ask("alice", message, server="all", headers=headers)[0] == 200
    assert "again" in text_of(gateway.ask("bob", call(1, "echo", text="again"), session, "all")[2])


def test_a_session_is_its_owners_at_its_server_and_until_its_end(gateway: HttpGateway) -> None:
    session = gateway.opened("alice")
    for user, server in (("bob", "tools"), ("alice", "all")):
        for method, message in (("POST", call(1, "echo")), ("GET", None), ("DELETE", None)):
            headers = {"Accept": "text/event-stream"} if method == "GET" else {}
            status, _, body = gateway.ask(user, message, session, server, method, headers)
            assert status == 404, (user, server, method)
            assert "no such session" in body
    assert gateway.ask("alice", call(1, "echo", text="mine"), session)[0] == 200
    assert gateway.ask("alice", method="DELETE", session=session)[0] == 200
    assert gateway.ask("alice", call(1, "echo"), session)[0] == 404


@pytest.mark.parametrize("session", ["x", "0" * 32, "gateway.0"])
def test_an_id_that_the_agent_makes_up_opens_nothing(gateway: HttpGateway, session: str) -> None:
    assert gateway.ask("alice", request(0, "initialize", INITIALIZE), session)[0] == 404
    assert gateway.ask("alice", call(1, "echo"), session)[0] == 404


def test_who_may_not_use_a_server_learns_no_more_than_if_it_were_not_there(gateway: HttpGateway) -> None:
    modern, headers = stateless("echo")
    origin = {"Origin": "https://evil.example"}
    cases: list[tuple[object, dict[str, str], str, str]] = [
        (request(0, "initialize", INITIALIZE), {}, "", "POST"),
        (modern, headers, "", "POST"),
        (modern, {**headers, "Mcp-Name": "other"}, "", "POST"),
        (request(0, "initialize", INITIALIZE), origin, "", "POST"),
        (call(1, "echo"), {}, "local.no-such-session", "POST"),
        ([], {}, "", "POST"),
        (None, {}, "", "GET"),
        (None, {}, "local.no-such-session", "DELETE"),
        (None, {}, "", "PUT"),
    ]
    for message, more, session, method in cases:
        seen = []
        for server in ("bobs", "nope"):
            status, found, body = gateway.ask("alice", message, session, server, method, more)
            found.pop("date", None)
            seen.append((status, found, body))
        assert seen[0] == seen[1]
        assert seen[0][0] == 404


def test_requests_from_elsewhere_or_to_another_path_run_nothing(gateway: HttpGateway) -> None:
    before = calls_of(gateway)
    message, headers = stateless("echo")
    for change, status in (({"Origin": "https://evil.example"}, 403), ({"Host": "evil.example"}, 421)):
        assert gateway.ask("alice", message, headers={**headers, **change})[0] == status
    for target in (
        "/mcp/tools?x=1",
        "/mcp/%74ools",
        "/mcp/tools/",
        "/mcp/../mcp/tools",
        "//mcp/tools",
        "/mcp/tools%2e",
    ):
        assert gateway.ask("alice", message, headers=headers, target=target)[0] == 404, target
    for change in ({"Mcp-Name": "read"}, {"Mcp-Method": "tools/list"}, {"MCP-Protocol-Version": "2025-11-25"}):
        status, _, body = gateway.ask("alice", message, headers={**headers, **change})
        assert status == 400, body
    assert gateway.ask("alice", message, headers={**headers, "Authorization": "Bearer hkp_x"})[0] == 401
    assert calls_of(gateway) == before


def test_refused_requests_leave_no_session(gateway: HttpGateway) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    body = json.dumps(request(0, "initialize", INITIALIZE)).encode()
    headers = {**ACCEPT, "Authorization": f"Bearer {gateway.tokens['alice']}", "Origin": "https://evil.example"}
    for _ in range(500):
        connection.request("POST", "/mcp/few", body, headers)
        response = connection.getresponse()
        response.read()
        assert response.status == 403
    connection.request("GET", "/metrics", headers={"Host": f"127.0.0.1:{gateway.port}"})
    assert 'hookproxy_sessions{server="few"} 0' in connection.getresponse().read().decode()
    connection.close()


def test_more_sessions_than_allowed_are_refused_for_now(gateway: HttpGateway) -> None:
    session = gateway.opened("alice", "few")
    status, headers, _ = gateway.ask("bob", request(0, "initialize", INITIALIZE), server="few")
    assert status == 503
    assert headers["retry-after"] == "1"
    gateway.ask("alice", method="DELETE", session=session, server="few")
    for number in range(20):
        assert gateway.ask("carol", request(number, "initialize", INITIALIZE))[0] == 200
    status, headers, _ = gateway.ask("carol", request(0, "initialize", INITIALIZE))
    assert status == 429
    assert headers["retry-after"] == "1"


@pytest.mark.parametrize("server", ["tools", "all"])
def test_a_result_that_is_too_long_fails_alone(gateway: HttpGateway, server: str) -> None:
    session = gateway.opened("bob", server)
    for size, passes in ((10_000_000, True), (65 * 1024 * 1024, False), (5, True)):
        status, _, body = gateway.ask("bob", call(1, "big", size=size), session, server)
        assert status == 200
        assert (("x" * size) in body) is passes
        assert passes or "bytes" in body


def test_a_server_that_cannot_start_is_an_error_for_the_agent(gateway: HttpGateway) -> None:
    status, _, body = gateway.ask("alice", request(0, "initialize", INITIALIZE), server="broken")
    assert status == 200
    assert "cannot reach this server" in json.loads(body)["error"]["message"]


def test_probes_say_that_it_is_ready(gateway: HttpGateway) -> None:
    for path in ("/healthz", "/readyz", "/metrics"):
        assert gateway.ask("alice", method="GET", target=path)[0] == 200
    assert gateway.ask("alice", target="/metrics")[0] == 405


def test_a_revoked_token_is_refused_although_its_session_is_open_and_its_stream_ends(gateway: HttpGateway) -> None:
    gateway.tokens["dave"] = gateway._token(gateway.folder, "dave")
    session = gateway.opened("dave")
    headers = {"Authorization": f"Bearer {gateway.tokens['dave']}", "Mcp-Session-Id": session}
    stream = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    stream.request("GET", "/mcp/tools", headers={**headers, "Accept": "text/event-stream"})
    response = stream.getresponse()
    assert response.status == 200
    command = [HOOKPROXY, "token", "revoke", "dave", "--file", str(gateway.folder / "tokens")]
    subprocess.run(command, check=True, capture_output=True)
    assert "data: {" not in response.read().decode()  # it ends, although no further request comes
    stream.close()
    assert gateway.ask("dave", call(1, "echo"), session)[0] == 401


def test_who_asks_for_a_server_that_runs_as_the_user_reads_how_to_start_it(gateway: HttpGateway) -> None:
    _, _, body = gateway.ask("alice", request(0, "initialize", INITIALIZE), server="mine")
    assert "`hookproxy connect mine -- COMMAND` starts it" in body
    refused = gateway.ask("alice", request(0, "initialize", INITIALIZE), server="bobs_own")
    absent = gateway.ask("alice", request(0, "initialize", INITIALIZE), server="absent")
    assert (refused[0], refused[2]) == (absent[0], absent[2])
    assert "starts it" not in refused[2]


def connected(gateway: HttpGateway, **env: str) -> tuple[str, str]:
    """The error and standard error of `connect --url`, for an agent that begins and ends at once."""
    done = subprocess.run(
        [HOOKPROXY, "connect", "tools", "--url", f"http://127.0.0.1:{gateway.port}"],
        input=json.dumps(request(0, "initialize", INITIALIZE)) + "\n",
        env={"PATH": os.environ["PATH"], "HOME": str(gateway.folder), **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    return json.loads(done.stdout)["error"]["message"], done.stderr


def test_connect_without_a_token_says_where_to_put_one_and_who_makes_it(gateway: HttpGateway) -> None:
    text, errors = connected(gateway)
    assert errors.count("\n") == 1
    for one in (text, errors):
        assert f"http://127.0.0.1:{gateway.port} needs a token" in one
        assert all(word in one for word in ("--token-file", "HOOKPROXY_TOKEN", "hookproxy token new USER"))


def test_connect_with_a_token_that_is_refused_says_why(gateway: HttpGateway) -> None:
    text, errors = connected(gateway, HOOKPROXY_TOKEN="hkp_wrong")
    for one in (text, errors):
        assert "does not accept the token in HOOKPROXY_TOKEN: the token is not known" in one
        assert "hkp_wrong" not in one


def test_a_response_that_has_become_a_stream_ends_when_its_token_is_revoked(gateway: HttpGateway) -> None:
    shared = gateway.folder / "shared"
    fifos = {"say": str(shared / "say"), "listen": str(shared / "listen")}
    for path in fifos.values():
        os.mkfifo(path)
    gateway.tokens["erin"] = gateway._token(gateway.folder, "erin")
    session = gateway.opened("erin")
    headers = {**ACCEPT, "Authorization": f"Bearer {gateway.tokens['erin']}", "Mcp-Session-Id": session}
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    with closing(connection):
        connection.request("POST", "/mcp/tools", json.dumps(call(1, "deaf", **fifos)), headers)
        response = connection.getresponse()
        assert response.getheader("content-type") == "text/event-stream"
        command = [HOOKPROXY, "token", "revoke", "erin", "--file", str(gateway.folder / "tokens")]
        subprocess.run(command, check=True, capture_output=True)
        assert b'"result"' not in response.read()  # it ends, although the call goes on
    waiting = os.open(shared / "listen", os.O_RDWR)  # which needs no reader: the server may have been ended already
    os.write(waiting, b"x")
    os.close(waiting)
    assert gateway.ask("erin", call(2, "echo"), session)[0] == 401


@pytest.mark.parametrize("source", ["file", "environment"])
def test_connect_with_a_url_is_a_server_on_standard_input_and_output(gateway: HttpGateway, source: str) -> None:
    command = [HOOKPROXY, "connect", "tools", "--url", f"http://127.0.0.1:{gateway.port}"]
    env = {"PATH": os.environ["PATH"], "HOME": str(gateway.folder)}
    if source == "file":
        path = gateway.folder / "token"
        path.write_text(gateway.tokens["alice"])
        path.chmod(0o600)
        command += ["--token-file", str(path)]
    else:
        env["HOOKPROXY_TOKEN"] = gateway.tokens["alice"]
    messages = [request(0, "initialize", INITIALIZE), call(1, "echo", a=1), call(2, "forbidden")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    assert process.stdin is not None
    assert process.stdout is not None
    responses = []
    for message in messages:
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        responses.append(json.loads(process.stdout.readline()))
    process.stdin.close()
    assert process.wait(30) == 0
    process.stdout.close()
    assert [one["id"] for one in responses] == [0, 1, 2]
    assert "isError" not in responses[1]["result"] or not responses[1]["result"]["isError"]
    assert gateway.tokens["alice"] not in json.dumps(responses)
