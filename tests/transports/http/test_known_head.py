"""A response whose head was read before is read like one with a new head, however the bytes come."""

from __future__ import annotations

import asyncio
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from hookproxy.transports.http.connection import Connection


class Wire(asyncio.Transport):
    """A transport that drops what is written."""

    def write(self, data: object) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None: ...


class Owner:
    """Notes what becomes of the connection."""

    def __init__(self) -> None:
        self.events: list[object] = []

    def idle(self, _connection: Connection) -> None:
        self.events.append("idle")

    def closed(self, _connection: Connection) -> None:
        self.events.append("closed")

    def flow_changed(self) -> None: ...


class Handler:
    """Notes a response."""

    def __init__(self, events: list[object]) -> None:
        self._events = events
        self._body = b""

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None:
        self._events.append((status, sorted(headers.items())))

    def on_body(self, piece: bytes) -> None:
        self._body += piece

    def on_complete(self) -> None:
        self._events.append(("complete", self._body))

    def on_lost(self, _why: str) -> None:
        self._events.append(("lost", self._body))


def events_of(responses: list[bytes], *, cut: bool) -> list[object]:
    """What is told of these responses, each of which answers a request; with `cut` each comes in two pieces."""
    owner = Owner()

    async def run() -> None:
        connection = Connection(owner, asyncio.get_running_loop())
        connection.connection_made(Wire())
        for response in responses:
            if connection.is_closed:
                return
            connection.request(b"", b"", Handler(owner.events))
            for piece in (response[:10], response[10:]) if cut else (response,):
                if not connection.is_closed:
                    connection.data_received(piece)
            if not connection.is_closed and owner.events[-1:] != ["idle"] and "complete" not in str(owner.events[-1:]):
                connection.eof_received()

    asyncio.run(run())
    return owner.events


HEADS: Final = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length:%b \r\nX: Content-Length: 3\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: %b\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: %b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %b\r\n\r\n",
        b"HTTP/1.1 500 No\r\nContent-Length: %b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: %b\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: %b\r\n\r\n",
    ]
)
LENGTHS: Final = st.sampled_from(
    [b"3", b"3", b"0", b"03", b"+3", b"-3", b"3, 3", b"", b"9" * 19, b"3\r\nContent-Length: 3"]
)
BODIES: Final = st.sampled_from(
    [b"abc", b"abc", b"", b"ab", b"abcHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"abc\r"]
)


@given(HEADS, st.lists(st.tuples(LENGTHS, BODIES), min_size=1, max_size=4))
def test_a_response_with_a_known_head_is_read_like_a_new_one(head: bytes, rest: list[tuple[bytes, bytes]]) -> None:
    responses = [head % b"3" + b"abc", *(head % length + body for length, body in rest)]
    assert events_of(responses, cut=False) == events_of(responses, cut=True)


def test_the_length_is_the_one_that_came() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %b\r\n\r\n"
    events = events_of([head % b"3" + b"abc", head % b"4" + b"abcd"], cut=False)
    assert events[-3:] == [(200, [(b"content-length", b"4")]), "idle", ("complete", b"abcd")]
