"""The state machine of a remote session, without I/O: random schedules of everything that may happen, in any order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.jsonrpc.known_secrets import NO_SECRETS
from hookproxy.protocol.fast_scan import read_call
from hookproxy.transports.http.client import Client
from hookproxy.transports.http.exchange import Exchange, Kind
from tests.support.examples import examples

INIT_RESULT = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


class World:
    """The wire of a client, and the server behind it; the test decides what happens next."""

    secrets = NO_SECRETS

    def __init__(self) -> None:
        self.client = Client(self, 10_000, 20.0)
        self.in_flight: list[Exchange] = []
        self.timers: list[Callable[[], None]] = []
        self.to_authorize: list[Exchange] = []
        self.delivered: list[dict[str, Any]] = []
        self.posted: Counter[bytes] = Counter()
        self.repeatable: Counter[bytes] = Counter()
        self.finishes = 0
        self.sessions = 0

    # --- Wire ---

    def send(self, exchange: Exchange) -> None:
        assert exchange not in self.in_flight, "one exchange is one request at a time"
        assert not exchange.is_done, "nothing is sent of an exchange that has ended"
        self.client.headers(exchange)
        self.in_flight.append(exchange)
        if exchange.kind is Kind.REQUEST:
            self.posted[exchange.body] += 1

    def close_exchange(self, exchange: Exchange) -> None:
        if exchange in self.in_flight:
            self.in_flight.remove(exchange)

    def deliver(self, lines: bytes) -> None:
        assert lines.count(b"\n") == 1
        self.delivered.append(json.loads(lines))

    def open_passage(self, raw_id: bytes) -> None: ...

    def deliver_response(self, raw_id: bytes, line: bytes) -> None:
        self.deliver(line + b"\n")

    def deliver_failure(self, line: bytes) -> None:
        self.deliver(line)

    def report(self, text: str) -> None:
        assert "\n" not in text

    def after(self, _seconds: float, callback: Callable[[], None]) -> None:
        self.timers.append(callback)

    def authorize(self, exchange: Exchange, _challenge: str) -> None:
        self.to_authorize.append(exchange)

    def same_origin_target(self, _base: bytes, location: str) -> bytes | None:
        return location.encode() if location.startswith("/") else None

    def finished(self) -> None:
        self.finishes += 1

    # --- what may happen to an exchange ---

    def respond(self, exchange: Exchange, how: str) -> None:  # noqa: C901  # one case for each way
        if exchange not in self.in_flight:
            return
        if exchange.reader is not None and how not in ("answer of another", "lost"):
            self.complete(exchange)  # its stream ends
            return
        exchange.sent = exchange.sent or how != "not connected"
        head, ids = self.client.head, [json.loads(raw) for raw in exchange.ids.values()]
        answers = [self.answer(exchange, one) for one in ids]
        match how:
            case "json" if exchange.call_id and self.client.takes_whole(exchange, 9):
                self.whole(exchange, answers[0])
            case "json" if exchange.kind is Kind.REQUEST and answers:
                head(exchange, 200, {b"content-type": b"application/json", **self.session(exchange)})
                self.client.body(exchange, json.dumps(answers[0] if len(answers) == 1 else answers, indent=1).encode())
                self.complete(exchange)
            case "json" if exchange.kind is Kind.REOPEN:
                head(exchange, 200, {b"content-type": b"application/json", **self.session(exchange)})
                self.client.body(exchange, json.dumps(self.answer(exchange, 0)).encode())
                self.complete(exchange)
            case "stream" | "half a stream" | "broken stream" if exchange.reader is None:
                head(exchange, 200, {b"content-type": b"text/event-stream", **self.session(exchange)})
                text = 'data: {"jsonrpc":"2.0","method":"x"}\n\n' if how == "stream" else "id: 7\ndata:\n\n"
                if how == "stream":
                    text += "".join(f"data: {json.dumps(one)}\n\n" for one in answers)
                if exchange.kind is Kind.REOPEN and how == "stream":
                    text += f"data: {json.dumps(self.answer(exchange, 0))}\n\n"
                self.client.body(exchange, text.encode())
                if exchange in self.in_flight:
                    (self.lost if how == "broken stream" else self.complete)(exchange)
            case "open stream":
                self.open_stream(exchange)
            case "answer of another":
                self.open_stream(exchange)
                others = [one for one in self.in_flight if one.ids and one is not exchange and one.sent]
                if others and exchange.reader is not None:
                    number = json.loads(next(iter(others[0].ids.values())))
                    self.client.body(exchange, f"data: {json.dumps(self.answer(others[0], number))}\n\n".encode())
            case "not connected" | "lost":
                self.lost(exchange)
            case "unknown session":
                self.repeatable[exchange.body] += 1
                number = ids[0] if ids else None
                error = {"jsonrpc": "2.0", "id": number, "error": {"code": -32001, "message": "Session not found"}}
                head(exchange, 404, {b"content-type": b"application/json"})
                self.client.body(exchange, json.dumps(error).encode())
                self.complete(exchange)
            case "redirect":
                self.status(exchange, 307, {b"location": b"/new"})
            case _ if how.isdigit():
                self.status(exchange, int(how), {})
            case _:
                self.status(exchange, 202, {})

    def open_stream(self, exchange: Exchange) -> None:
        if exchange.reader is None:
            self.client.head(exchange, 200, {b"content-type": b"text/event-stream", **self.session(exchange)})
            if exchange.kind is Kind.ENDPOINT:
                self.client.body(exchange, b"event: endpoint\ndata: /messages\n\n")

    def status(self, exchange: Exchange, status: int, headers: dict[bytes, bytes]) -> None:
        if status in (307, 401, 404) or (status < 500 and exchange.method == "initialize"):  # the older transport
            self.repeatable[exchange.body] += 1
        self.client.head(exchange, status, headers)
        self.complete(exchange)

    def session(self, exchange: Exchange) -> dict[bytes, bytes]:
        if exchange.kind is Kind.REOPEN or exchange.method == "initialize":
            self.sessions += 1
            return {b"mcp-session-id": b"s-%d" % self.sessions}
        return {}

    def answer(self, exchange: Exchange, request_id: object) -> dict[str, Any]:
        opens = exchange.kind is Kind.REOPEN or exchange.method == "initialize"
        return {"jsonrpc": "2.0", "id": request_id, "result": INIT_RESULT if opens else {}}

    def complete(self, exchange: Exchange) -> None:
        if exchange in self.in_flight:
            self.in_flight.remove(exchange)
            self.client.complete(exchange)

    def whole(self, exchange: Exchange, message: dict[str, Any]) -> None:
        self.in_flight.remove(exchange)
        self.client.whole(exchange, {b"content-type": b"application/json"}, json.dumps(message).encode())

    def lost(self, exchange: Exchange) -> None:
        self.in_flight.remove(exchange)
        self.client.lost(exchange, "The connection broke")

    def fire(self) -> None:
        if self.timers:
            self.timers.pop(0)()

    def decide_authorization(self, good: bool) -> None:
        if self.to_authorize:
            exchange = self.to_authorize.pop(0)
            if good and not exchange.authorized:
                self.client.authorized(exchange)
            else:
                self.client.not_authorized(exchange, "log in")


HOWS = [
    "json",
    "json",
    "open stream",
    "answer of another",
    "stream",
    "half a stream",
    "broken stream",
    "not connected",
    "lost",
    "redirect",
    "unknown session",
    "other",
]
STEPS = st.one_of(
    st.tuples(st.just("request"), st.booleans()),
    st.tuples(st.just("initialize"), st.just(0)),
    st.tuples(st.just("initialized"), st.just(0)),
    st.tuples(st.just("notify"), st.just(0)),
    st.tuples(st.just("cancel"), st.integers(0, 30)),
    st.tuples(
        st.just("respond"), st.tuples(st.integers(0, 30), st.sampled_from([*HOWS, "400", "401", "404", "405", "500"]))
    ),
    st.tuples(st.just("respond"), st.tuples(st.integers(0, 30), st.sampled_from(["json", "stream", "other"]))),
    st.tuples(st.just("fire"), st.just(0)),
    st.tuples(st.just("authorization"), st.booleans()),
)


class Schedule:
    """One run: what the agent has sent, and what happened."""

    def __init__(self) -> None:
        self.world = World()
        self.sent: list[int] = []
        self.cancelled: set[int] = set()

    def send(self, message: dict[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()
        call = read_call(line)
        if call is not None and not len(call.meta):
            self.world.client.send_call(call)
        else:
            self.world.client.send_line(line + b"\n")

    def request(self, method: str, params: dict[str, Any]) -> None:
        self.sent.append(len(self.sent))
        self.send({"id": self.sent[-1], "method": method, "params": params})

    def step(self, name: str, argument: Any) -> None:  # noqa: ANN401, C901  # one case for each step
        match name:
            case "request":
                self.request("tools/call", {"name": "t", "_meta": META} if argument else {"name": "t"})
            case "initialize":
                self.request("initialize", {"protocolVersion": "2025-11-25"})
            case "initialized":
                self.send({"method": "notifications/initialized"})
            case "notify":
                self.send({"method": "notifications/x"})
            case "cancel" if self.sent:
                number = self.sent[argument % len(self.sent)]
                self.cancelled.add(number)
                self.send({"method": "notifications/cancelled", "params": {"requestId": number}})
            case "respond" if self.world.in_flight:
                number, how = argument
                self.world.respond(self.world.in_flight[number % len(self.world.in_flight)], how)
            case "fire":
                self.world.fire()
            case "authorization":
                self.world.decide_authorization(argument)
            case _:  # there is nothing that it could happen to
                pass

    def finish(self, how: str) -> None:
        """The agent ends its input; from now on everything that is open ends in this way."""
        world = self.world
        world.client.end()
        for _ in range(5000):
            if world.finishes:
                return
            if world.to_authorize:
                world.decide_authorization(False)
            elif world.in_flight:
                world.respond(world.in_flight[0], how)
            else:
                world.fire()


@examples(120)
@given(st.lists(STEPS, max_size=40), st.sampled_from(["json", "lost", "404", "401", "500", "half a stream"]))
def test_whatever_happens_each_request_gets_one_response_and_no_post_is_repeated_that_may_have_had_an_effect(
    steps: list[tuple[str, Any]], end: str
) -> None:
    run = Schedule()
    for step in steps:
        run.step(*step)
    run.finish(end)
    assert run.world.finishes == 1, "the session ends"
    answers = Counter(one["id"] for one in run.world.delivered if "method" not in one)
    assert all(answers[number] == 1 or (number in run.cancelled and answers[number] == 0) for number in run.sent)
    for body, times in run.world.posted.items():
        assert times <= 1 + run.world.repeatable[body]


@given(st.lists(STEPS, max_size=25))
def test_a_session_can_be_abandoned_at_any_moment(steps: list[tuple[str, Any]]) -> None:
    run = Schedule()
    for step in steps:
        run.step(*step)
    run.world.client.abandon()
    for exchange in list(run.world.in_flight):
        assert exchange.kind is Kind.DELETE
        run.world.respond(exchange, "lost")
    assert run.world.finishes == 1
    run.world.client.end()
    while run.world.timers:
        run.world.fire()
    assert run.world.finishes == 1
    assert not run.world.in_flight


# --- single schedules ---


def opened(session: bytes = b"s-1") -> World:
    """A world after the handshake of 2025-11-25."""
    world = World()
    send(world, 0, "initialize", {"protocolVersion": "2025-11-25"})
    (initialize,) = world.in_flight
    world.client.head(initialize, 200, {b"content-type": b"application/json", b"mcp-session-id": session})
    world.client.body(initialize, json.dumps(world.answer(initialize, 0)).encode())
    world.complete(initialize)
    notify(world, "notifications/initialized")
    world.status(world.in_flight[0], 202, {})
    (listen,) = world.in_flight
    world.status(listen, 405, {})
    world.delivered.clear()
    return world


def send(world: World, number: int, method: str, params: dict[str, Any]) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    world.client.send_line(line.encode() + b"\n")


def notify(world: World, method: str, **params: object) -> None:
    world.client.send_line(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")


def in_flight(world: World, number: int) -> Exchange:
    return next(one for one in world.in_flight if b"%d" % number in one.ids)


def test_a_late_404_waits_for_the_session_that_is_being_opened() -> None:
    world = opened()
    send(world, 1, "tools/call", {"name": "t"})
    send(world, 2, "tools/call", {"name": "t"})
    world.status(in_flight(world, 1), 404, {})
    (reopen,) = [one for one in world.in_flight if one.kind is Kind.REOPEN]
    world.client.head(reopen, 200, {b"content-type": b"text/event-stream", b"mcp-session-id": b"s-2"})
    world.status(in_flight(world, 2), 404, {})  # the new id is known, and the session is not open yet
    assert world.in_flight == [reopen]
    world.client.body(reopen, b"data: %b\n\n" % json.dumps(world.answer(reopen, 0)).encode())
    (initialized,) = world.in_flight
    assert initialized.method == "notifications/initialized"
    world.status(initialized, 202, {})
    assert [one.sent_session for one in world.in_flight if one.ids] == [b"s-2", b"s-2"]


def resuming() -> World:
    """A world in which the rest of the response to request 1 is asked for."""
    world = opened()
    send(world, 1, "tools/call", {"name": "t"})
    world.respond(in_flight(world, 1), "half a stream")
    world.fire()
    assert in_flight(world, 1).kind is Kind.RESUME
    return world


def test_to_cancel_a_request_whose_response_is_being_resumed_is_to_post_the_notification() -> None:
    world = resuming()
    assert not in_flight(world, 1).sent
    notify(world, "notifications/cancelled", requestId=1)
    assert [one.method for one in world.in_flight if one.kind is Kind.MESSAGE] == ["notifications/cancelled"]


def refusal(number: object, code: int) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": "No"}}).encode()


def refuse(world: World, exchange: Exchange, status: int, body: bytes) -> None:
    world.client.head(exchange, status, {b"content-type": b"application/json"})
    world.client.body(exchange, body)
    world.complete(exchange)


@pytest.mark.parametrize(
    "body",
    [
        refusal("server-error", -32600),  # the Python SDK
        refusal(None, -32001),  # the TypeScript SDK
        refusal(1, -32001),
        refusal(1, -32600),
        refusal(1, -32000),
        b"",
        b"session not found",
    ],
)
def test_a_404_that_says_nothing_about_the_request_itself_is_a_lost_session(body: bytes) -> None:
    world = opened()
    send(world, 1, "tools/call", {"name": "t"})
    refuse(world, in_flight(world, 1), 404, body)
    assert [one.kind for one in world.in_flight] == [Kind.REOPEN]
    assert not world.delivered
    world.respond(world.in_flight[0], "json")
    world.status(world.in_flight[0], 202, {})
    refuse(world, in_flight(world, 1), 404, refusal(1, -32001))  # the second time it is the response
    assert [one["error"]["code"] for one in world.delivered] == [-32001]


@pytest.mark.parametrize("code", [-32601, -32602, -32002, 7])
def test_a_404_with_an_error_about_the_request_itself_is_its_response(code: int) -> None:
    world = opened()
    send(world, 1, "tools/call", {"name": "t"})
    refuse(world, in_flight(world, 1), 404, refusal(1, code))
    assert [one["error"]["code"] for one in world.delivered] == [code]
    assert not world.in_flight


@pytest.mark.parametrize("code", [-32601, -32001])
def test_a_404_in_the_stateless_era_is_a_response_because_there_is_no_session(code: int) -> None:
    world = World()
    send(world, 1, "tools/call", {"name": "t", "_meta": META})
    refuse(world, in_flight(world, 1), 404, refusal(1, code))
    assert [one["error"]["code"] for one in world.delivered] == [code]
    assert not world.in_flight


@pytest.mark.parametrize(
    "body",
    [
        '[{"jsonrpc":"2.0","id":1,"result":{"content":[]}}]',
        ' [{"jsonrpc":"2.0","id":"1","error":{"code":1,"message":"m"}}]',
        '[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]',
        "[]",
        "[null]",
        "[[]]",
        '[{"jsonrpc":"2.0","id":9,"result":{}}]',
        '[{"jsonrpc":"2.0","result":{}}]',
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("status", [200, 400])
def test_an_array_as_the_response_to_one_request_ends_it_with_an_error(body: str, kind: str, status: int) -> None:
    world = opened()
    send(world, 1, "tools/call", {"name": "t"})
    exchange = in_flight(world, 1)
    world.client.head(exchange, status, {b"content-type": kind.encode()})
    text = f"data: {body}\n\n" if kind == "text/event-stream" and status == 200 else body
    world.client.body(exchange, text.encode())
    if exchange in world.in_flight:
        world.complete(exchange)
    ended = [one for one in world.delivered if isinstance(one, dict) and one.get("id") == 1]
    assert [list(one) for one in ended] == [["jsonrpc", "id", "error"]]
    assert not exchange.ids
    assert world.client._in_flight.awaiting(b"1") is None


def test_an_array_is_the_response_to_a_batch() -> None:
    world = opened()
    batch = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in (1, 2)]
    world.client.send_line(json.dumps(batch).encode() + b"\n")
    exchange = in_flight(world, 1)
    answers: list[Any] = [{"jsonrpc": "2.0", "id": number, "result": {}} for number in (1, 2)]
    world.client.head(exchange, 200, {b"content-type": b"application/json"})
    world.client.body(exchange, json.dumps(answers).encode())
    world.complete(exchange)
    delivered: list[Any] = list(world.delivered)
    assert delivered == [answers]
