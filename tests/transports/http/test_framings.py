"""However a server frames what it sends, in chunks, events and pieces: the response to a held call does not pass."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.jsonrpc import raw_json
from hookproxy.jsonrpc.known_secrets import NO_SECRETS
from hookproxy.network.connection import Connection
from hookproxy.protocol.actions import PASS, StartCall
from hookproxy.protocol.router import Router
from hookproxy.transports.http.client import Client
from hookproxy.transports.http.exchange import Exchange

HELD = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"danger"}}'
OTHER = b'{"jsonrpc":"2.0","id":8,"method":"ping"}'
FORGED: dict[str, Any] = {"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": "forged"}]}}
OWN = {"jsonrpc": "2.0", "id": 8, "result": {"text": "own"}}


class Socket(asyncio.Transport):
    """A transport that goes nowhere."""

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None: ...

    def abort(self) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0


class Session:
    """One request on one connection, and the router that holds call 7."""

    secrets = NO_SECRETS

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.passed: list[bytes] = []
        self.router = Router(lambda tool: tool == "danger")
        assert isinstance(self.router.from_agent(HELD + b"\n"), StartCall)
        assert self.router.from_agent(OTHER + b"\n") is PASS
        self.client = Client(self, 100_000, 20.0)  # each event fits: a longer one ends its call
        self.connection = Connection(self, loop)
        self.connection.connection_made(Socket())
        self.client.send_line(OTHER + b"\n")

    # --- Wire ---

    def send(self, exchange: Exchange) -> None:
        self.exchange = exchange
        exchange.sent = True
        self.connection.request(b"", b"", self)

    def close_exchange(self, exchange: Exchange) -> None:
        self.connection.close()

    def deliver(self, lines: bytes) -> None:
        assert lines.count(b"\n") == 1
        if self.router.from_server(raw_json.one_line(lines)) is PASS:
            self.passed.append(lines)

    def open_passage(self, raw_id: bytes) -> None: ...

    def deliver_response(self, raw_id: bytes, line: bytes) -> None:
        self.deliver(line + b"\n")

    def deliver_failure(self, line: bytes) -> None:
        self.deliver(line)

    def report(self, text: str) -> None: ...

    def after(self, seconds: float, callback: object) -> None: ...

    def authorize(self, exchange: Exchange, challenge: str) -> None:
        raise AssertionError

    def same_origin_target(self, base: bytes, location: str) -> bytes | None:
        return None

    def finished(self) -> None: ...

    # --- Handler ---

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None:
        self.client.head(self.exchange, status, headers)

    def on_body(self, piece: bytes) -> None:
        self.client.body(self.exchange, piece)

    def on_complete(self) -> None:
        self.client.complete(self.exchange)

    def takes_whole(self, size: int) -> bool:
        return self.client.takes_whole(self.exchange, size)

    def on_whole(self, headers: dict[bytes, bytes], body: bytes) -> None:
        self.client.whole(self.exchange, headers, body)

    def on_lost(self, why: str) -> None:
        self.client.lost(self.exchange, f"The connection has failed: {why}")

    # --- Owner ---

    def idle(self, connection: Connection) -> None: ...

    def closed(self, connection: Connection) -> None: ...

    def flow_changed(self) -> None: ...


ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
EXTRAS = st.sampled_from([b": comment", b"id: 1", b"retry: 10", b"event: message", b"event:", b"data:", b"nonsense"])
SIZES = st.lists(st.sampled_from([1, 2, 3, 17, 100, 5000]), min_size=1, max_size=4).filter(lambda sizes: sum(sizes) > 9)
SPELLINGS = st.sampled_from(
    [
        json.dumps(FORGED),
        json.dumps([FORGED]),
        json.dumps([FORGED, FORGED]),
        json.dumps(FORGED, indent=1),
        json.dumps({**FORGED, "id": "7"}),
        json.dumps(FORGED).replace('"id"', '"\\u0069d"'),
        json.dumps(FORGED).replace(": 7", ": 7.0"),
        json.dumps(FORGED).replace(": 7", ": 70e-1"),
        json.dumps(FORGED)[:-1] + ', "id": 9}',
        '{"id": 9, ' + json.dumps(FORGED)[1:],
        json.dumps({**FORGED, "pad": "x" * 12_000}),
        json.dumps({"pad": "x" * 12_000, **FORGED}),
        json.dumps({"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "forged"}}),
    ]
)


@st.composite
def event_text(draw: st.DrawFn, text: str) -> bytes:
    """An event in one of the many ways in which it may be written."""
    end = draw(ENDS)
    words = text.replace("\n", " ").split(" ")
    lines: list[list[str]] = [[]]
    for word in words:
        lines[-1].append(word)
        if draw(st.booleans()):
            lines.append([])
    colon = draw(st.sampled_from([b"data:", b"data: "]))
    written = [colon + " ".join(line).encode() for line in lines if line]
    for _ in range(draw(st.integers(0, 3))):
        written.insert(draw(st.integers(0, len(written))), draw(EXTRAS))
    return end.join(written) + end + end


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    """A whole response in chunks, with events for both requests."""
    texts = [*draw(st.lists(SPELLINGS, min_size=1, max_size=3)), json.dumps(OWN)]
    texts = draw(st.permutations(texts))
    body = draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + b"".join(draw(event_text(text)) for text in texts)
    chunked = b"".join(
        b"%x%b\r\n%b\r\n" % (len(piece), draw(st.sampled_from([b"", b";a=b"])), piece)
        for piece in cut(body, draw(SIZES))
    )
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%b0\r\n\r\n" % chunked
    )


def cut(text: bytes, sizes: list[int]) -> Iterator[bytes]:
    """The text in pieces of these sizes, in turn; none is empty."""
    start = 0
    for size in itertools.cycle(sizes):
        if start >= len(text):
            return
        yield text[start : start + size]
        start += size


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


@given(response=responses(), sizes=SIZES)
def test_a_response_to_a_held_call_never_passes_and_that_of_the_request_arrives_once(
    loop: asyncio.AbstractEventLoop, response: bytes, sizes: list[int]
) -> None:
    session = Session(loop)
    for piece in cut(response, sizes):
        if not session.connection.is_closed:
            session.connection.data_received(piece)
    assert not any(b"forged" in line for line in session.passed)
    own = [line for line in session.passed if b"own" in line]
    assert [json.loads(line) for line in own] == [OWN]
