"""Requests are read without I/O: bytes in, requests or a refusal out, however the bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.transports.http.listener_limits import ListenerLimits
from hookproxy.transports.http.request_reader import Peer, Request, RequestReader

PEER = Peer("127.0.0.1")


def post(body: bytes, head: bytes = b"") -> bytes:
    return b"POST /mcp HTTP/1.1\r\nHost: a\r\n%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body)


def read(reader: RequestReader, data: bytes) -> list[Request]:
    """As a connection reads: a request that repeats a known head, or the parser."""
    if not reader.ready and (request := reader.repeated(data)) is not None:
        return [request]
    reader.feed(data)
    requests = list(reader.ready)
    reader.ready.clear()
    return requests


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.lists(st.integers(0, 400), max_size=6))
def test_requests_are_the_same_however_their_bytes_are_cut(bodies: list[bytes], cuts: list[int]) -> None:
    data = b"".join(map(post, bodies))
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    reader = RequestReader(ListenerLimits(), PEER)
    requests = [request for start, end in pairwise(places) if start < end for request in read(reader, data[start:end])]
    assert [request.body for request in requests] == bodies
    assert {request.target for request in requests} == {b"/mcp"}
    assert reader.refusal is None
    assert not reader.in_request


def test_a_request_that_repeats_a_head_has_the_notes_of_the_one_before() -> None:
    reader = RequestReader(ListenerLimits(), PEER)
    (first,), (second,) = read(reader, post(b"one")), read(reader, post(b"other"))
    assert second.body == b"other"
    assert second.notes is first.notes
    (third,) = read(reader, post(b"one", b"X: 1\r\n"))
    assert third.notes is not first.notes


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 400),
        (b"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        (b"POST / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nHost: a\r\nX: %b" % (b"x" * 300), 431),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\n\r\n", 415),
        (b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n", 417),
    ],
)
def test_what_is_refused_ends_the_requests_of_its_connection(data: bytes, status: int) -> None:
    reader = RequestReader(ListenerLimits(body_bytes=20, head_bytes=200), PEER)
    (first,) = read(reader, post(b"x"))
    assert first.body == b"x"
    assert read(reader, data) == []
    assert reader.refusal is not None
    assert reader.refusal[0] == status


def test_a_body_that_is_awaited_says_so() -> None:
    reader = RequestReader(ListenerLimits(), PEER)
    whole = post(b"body", b"Expect: 100-continue\r\n")
    assert read(reader, whole[:-2]) == []
    assert (reader.in_request, reader.in_body, reader.owes_continue, reader.size) == (True, True, True, 2)
    assert [request.body for request in read(reader, whole[-2:])] == [b"body"]
    assert (reader.in_request, reader.in_body, reader.owes_continue) == (False, False, False)


def test_a_body_that_comes_in_small_pieces_takes_no_more_than_its_bytes() -> None:
    reader = RequestReader(ListenerLimits(), PEER)
    read(reader, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(3000):
        read(reader, b"40\r\n%b\r\n" % (b"x" * 64))
    assert len(reader._body) == 1
    assert reader.held >= 3000 * 64
    read(reader, b"2000\r\n%b\r\n" % (b"y" * 8192))
    (request,) = read(reader, b"1\r\nz\r\n0\r\n\r\n")
    assert request.body == b"x" * 64 * 3000 + b"y" * 8192 + b"z"


def test_chunks_that_are_all_frame_are_refused() -> None:
    reader = RequestReader(ListenerLimits(), PEER)
    read(reader, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    read(reader, b"1\r\nx\r\n" * 256)
    assert reader.refusal is None
    read(reader, b"1\r\nx\r\n" * 30)
    assert reader.refusal == (400, "its chunks are too small: most have fewer than 64 bytes")


def test_the_head_of_a_request_is_there_before_its_body() -> None:
    reader = RequestReader(ListenerLimits(), PEER)
    for cut in (100, 60):  # the second head is known
        data = post(b"x" * 100, b"X: 1\r\n")
        assert read(reader, data[:-cut]) == []
        head = reader.head()
        assert (head.method, head.target, head.body, head.is_whole) == (b"POST", b"/mcp", b"", False)
        assert (b"content-length", b"100") in head.headers
        (request,) = read(reader, data[-cut:])
        assert request.headers == [(b"host", b"a"), (b"x", b"1")]
        assert request.is_whole


@pytest.mark.parametrize("first", [b"", b"x"])
@pytest.mark.parametrize("piece", [b"\r\n" * 8, b"\n", b"\r\n" * 3000])
def test_who_sends_only_empty_lines_is_refused(first: bytes, piece: bytes) -> None:
    reader = RequestReader(ListenerLimits(), PEER)
    assert len(read(reader, post(first))) == 1
    for _ in range(100):
        assert read(reader, piece) == []
    assert reader.refusal == (400, "only empty lines come, and no request")


def test_some_empty_lines_before_a_request_are_ignored() -> None:
    reader = RequestReader(ListenerLimits(), PEER)
    for _ in range(100):
        assert read(reader, b"\r\n\r\n") == []
        assert [request.body for request in read(reader, post(b"x"))] == [b"x"]
    assert reader.refusal is None
