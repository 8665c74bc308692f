"""The listener for agents: framing compared with another reader, limits, what a client's end means; real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import re
import shutil
import socket
import ssl
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Final

import anyio
import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.transports.event_loop import new_loop
from hookproxy.transports.http.accepting import serve_sockets
from hookproxy.transports.http.listener import Admission, Admit, Admitted, HeadRefused, Listener
from hookproxy.transports.http.listener_limits import ListenerLimits
from hookproxy.transports.http.request_reader import Peer, Request
from hookproxy.transports.http.responder import Responder

pytestmark = pytest.mark.anyio

TCP_REPAIR: Final = 19  # of Linux's <linux/tcp.h>; the module `socket` has no name for it
HOST: Final = b"Host: a\r\n"
SOON: Final = 0.02  # seconds: a time limit that a test waits for
POST: Final = b"POST /mcp/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"


@pytest.fixture(params=[new_loop, None], ids=["direct", "asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    """On both kinds of loops: each has connections of its own."""
    return "asyncio", {"loop_factory": request.param}


def echo(request: Request, responder: Responder) -> None:
    """The method, the target and the body."""
    responder.respond(200, [(b"X-Test", b"yes")], b"%b %b %b" % (request.method, request.target, request.body))


class Kept:
    """A handler that keeps what it gets, for the test to respond."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.responders: list[Responder] = []
        self._came = asyncio.Event()

    def __call__(self, request: Request, responder: Responder) -> None:
        self.requests.append(request)
        self.responders.append(responder)
        self._came.set()

    async def next(self) -> Responder:
        """The responder of the next request."""
        with anyio.fail_after(30):
            await self._came.wait()
        self._came.clear()
        return self.responders[-1]


class Client:
    """A client that writes and reads bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._left = b""  # of what was read, behind the response

    async def ask(self, data: bytes) -> h11.Response:
        """Send bytes and read one response; its body is in `self.body`."""
        self.writer.write(data)
        return await self.response()

    async def response(self) -> h11.Response:
        reading = h11.Connection(h11.CLIENT)
        if self._left:
            reading.receive_data(self._left)
        reading.send(h11.Request(method="POST", target="/", headers=[("Host", "a"), ("Content-Length", "0")]))
        reading.send(h11.EndOfMessage())
        found: h11.Response | None = None
        self.body = b""
        async with asyncio.timeout(5):
            while True:
                event = reading.next_event()
                if event is h11.NEED_DATA:
                    reading.receive_data(await self.reader.read(65536))
                elif isinstance(event, h11.Response):
                    found = event
                elif isinstance(event, h11.Data):
                    self.body += bytes(event.data)
                else:
                    assert isinstance(event, h11.EndOfMessage)
                    assert found is not None
                    self._left = reading.trailing_data[0]
                    return found

    async def rest(self) -> bytes:
        """All that comes until the listener closes the connection."""
        with anyio.fail_after(30):
            return await self.reader.read()


@asynccontextmanager
async def listening(
    handle: Callable[[Request, Responder], None] = echo,
    limits: ListenerLimits | None = None,
    refused: list[tuple[int, str]] | None = None,
    tls: ssl.SSLContext | None = None,
    admit: Admit | None = None,
) -> AsyncIterator[tuple[Listener, int]]:
    """A listener and its port."""

    def note(_peer: Peer, status: int, why: str) -> None:
        if refused is not None:
            refused.append((status, why))

    listener = Listener(handle, limits or ListenerLimits(), note)
    if admit is not None:
        listener.admit = admit
    server = socket.create_server(("127.0.0.1", 0))
    server.setblocking(False)
    await serve_sockets(listener, server, tls)
    try:
        yield listener, server.getsockname()[1]
    finally:
        asyncio.get_running_loop().remove_reader(server)
        server.close()
        listener.close()
        with anyio.fail_after(30):
            await listener.closed()
        assert len(listener._open) == 0
        assert listener.held.total == 0
        assert len(listener.crowd) == 0


@asynccontextmanager
async def connected(port: int, tls: ssl.SSLContext | None = None) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    try:
        yield Client(reader, writer)
    finally:
        writer.transport.abort()


@asynccontextmanager
async def client_of(
    handle: Callable[[Request, Responder], None] = echo, limits: ListenerLimits | None = None
) -> AsyncIterator[Client]:
    async with listening(handle, limits) as (_, port), connected(port) as client:
        yield client


# --- requests and responses ---


async def test_a_request_is_handled_whole_and_the_connection_is_used_again() -> None:
    kept = Kept()
    async with client_of(kept) as client:
        for _ in range(2):
            client.writer.write(
                b"POST /mcp/x HTTP/1.1\r\nHOST: a\r\nX-A:  1 \t\r\nx-a: 2\r\nContent-Length: 3\r\n\r\nabc"
            )
            responder = await kept.next()
            was_open = responder.is_open
            responder.respond(200, [], b"fine")
            assert (was_open, responder.is_open) == (True, False)
            response = await client.response()
            assert (response.status_code, client.body) == (200, b"fine")
            assert b"date" in dict(response.headers)
        request = kept.requests[0]
        assert (request.method, request.target, request.body) == (b"POST", b"/mcp/x", b"abc")
        assert request.headers == [(b"host", b"a"), (b"x-a", b"1"), (b"x-a", b"2")]
        assert request.peer == Peer("127.0.0.1")


async def test_a_body_in_chunks_is_one_body() -> None:
    async with client_of() as client:
        head = b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        await client.ask(head + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nHost: b\r\n\r\n")
        assert client.body == b"POST /x abcde"


async def test_a_client_that_asks_whether_it_may_send_its_body_may() -> None:
    async with client_of() as client:
        client.writer.write(b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-Continue\r\n\r\n")
        with anyio.fail_after(30):
            assert await client.reader.readexactly(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.ask(b"abc")
        assert client.body == b"POST /x abc"


async def test_the_question_about_a_body_is_answered_after_the_response_before_it() -> None:
    kept = Kept()
    async with client_of(kept) as client:
        client.writer.write(POST + b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        (await kept.next()).respond(204)
        with anyio.fail_after(30):
            head = await client.reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 204")
            assert await client.reader.readexactly(25) == b"HTTP/1.1 100 Continue\r\n\r\n"


async def test_a_response_in_pieces_has_chunks_and_the_connection_is_used_again() -> None:
    def handle(_request: Request, responder: Responder) -> None:
        responder.start(200, [(b"Content-Type", b"text/event-stream")], b"one ")
        responder.write(b"")
        responder.write(b"two ")
        responder.write(b"x" * 100_000)
        responder.end(b" three")

    async with client_of(handle) as client:
        for _ in range(2):
            response = await client.ask(POST)
            assert (b"transfer-encoding", b"chunked") in response.headers
            assert client.body == b"one two " + b"x" * 100_000 + b" three"


async def test_a_response_in_pieces_may_have_a_length_and_the_connection_is_used_again() -> None:
    def handle(_request: Request, responder: Responder) -> None:
        responder.start(200, [], b"one ", 7)
        with pytest.raises(ValueError, match="longer than its length"):
            responder.write(b"four")
        responder.write(b"two")
        with pytest.raises(ValueError, match="longer than its length"):
            responder.end(b"!")
        responder.end()

    async with client_of(handle) as client:
        for _ in range(2):
            response = await client.ask(POST)
            assert (b"content-length", b"7") in response.headers
            assert b"transfer-encoding" not in dict(response.headers)
            assert client.body == b"one two"


async def test_a_response_that_ends_before_its_length_breaks_the_connection_off() -> None:
    responders: list[Responder] = []

    def handle(_request: Request, responder: Responder) -> None:
        responders.append(responder)
        responder.start(200, [], b"one ", 7)
        responder.end(b"tw")

    async with client_of(handle) as client:
        client.writer.write(POST + POST)
        with anyio.fail_after(30), contextlib.suppress(ConnectionResetError):
            received = await client.reader.read(-1)
            assert received.count(b"HTTP/1.1") <= 1, "a second response would be taken for the rest of the first"
        assert len(responders) == 1
        assert not responders[0].is_open


async def test_to_a_client_of_http_1_0_the_end_of_the_connection_is_the_end_of_the_body() -> None:
    def handle(_request: Request, responder: Responder) -> None:
        responder.start(200, [], b"one ")
        responder.write(b"two")
        responder.end()

    async with client_of(handle) as client:
        client.writer.write(b"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
        head, _, body = (await client.rest()).partition(b"\r\n\r\n")
        assert b"chunked" not in head
        assert b"Connection: close" in head
        assert body == b"one two"


async def test_a_response_to_head_has_no_body() -> None:
    async with client_of() as client:
        client.writer.write(b"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = await client.rest()
        assert b"Content-Length: 7\r\n" in answer
        assert answer.endswith(b"\r\n\r\n")


async def test_requests_sent_ahead_are_handled_one_after_another() -> None:
    kept = Kept()
    async with client_of(kept) as client:
        client.writer.write(POST + POST)
        first = await kept.next()
        client.writer.write(POST)
        first.respond(200, [], b"1")
        await client.response()
        for number in (2, 3):
            (await kept.next()).respond(200, [], b"%d" % number)
            await client.response()
            assert client.body == b"%d" % number


async def test_what_is_written_after_the_end_is_dropped() -> None:
    def handle(_request: Request, responder: Responder) -> None:
        responder.respond(200, [], b"first")
        responder.respond(500, [], b"second")
        responder.start(500)
        responder.write(b"third")
        responder.end()

    async with client_of(handle) as client:
        await client.ask(POST)
        assert client.body == b"first"
        await client.ask(POST)
        assert client.body == b"first"


@pytest.mark.parametrize("bad", [b"a\r\nX: y", b"a\n", b"a\rb"])
async def test_a_header_cannot_end_the_head(bad: bytes) -> None:
    raised: list[BaseException] = []

    def handle(_request: Request, responder: Responder) -> None:
        try:
            responder.respond(200, [(b"X", bad)], b"")
        except ValueError as problem:
            raised.append(problem)
            responder.respond(500)

    async with client_of(handle) as client:
        assert (await client.ask(POST)).status_code == 500
        assert raised


@pytest.mark.parametrize("started", [False, True])
async def test_a_handler_that_fails_is_reported_and_the_client_is_not_left_waiting(started: bool) -> None:
    contexts: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: contexts.append(context))

    def handle(_request: Request, responder: Responder) -> None:
        if started:
            responder.start(200)
        raise RuntimeError("as a test")

    async with client_of(handle) as client:
        client.writer.write(POST)
        if started:
            with pytest.raises(h11.RemoteProtocolError):
                await client.response()
        else:
            assert (await client.response()).status_code == 500
    assert isinstance(contexts[0]["exception"], RuntimeError)


async def test_a_handler_that_fails_when_its_client_is_gone_keeps_nobody_else_from_the_end() -> None:
    contexts: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: contexts.append(context))

    def fail() -> None:
        raise RuntimeError("as a test")

    kept = Kept()
    async with listening(kept) as (listener, port), connected(port) as first, connected(port) as second:
        for client in (first, second):
            client.writer.write(POST)
            (await kept.next()).on_gone = fail
        listener.close()
        with anyio.fail_after(30):
            await listener.closed()
    assert [str(one["exception"]) for one in contexts] == ["as a test"] * 2


# --- framing that readers could take differently ---

CHUNKED: Final = b"Transfer-Encoding: chunked\r\n"
REFUSED: Final = {
    "length and chunks": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n" + CHUNKED + b"\r\n0\r\n\r\n", 400),
    "chunks and length": (b"POST / HTTP/1.1\r\nHost: a\r\n" + CHUNKED + b"Content-Length: 5\r\n\r\n0\r\n\r\n", 400),
    "two lengths": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
    "twice the same length": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400),
    "a list of lengths": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc", 400),
    "a signed length": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc", 400),
    "a length beyond all numbers": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n", 400),
    "a folded header": (b"POST / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400),
    "line feeds": (b"GET / HTTP/1.1\nHost: a\n\n", 400),
    "one line feed": (b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400),
    "a line feed at the end": (b"GET / HTTP/1.1\r\nHost: a\r\n\n", 400),
    "a line feed in chunks": (b"POST / HTTP/1.1\r\nHost: a\r\n" + CHUNKED + b"\r\n3\nabc\n0\n\n", 400),
    "a line feed in an extension": (b"POST / HTTP/1.1\r\nHost: a\r\n" + CHUNKED + b"\r\n3;a\nabc\r\n0\r\n\r\n", 400),
    "a carriage return": (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400),
    "NUL": (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", 400),
    "a blank before the colon": (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
    "chunks of HTTP/1.0": (b"POST / HTTP/1.0\r\nHost: a\r\n" + CHUNKED + b"\r\n0\r\n\r\n", 400),
    "gzip": (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    "chunked twice": (b"POST / HTTP/1.1\r\nHost: a\r\n" + CHUNKED + CHUNKED + b"\r\n0\r\n\r\n", 400),
    "no chunked": (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", 501),
    "two hosts": (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "no host in HTTP/1.0": (b"GET / HTTP/1.0\r\n\r\n", 400),
    "another protocol": (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 400),
    "HTTP/2 without TLS": (b"POST / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n", 400),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "HTTP/2.0": (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    "HTTP/0.9": (b"GET /\r\n\r\n", 505),
    "a whole URL": (b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "a star": (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "CONNECT": (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 501),
    "TRACE": (b"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
    "a method of RTSP": (b"DESCRIBE /x RTSP/1.0\r\nHost: a\r\n\r\n", 501),
    "a target that is no ASCII": (b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    "an encoded body": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", 415),
    "another expectation": (b"POST / HTTP/1.1\r\nHost: a\r\nExpect: x\r\nContent-Length: 3\r\n\r\nabc", 417),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 40, 400),
    "markup": (b"<script>alert(1)</script>\r\n\r\n", 400),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
async def test_what_readers_could_frame_differently_is_refused(case: str) -> None:
    data, status = REFUSED[case]
    kept = Kept()
    refused: list[tuple[int, str]] = []
    async with listening(kept, refused=refused) as (_, port), connected(port) as client:
        response = await client.ask(data)
        assert response.status_code == status
        assert dict(response.headers)[b"content-type"].startswith(b"text/plain")
        assert dict(response.headers)[b"connection"] == b"close"
        assert b"<script>" not in client.body
        assert await client.rest() == b""
        assert [one for one, _ in refused] == [status]
    assert kept.requests == []


async def test_the_request_before_a_refused_one_has_its_response_first() -> None:
    async with client_of() as client:
        client.writer.write(POST + b"GET / HTTP/1.1\r\n\r\n")
        assert (await client.response()).status_code == 200
        assert (await client.response()).status_code == 400


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def write(self, data: object) -> None:
        assert isinstance(data, bytes)
        self.written += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None: ...


def requests_in(pieces: list[bytes]) -> tuple[list[Request], bytes]:
    """The requests that the listener reads, and all that it writes."""
    found: list[Request] = []
    wire = Wire()

    def handle(request: Request, responder: Responder) -> None:
        found.append(request)
        responder.respond(200)

    async def receive() -> None:
        connection = Listener(handle)()
        connection.connection_made(wire)
        for piece in pieces:
            connection.data_received(piece)

    asyncio.run(receive())
    return found, wire.written.split(b"Date: ")[0] if not found else wire.written


def h11_reads(data: bytes, count: int) -> list[tuple[bytes, bytes, bytes]]:
    """The first requests that h11 reads: each one's method, target and body."""
    reading = h11.Connection(h11.SERVER)
    reading.receive_data(data)
    found: list[tuple[bytes, bytes, bytes]] = []
    body = b""
    head: h11.Request | None = None
    while len(found) < count:
        event = reading.next_event()
        if isinstance(event, h11.Request):
            head, body = event, b""
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            assert head is not None
            found.append((head.method, head.target, body))
            if len(found) == count:
                break
            reading.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
            reading.send(h11.EndOfMessage())
            if reading.our_state is not h11.DONE or reading.their_state is not h11.DONE:
                break
            reading.start_next_cycle()
        else:
            break
    return found


VALID: Final = [
    POST,
    b"GET /a HTTP/1.1\r\nHost: a\r\nAccept: x\r\n\r\n",
    b"POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n",
    b"DELETE /c HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 50 + b"\r\n\r\n",
]


@given(st.lists(st.sampled_from(VALID), min_size=1, max_size=4), st.lists(st.integers(0, 400), max_size=12))
def test_cuts_anywhere_change_nothing(requests: list[bytes], cuts: list[int]) -> None:
    data = b"".join(requests)
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[start:end] for start, end in pairwise(places)]
    whole, _ = requests_in([data])
    assert requests_in(pieces)[0] == whole
    assert len(whole) == len(requests)


HEADS: Final = [
    b"POST /mcp/x HTTP/1.1\r\nHost: a\r\nContent-Length: %b\r\n\r\n",
    b"POST /mcp/x HTTP/1.1\r\nContent-length:  %b \r\nHost: a\r\nX: Content-Length: 3\r\n\r\n",
    b"POST /mcp/x HTTP/1.1\r\nHost: a\r\nX: 1\r\n Content-Length: 3\r\nContent-Length: %b\r\n\r\n",
    b"POST /mcp/x HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nContent-Length: %b\r\n\r\n",
    b"POST /mcp/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %b\r\n\r\n",
    b"POST /mcp/x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %b\r\n\r\n",
    b"PUT /mcp/x HTTP/1.1\r\nHost: a\r\nContent-Length: %b\r\n\r\n",
]
LENGTHS: Final = [
    b"3",
    b"4",
    b"0",
    b"03",
    b"+3",
    b"-3",
    b"3 ",
    b"3;",
    b"3, 3",
    b"",
    b"9" * 19,
    b"3\r\nContent-Length: 3",
]
ENDS: Final = [b"", b"", b"", b"\r", b"\r\n", b"\0", POST, b"GET / HTTP/1.1\r\n"]
REPEATED: Final = st.lists(
    st.tuples(st.sampled_from(LENGTHS), st.sampled_from([b"abc", b"abcd", b"ab", b""]), st.sampled_from(ENDS)),
    min_size=1,
    max_size=5,
)


@given(st.sampled_from(HEADS), REPEATED, st.lists(st.integers(0, 400), max_size=4))
def test_a_head_that_was_read_before_is_read_like_a_new_one(
    head: bytes, requests: list[tuple[bytes, bytes, bytes]], cuts: list[int]
) -> None:
    first = head % b"3" + b"abc"
    rest = [head % length + body + end for length, body, end in requests]
    data = b"".join(rest)
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    afresh, said = requests_in([first + data])  # in one piece, no head is known
    for pieces in ([first, data], [first, *rest], [first, *(data[start:end] for start, end in pairwise(places))]):
        found, written = requests_in(pieces)
        assert found == afresh
        assert re.sub(rb"Date: .*", b"", written) == re.sub(rb"Date: .*", b"", said)


def test_requests_with_the_same_head_have_the_same_notes() -> None:
    other = POST.replace(b"Host: a", b"Host: b")
    found, _ = requests_in([POST, POST.replace(b"3", b"1")[:-2], POST[:-2], b"bc", other, POST])
    assert [one.body for one in found] == [b"abc", b"a", b"abc", b"abc", b"abc"]
    assert found[1].headers == [(b"host", b"a")]
    assert found[0].notes is found[1].notes is found[2].notes
    assert len({id(one.notes) for one in (found[0], found[3], found[4])}) == 3


def test_what_comes_with_a_request_is_not_the_beginning_of_a_head_that_is_kept() -> None:
    rest = POST[6:]
    found, written = requests_in([POST, POST + POST[:6], rest, rest])  # 6 bytes: as if they were a head and a body
    assert [one.body for one in found] == [b"abc"] * 3
    assert b" 400 " in written


PARTS: Final = st.sampled_from(
    [
        b"\r\n", b"\n", b"\r", b" ", b"\t", b"\0", b":", b",", b";", b"0", b"3", b"\x0b", b"\xff", b"%", b"#", b"//",
        b"Content-Length: 3\r\n", b"Content-Length: 4\r\n", CHUNKED, b"Transfer-Encoding: identity\r\n", HOST,
        b"HTTP/1.0", b"HTTP/1.1", b"Connection: close\r\n", b"0\r\n\r\n", b"Transfer-Encoding:\x0bchunked\r\n",
        b"Transfer-Encoding : chunked\r\n", b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n", b"Expect: 100-continue\r\n",
    ]
)  # fmt: skip
EDITS: Final = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 4), PARTS | st.binary(max_size=2)), max_size=5)


@given(st.lists(st.sampled_from(VALID), min_size=1, max_size=3), EDITS)
def test_no_request_is_read_as_another_one_by_another_reader(
    requests: list[bytes], edits: list[tuple[int, int, bytes]]
) -> None:
    data = b"".join(requests)
    for place, removed, part in edits:
        data = data[:place] + part + data[place + removed :]
    ours = [(one.method, one.target, one.body) for one in requests_in([data])[0]]
    try:
        theirs = h11_reads(data, len(ours))
    except h11.RemoteProtocolError:
        return  # the other reader refuses all: nothing of it gets past it
    assert ours[: len(theirs)] == theirs


@pytest.mark.slow
async def test_nothing_of_a_response_is_left_when_it_has_ended() -> None:
    ends: list[weakref.ref[object]] = []
    calls: list[object] = []

    def handle(_request: Request, responder: Responder) -> None:
        class Kept: ...

        kept = Kept()
        ends.append(weakref.ref(kept))
        responder.on_gone = lambda: calls.append((kept, responder))
        responder.on_full = lambda full: calls.append((kept, responder, full))
        responder.respond(200)

    async with client_of(handle) as client:
        gc.collect()
        gc.disable()
        try:
            await client.ask(POST)
            await client.ask(POST)
            assert ends[0]() is None
            assert not calls
        finally:
            gc.enable()


# --- limits ---


async def test_a_body_that_says_it_is_too_long_is_refused_before_it_comes() -> None:
    async with client_of(limits=ListenerLimits(body_bytes=10)) as client:
        response = await client.ask(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n")
        assert response.status_code == 413


async def test_a_body_in_chunks_that_is_too_long_is_refused() -> None:
    async with client_of(limits=ListenerLimits(body_bytes=10)) as client:
        assert (
            await client.ask(b"POST / HTTP/1.1\r\nHost: a\r\n" + CHUNKED + b"\r\n" + b"6\r\nabcdef\r\n" * 2)
        ).status_code == 413


async def test_the_reason_of_a_refusal_can_be_read_while_the_body_is_still_sent() -> None:
    async with client_of(limits=ListenerLimits(body_bytes=10)) as client:
        client.writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n" + b"x" * 5_000_000)
        assert (await client.response()).status_code == 413


@pytest.mark.parametrize("endless", [b"X-Y: " + b"z" * 1000 + b"\r\n", b"z" * 1000], ids=["headers", "one header"])
async def test_a_head_without_end_is_refused(endless: bytes) -> None:
    async with client_of(limits=ListenerLimits(head_bytes=4096, headers=1000)) as client:
        assert (await client.ask(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + endless * 8)).status_code == 431


async def test_a_head_that_comes_whole_is_not_longer_than_one_in_pieces_may_be() -> None:
    async with client_of(limits=ListenerLimits(head_bytes=4096)) as client:
        assert (
            await client.ask(b"GET /" + b"x" * 4000 + b" HTTP/1.1\r\nHost: " + b"a" * 200 + b"\r\n\r\n")
        ).status_code == 431


async def test_a_long_body_does_not_count_as_a_head() -> None:
    async with client_of(limits=ListenerLimits(head_bytes=4096)) as client:
        await client.ask(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200_000)
        assert len(client.body) == 200_007


async def test_trailers_without_end_are_refused() -> None:
    async with client_of(limits=ListenerLimits(head_bytes=4096)) as client:
        data = b"POST / HTTP/1.1\r\nHost: a\r\n" + CHUNKED + b"\r\n1\r\na\r\n0\r\n" + b"X: y\r\n" * 100_000
        assert (await client.ask(data)).status_code == 431


async def test_too_many_headers_are_refused() -> None:
    async with client_of() as client:
        assert (await client.ask(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 128 + b"\r\n")).status_code == 431


async def test_one_connection_more_than_the_most_gets_a_503_if_all_are_busy() -> None:
    kept = Kept()
    async with listening(kept, ListenerLimits(connections=1)) as (listener, port), connected(port) as first:
        first.writer.write(POST)
        responder = await kept.next()
        assert responder.sent_by("alice")
        async with connected(port) as second:
            response = await second.response()
            assert (response.status_code, dict(response.headers)[b"retry-after"]) == (503, b"1")
            assert len(listener._open) == 1
        responder.respond(200)
        assert (await first.response()).status_code == 200


@pytest.mark.parametrize("known", [True, False])
async def test_one_connection_more_than_the_most_takes_the_place_of_an_idle_one(known: bool) -> None:
    kept, refused = Kept(), list[tuple[int, str]]()
    async with listening(kept, ListenerLimits(connections=1), refused) as (_, port), connected(port) as first:
        first.writer.write(POST)
        responder = await kept.next()
        if known:
            responder.sent_by("alice")
        responder.respond(200)
        await first.response()
        async with connected(port) as second:
            second.writer.write(POST)
            (await kept.next()).respond(204)
            assert (await second.response()).status_code == 204
        assert b"there is no room for so many connections" in await first.rest()
        assert refused == [(503, "there is no room for so many connections")]


async def test_strangers_of_one_address_make_room_for_its_next_one() -> None:
    limits = ListenerLimits(strangers_of_network=1)
    async with listening(limits=limits) as (listener, port), connected(port) as first, connected(port) as second:
        assert (await second.ask(POST)).status_code == 200
        async with connected(port) as third:  # the second is over the limit, which young ones may be by twice
            assert (await third.ask(POST)).status_code == 200
            assert b"without a token" in await first.rest()
            assert listener.crowd.strangers == 2


async def test_a_user_with_too_many_connections_loses_an_idle_one() -> None:
    kept = Kept()

    async def ask(client: Client) -> bool:
        client.writer.write(POST)
        responder = await kept.next()
        fits = responder.sent_by("alice")
        responder.respond(200)
        await client.response()
        return fits

    limits = ListenerLimits(connections_of_user=1)
    async with listening(kept, limits) as (_, port), connected(port) as first, connected(port) as second:
        assert await ask(first)
        assert await ask(second)
        assert b"its user has opened too many others" in await first.rest()
        second.writer.write(POST)
        busy = await kept.next()
        async with connected(port) as third:
            assert not await ask(third)
        busy.respond(200)


BEGIN: Final = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000\r\n\r\n" + b"x" * 2000


async def test_requests_that_have_not_come_whole_are_limited_together() -> None:
    limits = ListenerLimits(held_bytes=3000)
    async with listening(limits=limits) as (listener, port), connected(port) as first:
        first.writer.write(BEGIN)
        async with connected(port) as second:
            assert (await second.ask(BEGIN + b"x")).status_code == 503
        assert 2000 <= listener.held.total < 3000
        assert (await first.ask(b"x" * 1000)).status_code == 200


async def test_one_sender_cannot_hold_what_others_need() -> None:
    def admit(request: Request, _decide: object) -> Admission:
        return Admitted(dict(request.headers)[b"x-user"].decode())

    def begin(user: bytes) -> bytes:
        return BEGIN.replace(b"Host", b"X-User: %b\r\nHost" % user)

    limits = ListenerLimits(held_bytes=100_000, held_bytes_each=3000)
    async with listening(limits=limits, admit=admit) as (_, port), connected(port) as first, connected(port) as other:
        first.writer.write(begin(b"alice"))
        async with connected(port) as second:
            assert (await second.ask(begin(b"alice"))).status_code == 429
        other.writer.write(begin(b"bob"))
        assert (await other.ask(b"x" * 1000)).status_code == 200
        assert (await first.ask(b"x" * 1000)).status_code == 200


async def test_heads_count_too() -> None:
    limits = ListenerLimits(held_bytes_each=3000)
    async with listening(limits=limits) as (_, port), connected(port) as client:
        assert (await client.ask(b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 4000)).status_code == 429


async def test_the_body_of_a_sender_who_is_refused_is_not_read() -> None:
    kept = Kept()

    def admit(_request: Request, _decide: object) -> Admission:
        return HeadRefused(401, [(b"WWW-Authenticate", b"Bearer")], b"no")

    async with listening(kept, admit=admit) as (listener, port), connected(port) as client:
        response = await client.ask(BEGIN)
        headers = dict(response.headers)
        assert (response.status_code, headers[b"connection"], client.body) == (401, b"close", b"no")
        assert listener.held.total == 0
        assert await client.rest() == b""
        assert not kept.requests


@pytest.mark.slow
async def test_who_sends_on_after_a_refusal_is_not_read_for_ever() -> None:
    """What is under way is thrown away; then TCP makes the sender wait, until the connection is closed."""

    def admit(_request: Request, _decide: object) -> Admission:
        return HeadRefused(401, (), b"no")

    limits = ListenerLimits(body_bytes=1 << 30)
    async with listening(admit=admit, limits=limits) as (listener, port), connected(port) as client:
        client.writer.write(BEGIN.replace(b"3000", b"999999999"))
        assert (await client.response()).status_code == 401
        (connection,) = listener._open
        client.writer.write(b"x" * (64 << 20))
        await client.rest()
        assert connection._dropped < 1024 * 1024


async def test_a_head_may_be_decided_later_and_nothing_is_read_meanwhile() -> None:
    decisions: list[Callable[[Admission], None]] = []
    asked = asyncio.Event()

    def admit(_request: Request, decide: Callable[[Admission], None]) -> None:
        decisions.append(decide)
        asked.set()

    async with listening(admit=admit) as (listener, port), connected(port) as client:
        client.writer.write(BEGIN)
        with anyio.fail_after(30):
            await asked.wait()
        held = listener.held.total
        client.writer.write(b"x" * 1000)
        await client.writer.drain()
        for _ in range(3):
            await asyncio.sleep(0)
        assert listener.held.total == held
        decisions[0](Admitted("alice"))
        assert (await client.response()).status_code == 200
        assert len(decisions) == 1


async def test_the_next_request_on_a_connection_is_decided_anew() -> None:
    heads: list[Request] = []
    came = asyncio.Event()

    def admit(request: Request, _decide: object) -> Admission:
        heads.append(request)
        came.set()
        return Admitted("alice")

    async with listening(admit=admit) as (_, port), connected(port) as client:
        for _ in range(2):
            client.writer.write(BEGIN)
            with anyio.fail_after(30):
                await came.wait()
            came.clear()
            assert (await client.ask(b"x" * 1000)).status_code == 200
    assert [(request.target, request.is_whole) for request in heads] == [(b"/", False)] * 2


async def test_a_defect_in_the_decision_refuses_the_request() -> None:
    def admit(_request: Request, _decide: object) -> Admission:
        raise RuntimeError("a defect")

    contexts: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: contexts.append(context))
    async with listening(admit=admit) as (_, port), connected(port) as client:
        assert (await client.ask(BEGIN)).status_code == 500
    assert [context["message"] for context in contexts] == ["The head of a request could not be handled"]


async def test_a_body_in_tiny_chunks_is_refused() -> None:
    async with client_of() as client:
        client.writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        response = await client.ask(b"1\r\nx\r\n" * 2000)
        assert response.status_code == 400
        assert b"its chunks are too small" in client.body


async def test_endless_headers_are_refused_before_their_end() -> None:
    async with client_of() as client:
        response = await client.ask(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"a:\r\n" * 200)
        assert response.status_code == 431


async def test_too_many_requests_ahead_are_refused() -> None:
    async with client_of(limits=ListenerLimits(pipelined_requests=2)) as client:
        client.writer.write(POST * 3)
        statuses = [(await client.response()).status_code for _ in range(3)]
        assert statuses == [200, 200, 400]


async def test_too_many_bytes_ahead_end_the_connection_and_the_handler_learns_of_it() -> None:
    kept, gone = Kept(), asyncio.Event()
    async with client_of(kept, ListenerLimits(pipelined_bytes=1000)) as client:
        client.writer.write(POST)
        (await kept.next()).on_gone = gone.set
        client.writer.write(b"x" * 1001)
        with anyio.fail_after(30):
            await gone.wait()


@pytest.mark.parametrize(
    ("begin", "status"),
    [
        (b"POST / HT", b"408"),
        (b"POST / HTTP/1.1\r\nHost: a\r\n", b"408"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na", b"408"),
        (b"POST / HTTP/1.1\r\nHost: a\r\n" + CHUNKED + b"\r\n5\r\nab", b"408"),
        (b"", b""),
        (POST, b"200"),
        (POST + b"POST", b"200"),
    ],
)
async def test_a_client_that_stops_in_the_middle_is_disconnected(begin: bytes, status: bytes) -> None:
    soon = 10 * SOON  # a connection that is read late on a busy machine would be closed as an idle one
    limits = ListenerLimits(head_seconds=soon, body_seconds=soon, idle_seconds=soon, linger_seconds=soon)
    async with client_of(limits=limits) as client:
        client.writer.write(begin)
        assert (await client.rest())[9:12] == status


async def test_a_body_that_comes_in_drops_is_refused() -> None:
    limits = ListenerLimits(body_seconds=SOON, body_bytes_per_second=1000, linger_seconds=SOON)
    async with client_of(limits=limits) as client:
        client.writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000\r\n\r\n")
        statuses: list[int] = []

        async def drip() -> None:
            while True:
                client.writer.write(b"x")
                await asyncio.sleep(0.002)

        dripping = asyncio.ensure_future(drip())
        statuses.append((await client.response()).status_code)
        dripping.cancel()
        assert statuses == [408]


async def test_a_body_that_came_fast_must_still_end() -> None:
    limits = ListenerLimits(body_seconds=SOON, body_bytes_per_second=1, linger_seconds=SOON)
    async with client_of(limits=limits) as client:
        begin = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000\r\n\r\n"
        assert (await client.ask(begin + b"x" * 2999)).status_code == 408


async def test_while_the_handler_takes_its_time_no_limit_ends_the_connection() -> None:
    limits = ListenerLimits(head_seconds=SOON, body_seconds=SOON, idle_seconds=SOON, linger_seconds=SOON)
    kept = Kept()
    async with listening(kept, limits) as (_, port):
        at_once = socket.create_connection(("127.0.0.1", port))
        at_once.sendall(POST)  # before the listener accepts: its limit for the head must not end this one
        reader, writer = await asyncio.open_connection(sock=at_once)
        client = Client(reader, writer)
        responder = await kept.next()
        async with connected(port) as other:
            assert await other.rest() == b""  # it was ended by its limit
        responder.respond(200)
        assert (await client.response()).status_code == 200
        writer.transport.abort()


# --- the end ---


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("reset", [False, True])
async def test_a_client_that_goes_before_the_end_is_noticed(started: bool, reset: bool) -> None:
    kept, gone = Kept(), asyncio.Event()
    async with listening(kept) as (listener, port), connected(port) as client:
        client.writer.write(POST)
        responder = await kept.next()
        responder.on_gone = gone.set
        if started:
            responder.start(200)
        if reset:
            client.writer.transport.abort()
        else:
            client.writer.write_eof()
        with anyio.fail_after(30):
            await gone.wait()
            assert not responder.is_open
            responder.write(b"dropped")
            responder.end()
            await listener.closed()


async def test_a_client_that_reads_nothing_is_noticed_and_its_end_too() -> None:
    kept, gone, full = Kept(), asyncio.Event(), asyncio.Event()
    async with client_of(kept) as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is a read transport too
        client.writer.write(POST)
        responder = await kept.next()
        responder.on_full = lambda now: full.set() if now else full.clear()
        responder.on_gone = gone.set
        responder.start(200)
        with anyio.fail_after(30):
            while not full.is_set():
                responder.write(b"x" * 65536)
            assert responder.is_full
            client.writer.transport.abort()
            await gone.wait()


async def test_a_client_that_reads_again_gets_all() -> None:
    kept, empty = Kept(), asyncio.Event()
    async with client_of(kept) as client:
        client.writer.write(POST)
        responder = await kept.next()
        states: list[bool] = []

        def note(now: bool) -> None:
            states.append(now)
            if not now:
                empty.set()

        responder.on_full = note
        responder.start(200)
        written = 0
        while True not in states:
            responder.write(b"x" * 65536)
            written += 65536
        reading = asyncio.ensure_future(client.response())
        with anyio.fail_after(30):
            await empty.wait()
            responder.end()
            await reading
        assert states[:2] == [True, False]
        assert len(client.body) == written


async def test_a_client_that_takes_nothing_for_long_is_disconnected() -> None:
    kept, gone = Kept(), asyncio.Event()
    async with client_of(kept, ListenerLimits(write_seconds=SOON, linger_seconds=SOON)) as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is a read transport too
        client.writer.write(POST)
        responder = await kept.next()
        responder.on_gone = gone.set
        responder.start(200, [], b"x" * 20_000_000)
        with anyio.fail_after(30):
            await gone.wait()


async def test_a_response_that_is_broken_off_is_not_taken_for_a_whole_one() -> None:
    kept = Kept()
    async with client_of(kept) as client:
        client.writer.write(POST)
        responder = await kept.next()
        responder.start(200, [], b"half")
        responder.abort()
        with pytest.raises((h11.RemoteProtocolError, ConnectionResetError)):
            await client.response()


async def test_while_draining_the_next_response_is_the_last_of_its_connection() -> None:
    kept = Kept()
    async with listening(kept) as (listener, port), connected(port) as client:
        client.writer.write(POST)
        responder = await kept.next()
        listener.close_when_idle()
        responder.respond(200, [], b"last")
        response = await client.response()
        assert dict(response.headers)[b"connection"] == b"close"
        with anyio.fail_after(30):
            await listener.closed()


async def test_while_draining_a_connection_without_a_request_is_closed_soon() -> None:
    limits = ListenerLimits(drain_idle_seconds=SOON, linger_seconds=SOON)
    async with listening(limits=limits) as (listener, port), connected(port) as client:
        await client.ask(POST)
        listener.close_when_idle()
        assert await client.rest() == b""


async def test_to_close_ends_streams_and_their_handlers_learn_of_it() -> None:
    kept, gone = Kept(), asyncio.Event()
    async with listening(kept) as (listener, port), connected(port) as client:
        client.writer.write(POST)
        responder = await kept.next()
        responder.on_gone = gone.set
        responder.start(200)
        listener.close()
        assert gone.is_set()
        with anyio.fail_after(30):
            await listener.closed()


async def test_a_unix_socket_has_no_address(tmp_path: Path) -> None:
    kept = Kept()
    listener = Listener(kept)
    server = await asyncio.get_running_loop().create_unix_server(listener, str(tmp_path / "s"))
    reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
    writer.write(POST)
    (await kept.next()).respond(200)
    assert kept.requests[0].peer == Peer("")
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.transport.abort()
    server.close()
    listener.close()
    await listener.closed()


async def test_tcp_looks_for_peers_that_are_gone_without_a_word() -> None:
    listener = Listener(echo, ListenerLimits(dead_seconds=80))
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()),
        server.accept()[0] as accepted,
    ):
        transport, _ = await asyncio.get_running_loop().connect_accepted_socket(listener, accepted)
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 40
        transport.abort()
        with anyio.fail_after(30):
            await listener.closed()


@pytest.mark.slow
async def test_a_peer_that_has_vanished_without_a_word_is_disconnected() -> None:
    kept = Kept()
    listener = Listener(kept, ListenerLimits(dead_seconds=2))
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        try:
            client.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)  # it is closed without FIN and RST, as by a power cut
        except PermissionError:
            pytest.skip("only root can make a connection vanish")
        client.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 0)
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await asyncio.get_running_loop().connect_accepted_socket(listener, server.accept()[0])
        stream, gone = await kept.next(), asyncio.Event()
        stream.on_gone = gone.set
        stream.start(200)  # nothing more is ever sent: only TCP itself can find out
        client.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        client.close()
        with anyio.fail_after(60):
            await gone.wait()
            await listener.closed()


@pytest.mark.slow
async def test_over_tls_the_client_s_certificate_is_known(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate with")
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "cert.pem")
    making = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=alice", "-addext", "subjectAltName=IP:127.0.0.1"]
    await anyio.run_process([openssl, *making, *names, "-keyout", key, "-out", certificate])
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate, key)
    ours.load_verify_locations(certificate)
    ours.verify_mode = ssl.CERT_OPTIONAL
    theirs = ssl.create_default_context(cafile=certificate)
    kept = Kept()
    async with listening(kept, tls=ours) as (_, port):
        for has_certificate in (False, True):
            if has_certificate:
                theirs.load_cert_chain(certificate, key)
            async with connected(port, theirs) as client:
                client.writer.write(POST)
                (await kept.next()).respond(200)
                assert (await client.response()).status_code == 200
    first, second = (request.peer for request in kept.requests)
    assert (first.is_tls, first.certificate) == (True, None)
    assert second.certificate is not None
    assert second.certificate["subject"] == ((("commonName", "alice"),),)
