"""The channel to a remote server, against a server that does whatever a test wants; over real sockets."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.model.credentials import Credentials, NoCredentials, NotReady
from hookproxy.network import connection as connection_module
from hookproxy.network.address import Address
from hookproxy.transports.http import silence as silence_module
from hookproxy.transports.http.channel import HttpChannel
from hookproxy.transports.http.pool import Remote
from tests.support.http_server import Request, Respond, Server, serving

pytestmark = pytest.mark.anyio

TIMEOUT = 30.0  # seconds until a test gives up on what should come at once: other tests run beside it


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Agent:
    """The agent's side of the channel."""

    def __init__(self, channel: HttpChannel, server: Server, reports: list[str]) -> None:
        self.channel, self.server, self.reports = channel, server, reports
        self.lines: list[bytes] = []
        self.ended = False
        self._changed = asyncio.Event()
        channel.start(self._came, self._end, self._full, lambda: None)
        self.full: list[bool] = []

    def _came(self, lines: bytes) -> None:
        assert lines.endswith(b"\n")
        self.lines += lines.splitlines(keepends=True)
        self._changed.set()

    def _end(self) -> None:
        self.ended = True
        self._changed.set()

    def _full(self, full: bool) -> None:
        self.full.append(full)
        self._changed.set()

    def send(self, *messages: dict[str, Any] | bytes) -> None:
        for one in messages:
            line = one if isinstance(one, bytes) else json.dumps(one, separators=(",", ":")).encode()
            self.channel.write(line + b"\n")

    async def until(self, condition: Callable[[], object]) -> None:
        with anyio.fail_after(TIMEOUT):
            while not condition():
                self._changed.clear()
                with anyio.move_on_after(0.02):
                    await self._changed.wait()

    async def response(self, request_id: object) -> dict[str, Any]:
        def found() -> list[dict[str, Any]]:
            messages = [json.loads(line) for line in self.lines]
            return [one for one in messages if "method" not in one and one.get("id") == request_id]

        await self.until(found)
        return found()[-1]

    async def error(self, request_id: object) -> str:
        message: str = (await self.response(request_id))["error"]["message"]
        return message

    async def opened(self) -> None:
        """The handshake of 2025-11-25."""
        self.send(INITIALIZE)
        await self.response(0)
        self.send(INITIALIZED)
        await self.until(lambda: self.server.of("notifications/initialized"))


@asynccontextmanager
async def running(
    respond: Respond, credentials: Credentials | None = None, port: int = 0, **options: object
) -> AsyncIterator[Agent]:
    async with serving(respond) as server:
        address = Address("http", "127.0.0.1", port or server.port, b"/mcp?a=1")
        reports: list[str] = []
        channel = HttpChannel(
            replace(Remote(address, credentials or NoCredentials("log in")), **options), reports.append
        )
        try:
            yield Agent(channel, server, reports)
        finally:
            channel.close()
            await anyio.wait_all_tasks_blocked()  # asyncio closes sockets in later turns of its loop


INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
INIT_RESULT = '{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}'


def call(request_id: int, name: str = "t", **arguments: object) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


def stateless(request_id: int, method: str = "tools/call", **params: object) -> dict[str, Any]:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**params, "_meta": meta}}


def handshake(respond: Respond) -> Respond:
    """A server with sessions that leaves all but the handshake to `respond`."""

    async def all_of_it(request: Request) -> None:
        match request.message.get("method"), request.method:
            case "initialize", _:
                await request.result(INIT_RESULT, "Mcp-Session-Id: s-1\r\n")
            case "notifications/initialized", _:
                await request.status("202 Accepted")
            case None, "GET" | "DELETE":
                await request.status("405 Method Not Allowed")
            case _:
                await respond(request)

    return all_of_it


async def answer(request: Request) -> None:
    await request.result()


# --- what is sent, and how it comes back ---


async def test_the_text_of_a_message_is_posted_and_delivered_byte_for_byte() -> None:
    async def respond(request: Request) -> None:
        await request.json(b'{"jsonrpc" : "2.0", "id":7 ,"result":{"\\u00e9":1e2,"a":"\xc3\xa9"}}')

    line = b' {"jsonrpc":"2.0","id":7,"method":"ping", "params" :{"x":1.00,"y":"\xc3\xa9\\/"}}'
    async with running(respond) as agent:
        agent.send(line)
        await agent.response(7)
        assert agent.server.requests[0].body == line
        assert agent.server.requests[0].target == "/mcp?a=1"
        assert agent.lines == [b'{"jsonrpc" : "2.0", "id":7 ,"result":{"\\u00e9":1e2,"a":"\xc3\xa9"}}\n']


async def test_a_response_on_several_lines_becomes_one_line() -> None:
    async def respond(request: Request) -> None:
        await request.json(b'{\r\n  "jsonrpc": "2.0",\n  "id": 7,\n  "result": {}\n}\n')

    async with running(respond) as agent:
        agent.send(call(7))
        await agent.response(7)
        assert len(agent.lines) == 1


async def test_the_session_and_the_version_are_named_after_the_handshake_and_deleted_at_the_end() -> None:
    async with running(handshake(answer)) as agent:
        await agent.opened()
        agent.send(call(7))
        await agent.response(7)
        agent.channel.end_output()
        await agent.until(lambda: agent.ended)
        first, *rest = agent.server.requests
        assert "mcp-session-id" not in first.headers
        assert "mcp-protocol-version" not in first.headers
        assert all(one.headers["mcp-session-id"] == "s-1" for one in rest)
        assert all(one.headers["mcp-protocol-version"] == "2025-11-25" for one in rest)
        assert [one.method for one in rest][-1] == "DELETE"
        assert {one.method for one in rest} == {"POST", "GET", "DELETE"}


async def test_requests_before_the_session_is_open_wait_for_it() -> None:
    async with running(handshake(answer)) as agent:
        agent.send(INITIALIZE, call(7), INITIALIZED, call(8))
        await agent.response(8)
        await agent.response(7)
        posts = [one for one in agent.server.requests if one.method == "POST"]
        assert all(one.headers["mcp-session-id"] == "s-1" for one in posts[1:])
        order = [one.message.get("id", one.message["method"]) for one in posts]
        assert order[0] == 0
        assert order.index(8) > order.index("notifications/initialized")


async def test_the_stream_of_what_the_server_sends_by_itself_is_asked_for_before_the_first_request() -> None:
    """Else a message that the server sends because of this request may have no way to the agent."""
    async with running(handshake(answer)) as agent:
        agent.send(INITIALIZE, INITIALIZED, call(7))
        await agent.response(7)
        order = [one.message.get("id", one.method) for one in agent.server.requests]
        assert order == [0, "POST", "GET", 7]


async def test_a_slow_request_holds_up_nothing_else() -> None:
    release = asyncio.Event()

    async def respond(request: Request) -> None:
        if request.id == 1:
            await release.wait()
        await request.result()

    async with running(respond) as agent:
        agent.send(call(1), call(2), call(3))
        await agent.response(2)
        await agent.response(3)
        assert len(agent.lines) == 2
        release.set()
        await agent.response(1)


async def test_notifications_arrive_in_their_order() -> None:
    async def respond(request: Request) -> None:
        await asyncio.sleep(0)
        await request.status("202 Accepted")

    async with running(respond) as agent:
        agent.send(*({"jsonrpc": "2.0", "method": "n", "params": {"i": i}} for i in range(50)))
        await agent.until(lambda: len(agent.server.requests) == 50)
        assert [one.message["params"]["i"] for one in agent.server.requests] == [*range(50)]
        assert agent.server.connections == 1


async def test_connections_are_used_again() -> None:
    async with running(answer) as agent:
        for i in range(20):
            agent.send(call(i))
            await agent.response(i)
        assert agent.server.connections == 1


async def test_beyond_the_most_connections_requests_wait() -> None:
    async with running(answer, max_connections=2) as agent:
        agent.send(*(call(i) for i in range(100)))
        await agent.response(99)
        await agent.until(lambda: len(agent.lines) == 100)
        assert agent.server.connections <= 2


async def test_an_event_stream_brings_other_messages_before_the_response() -> None:
    async def respond(request: Request) -> None:
        await request.stream(b": hello\r\n\r\n", b'event: message\r\ndata: {"jsonrpc":"2.0","method":"x"}\r\n\r\n')
        await request.events(b'data: {"jsonrpc":"2.0",\ndata: "id":7,"result":{}}\n\n', b"event: other\ndata: no\n\n")
        await request.end()

    async with running(respond) as agent:
        agent.send(call(7))
        await agent.response(7)
        assert agent.lines == [b'{"jsonrpc":"2.0","method":"x"}\n', b'{"jsonrpc":"2.0", "id":7,"result":{}}\n']
        agent.send(call(7))
        await agent.until(lambda: len(agent.lines) == 4)
        assert agent.server.connections == 1


async def test_a_response_in_the_stream_of_another_request_answers_its_own_request() -> None:
    requests: dict[object, Request] = {}

    async def respond(request: Request) -> None:
        requests[request.id] = request
        if len(requests) == 2:
            await requests[1].stream(
                b'data: {"jsonrpc":"2.0","id":2,"result":{}}\n\n', b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'
            )
            await requests[1].end()
            await requests[2].stream()
            await requests[2].end()

    async with running(respond) as agent:
        agent.send(call(1), call(2))
        await agent.response(1)
        await agent.response(2)
        agent.channel.end_output()
        await agent.until(lambda: agent.ended)
        assert len(agent.lines) == 2  # no error for request 2, whose own stream brought nothing


async def test_what_the_server_sends_by_itself_comes_in_the_get_stream() -> None:
    async def respond(request: Request) -> None:
        if request.method == "GET":
            await request.stream(b'data: {"jsonrpc":"2.0","id":"s","method":"ping"}\n\n')
            await request.closed.wait()
        else:
            await handshake(answer)(request)

    async with running(respond) as agent:
        await agent.opened()
        await agent.until(lambda: len(agent.lines) == 2)
        agent.send({"jsonrpc": "2.0", "id": "s", "result": {}})
        await agent.until(lambda: agent.server.requests[-1].message.get("id") == "s")


async def test_a_lost_get_stream_is_opened_again_where_it_ended() -> None:
    gets: list[Request] = []

    async def respond(request: Request) -> None:
        if request.method != "GET":
            await handshake(answer)(request)
            return
        gets.append(request)
        await request.stream(b"retry: 10\nid: e-%d\ndata: {}\n\n" % len(gets))
        if len(gets) < 3:
            request.drop()

    async with running(respond) as agent:
        await agent.opened()
        await agent.until(lambda: len(gets) == 3)
        assert [one.headers.get("last-event-id") for one in gets] == [None, "e-1", "e-2"]


async def test_a_response_stream_that_breaks_is_resumed_and_its_response_found() -> None:
    async def respond(request: Request) -> None:
        if request.method == "GET" and "last-event-id" in request.headers:
            assert request.headers["last-event-id"] == "e-1"
            await request.stream(b'id: e-2\ndata: {"jsonrpc":"2.0","id":7,"result":{}}\n\n')
            await request.end()
        elif request.id == 7:
            await request.stream(b"retry: 10\nid: e-1\ndata:\n\n")
            request.drop()
        else:
            await handshake(answer)(request)

    async with running(respond) as agent:
        await agent.opened()
        agent.send(call(7))
        assert (await agent.response(7))["result"] == {}
        assert len([one for one in agent.server.requests if one.id == 7]) == 1


async def test_a_stateless_request_has_the_headers_that_its_body_gives() -> None:
    async with running(answer) as agent:
        agent.send(stateless(1, name="rm é", arguments={}), stateless(2, "resources/read", uri="file:///a"))
        await agent.response(1)
        await agent.response(2)
        first, second = sorted(agent.server.requests, key=lambda one: str(one.id))
        assert first.headers["mcp-protocol-version"] == "2026-07-28"
        assert first.headers["mcp-method"] == "tools/call"
        assert first.headers["mcp-name"] == "=?base64?cm0gw6k=?="
        assert second.headers["mcp-name"] == "file:///a"
        assert "mcp-session-id" not in first.headers


async def test_a_stateless_tool_list_gives_the_headers_of_calls_and_loses_invalid_tools() -> None:
    async def respond(request: Request) -> None:
        if request.message["method"] == "tools/list":
            good = '{"name":"t","inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}'
            bad = '{"name":"bad\\u001b","inputSchema":{"properties":{"r":{"type":"object","x-mcp-header":"X"}}}}'
            await request.result(f'{{"tools":[{good},{bad}]}}')
        else:
            await request.result()

    async with running(respond) as agent:
        agent.send(stateless(1, "tools/list"))
        assert [one["name"] for one in (await agent.response(1))["result"]["tools"]] == ["t"]
        assert "bad\\x1b" in agent.reports[0]
        agent.send(stateless(2, name="t", arguments={"r": "eu\r\nX: y"}))
        await agent.response(2)
        assert agent.server.requests[-1].headers["mcp-param-region"] == "=?base64?ZXUNClg6IHk=?="
        assert "x" not in agent.server.requests[-1].headers


async def test_in_the_stateless_era_to_cancel_is_to_close_the_stream() -> None:
    async def respond(request: Request) -> None:
        if request.id == 1:
            await request.stream()
            await request.closed.wait()
        await request.result()

    async with running(respond) as agent:
        agent.send(stateless(1, name="t"))
        await agent.until(lambda: agent.server.requests)
        agent.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        with anyio.fail_after(TIMEOUT):
            await agent.server.requests[0].closed.wait()
        agent.send(stateless(2, name="t"))
        await agent.response(2)
        assert len(agent.server.requests) == 2
        assert len(agent.lines) == 1


async def test_in_the_handshake_era_to_cancel_is_to_post_the_notification() -> None:
    release = asyncio.Event()

    async def respond(request: Request) -> None:
        if request.id == 1:
            await release.wait()
            await request.result()
        else:
            await request.status("202 Accepted")

    async with running(handshake(respond)) as agent:
        await agent.opened()
        agent.send(call(1))
        await agent.until(lambda: agent.server.of("tools/call"))
        agent.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        await agent.until(lambda: agent.server.of("notifications/cancelled"))
        release.set()
        await agent.response(1)


# --- failures: one error for each request, and the run goes on ---


async def works_again(agent: Agent) -> None:
    agent.send(call(99))
    assert (await agent.response(99))["result"] == {}
    assert sum(json.loads(line).get("id") == 99 for line in agent.lines) == 1


def once(respond: Respond) -> Respond:
    """The failure for id 7, an ordinary server for all others."""

    async def all_of_it(request: Request) -> None:
        await (respond if request.id == 7 else answer)(request)

    return all_of_it


async def reset_at_once(request: Request) -> None:
    request.drop()


async def reset_within_body(request: Request) -> None:
    await request.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
    request.drop()


async def stream_without_response(request: Request) -> None:
    await request.stream(b'data: {"jsonrpc":"2.0","method":"x"}\n\n')
    await request.end()


async def stream_that_breaks(request: Request) -> None:
    await request.stream(b'data: {"jsonrpc":"2.0","id":7,"resu')
    request.drop()


async def error_page(request: Request) -> None:
    await request.send(b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>")


async def error_without_json(request: Request) -> None:
    await request.send(b"HTTP/1.1 400 Bad\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\nNo way.\n")


async def error_for_nobody(request: Request) -> None:
    error = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad things."}}'
    await request.json(error, "400 Bad Request")


async def page(request: Request) -> None:
    await request.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>")


async def no_json(request: Request) -> None:
    await request.json(b"surprise")


async def cut_json(request: Request) -> None:
    await request.json(b'{"jsonrpc":"2.0","id":7,"result":{"content":[')


async def compressed(request: Request) -> None:
    await request.json(b"\x1f\x8b\x08", extra="Content-Encoding: gzip\r\n")


async def utf16(request: Request) -> None:
    body = '{"jsonrpc":"2.0","id":7,"result":{}}'.encode("utf-16")
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-16\r\nContent-Length: {len(body)}\r\n\r\n"
    await request.send(head.encode() + body)


async def accepted(request: Request) -> None:
    await request.status("202 Accepted")


async def for_another(request: Request) -> None:
    await request.json(b'{"jsonrpc":"2.0","id":8,"result":{}}')


async def smuggled(request: Request) -> None:
    await request.send(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'24\r\n{"jsonrpc":"2.0","id":7,"result":{}}\r\n0\r\n\r\n'
    )


async def two_lengths(request: Request) -> None:
    await request.send(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"
    )


async def huge_head(request: Request) -> None:
    await request.send(b"HTTP/1.1 200 OK\r\n", *[b"X: " + b"y" * 1000 + b"\r\n"] * 200)


async def endless_interim(request: Request) -> None:
    await request.send(*[b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"] * 1000)


async def endless_trailers(request: Request) -> None:
    await request.stream(b": begun\n\n")
    await request.send(b"0\r\n", *[b"X-%d: " % i + b"y" * 1000 + b"\r\n" for i in range(200)])


async def endless_trailer(request: Request) -> None:
    await request.stream(b": begun\n\n")
    await request.send(b"0\r\nX: ", *[b"y" * 10_000] * 100)


async def half_closed(request: Request) -> None:
    await request.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
    request.writer.write_eof()
    await request.closed.wait()


async def half_closed_in_a_chunk(request: Request) -> None:
    await request.stream()
    await request.send(b'fff\r\ndata: {"jsonrpc":"2.0","id":7,"result":{}}\n')
    request.writer.write_eof()
    await request.closed.wait()


async def cut_at_the_end_of_the_connection(request: Request) -> None:
    await request.send(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"jsonrpc":"2.0","id":7,"result":{}')
    request.writer.write_eof()


async def two_responses(request: Request) -> None:
    body = b'{"jsonrpc":"2.0","id":7,"result":{}}'
    await request.send(
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)) * 2
    )


async def ids_that_no_header_can_contain(request: Request) -> None:
    await request.stream(b"id: " + b"x" * 5000 + b"\ndata:\n\n", b"id: a\0b\ndata:\n\n")
    await request.end()


async def no_http(request: Request) -> None:
    await request.send(b"SSH-2.0-OpenSSH_9.2\r\n")


async def other_origin(request: Request) -> None:
    await request.status("307 Temporary Redirect", "Location: http://127.0.0.2/mcp\r\n")


async def to_get(request: Request) -> None:
    await request.status("302 Found", "Location: /other\r\n")


async def redirect_loop(request: Request) -> None:
    await request.status("307 Temporary Redirect", "Location: /mcp\r\n")


NOT_RUN, MAYBE = "was not run", "may have had an effect"


@pytest.mark.parametrize(
    ("respond", "what", "effect"),
    [
        (reset_at_once, "closed the connection", MAYBE),
        (reset_within_body, "connection", MAYBE),
        (stream_without_response, "ended without a response", MAYBE),
        (stream_that_breaks, "ended without a response", MAYBE),
        (error_page, "HTTP status 502", MAYBE),
        (error_without_json, "HTTP status 400: No way", NOT_RUN),
        (error_for_nobody, "HTTP status 400: Bad things", NOT_RUN),
        (page, "text/html", MAYBE),
        (no_json, "not a JSON-RPC message", MAYBE),
        (cut_json, "not a JSON-RPC message", MAYBE),
        (compressed, "compressed", MAYBE),
        (utf16, "not UTF-8", MAYBE),
        (accepted, "without a response", MAYBE),
        (for_another, "belongs to another request", MAYBE),
        (smuggled, "", MAYBE),
        (two_lengths, "", MAYBE),
        (huge_head, "65536 bytes", MAYBE),
        (endless_trailers, "65536 bytes", MAYBE),
        (endless_trailer, "65536 bytes", MAYBE),
        (endless_interim, "no final response", MAYBE),
        (half_closed, "closed the connection", MAYBE),
        (half_closed_in_a_chunk, "ended without a response", MAYBE),
        (cut_at_the_end_of_the_connection, "not a JSON-RPC message", MAYBE),
        (two_responses, "second response", MAYBE),
        (ids_that_no_header_can_contain, "ended without a response", MAYBE),
        (no_http, "HTTP is invalid", MAYBE),
        (other_origin, "redirects to another address", NOT_RUN),
        (to_get, "redirects to another address", NOT_RUN),
        (redirect_loop, "redirects to another address", NOT_RUN),
    ],
)
async def test_a_failure_is_one_error_and_the_run_goes_on(respond: Respond, what: str, effect: str) -> None:
    async with running(once(respond)) as agent:
        agent.send(call(7))
        text = await agent.error(7)
        assert what in text
        assert effect in text
        await works_again(agent)
        assert sum(json.loads(line).get("id") == 7 for line in agent.lines) == 1
        assert len([one for one in agent.server.requests if one.id == 7]) == (6 if respond is redirect_loop else 1)


async def test_a_server_that_is_not_there_is_an_error_that_says_that_nothing_was_sent() -> None:
    async with serving(answer) as other:
        port = other.port
    async with running(answer, port=port) as agent:
        agent.send(call(7))
        text = await agent.error(7)
        assert f"http://127.0.0.1:{port}" in text
        assert "was not sent" in text


async def test_an_error_that_the_server_has_written_for_the_request_passes_as_it_is() -> None:
    error = b'{"jsonrpc":"2.0", "id":7, "error":{"code":-32601,"message":"Method not found"}}'

    async def respond(request: Request) -> None:
        await request.json(error, "404 Not Found")

    async with running(respond) as agent:
        agent.send(call(7))
        await agent.response(7)
        assert agent.lines == [error + b"\n"]


async def test_the_code_and_the_data_of_an_error_for_nobody_reach_the_agent() -> None:
    async def respond(request: Request) -> None:
        error = (
            b'{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"Unsupported","data":{"supported":["x"]}}}'
        )
        await request.json(error, "400 Bad Request")

    async with running(respond) as agent:
        agent.send(stateless(1, "server/discover"))
        error = (await agent.response(1))["error"]
        assert (error["code"], error["data"]) == (-32022, {"supported": ["x"]})
        assert error["message"] == "The server has refused the request with HTTP status 400: Unsupported."


@pytest.mark.slow  # it waits for a deadline
async def test_a_silent_server_is_given_up_after_the_deadline() -> None:
    async def respond(request: Request) -> None:
        await request.closed.wait()

    async with running(once(respond), silence_seconds=1.0) as agent:
        agent.send(call(7))
        assert "silence_seconds" in await agent.error(7)
        await works_again(agent)


async def test_a_response_over_the_limit_becomes_an_error_in_both_forms() -> None:
    long = b'{"jsonrpc":"2.0","id":7,"result":{"x":"' + b"x" * 50_000 + b'"}}'

    async def respond(request: Request) -> None:
        if len(agent.server.requests) == 1:
            await request.json(long)
        else:
            await request.stream(b"data: " + long + b"\n\n", b'data: {"jsonrpc":"2.0","method":"after"}\n\n')
            await request.end()

    async with running(once(respond), max_bytes=10_000) as agent:
        agent.send(call(7))
        assert "withheld" in await agent.error(7)
        agent.send(call(7))
        await agent.until(lambda: len(agent.lines) == 3)
        assert b"withheld" in agent.lines[1]
        assert b"after" in agent.lines[2]
        await works_again(agent)


def without_end(start: bytes, piece: bytes) -> Respond:
    """A response of events that goes on until the peer is gone."""

    async def respond(request: Request) -> None:
        await request.stream(start)
        while not request.closed.is_set():
            await request.events(piece)

    return respond


ENDLESS = {
    "a response": (b'data: {"jsonrpc":"2.0","id":7,"result":{"x":"', b"x" * 5000),
    "a response with its id at the end": (b'data: {"jsonrpc":"2.0","result":{"x":"', b"x" * 5000),
    "no message": (b"data: ", b"x" * 5000),
    "many lines of data": (b"data: ", b"x\ndata: " * 500),
    "a response in many lines": (b'data: {"jsonrpc":"2.0","id":7,"result":{"x":"', b"x\ndata: x" * 500),
    "a comment": (b": ", b"x" * 5000),
    "a name": (b"event: ", b"x" * 5000),
    "an id": (b"id: ", b"x" * 5000),
    "a field that nobody knows": (b"x", b"x" * 5000),
    "a notification": (b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"', b"x" * 5000),
    "a request": (b'data: {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"a":"', b"x" * 5000),
    "the response to another request": (b'data: {"jsonrpc":"2.0","id":99,"result":{"x":"', b"x" * 5000),
}


@pytest.mark.parametrize("what", ENDLESS)
async def test_a_line_without_an_end_ends_its_call_with_an_error_when_it_is_over_the_limit(what: str) -> None:
    async with running(once(without_end(*ENDLESS[what])), max_bytes=10_000) as agent:
        agent.send(call(7))
        assert "10000" in (error := await agent.error(7)) or "20000" in error
        await works_again(agent)
        await agent.until(lambda: agent.server.requests[0].closed.is_set())


async def test_a_call_is_answered_by_its_beginning_and_others_go_on_in_the_stream_of_the_older_transport() -> None:
    streams: list[Request] = []

    async def respond(request: Request) -> None:
        await request.status("202 Accepted")
        if request.id == 8:
            await streams[-1].events(b'data: {"jsonrpc":"2.0","id":7,"result":"' + b"x" * 15_000)

    async with running(older(streams, respond), max_bytes=10_000) as agent:
        await agent.opened()
        agent.send(call(7))
        agent.send(call(8))
        assert "withheld" in await agent.error(7)
        await streams[-1].events(b'"}\n\ndata: {"jsonrpc":"2.0","id":8,"result":{}}\n\n')
        assert (await agent.response(8))["result"] == {}


async def test_a_line_without_an_end_in_the_stream_of_the_older_transport_ends_all_calls() -> None:
    streams: list[Request] = []

    async def respond(request: Request) -> None:
        await request.status("202 Accepted")
        if request.id == 8:
            await streams[-1].events(b": " + b"x" * 25_000)

    async with running(older(streams, respond), max_bytes=10_000) as agent:
        await agent.opened()
        agent.send(call(7))
        agent.send(call(8))
        for request_id in (7, 8):
            assert "without an end" in await agent.error(request_id)


async def test_a_line_without_an_end_in_the_stream_of_what_the_server_sends_by_itself_ends_that_stream() -> None:
    listening: list[Request] = []

    async def respond(request: Request) -> None:
        if request.method == "GET":
            listening.append(request)
            await without_end(b"data: ", b"x" * 5000)(request)
        else:
            await with_session(request)

    with_session = handshake(answer)
    async with running(respond, max_bytes=10_000) as agent:
        await agent.opened()
        await agent.until(lambda: listening and listening[0].closed.is_set())
        agent.send(call(7))
        assert (await agent.response(7))["result"] == {}


async def test_a_redirect_within_the_origin_is_followed_with_the_same_body() -> None:
    async def respond(request: Request) -> None:
        if request.target == "/mcp?a=1":
            await request.status("308 Permanent Redirect", "Location: /new/\r\n")
        else:
            await request.result()

    async with running(respond, headers=(("Authorization", "Bearer x"),)) as agent:
        agent.send(call(7))
        await agent.response(7)
        assert [one.target for one in agent.server.requests] == ["/mcp?a=1", "/new/"]
        assert agent.server.requests[1].id == 7


async def test_a_lost_session_is_opened_again_and_the_call_that_noticed_it_is_answered() -> None:
    sessions = iter(("s-1", "s-2"))
    current = ""

    async def respond(request: Request) -> None:
        nonlocal current
        if request.message.get("method") == "initialize":
            current = next(sessions)
            await request.result(INIT_RESULT, f"Mcp-Session-Id: {current}\r\n")
        elif request.headers.get("mcp-session-id") != current:
            error = b'{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}'
            await request.json(error, "404 Not Found")
        elif request.method != "POST":
            await request.status("405 Method Not Allowed")
        elif "id" in request.message:
            await request.result()
        else:
            await request.status("202 Accepted")

    async with running(respond) as agent:
        await agent.opened()
        agent.send(call(1))
        await agent.response(1)
        current = "gone"
        agent.send(call(2), call(3))
        assert (await agent.response(2))["result"] == {}
        assert (await agent.response(3))["result"] == {}
        assert [one.message["id"] for one in agent.server.of("initialize")] == [0, 0]
        assert len(agent.server.of("notifications/initialized")) == 2
        assert sum(json.loads(line)["id"] == 0 for line in agent.lines) == 1
        assert any("lost the session" in one for one in agent.reports)


async def test_a_session_that_is_lost_again_and_again_is_an_error() -> None:
    async def respond(request: Request) -> None:
        await request.status("404 Not Found")

    async with running(handshake(respond)) as agent:
        await agent.opened()
        agent.send(call(7))
        assert "HTTP status 404" in await agent.error(7)
        assert len(agent.server.of("initialize")) == 2


async def test_a_server_with_the_older_transport_only_is_spoken_to_in_it() -> None:
    streams: list[Request] = []

    async def respond(request: Request) -> None:
        if request.method == "GET":
            streams.append(request)
            await request.stream(b"event: endpoint\ndata: /messages?session=1\n\n")
            await request.closed.wait()
        elif request.target == "/mcp?a=1":
            await request.status("405 Method Not Allowed")
        else:
            await request.send(b"HTTP/1.1 202 Accepted\r\nContent-Length: 8\r\n\r\nAccepted")
            if "id" in request.message:
                result = INIT_RESULT if request.message["method"] == "initialize" else "{}"
                text = f'{{"jsonrpc":"2.0","id":{request.id},"result":{result}}}'
                await streams[0].events(f"event: message\ndata: {text}\n\n".encode())

    async with running(respond) as agent:
        await agent.opened()
        agent.send(call(7), call(8))
        await agent.response(7)
        await agent.response(8)
        agent.send(call(9))
        await agent.response(9)
        streams.pop().drop()
        await agent.until(lambda: not agent.channel.client.old.endpoint)
        agent.send(call(10))
        await agent.response(10)  # in a new session
        assert [one.target for one in agent.server.of("initialize")] == ["/mcp?a=1", *["/messages?session=1"] * 2]
        assert sum(json.loads(line)["id"] == 0 for line in agent.lines) == 1
        agent.channel.end_output()
        await agent.until(lambda: agent.ended)


async def test_when_the_stream_of_the_older_transport_breaks_each_request_gets_an_error() -> None:
    streams: list[Request] = []

    async def respond(request: Request) -> None:
        if request.method == "GET":
            streams.append(request)
            await request.stream(b"event: endpoint\ndata: /messages\n\n")
            await request.closed.wait()
        elif request.target == "/mcp?a=1":
            await request.status("404 Not Found")
        else:
            await request.status("202 Accepted")
            if request.id == 0:
                text = f'{{"jsonrpc":"2.0","id":0,"result":{INIT_RESULT}}}'
                await streams[0].events(f"data: {text}\n\n".encode())

    async with running(respond) as agent:
        await agent.opened()
        agent.send(call(7))
        await agent.until(lambda: agent.server.of("tools/call"))
        streams[0].drop()
        assert "may have had an effect" in await agent.error(7)


async def test_the_address_for_messages_of_the_older_transport_must_be_of_the_same_origin() -> None:
    async def respond(request: Request) -> None:
        if request.method == "GET":
            await request.stream(b"event: endpoint\ndata: http://127.0.0.2:1/messages\n\n")
        else:
            await request.status("405 Method Not Allowed")

    async with running(respond) as agent:
        agent.send(INITIALIZE)
        assert "HTTP status 405" in await agent.error(0)


# --- credentials ---


class Tokens:
    """Credentials that are refreshed when they are refused."""

    hint = "Run: hookproxy login URL"

    def __init__(self, *values: str) -> None:
        self.values = list(values)
        self.refusals: list[tuple[int, str, str | None]] = []

    def value_now(self) -> str | None:
        raise NotReady

    async def value(self) -> str | None:
        await asyncio.sleep(0)
        return self.values[0] if self.values else None

    async def refused(self, status: int, challenge: str, used: str | None) -> str | None:
        self.refusals.append((status, challenge, used))
        self.values = self.values[1:]
        return await self.value()


async def guarded(request: Request) -> None:
    if request.headers.get("authorization") == "Bearer good":
        await request.result()
    else:
        await request.status("401 Unauthorized", 'WWW-Authenticate: Bearer resource_metadata="x"\r\n')


async def test_refused_credentials_are_replaced_once_and_the_request_is_sent_again() -> None:
    tokens = Tokens("Bearer old", "Bearer good")
    async with running(guarded, tokens) as agent:
        agent.send(call(7))
        await agent.response(7)
        assert tokens.refusals == [(401, 'Bearer resource_metadata="x"', "Bearer old")]
        assert len(agent.server.requests) == 2


@pytest.mark.parametrize("values", [(), ("Bearer old",), ("Bearer old", "Bearer worse")])
async def test_without_good_credentials_the_error_says_how_to_log_in(values: tuple[str, ...]) -> None:
    async with running(guarded, Tokens(*values)) as agent:
        agent.send(call(7))
        text = await agent.error(7)
        assert "a login is needed (HTTP 401)" in text
        assert "was not run" in text
        assert "hookproxy login URL" in text


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
async def test_where_the_user_has_given_the_credentials_the_error_says_what_the_server_says(status: str) -> None:
    async def refusing(request: Request) -> None:
        await request.json(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"It is not known."}}', status)

    async with running(refusing, headers=(("Authorization", "Bearer own"),)) as agent:
        agent.send(call(7))
        text = await agent.error(7)
        assert f"refused the credentials of this request, with HTTP status {status[:3]}: It is not known" in text
        assert "login" not in text


DISCOVER = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": META}}
NO_VERSION = b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32020,"message":"Missing MCP-Protocol-Version header"}}'


@pytest.mark.parametrize(
    ("status", "body"),
    [
        ("400 Bad Request", NO_VERSION % b"0"),
        ("400 Bad Request", NO_VERSION % b"null"),
        ("200 OK", NO_VERSION % b"0"),
        ("404 Not Found", b""),
        ("500 Internal Server Error", b"<html>"),
    ],
)
async def test_the_error_of_a_fallback_handshake_names_the_login_that_the_first_request_needed(
    status: str, body: bytes
) -> None:
    async def newest_only(request: Request) -> None:
        if request.headers.get("mcp-protocol-version") == "2026-07-28":
            await guarded(request)
        else:
            await request.json(body, status)

    tokens = Tokens()
    async with running(newest_only, tokens) as agent:
        for _ in range(2):  # as an agent does that connects again
            agent.lines.clear()
            agent.send(DISCOVER)
            assert "hookproxy login URL" in await agent.error(1)
            agent.send(INITIALIZE)
            error = (await agent.response(0))["error"]
            assert "has refused an earlier request, because a login is needed (HTTP 401)" in error["message"]
            assert "hookproxy login URL" in error["message"]
            if b"Missing" in body:
                assert "Missing MCP-Protocol-Version header" in error["message"]
                assert error["code"] == -32020
        refusals = [text for text in agent.reports if "a login is needed" in text]
        assert len(refusals) == 1
        assert "hookproxy login URL" in refusals[0]
        tokens.values = ["Bearer good"]
        agent.lines.clear()
        agent.send(DISCOVER)
        await agent.response(1)
        agent.send(INITIALIZE)
        assert "login" not in await agent.error(0)


async def test_a_login_that_the_older_transport_needs_is_named_by_the_handshake_as_well() -> None:
    async def respond(request: Request) -> None:
        if request.method == "GET":
            await guarded(request)
        else:
            await request.status("405 Method Not Allowed")

    async with running(respond, Tokens()) as agent:
        agent.send(INITIALIZE)
        assert "hookproxy login URL" in await agent.error(INITIALIZE["id"])


async def test_a_refusal_after_credentials_were_accepted_is_reported_again() -> None:
    tokens = OnlyLogins("Bearer old")
    async with running(guarded, tokens) as agent:
        for number, token in enumerate(("Bearer old", "Bearer older", "Bearer good", "Bearer old")):
            tokens.values = [token]
            agent.send(call(number))
            await agent.response(number)
        assert len([text for text in agent.reports if "a login is needed" in text]) == 2


async def test_after_a_login_calls_work_without_a_restart() -> None:
    tokens = Tokens()
    async with running(guarded, tokens) as agent:
        agent.send(call(7))
        await agent.error(7)
        tokens.values = ["Bearer good"]
        agent.send(call(8))
        await agent.response(8)


class OnlyLogins(Tokens):
    """Credentials that only a person can replace."""

    async def refused(self, status: int, challenge: str, used: str | None) -> str | None:
        return None


@pytest.mark.slow  # a second passes before a stream is opened again
async def test_after_a_login_the_stream_of_what_the_server_sends_is_opened_again() -> None:
    tokens = OnlyLogins("Bearer old")

    async def respond(request: Request) -> None:
        if request.method != "GET":
            await handshake(answer)(request)
        elif request.headers.get("authorization") != "Bearer good":
            tokens.values = ["Bearer good"]
            await request.status("401 Unauthorized")
        else:
            await request.stream(b'data: {"jsonrpc":"2.0","method":"x"}\n\n')

    async with running(respond, tokens) as agent:
        await agent.opened()
        await agent.until(lambda: len(agent.lines) == 2)


async def test_a_header_of_the_command_line_goes_out_with_each_request_and_replaces_other_credentials() -> None:
    tokens = Tokens("Bearer other")
    async with running(guarded, tokens, headers=(("Authorization", "Bearer good"), ("X-Org", "7"))) as agent:
        agent.send(call(7))
        await agent.response(7)
        assert agent.server.requests[0].headers["x-org"] == "7"


# --- backpressure, and the end ---


async def test_a_server_that_does_not_read_pauses_the_agent() -> None:
    async def respond(request: Request) -> None:
        await asyncio.Event().wait()

    async with running(respond, max_connections=2) as agent:
        agent.send(*(call(i, text="x" * 100_000) for i in range(20)))
        await agent.until(lambda: agent.full == [True])


@pytest.mark.slow
async def test_an_agent_that_does_not_read_pauses_the_server() -> None:
    sent = 0

    async def respond(request: Request) -> None:
        nonlocal sent
        await request.stream()
        while sent < 2000:
            await request.events(b"data: " + b'"' + b"x" * 50_000 + b'"\n\n')
            sent += 1

    async with running(respond) as agent:
        agent.channel.pause()
        agent.send(call(7))
        await agent.until(lambda: sent > 5)
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.05)
        assert sent < 2000
        assert not agent.lines
        agent.channel.resume()
        await agent.until(lambda: sent == 2000)


async def test_many_large_responses_at_once_take_turns_in_memory() -> None:
    most = 0

    async def respond(request: Request) -> None:
        nonlocal most
        await request.stream()
        body = f'{{"jsonrpc":"2.0","id":{request.id},"result":{{"x":"'.encode() + b"x" * 3_000_000 + b'"}}'
        await request.events(b"data: ")
        for start in range(0, len(body), 50_000):
            await request.events(body[start : start + 50_000])
            most = max(most, sum(exchange.kept for exchange in agent.channel._transfers.open))
        await request.events(b"\n\n")
        await request.end()

    async with running(respond, max_bytes=4_000_000) as agent:
        agent.send(*(call(i) for i in range(12)))
        await agent.until(lambda: len(agent.lines) == 12)
        assert sorted(json.loads(line)["id"] for line in agent.lines) == [*range(12)]
        assert all("result" in json.loads(line) for line in agent.lines)
        assert most < 12 * 1_300_000 + 2 * 4_000_000


async def test_a_stream_that_stays_open_after_a_large_response_holds_up_no_other() -> None:
    async def respond(request: Request) -> None:
        await request.stream()
        body = f'{{"jsonrpc":"2.0","id":{request.id},"result":{{"x":"'.encode() + b"x" * 3_000_000 + b'"}}'
        await request.events(b"data: ", *(body[start : start + 50_000] for start in range(0, len(body), 50_000)))
        await request.events(b"\n\n")
        await request.closed.wait()

    async with running(respond, max_bytes=4_000_000) as agent:
        agent.send(*(call(i) for i in range(4)))
        await agent.until(lambda: len(agent.lines) == 4)


async def test_the_end_waits_for_responses_and_closes_subscriptions() -> None:
    release = asyncio.Event()

    async def respond(request: Request) -> None:
        if request.message["method"] == "subscriptions/listen":
            await request.stream()
            await request.closed.wait()
        await release.wait()
        await request.result()

    async with running(respond) as agent:
        agent.send(stateless(1, "subscriptions/listen"), stateless(2, name="t"))
        await agent.until(lambda: len(agent.server.requests) == 2)
        agent.channel.end_output()
        assert not agent.ended
        release.set()
        await agent.until(lambda: agent.ended)
        assert [json.loads(line)["id"] for line in agent.lines] == [2]


async def test_a_server_that_closes_idle_connections_loses_no_call() -> None:
    async def respond(request: Request) -> None:
        await request.result(extra="Connection: close\r\n")
        request.writer.close()

    async with running(respond) as agent:
        for i in range(20):
            agent.send(call(i))
            assert (await agent.response(i))["result"] == {}


@pytest.mark.slow  # it waits for a deadline
async def test_a_resumption_that_is_silent_is_given_up_after_the_deadline() -> None:
    async def respond(request: Request) -> None:
        if request.method == "GET" and "last-event-id" in request.headers:
            await request.closed.wait()
        elif request.id == 7:
            await request.stream(b"retry: 10\nid: e-1\ndata:\n\n")
            await request.end()
        else:
            await handshake(answer)(request)

    async with running(respond, silence_seconds=1.0) as agent:
        await agent.opened()
        agent.send(call(7))
        text = await agent.error(7)
        assert "silence_seconds" in text
        assert "may have had an effect" in text
        await works_again(agent)


def older(streams: list[Request], respond: Respond) -> Respond:
    """A server of HTTP+SSE that leaves all but the handshake to `respond`."""

    async def all_of_it(request: Request) -> None:
        if request.method == "GET":
            streams.append(request)
            await request.stream(b"event: endpoint\ndata: /messages\n\n")
            await request.closed.wait()
        elif request.target == "/mcp?a=1":
            await request.status("404 Not Found")
        elif request.message.get("method") == "initialize":
            await request.status("202 Accepted")
            text = f'{{"jsonrpc":"2.0","id":0,"result":{INIT_RESULT}}}'
            await streams[-1].events(f"data: {text}\n\n".encode())
        elif "id" in request.message:
            await respond(request)
        else:
            await request.status("202 Accepted")

    return all_of_it


async def test_a_server_of_the_older_transport_may_put_the_response_in_the_body() -> None:
    streams: list[Request] = []
    async with running(older(streams, answer)) as agent:
        await agent.opened()
        agent.send(call(7))
        assert (await agent.response(7))["result"] == {}


@pytest.mark.slow  # it waits for a deadline
async def test_a_request_that_the_stream_of_the_older_transport_leaves_open_is_given_up_after_the_deadline() -> None:
    streams: list[Request] = []

    async def respond(request: Request) -> None:
        await request.status("202 Accepted")
        if request.id == 8:
            await streams[-1].events(b'data: {"jsonrpc":"2.0","id":8,"result":{}}\n\n')

    async with running(older(streams, respond), silence_seconds=1.0) as agent:
        await agent.opened()
        agent.send(call(7))
        text = await agent.error(7)
        assert "silence_seconds" in text
        assert "may have had an effect" in text
        agent.send(call(8))
        assert (await agent.response(8))["result"] == {}
        assert len(streams) == 1, "the stream stays open"


@asynccontextmanager
async def dripping(request: Request) -> AsyncIterator[None]:
    """Comments come in the request's stream, meanwhile."""

    async def drip() -> None:
        while True:
            await request.events(b":\n")
            await asyncio.sleep(0.01)

    task = asyncio.create_task(drip())
    try:
        yield
    finally:
        task.cancel()


@pytest.mark.slow  # it waits for a deadline
async def test_comments_in_the_stream_of_the_older_transport_show_that_the_server_is_not_silent() -> None:
    streams: list[Request] = []

    async def respond(request: Request) -> None:
        await request.status("202 Accepted")
        async with dripping(streams[-1]):
            await asyncio.sleep(1.5)
        await streams[-1].events(b'data: {"jsonrpc":"2.0","id":7,"result":{}}\n\n')

    async with running(older(streams, respond), silence_seconds=1.0) as agent:
        await agent.opened()
        agent.send(call(7))
        assert (await agent.response(7))["result"] == {}


@pytest.mark.slow  # it waits for a deadline
async def test_a_stream_that_never_names_an_address_holds_up_the_handshake_only_so_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(silence_module, "_ENDPOINT_SECONDS", 0.2)

    async def respond(request: Request) -> None:
        if request.method == "GET":
            await request.stream(b":\n\n")
            async with dripping(request):
                await request.closed.wait()
        else:
            await request.status("405 Method Not Allowed")

    async with running(respond, silence_seconds=1.0) as agent:
        agent.send(INITIALIZE)
        assert "HTTP status 405" in await agent.error(0)
        with anyio.fail_after(TIMEOUT):
            await agent.server.of("GET")[0].closed.wait()


@pytest.mark.slow  # it waits for a deadline
async def test_a_notification_whose_acknowledgement_trickles_does_not_hold_up_the_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(silence_module, "_MESSAGE_SECONDS", 0.2)

    async def respond(request: Request) -> None:
        if request.message.get("method") == "notifications/initialized":
            await request.send(b"HTTP/1.1 202 Accepted\r\nContent-Length: 100000\r\n\r\n")
            while not request.closed.is_set():
                await request.send(b"x")
                await asyncio.sleep(0.01)
        else:
            await handshake(answer)(request)

    async with running(respond, silence_seconds=1.0) as agent:
        await agent.opened()
        agent.send(call(7))
        assert (await agent.response(7))["result"] == {}
        assert any("was not acknowledged" in one for one in agent.reports)


# --- cookies, and other origins ---


async def test_cookies_of_a_balancer_go_back_with_each_request_of_the_session() -> None:
    async def respond(request: Request) -> None:
        if request.message.get("method") == "initialize":
            later = "Fri, 01 Jan 2100 00:00:00 GMT"
            cookies = f"Set-Cookie: AWSALB=one; Expires={later}; Path=/\r\nSet-Cookie: other=x; Domain=example.com\r\n"
            await request.result(INIT_RESULT, f"Mcp-Session-Id: s-1\r\n{cookies}Set-Cookie: b=2; Path=/mcp\r\n")
        elif request.id == 7:
            await request.result(extra="Set-Cookie: AWSALB=two; Path=/\r\n")
        else:
            await handshake(answer)(request)

    async with running(respond) as agent:
        await agent.opened()
        agent.send(call(7))
        await agent.response(7)
        agent.send(call(8))
        await agent.response(8)
        agent.channel.end_output()
        await agent.until(lambda: agent.ended)
        sent = [one.headers.get("cookie") for one in agent.server.requests]
        assert sent == [None, *["b=2; AWSALB=one"] * 3, *["b=2; AWSALB=two"] * 2]


async def test_a_cookie_of_the_command_line_replaces_those_of_the_server() -> None:
    async def respond(request: Request) -> None:
        await request.result(extra="Set-Cookie: a=1\r\n")

    async with running(respond, headers=(("Cookie", "mine=1"),)) as agent:
        for number in (7, 8):
            agent.send(call(number))
            await agent.response(number)
        assert [one.headers["cookie"] for one in agent.server.requests] == ["mine=1", "mine=1"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_redirect_to_another_origin_is_never_followed(method: str, status: int) -> None:
    """Nothing arrives there: no message, no header, no cookie, no credential."""
    async with serving(answer) as other:

        async def respond(request: Request) -> None:
            if request.method == method and request.message.get("method") != "initialize":
                await request.status(f"{status} Moved", f"Location: http://127.0.0.1:{other.port}/mcp\r\n")
            else:
                await handshake(answer)(request)

        async with running(respond, Tokens("Bearer secret")) as agent:
            await agent.opened()
            agent.send(call(7))
            if method == "POST":
                assert "redirects to another address" in await agent.error(7)
            else:
                await agent.response(7)
            agent.channel.end_output()
            await agent.until(lambda: agent.ended)
        assert other.connections == 0


@pytest.mark.parametrize("spelled", ["http://{}/m", "//{}/m", "http://u@{}/m", "https://{}/m", "\\\\{}/m"])
async def test_an_address_for_messages_of_another_origin_gets_nothing(spelled: str) -> None:
    async with serving(answer) as other:

        async def respond(request: Request) -> None:
            if request.method == "GET":
                await request.stream(f"event: endpoint\ndata: {spelled.format(f'127.0.0.1:{other.port}')}\n\n".encode())
                await request.closed.wait()
            elif request.target == "/mcp?a=1":
                await request.status("405 Method Not Allowed")
            else:
                await answer(request)

        async with running(respond, Tokens("Bearer secret")) as agent:
            agent.send(INITIALIZE)
            await agent.response(0)
        assert other.connections == 0


# --- a server that answers twice, late, or goes while a request is on its way ---


@pytest.mark.parametrize("how", ["close", "abort"])
async def test_a_request_on_a_connection_that_is_being_closed_is_never_posted_twice(how: str) -> None:
    """The server has closed the kept connection, and the request goes out before that is seen here."""
    async with running(answer) as agent:
        for number in range(0, 40, 2):
            agent.send(call(number))
            await agent.response(number)
            writer = agent.server.requests[-1].writer
            (writer.close if how == "close" else writer.transport.abort)()
            agent.send(call(number + 1))
            response = await agent.response(number + 1)
            if "error" in response:
                assert "It may have had an effect" in response["error"]["message"]
            posted = [one.id for one in agent.server.requests]
            assert posted.count(number + 1) <= 1
            assert ("result" in response) == (number + 1 in posted)


async def test_no_request_asks_for_a_compressed_response() -> None:
    """Hooks, and those who check, must read the text. Without the header, a server may choose an encoding."""
    async with running(answer) as agent:
        agent.send(call(1))
        await agent.response(1)
        assert {one.headers["accept-encoding"] for one in agent.server.requests} == {"identity"}


async def test_a_connection_is_free_for_less_time_than_servers_keep_it_and_looks_for_peers_that_are_gone() -> None:
    loop = asyncio.get_running_loop()

    class Owner:
        def idle(self, connection: connection_module.Connection) -> None: ...
        def closed(self, connection: connection_module.Connection) -> None: ...
        def flow_changed(self) -> None: ...

    with socket.create_server(("127.0.0.1", 0)) as server:
        transport, connection = await loop.create_connection(
            lambda: connection_module.Connection(Owner(), loop), *server.getsockname()
        )
        accepted, _ = server.accept()
        sock = transport.get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 60
        at_once = connection.is_reusable
        connection.last_byte -= 4.5  # Node closes after 5 s
        assert (at_once, connection.is_reusable) == (True, False)
        transport.abort()
        accepted.close()


async def test_a_connection_that_the_server_may_be_closing_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = ""

    async def respond(request: Request) -> None:
        await request.result(extra=extra)

    async def connections(count: int) -> int:
        """How many the server has got for so many calls, one after another."""
        async with running(respond) as agent:
            for number in range(count):
                agent.send(call(number))
                assert (await agent.response(number))["result"] == {}
            return agent.server.connections

    assert await connections(5) == 1
    extra = "Keep-Alive: timeout=1\r\n"
    assert await connections(5) == 5, "it is closed within a second, maybe now"
    extra = "Keep-Alive: max=5, timeout=60\r\n"
    assert await connections(5) == 1
    extra = ""
    monkeypatch.setattr(connection_module, "_IDLE_SECONDS", 0.0)
    assert await connections(5) == 5


@pytest.mark.slow  # it waits for a server that closes idle connections
async def test_a_server_that_closes_connections_as_they_are_used_again_gets_no_call_twice() -> None:
    """As Node does after 5 seconds: here after 20 ms, and each call comes when that time is over, or nearly so."""

    async def close_when_idle(request: Request) -> None:
        await asyncio.sleep(0.02)
        request.writer.close()

    async def respond(request: Request) -> None:
        await request.result()
        closing.append(asyncio.create_task(close_when_idle(request)))

    async def calls() -> None:
        async with running(respond) as agent:
            for number in range(40):
                agent.send(call(number))
                response = await agent.response(number)
                if "error" in response:
                    assert "It may have had an effect" in response["error"]["message"]
                posted = [one.id for one in agent.server.requests]
                assert posted.count(number) == 1 if "result" in response else posted.count(number) <= 1
                await asyncio.sleep(0.019 + number % 5 * 0.0005)

    closing: list[asyncio.Task[None]] = []
    await asyncio.gather(*(calls() for _ in range(8)))
    await asyncio.gather(*closing)


async def test_of_a_connection_the_server_closes_while_it_is_idle_nothing_is_lost() -> None:
    async with running(answer) as agent:
        for number in range(20):
            agent.send(call(number))
            assert (await agent.response(number))["result"] == {}
            agent.server.requests[-1].writer.close()
            await agent.until(lambda: not agent.channel._pool.has_idle)


async def test_a_response_after_the_error_of_its_request_is_passed_on_for_the_session_to_judge() -> None:
    """As over stdio: what comes late is handled where calls are known."""

    async def respond(request: Request) -> None:
        if request.id == 7:
            request.drop()
        else:
            await request.stream(
                b'data: {"jsonrpc":"2.0","id":7,"result":{}}\n\n', b'data: {"jsonrpc":"2.0","id":8,"result":{}}\n\n'
            )
            await request.end()

    async with running(respond) as agent:
        agent.send(call(7))
        await agent.error(7)
        agent.send(call(8))
        await agent.response(8)
        assert [json.loads(line)["id"] for line in agent.lines] == [7, 7, 8]


@pytest.mark.slow  # it waits for a deadline
async def test_while_the_agent_does_not_read_no_notification_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its acknowledgement may have come, and is not read either."""
    monkeypatch.setattr(silence_module, "_MESSAGE_SECONDS", 0.1)
    async with running(accepted, silence_seconds=0.2) as agent:
        agent.send(call(1))
        await agent.error(1)
        agent.channel.pause()
        agent.send({"jsonrpc": "2.0", "method": "n"})
        await agent.until(lambda: agent.server.of("n"))
        await asyncio.sleep(0.4)
        agent.channel.resume()
        await agent.until(lambda: agent.channel._pool.has_idle)
        assert agent.reports == []


async def test_a_server_that_cannot_be_reached_is_reported_once_and_that_it_is_back_too() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        async with running(answer, port=free.getsockname()[1]) as agent:
            origin = agent.channel.remote.address.origin
            for number in (1, 2):
                agent.send(call(number))
                await agent.error(number)
            assert agent.reports == [f"cannot connect to {origin}: nothing listens there (connection refused)"]
            here = replace(agent.channel.remote.address, port=agent.server.port)
            agent.channel._pool._remote = replace(agent.channel.remote, address=here)
            agent.send(call(3))
            await agent.response(3)
            assert agent.reports[1:] == [f"{here.origin} can be reached again"]
