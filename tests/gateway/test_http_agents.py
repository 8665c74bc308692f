"""Calls on connections that agents keep: those that nobody judges take the fast path, where nothing may be different.

Each test runs with a server on pipes and with one at an address.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from hookproxy.authorization.authenticate import Authenticator
from hookproxy.authorization.bearer_tokens import BearerTokens
from hookproxy.authorization.token_file import create_token, revoke_tokens
from hookproxy.config.gateway import load_gateway
from hookproxy.gateway.gateway import Gateway
from hookproxy.gateway.http_agents import HttpAgents
from hookproxy.gateway.http_listeners import HttpAddress
from hookproxy.gateway.log import GatewayLog
from hookproxy.gateway.servers import Servers
from hookproxy.protocol.fast_scan import ReadCall
from hookproxy.transports.http import agent_channel
from hookproxy.transports.http.accepting import serve_sockets
from hookproxy.transports.http.agent_channel import AgentChannel
from hookproxy.transports.http.listener import Listener
from hookproxy.transports.http.listener_limits import ListenerLimits
from hookproxy.transports.http.responder import Responder
from hookproxy.transports.http.stateless_channel import StatelessChannel
from tests.support.http_server import Request, serving

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

INITIALIZE: Final = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
SERVER: Final = """
import json, os, sys, time
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    p = m.get("params", {})
    name, text = p.get("name"), str(p.get("arguments", {}).get("text", ""))
    if name == "die":
        os._exit(3)
    if name == "hold" and text != "now":
        continue
    if m["method"] == "initialize":
        r = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    else:
        r = {"content": [{"type": "text", "text": text}]}
    body = {"jsonrpc": "2.0", "id": 999 if name == "other" else m["id"], "result": r}
    if text == "at the end":
        body = {"result": r, "jsonrpc": "2.0", "id": m["id"]}
    if text == "refused":
        body = {"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32602, "message": "m"}}
    body = json.dumps(body, separators=None if name == "spaced" else (",", ":"))
    print(body.replace(": ", ":\\r ") if name == "spaced" else body, flush=True)
"""


async def answer(request: Request) -> None:  # noqa: C901  # one case for each tool and text
    """The same server at an address."""
    message = request.message
    params = message.get("params", {})
    name = params.get("name")
    given = params.get("arguments", {}).get("text")
    text = json.dumps({"content": [{"type": "text", "text": given}]})
    if request.method != "POST":
        await request.status("405 Method Not Allowed")
    elif message.get("method") == "initialize":
        result = '{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s"}}'
        await request.result(result, "Mcp-Session-Id: of-the-server\r\n")
    elif "id" not in message:
        await request.status("202 Accepted")
    elif name == "die":
        request.drop()
    elif name == "hold" and params["arguments"]["text"] != "now":
        await request.closed.wait()
    elif name == "other":
        await request.json(b'{"jsonrpc":"2.0","id":999,"result":{}}')
    elif name == "spaced":
        await request.result(text.replace(", ", ",\r\n "))
    elif given == "at the end":
        await request.json(f'{{"result":{text},"jsonrpc":"2.0","id":{request.id}}}'.encode())
    elif given == "refused":
        error = '"error":{"code":-32602,"message":"m"}'
        await request.json(f'{{"jsonrpc":"2.0","id":{request.id},{error}}}'.encode(), "400 Bad Request")
    else:
        await request.result(text)


STATELESS: Final = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


class Kept:
    """One connection of an agent. With no session, its calls are those of 2026-07-28."""

    def __init__(self, rig: Rig, session: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.rig, self.session, self._reader, self._writer = rig, session, reader, writer
        self.server = rig.server
        self.headers = ""

    def send(self, message: object, token: str = "") -> None:
        """POST a message, as agents write it."""
        text = (
            message if isinstance(message, RawText) else json.dumps(message, separators=(",", ":"), ensure_ascii=False)
        )
        body = re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text).encode()
        head = f"POST /mcp/{self.server} HTTP/1.1\r\nHost: 127.0.0.1:{self.rig.port}\r\n"
        head += f"Authorization: Bearer {token or self.rig.token}\r\nContent-Type: application/json\r\n"
        head += "Accept: application/json, text/event-stream\r\n"
        head += (f"Mcp-Session-Id: {self.session}\r\n" if self.session else "") + self.headers
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    async def head(self) -> str:
        return (await self._reader.readuntil(b"\r\n\r\n")).decode()

    async def response(self) -> tuple[int, dict[str, str], Any]:
        """Status, headers and message of the next response."""
        with anyio.fail_after(30):
            head = await self.head()
            lines = head.split("\r\n")
            headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
            body = b""
            if "content-length" in headers:
                body = await self._reader.readexactly(int(headers["content-length"]))
            while "transfer-encoding" in headers:
                size = int(await self._reader.readline(), 16)
                body += (await self._reader.readexactly(size + 2))[:-2]
                if not size:
                    break
            if headers.get("content-type") == "text/event-stream":
                body = next((line[6:] for line in body.split(b"\n") if line.startswith(b"data: {")), b"")
            return int(lines[0].split()[1]), headers, json.loads(body) if body else None

    async def ask(self, message: object, token: str = "") -> tuple[int, dict[str, str], Any]:
        """Send a message, and read its response. A connection that ends with it is followed by another one."""
        self.send(message, token)
        status, headers, found = await self.response()
        if headers.get("connection") == "close":
            self._writer.close()
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.rig.port)
        return status, headers, found

    async def says(self, number: int, text: str, name: str = "echo") -> bool:
        """Whether a call gets its own text as its result."""
        _, _, found = await self.ask(call(number, name, text))
        return bool(found["id"] == number and found["result"]["content"][0]["text"] == text)

    async def says_alone(self, number: int, text: str) -> bool:
        """As `says`, for a call that stands alone."""
        status, headers, found = await self.ask(alone(number, "echo", text))
        assert (status, headers["content-type"], "mcp-session-id" in headers) == (200, "application/json", False)
        return bool(found["id"] == number and found["result"]["content"][0]["text"] == text)

    def leave(self) -> None:
        self._writer.transport.abort()


def call(number: int, name: str = "echo", text: str = "", meta: object = None) -> dict[str, object]:
    params = {"name": name, "arguments": {"text": text}} | ({"_meta": meta} if meta else {})
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def alone(number: int, name: str = "echo", text: str = "", **meta: object) -> dict[str, object]:
    """A call of 2026-07-28."""
    return call(number, name, text, STATELESS | meta)


class Rig:
    """A gateway in this process, with one server."""

    def __init__(self, folder: Path, server: str, short: Callable[[], int]) -> None:
        self.folder, self.server = folder, server
        self.port = 0
        self.token = ""
        self.reports: list[str] = []
        self._short = short
        self._gateway: Gateway
        self._http: HttpAgents
        self._agents: list[Kept] = []
        self.channels: set[StatelessChannel] = set()

    @property
    def in_flight(self) -> list[object]:
        """The calls that stand alone and are in flight."""
        multiplexers = [channel._multiplexer for channel in self.channels]
        return [one for mux in multiplexers for one in (*mux._passed, *mux._shared.in_flight.requests)]

    def is_unused(self) -> bool:
        """Whether nothing is kept for anybody."""
        agents = self._http
        return agents.sessions.are_none

    def end_unused(self, after: float) -> None:
        """Do what the gateway does when so many seconds have passed."""
        self._http.sessions._unused.look(anyio.current_time() + after)

    @property
    def short(self) -> int:
        """How many calls have taken the fast path."""
        return self._short()

    def write(self, table: str, more: str = "") -> None:
        (self.folder / "gateway.toml").write_text(
            f'[gateway]\ntokens = "tokens"\n{more}[servers.{self.server}]\n{table}'
        )

    def new_token(self, *groups: str) -> str:
        """Another token of the same user."""
        return create_token(str(self.folder / "tokens"), "alice", groups, None, "", time.time())[0]

    @asynccontextmanager
    async def serving(self, table: str, more: str = "") -> AsyncIterator[None]:
        self.table = table
        self.write(table, more)
        self.folder.chmod(0o700)
        self.token = self.new_token()
        looks = count(0, 0.01)
        tokens = BearerTokens(str(self.folder / "tokens"), self.reports.append, clock=lambda: next(looks))
        listening = socket.create_server(("127.0.0.1", 0))
        listening.setblocking(False)
        self.port = listening.getsockname()[1]
        log = GatewayLog(as_json=False)
        async with anyio.create_task_group() as tasks:
            self._gateway = Gateway(load_gateway("gateway.toml", {}, str(self.folder)), Servers(tasks, log), log)
            address = HttpAddress("127.0.0.1", self.port, tls=False)
            self._http = agents = HttpAgents(
                self._gateway, Authenticator(tokens, None), [(address, listening)], tasks, log
            )
            listener = Listener(agents.handle, ListenerLimits(), lambda _peer, _status, _why: None)
            listener.on_stream = agents.senders.watch
            accepting = await serve_sockets(listener, listening, None)
            try:
                yield
            finally:
                for agent in self._agents:
                    agent.leave()
                await accepting.stop()
                listener.close()
                tasks.cancel_scope.cancel()

    def change(self, more: str) -> None:
        """Put another policy into force."""
        self.write(self.table, more)
        self._gateway.change_policy(load_gateway("gateway.toml", {}, str(self.folder)))

    async def connect(self, session: str = "") -> Kept:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        agent = Kept(self, session, reader, writer)
        self._agents.append(agent)
        return agent

    async def open(self) -> Kept:
        """A connection in a new session, on which a call was judged once: all further ones are known."""
        first = await self.connect()
        _, headers, _ = await first.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE})
        agent = await self.connect(headers["mcp-session-id"])
        assert (await agent.ask({"jsonrpc": "2.0", "method": "notifications/initialized"}))[0] == 202
        assert await agent.says(1, "first")
        return agent

    async def open_alone(self, tool: str = "echo") -> Kept:
        """A connection whose calls of one tool stand alone, and take the fast path."""
        agent = await self.connect()
        agent.headers = f"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
        if tool == "echo":
            assert await agent.says_alone(1, "first")
        return agent

    async def hold_alone(self, agent: Kept, number: int) -> Kept:
        """Another connection, on which a call that stands alone and is never answered took the fast path."""
        held = await self.open_alone("hold")
        assert (await held.ask(alone(number, "hold", "now")))[0] == 200
        before = self.short
        held.send(alone(number, "hold"))
        assert await agent.says_alone(number, "it has arrived")
        assert self.short == before + 2
        return held

    async def hold(self, agent: Kept, number: int) -> Kept:
        """Another connection in the session of `agent`, on which a call that is never answered took the fast path."""
        held = await self.connect(agent.session)
        assert (await held.ask({"jsonrpc": "2.0", "method": "notifications/initialized"}))[0] == 202
        held.send(call(900 + number, "hold"))
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 900 + number}}
        assert await agent.says(800 + number, "it has arrived")
        assert (await agent.ask(cancelled))[0] == 202
        await held.response()
        before = self.short
        held.send(call(number, "hold"))
        assert await agent.says(700 + number, "it has arrived")
        assert self.short == before + 2
        return held


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["pipe", "remote"])
async def rig(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    taken = [0]
    channels: set[StatelessChannel] = set()
    for kind in (AgentChannel, StatelessChannel):

        def counted(
            channel: Any,  # noqa: ANN401  # of either kind
            one: ReadCall,
            responder: Responder,
            post_call: Callable[[Any, ReadCall, Responder], bool] = kind.post_call,
        ) -> bool:
            if isinstance(channel, StatelessChannel):
                channels.add(channel)
            passed = post_call(channel, one, responder)
            taken[0] += passed
            return passed

        monkeypatch.setattr(kind, "post_call", counted)
    async with AsyncExitStack() as stack:
        (tmp_path / "server.py").write_text(SERVER)
        table = f"command = {json.dumps([sys.executable, '-S', '-E', str(tmp_path / 'server.py')])}\n"
        if request.param == "remote":
            server = await stack.enter_async_context(serving(answer))
            table = f'url = "http://127.0.0.1:{server.port}/mcp"\nallow_http = true\n'
        rig = Rig(tmp_path, request.param, lambda: taken[0])
        rig.channels = channels
        await stack.enter_async_context(rig.serving(table))
        yield rig


async def test_a_text_that_was_cut_within_a_character_reaches_the_server_and_comes_back(rig: Rig) -> None:
    cut = json.loads(r'"\ud83d \udcff"')
    agent, lone = await rig.open(), await rig.open_alone()
    for message in (call(2, "echo", cut), {**call(2, "echo", cut), "id": "two"}):
        status, _, found = await agent.ask(message)
        assert (status, found["id"], found["result"]["content"][0]["text"]) == (200, message["id"], cut)
    assert await lone.says_alone(2, cut)
    assert await lone.says_alone(3, "x")
    assert not rig.in_flight


TRAINEES_MAY_NOT: Final = '[[permissions.for]]\nusers = ["@trainees"]\ndeny = ["echo"]\n'


async def test_a_call_that_stands_alone_is_judged_by_the_groups_of_its_own_token(rig: Rig) -> None:
    rig.change(TRAINEES_MAY_NOT)
    agent, other = await rig.open_alone(), await rig.open_alone()
    trainee = rig.new_token("trainees")
    for number in (2, 3):
        assert (await other.ask(alone(number, "echo", "x"), trainee))[2]["result"]["isError"]
        assert await agent.says_alone(number, "x")
        assert await other.says_alone(number, "x")


async def test_a_session_does_not_exist_for_a_token_with_other_groups_of_the_same_user(rig: Rig) -> None:
    rig.change(TRAINEES_MAY_NOT)
    agent = await rig.open()
    trainee = rig.new_token("trainees")
    for number in (2, 3):
        assert (await agent.ask(call(number, "echo", "x"), trainee))[0] == 404
        assert await agent.says(number, "x")


async def test_a_stream_ends_and_its_session_is_no_more_there_when_the_groups_of_its_token_are_changed(
    rig: Rig,
) -> None:
    token = rig.new_token("developers")
    opening = await rig.connect()
    request = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
    _, headers, _ = await opening.ask(request, token)
    agent = await rig.connect(headers["mcp-session-id"])
    assert (await agent.ask({"jsonrpc": "2.0", "method": "notifications/initialized"}, token))[0] == 202
    for number in (2, 3):
        assert (await agent.ask(call(number), token))[0] == 200
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
    head = f"GET /mcp/{rig.server} HTTP/1.1\r\nHost: 127.0.0.1:{rig.port}\r\nAuthorization: Bearer {token}\r\n"
    writer.write(f"{head}Accept: text/event-stream\r\nMcp-Session-Id: {agent.session}\r\n\r\n".encode())
    with anyio.fail_after(30):
        assert b" 200 " in await reader.readline()
        rig._http.senders.open_streams.look()
        assert (await agent.ask(call(4), token))[0] == 200
        assert len(rig._http.senders.open_streams) == 1
        tokens = rig.folder / "tokens"
        tokens.write_text(tokens.read_text().replace(" developers ", " trainees "))
        assert (await agent.ask(call(5), token))[0] == 404
        rig._http.senders.open_streams.look()
        await reader.readuntil(b"\r\n0\r\n\r\n")
    writer.close()
    await writer.wait_closed()


async def test_a_session_goes_on_with_a_token_whose_groups_come_in_another_order(rig: Rig) -> None:
    first, second = rig.new_token("a", "b"), rig.new_token("b", "a")
    opening = await rig.connect()
    request = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
    _, headers, _ = await opening.ask(request, first)
    agent = await rig.connect(headers["mcp-session-id"])
    assert (await agent.ask({"jsonrpc": "2.0", "method": "notifications/initialized"}, second))[0] == 202


async def test_each_call_gets_its_own_response(rig: Rig) -> None:
    agent, other = await rig.open(), await rig.open()
    before = rig.short
    for number in (2, 3, 77, 1000, 999_999_999_999_999):
        assert await agent.says(number, f"text {number}")
        assert await other.says(number, f"other {number}" + "x" * (number % 5000))
    _, headers, found = await agent.ask(call(5, text="x", meta={"progressToken": 5}))
    assert (headers["content-type"], found["id"]) == ("application/json", 5)
    assert headers["mcp-session-id"] == agent.session
    assert rig.short == before + 11
    for message in (call(6, text="\xe9"), {**call(7), "id": "seven"}):
        assert (await agent.ask(message))[2]["id"] == message["id"]
    assert rig.short == before + 11


async def test_an_id_in_flight_is_refused_and_a_cancelled_call_gets_no_response(rig: Rig) -> None:
    agent, second = await rig.open(), await rig.open()
    held = await rig.hold(agent, 5)
    assert "in flight" in (await agent.ask(call(5)))[2]["error"]["message"]
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
    assert (await agent.ask(cancelled))[0] == 202
    status, headers, _ = await held.response()
    assert (status, headers["content-type"]) == (200, "text/event-stream")
    assert await agent.says(7, "seven")
    assert await second.says(5, "five")


async def test_a_rule_that_comes_into_force_holds_for_the_next_call_on_the_same_connection(rig: Rig) -> None:
    agent = await rig.open()
    assert await agent.says(2, "two")
    before = rig.short
    rig.change('[permissions]\ndeny = ["echo"]\n')
    assert (await agent.ask(call(3)))[2]["result"]["isError"]
    rig.change("")
    assert await agent.says(4, "four")
    assert rig.short == before
    assert await agent.says(5, "five")
    assert rig.short == before + 1


async def test_a_token_that_is_revoked_is_refused_and_another_user_has_no_part_in_the_session(rig: Rig) -> None:
    agent = await rig.open()
    bob = create_token(str(rig.folder / "tokens"), "bob", (), None, "", time.time())[0]
    assert (await agent.ask(call(2), bob))[0] == 404
    assert (await agent.ask(call(2), bob))[0] == 404
    assert await agent.says(3, "three")
    again = create_token(str(rig.folder / "tokens"), "alice", (), None, "", time.time())[0]
    for _ in range(2):
        assert (await agent.ask(call(4), again))[0] == 200
    revoke_tokens(str(rig.folder / "tokens"), "alice")
    assert (await agent.ask(call(5), again))[0] == 401
    assert (await agent.ask(call(5)))[0] == 401


async def test_at_another_server_the_session_of_a_user_does_not_exist(rig: Rig) -> None:
    """There other rules may hold, and the session would bring those of its own server."""
    rig.table += f"[servers.other]\n{rig.table}"
    rig.change("")
    agent = await rig.open()
    before = rig.short
    other = await rig.connect(agent.session)
    other.server = "other"
    for number in (2, 3, 4):
        assert (await other.ask(call(number)))[0] == 404
    assert rig.short == before
    for method in ("GET", "DELETE"):
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        head = f"{method} /mcp/other HTTP/1.1\r\nHost: 127.0.0.1:{rig.port}\r\nAuthorization: Bearer {rig.token}\r\n"
        writer.write(f"{head}Accept: text/event-stream\r\nMcp-Session-Id: {agent.session}\r\n\r\n".encode())
        with anyio.fail_after(30):
            assert b" 404 " in await reader.readuntil(b"\r\n\r\n")
        writer.close()
    assert await agent.says(5, "five")


async def test_of_a_request_that_is_refused_nothing_is_kept(rig: Rig) -> None:
    bob = create_token(str(rig.folder / "tokens"), "bob", (), None, "", time.time())[0]
    rig.table += 'allow = ["alice"]\n'
    rig.change("")
    first = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
    for session, headers, message, token, status in (
        ("", "", first, "no token", 401),
        ("", "", first, bob, 404),
        ("", "", [first], "", 400),
        ("", "", first | {"jsonrpc": "1.0"}, "", 400),
        ("", "MCP-Protocol-Version: 2026-07-28\r\n", first, "", 400),
        ("", "Origin: https://elsewhere.example\r\n", first, "", 403),
        ("", "", call(1), "", 400),
        ("unknown", "", call(1), "", 404),
        ("", "", alone(1), "", 400),
        ("", "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: x\r\n", alone(1), "", 400),
    ):
        agent = await rig.connect(session)
        agent.headers = headers
        found, _, body = await agent.ask(message, token)
        assert found == status, body
        assert rig.is_unused(), message


async def test_of_sessions_that_are_not_used_any_more_nothing_is_left(rig: Rig) -> None:
    """Agents that are killed send no DELETE: their sessions and the processes of these must end all the same."""
    agent = await rig.open()
    agent.leave()
    alone_too = await rig.open_alone()
    alone_too.leave()
    rig.end_unused(after=899)
    assert not rig.is_unused()
    rig.end_unused(after=901)
    with anyio.fail_after(30):
        while not rig.is_unused():
            await anyio.lowlevel.checkpoint()
    again = await rig.connect(agent.session)
    assert (await again.ask(call(2)))[0] == 404


async def test_after_its_end_a_session_does_not_exist(rig: Rig) -> None:
    agent, other = await rig.open(), await rig.open()
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
    head = f"DELETE /mcp/{rig.server} HTTP/1.1\r\nHost: 127.0.0.1:{rig.port}\r\nAuthorization: Bearer {rig.token}\r\n"
    writer.write(f"{head}Mcp-Session-Id: {agent.session}\r\n\r\n".encode())
    assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
    writer.close()
    assert (await agent.ask(call(2)))[0] == 404
    assert await other.says(2, "two")


async def test_a_server_that_ends_in_a_call_is_an_error_that_says_what_is_known(rig: Rig) -> None:
    agent = await rig.open()
    _, _, found = await agent.ask(call(2, "die"))
    text = found["error"]["message"] if "error" in found else found["result"]["content"][0]["text"]
    assert found["id"] == 2
    assert "may have" in text, text


async def test_an_agent_that_leaves_takes_nothing_with_it(rig: Rig) -> None:
    agent = await rig.open()
    (await rig.hold(agent, 2)).leave()
    for number in range(4, 8):
        assert await agent.says(number, f"text {number}")


async def test_a_call_that_takes_long_becomes_a_stream(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = await rig.open()
    monkeypatch.setattr(agent_channel, "_STREAM_AFTER_SECONDS", 0.0)
    held = await rig.hold(agent, 2)
    assert "text/event-stream" in await held.head()


async def test_a_response_that_is_written_otherwise_arrives_whole_and_on_one_line(rig: Rig) -> None:
    agent = await rig.open()
    for number in (2, 3):
        assert await agent.says(number, "text", "spaced")


async def test_a_response_with_another_id_goes_to_nobody(rig: Rig) -> None:
    agent = await rig.open()
    second = await rig.connect(agent.session)
    second.send(call(2, "other"))
    assert await agent.says(3, "three")
    if rig.server == "remote":
        assert "another request" in str((await second.response())[2])


async def test_more_requests_than_allowed_are_refused(rig: Rig) -> None:
    agent = await rig.open()
    await rig.hold(agent, 2)
    text = (rig.folder / "gateway.toml").read_text().replace("[gateway]\n", "[gateway]\nmax_requests = 1\n")
    (rig.folder / "gateway.toml").write_text(text)
    rig._gateway.change_policy(load_gateway("gateway.toml", {}, str(rig.folder)))
    assert (await agent.ask(call(3)))[0] == 429
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
    assert (await agent.ask(cancelled))[0] == 202
    assert await agent.says(4, "four")


# --- calls that stand alone ---


async def test_each_call_that_stands_alone_gets_its_own_response(rig: Rig) -> None:
    agent, other = await rig.open_alone(), await rig.open_alone()
    before = rig.short
    for number in (2, 2, 77, 1000, 999_999_999_999_999):
        assert await agent.says_alone(number, f"text {number}")
        assert await other.says_alone(number, f"other {number}" + "x" * (number % 5000))
    for text in ("at the end", '"taskId"', '"elicitationId"', '{"id":5}', ',"id":5}'):
        assert await agent.says_alone(3, text)
    assert rig.short == before + 15
    for message in (
        alone(6, text="\xe9"),
        {**alone(7), "id": "seven"},
        alone(8, progressToken=5),
    ):
        status, _, found = await agent.ask(message)
        assert (status, found["id"]) == (200, message["id"])
    assert rig.short == before + 15


async def test_a_call_whose_id_stands_elsewhere_arrives_as_it_is(rig: Rig) -> None:
    agent = await rig.open_alone()
    before = rig.short
    for keys in (("method", "params", "jsonrpc", "id"), ("id", "jsonrpc", "method", "params")):
        message = alone(5, text="moved")
        _, _, found = await agent.ask({key: message[key] for key in keys})
        assert (found["id"], found["result"]["content"][0]["text"]) == (5, "moved")
    assert rig.short == before + 1


async def test_of_a_call_that_stands_alone_head_and_body_must_agree(rig: Rig) -> None:
    agent = await rig.open_alone()
    for message in (alone(2, "other"), call(3), alone(4) | {"method": "tools/list"}):
        for _ in range(2):
            status, _, found = await agent.ask(message)
            assert (status, found["id"]) == (400, message["id"]), found
    assert await agent.says_alone(5, "five")


async def test_an_error_of_the_server_has_the_status_of_its_code(rig: Rig) -> None:
    agent = await rig.open_alone()
    status, _, found = await agent.ask(alone(2, text="refused"))
    assert (status, found["id"], found["error"]["code"]) == (400, 2, -32602)


async def test_a_rule_holds_for_the_next_call_that_stands_alone(rig: Rig) -> None:
    agent = await rig.open_alone()
    assert await agent.says_alone(2, "two")
    before = rig.short
    rig.change('[permissions]\ndeny = ["echo"]\n')
    for number in (3, 4):
        assert (await agent.ask(alone(number)))[2]["result"]["isError"]
    assert not rig.in_flight, "nothing is left of calls that went the usual way after all"
    rig.change("")
    assert await agent.says_alone(5, "five")
    assert rig.short == before
    assert await agent.says_alone(6, "six")
    assert rig.short == before + 1


async def test_a_call_that_stands_alone_needs_a_token_and_a_server_that_its_user_may_use(rig: Rig) -> None:
    agent = await rig.open_alone()
    bob = create_token(str(rig.folder / "tokens"), "bob", ("team",), None, "", time.time())[0]
    for number in (2, 3, 4):
        assert (await agent.ask(alone(number), bob))[2]["id"] == number
    rig.table += 'allow = ["alice", "@team"]\n'
    rig.change("")
    for number in (2, 3, 4):
        assert (await agent.ask(alone(number), bob))[2]["id"] == number
    before = rig.short
    revoke_tokens(str(rig.folder / "tokens"), "bob")
    assert (await agent.ask(alone(5), bob))[0] == 401
    rig.table = rig.table.replace('"@team"', '"@others"')
    rig.change("")
    carol = create_token(str(rig.folder / "tokens"), "carol", ("team",), None, "", time.time())[0]
    for number in (6, 7):
        assert (await agent.ask(alone(number), carol))[0] == 404
    assert rig.short == before
    rig.table = rig.table.replace('"@others"', '"@team"')
    rig.change("")
    for number in (6, 7):
        assert (await agent.ask(alone(number), carol))[2]["id"] == number
    tokens = (rig.folder / "tokens").read_text()
    (rig.folder / "tokens").write_text(tokens.replace(" team ", " nobody "))
    assert (await agent.ask(alone(6), carol))[0] == 404, "carol has left the group"
    assert await agent.says_alone(8, "eight")
    revoke_tokens(str(rig.folder / "tokens"), "alice")
    assert (await agent.ask(alone(9)))[0] == 401


async def test_a_server_that_ends_in_a_call_that_stands_alone_is_an_error_that_says_what_is_known(rig: Rig) -> None:
    agent, dying = await rig.open_alone(), await rig.open_alone("die")
    _, _, found = await dying.ask(alone(2, "die"))
    text = found["error"]["message"] if "error" in found else found["result"]["content"][0]["text"]
    assert found["id"] == 2
    assert "may have" in text, text
    with anyio.fail_after(30):
        while "result" not in (found := (await agent.ask(alone(2, text="again")))[2]):
            assert found["id"] == 2, "each of them gets a response while the server is started again"
    assert found["result"]["content"][0]["text"] == "again"


async def test_a_call_that_stands_alone_is_cancelled_when_its_agent_leaves(rig: Rig) -> None:
    agent = await rig.open_alone()
    one, two = await rig.hold_alone(agent, 2), await rig.hold_alone(agent, 2)
    one.leave()
    for number in range(4, 8):
        assert await agent.says_alone(number, f"text {number}")
    two.leave()
    assert await agent.says_alone(2, "two")


async def test_responses_that_are_written_otherwise_or_have_another_id(rig: Rig) -> None:
    agent, spaced, other = [await rig.open_alone(one) for one in ("echo", "spaced", "other")]
    for number in (2, 3):
        _, _, found = await spaced.ask(alone(number, "spaced", "text"))
        assert (found["id"], found["result"]["content"][0]["text"]) == (number, "text")
        other.send(alone(number, "other"))
        assert await agent.says_alone(number, "three")
        if rig.server == "remote":
            assert "another request" in str((await other.response())[2])


async def test_more_calls_that_stand_alone_than_allowed_are_refused(rig: Rig) -> None:
    agent = await rig.open_alone()
    held = await rig.hold_alone(agent, 2)
    text = (rig.folder / "gateway.toml").read_text().replace("[gateway]\n", "[gateway]\nmax_requests = 1\n")
    (rig.folder / "gateway.toml").write_text(text)
    rig._gateway.change_policy(load_gateway("gateway.toml", {}, str(rig.folder)))
    for number in (3, 4):
        assert (await agent.ask(alone(number)))[0] == 429
    held.leave()
    with anyio.fail_after(30):
        while (await agent.ask(alone(5)))[0] == 429:
            pass
    assert await agent.says_alone(6, "six")


async def test_every_refused_request_of_a_known_user_has_an_audit_line(rig: Rig) -> None:
    rig.table += 'audit = { file = "audit.jsonl", arguments = "full" }\npermissions = { deny = ["no"] }\n'
    rig.change("")
    agent = await rig.open()
    session = agent.session
    refused = 0

    async def sends(body: str, status: int, headers: str = "", session: str = session) -> None:
        nonlocal refused
        other = await rig.connect(session)
        other.headers = headers
        other.send(json.loads(body) if body == "{}" else RawText(body))
        found, _, message = await other.response()
        assert (found, bool(message.get("error"))) == (status, True), (body, message)
        refused += 1

    ping = '{"jsonrpc":"2.0","id":5,"method":"ping"}'
    twice = '{"jsonrpc":"2.0","id":5,"id":6,"method":"ping"}'
    await sends(twice, 400)
    await sends(twice, 400, session="")
    await sends(f"[{ping}]", 400)
    await sends("no json", 400)
    await sends('{"jsonrpc":"2.0","id":5,"method":"pi\\u0000ng"}', 400)
    await sends('{"jsonrpc":"2.0","id":5,"Method":"ping","method":"ping"}', 400)
    await sends(ping, 404, session="of-nobody")
    await sends(ping, 400, session="")
    await sends(ping, 400, "MCP-Protocol-Version: 1999-01-01\r\n")
    await sends('{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a\\u0000"}}', 200)
    await sends('{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"no","arguments":[1]}}', 200)
    held = await rig.hold(agent, 7)
    await sends('{"jsonrpc":"2.0","id":7,"method":"ping"}', 200)
    held.leave()
    lines = [json.loads(line) for line in (rig.folder / "audit.jsonl").read_bytes().splitlines()]
    found = [one for one in lines if one["result"] == "refused"]
    assert [one["cause"] for one in found] == ["message"] * refused
    assert {one["user"] for one in found} == {"alice"}
    assert {one["server"] for one in found} == {rig.server}
    assert found[0]["message"] == twice


class RawText(str):
    """A body that is sent as it is."""

    __slots__ = ()
