"""A response whose head was read before is read like one with a new head, however the bytes come."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from hookproxy.network.connection import Connection


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

    def __init__(self, events: list[object], *, takes_whole: bool = False) -> None:
        self._events = events
        self._takes_whole = takes_whole
        self._body = b""

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None:
        self._events.append((status, sorted(headers.items())))

    def on_body(self, piece: bytes) -> None:
        self._body += piece

    def on_complete(self) -> None:
        self._events.append(("complete", self._body))

    def takes_whole(self, size: int) -> bool:
        return self._takes_whole and size > 0

    def on_whole(self, headers: dict[bytes, bytes], body: bytes) -> None:
        self._events.append((200, sorted((headers | {b"content-length": b"%d" % len(body)}).items())))
        self._events.append(("complete", body))

    def on_lost(self, _why: str) -> None:
        self._events.append(("lost", self._body))


def events_of(responses: list[bytes], *, cut: bool, takes_whole: bool = False) -> list[object]:
    """What is told of these responses, each of which answers a request; with `cut` each comes in two pieces.

    With `takes_whole` those that may come in one call do.
    """
    owner = Owner()

    async def run() -> None:
        connection = Connection(owner, asyncio.get_running_loop())
        connection.connection_made(Wire())
        for response in responses:
            if connection.is_closed:
                return
            connection.request(b"", b"", Handler(owner.events, takes_whole=takes_whole))
            for piece in (response[:10], response[10:]) if cut else (response,):
                if not connection.is_closed:
                    connection.data_received(piece)
            if not connection.is_closed and owner.events[-1:] != ["idle"] and "complete" not in str(owner.events[-1:]):
                connection.eof_received()

    asyncio.run(run())
    return owner.events


HEADS: Final = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: br\r\nContent-Length: %b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %b\r\n\r\n",
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
    assert with_plain_lengths(events_of(responses, cut=False)) == with_plain_lengths(events_of(responses, cut=True))


def with_plain_lengths(events: list[object]) -> list[object]:
    """What is told, with the length of a response as a number: a known head has it in its shortest spelling."""
    return [plain_length(each) if isinstance(each, tuple) and each[0] == 200 else each for each in events]


def plain_length(response: tuple[int, list[tuple[bytes, bytes]]]) -> tuple[int, list[tuple[bytes, bytes]]]:
    status, fields = response
    return status, [
        (name, b"%d" % int(value)) if name == b"content-length" else (name, value) for name, value in fields
    ]


def without_order_and_length(events: list[object]) -> list[object]:
    """What is told of the responses, wherever the connection became free, and however their lengths are spelled."""
    told = [each for each in events if isinstance(each, tuple)]
    return [(one, [each for each in two if each[0] != b"content-length"] if one == 200 else two) for one, two in told]


@given(HEADS, st.lists(st.tuples(LENGTHS, BODIES), min_size=1, max_size=4))
def test_a_response_in_one_call_says_the_same_as_one_in_three(head: bytes, rest: list[tuple[bytes, bytes]]) -> None:
    responses = [head % b"3" + b"abc", *(head % length + body for length, body in rest)]
    one, three = (events_of(responses, cut=False, takes_whole=whole) for whole in (True, False))
    assert one.count("idle") == three.count("idle")
    assert without_order_and_length(one) == without_order_and_length(three)


def test_a_connection_is_free_before_its_response_is_passed_on_in_one_call() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %b\r\n\r\n"
    events = events_of([head % b"3" + b"abc", head % b"4" + b"abcd"], cut=False, takes_whole=True)
    assert events[-3] == "idle"
    assert events[-1] == ("complete", b"abcd")


def test_an_encoded_response_and_a_stream_never_come_in_one_call() -> None:
    for lines in (b"Content-Type: application/json\r\nContent-Encoding: br", b"Content-Type: text/event-stream"):
        head = b"HTTP/1.1 200 OK\r\n%b\r\nContent-Length: 3\r\n\r\n" % lines
        events = events_of([head + b"abc", head + b"abc"], cut=False, takes_whole=True)
        assert events[-2:] == ["idle", ("complete", b"abc")]


def test_the_length_is_the_one_that_came() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %b\r\n\r\n"
    events = events_of([head % b"3" + b"abc", head % b"4" + b"abcd"], cut=False)
    assert events[-3:] == [(200, [(b"content-length", b"4")]), "idle", ("complete", b"abcd")]


LONG: Final = 600_000
LONG_HEADS: Final = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n",
        b"HTTP/1.1 500 No\r\nContent-Length: %d\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nContent-Length: 3\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: %d\r\n\r\n",
    ]
)


def events_of_pieces(pieces: list[bytes]) -> list[object]:
    """What is told of a response that comes in these pieces, and of a short one after it; then the server closes."""
    owner = Owner()

    async def run() -> None:
        connection = Connection(owner, asyncio.get_running_loop())
        connection.connection_made(Wire())
        connection.request(b"", b"", Handler(owner.events))
        for piece in pieces:
            if not connection.is_closed:
                connection.data_received(piece)
        if owner.events[-2:-1] == ["idle"]:
            connection.request(b"", b"", Handler(owner.events))
            connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
        if not connection.is_closed:
            connection.eof_received()

    asyncio.run(run())
    return owner.events


@given(LONG_HEADS, st.lists(st.integers(0, LONG), max_size=4), st.sampled_from([0, -1, 1]))
def test_a_long_body_in_pieces_is_read_like_one_that_comes_at_once(head: bytes, cuts: list[int], more: int) -> None:
    text = head % LONG + b"x" * (LONG + more)
    start = len(head % LONG)
    cuts = sorted({*cuts, LONG - 1})
    places = [0, start + 1, *(start + 1 + cut for cut in cuts), len(text)]
    pieces = [text[one:other] for one, other in pairwise(places) if one < other]
    bytewise = [text[: start + 1], *(text[at : at + 100_000] for at in range(start + 1, len(text), 100_000))]
    told = events_of_pieces(pieces)
    if more <= 0:  # a byte too many is seen with the end, or after it
        assert told == events_of_pieces(bytewise)
    if more == 0 and head.startswith(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"):
        assert told[1:3] == ["idle", ("complete", b"x" * LONG)]
        assert told[-3:] == ["idle", ("complete", b"abc"), "closed"]
    elif more != 0:
        assert ("complete", b"abc") not in told, "the connection is not used again"


def test_bytes_behind_a_long_body_are_never_the_next_response() -> None:
    forged = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LONG
    told = events_of_pieces([head + b"x", b"x" * (LONG - 2), b"x" + forged])
    assert told[-2:] == ["closed", ("lost", b"x" * LONG)]
