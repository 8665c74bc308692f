"""The HTTP/1.1 server that agents reach: connections, and the framing of requests. It knows nothing of their content.

What two readers could frame differently is refused and the connection is closed, so that nobody in front of this
listener sees other requests than it does. Every peer is bounded in bytes, in time and in number.
Sources: RFC 9110, RFC 9112.
"""

from __future__ import annotations

import asyncio
import math
import socket
import struct
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NoReturn

import httptools
import msgspec
from msgspec import Struct

from ...network import tcp
from ...network.epoll_loop import DirectLoop
from ...network.known_head import KnownHead, known_head
from ...processes import platforms
from ..channel import HIGH_WATER, LOW_WATER

if TYPE_CHECKING:
    import ssl

Headers = Sequence[tuple[bytes, bytes]]
"""Names and values, in order. Those of a request have names in lower case and values without blanks at their ends."""

_METHODS: Final = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"})
"""Others are not implemented: some make a tunnel (CONNECT), return what they get (TRACE) or belong to RTSP."""

_BACKLOG: Final = 1024  # connections that wait to be accepted: as many agents may come back at once after a restart
_SLASH: Final = ord("/")
_MAX_DIGITS: Final = 18  # of a length: leading zeros are allowed, and no number of so many digits takes long to read
_VERSIONS: Final = frozenset({"1.1", "1.0"})

_REASONS: Final = {
    200: b"OK",
    202: b"Accepted",
    204: b"No Content",
    400: b"Bad Request",
    401: b"Unauthorized",
    403: b"Forbidden",
    404: b"Not Found",
    405: b"Method Not Allowed",
    406: b"Not Acceptable",
    408: b"Request Timeout",
    409: b"Conflict",
    413: b"Content Too Large",
    415: b"Unsupported Media Type",
    417: b"Expectation Failed",
    421: b"Misdirected Request",
    429: b"Too Many Requests",
    431: b"Request Header Fields Too Large",
    500: b"Internal Server Error",
    501: b"Not Implemented",
    502: b"Bad Gateway",
    503: b"Service Unavailable",
    504: b"Gateway Timeout",
    505: b"HTTP Version Not Supported",
}
"""The words after a status, for people who read the bytes. Other statuses have none, which HTTP allows."""

_WRITELINES_NEVER_PAUSES: Final = ((3, 12) <= sys.version_info < (3, 12, 9)) or (
    (3, 13) <= sys.version_info < (3, 13, 2)
)
"""The transports of these Pythons do not say in `writelines` that the peer does not read: the memory would fill
(CVE-2024-12254)."""

_CHECKED: Final = frozenset(
    {b"host", b"content-length", b"transfer-encoding", b"content-encoding", b"upgrade", b"expect"}
)
"""Headers that are looked at here."""

_STATUS_LINES: Final = {status: b"HTTP/1.1 %d %b\r\n" % (status, reason) for status, reason in _REASONS.items()}
_WITHOUT_BODY: Final = frozenset({204, 304})  # responses that have no body and no length
_OK: Final = b"HTTP/1.1 200 OK\r\n%b%b%bContent-Length: %d\r\n\r\n%b"
"""A whole response of nearly every kind: the date, the headers, whether the connection closes, the body."""
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CLOSE: Final = b"Connection: close\r\n"
_CHUNKED: Final = b"Transfer-Encoding: chunked\r\n"
_LAST_CHUNK: Final = b"0\r\n\r\n"
_CONNECT_SECONDS: Final = 0.1  # from the first to the third packet of a connection, from the balancers of a gateway
_SO_ATTACH_FILTER: Final = 26  # of Linux; Python has no name for it
_FILTER: Final = struct.Struct("HP")  # sock_fprog: how many steps, and where they are
_FILTER_STEP: Final = struct.Struct("HBBI")  # sock_filter
_DROP_SYN: Final = (  # classic BPF, on the header of TCP
    (0x30, 0, 0, 13),  # load the byte with the flags
    (0x54, 0, 0, 0x12),  # SYN and ACK of them
    (0x15, 0, 1, 0x02),  # SYN without ACK:
    (0x06, 0, 0, 0),  # drop it
    (0x06, 0, 0, 0xFFFFFFFF),  # everything else: take it whole
)
_SMALL_PIECE: Final = 64 * 1024  # bytes: copying less takes less time than a second write
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class ListenerLimits(Struct, frozen=True):
    """What one peer, and all peers together, may take. Sizes are in bytes, times in seconds."""

    connections: int = 10_000
    """Open connections; one more gets a 503. Ten thousand idle streams take about 100 MB."""
    head_bytes: int = 64 * 1024
    """Of a request's target and headers (431), and of what may come between two bytes of a body (trailers, extensions
    of chunks). It is eight times what other servers allow, because tokens and arguments travel in headers."""
    headers: int = 128
    """Headers of a request (431): agents send about 15, proxies add some."""
    body_bytes: int = 4 * 1024 * 1024
    """Of one body (413), as in the MCP SDKs: arguments of a call hold a file, but no film."""
    bodies_bytes: int = 256 * 1024 * 1024
    """Of all bodies that have not come whole yet (503): 64 of the longest."""
    pipelined_bytes: int = 64 * 1024
    """Of requests that come before the response to an earlier one has ended. A peer that sends more is disconnected: no
    agent sends requests ahead, and reading must go on, because only it shows that a peer is gone."""
    pipelined_requests: int = 16
    """Requests in one read that wait for the response to the first: each takes more memory than its bytes."""
    head_seconds: float = 10.0
    """From the first byte of a request, or from the start of the connection, to the end of the head (408). Over the
    worst networks a head takes three round trips of a second."""
    body_seconds: float = 20.0
    """That a short body may take, and any pause of a longer one (408), as in Apache's mod_reqtimeout."""
    body_bytes_per_second: float = 500.0
    """How fast a longer body must come, as there: the slowest modem is faster. To be faster earns no longer pause."""
    idle_seconds: float = 75.0
    """That a connection stays open without a request. Balancers close theirs after 60: they must be first, or a request
    meets a connection that is being closed."""
    drain_idle_seconds: float = 5.0
    """The same once `close_when_idle` was called: a connection in use has its next request before, and learns of the
    end by the response to it."""
    write_seconds: float = 120.0
    """That a peer may take none of the bytes that wait for it, before it is disconnected."""
    linger_seconds: float = 2.0
    """That the rest of a refused request is read and thrown away, so that the peer can read why it was refused: to
    close at once would make its system forget the response."""
    dead_seconds: int = 120
    """After which TCP ends the connection of a peer that is gone without a word: its silence is probed four times in
    the second half. Less would end connections of laptops that change their network."""


class Peer(Struct, frozen=True):
    """Who is at the other end of a connection."""

    address: str
    """The IP address; empty on a Unix socket."""
    is_tls: bool = False
    certificate: Mapping[str, object] | None = None
    """The verified certificate of the client, as `ssl.SSLSocket.getpeercert` describes it; None: it has sent none."""


class HeadNotes(Struct):
    """What a handler has found out from a head alone. Further requests with the very same head have the same notes."""

    checked: object = None


class Request(Struct, frozen=True, gc=False):
    """One request, complete. Its framing has been checked, its content has not."""

    method: bytes
    target: bytes
    """As sent: it begins with a slash, and nothing in it is decoded."""
    headers: list[tuple[bytes, bytes]]
    """In the order in which they came, repeated ones included; names in lower case. One of them is `host`, and none
    is `content-length`: the body has it."""
    body: bytes
    peer: Peer
    notes: HeadNotes = msgspec.field(default_factory=HeadNotes)
    """The same as those of the request before on this connection if its head was the same, except for the length."""

    def header(self, name: bytes) -> bytes | None:
        """Return the first value of a header by its name in lower case; None: there is none."""
        for each, value in self.headers:
            if each == name:
                return value
        return None


class Responder:
    """Takes the response to one request: either `respond`, or `start`, any number of `write`, and `end`.

    Everything happens in the event loop's own thread, and nothing blocks. What is written after the end, or once the
    client is gone, is dropped.
    """

    __slots__ = (
        "_chunked",
        "_connection",
        "_head_only",
        "_is_last",
        "_is_started",
        "_left",
        "_version_1_0",
        "on_full",
        "on_gone",
    )

    def __init__(self, connection: _Connection, head_only: bool, version_1_0: bool, is_last: bool) -> None:
        self._connection: _Connection | None = connection
        self._head_only = head_only
        self._version_1_0 = version_1_0
        self._is_last = is_last
        self._is_started = False
        self._chunked = False
        self._left: int | None = None  # bytes of the body that must still be written, if its length was sent
        self.on_gone: Callable[[], None] | None = None
        """Called once if the client disconnects before the response has ended, also while nothing is written."""
        self.on_full: Callable[[bool], None] | None = None
        """`True`: the client does not read what is written: whoever writes should pause. `False`: it reads again, or
        is gone. Each `True` is followed by one `False`, also after the end of the response."""

    @property
    def is_open(self) -> bool:
        """True until the response has ended or the client is gone."""
        return self._connection is not None

    @property
    def is_full(self) -> bool:
        """True while the client does not read what is written: the last that `on_full` would have said."""
        return self._connection is not None and self._connection.is_full

    @property
    def unsent(self) -> Callable[[], int]:
        """Says how many bytes the client has not taken yet, also after the end of the response."""
        return self._connection.unsent if self._connection is not None else int

    def respond(self, status: int, headers: Headers | HeaderLines = (), body: bytes = b"") -> None:
        """Send a whole response in one write. Its length is added to the headers; its connection's end if it must end.

        Raises ValueError if a header contains a line end, or if the response has been started already.
        """
        connection = self._connection
        if connection is None:
            return
        if self._is_started:
            raise ValueError("the response has been started already")
        closes = self._is_last or connection.listener.is_draining
        if status == 200 and isinstance(headers, HeaderLines) and len(body) < _SMALL_PIECE and not self._head_only:
            connection.send(_OK % (connection.listener.date_line, headers, _CLOSE if closes else b"", len(body), body))
            self._finish(connection, closes)
            return
        framing = b"" if status in _WITHOUT_BODY else b"Content-Length: %d\r\n" % len(body)
        if closes:
            framing += _CLOSE
        if self._head_only or status in _WITHOUT_BODY:
            body = b""
        head = _head(status, headers, connection.listener.date_line, framing)
        if len(body) < _SMALL_PIECE:
            connection.send(head + body)
        else:
            connection.send_all((head, body))
        self._finish(connection, closes)

    def start(
        self,
        status: int,
        headers: Headers | HeaderLines = (),
        piece: bytes = b"",
        length: int | None = None,
        *,
        is_stream: bool = False,
    ) -> None:
        """Send the head of a response that comes in pieces, at once, with the first piece of its body.

        `length` is that of the whole body, if it is known: if the response ends with fewer bytes, the connection is
        broken off. `is_stream`: it may stay open for long, and may be cut between two pieces. Raises ValueError if a
        header contains a line end, if the response has been started already, or if the piece is longer than the body.
        """
        connection = self._connection
        if connection is None:
            return
        if self._is_started:
            raise ValueError("the response has been started already")
        self._left = length
        self._count_off(piece)
        self._chunked = length is None and not self._version_1_0
        framing = _CHUNKED if self._chunked else b""
        if length is not None:
            framing = b"Content-Length: %d\r\n" % length
        if self._is_last or connection.listener.is_draining:
            framing += _CLOSE
            self._is_last = True
        head = _head(status, headers, connection.listener.date_line, framing)
        self._is_started = True
        connection.send(head + self._framed(piece))
        if is_stream:
            connection.listener.on_stream(connection.handled, self)

    def write(self, piece: bytes) -> None:
        """Send a piece of the body. An empty one sends nothing.

        Raises ValueError before `start`, or if the body becomes longer than `start` has said.
        """
        connection = self._connection
        if connection is None:
            return
        self._check_started()
        self._count_off(piece)
        if not piece or self._head_only:
            return
        if len(piece) < _SMALL_PIECE:
            connection.send(self._framed(piece))
        elif self._chunked:
            connection.send_all((b"%x\r\n" % len(piece), piece, b"\r\n"))
        else:
            connection.send(piece)

    def end(self, piece: bytes = b"") -> None:
        """Send the last piece and end the response. Raises ValueError as `write`."""
        connection = self._connection
        if connection is None:
            return
        self._check_started()
        self._count_off(piece)
        if self._left and not self._head_only:  # else the next response would be read as the rest of this one
            self.abort()
            return
        last = self._framed(piece)
        if self._chunked and not self._head_only:
            last += _LAST_CHUNK
        if last:
            connection.send(last)
        self._finish(connection, self._is_last or connection.listener.is_draining)

    def _finish(self, connection: _Connection, closes: bool) -> None:
        self._connection = None
        self.on_gone = None  # who is called refers to this response: without the circle, its memory is free at once
        if not connection.is_full:
            self.on_full = None
        connection.finished(closes)

    def cut(self) -> None:
        """End a response that has been started, whatever its writer wants, who learns that the client is gone."""
        on_gone, self.on_gone = self.on_gone, None
        self.end()
        if on_gone is not None:
            on_gone()

    def abort(self) -> None:
        """Break off the connection: the client cannot take what it has for a whole response. Nobody is called."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    def gone(self) -> None:
        """Called by the connection: the client is gone."""
        self._connection = None
        on_gone, self.on_gone = self.on_gone, None  # as in `_finish`
        if on_gone is not None:
            on_gone()

    def fail(self) -> None:
        """Called by the connection: the handler has failed."""
        if self._is_started:
            self.abort()
        else:
            self.respond(500, [(b"Content-Type", b"text/plain")], b"hookproxy failed to handle this request.\n")

    def _framed(self, piece: bytes) -> bytes:
        if not piece or self._head_only:
            return b""
        return b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece

    def _count_off(self, piece: bytes) -> None:
        if self._left is not None:
            if len(piece) > self._left:
                raise ValueError("the body is longer than its length, which was sent")
            self._left -= len(piece)

    def _check_started(self) -> None:
        if not self._is_started:
            raise ValueError("the response has not been started")


def _date_line() -> bytes:
    now = time.gmtime()  # strftime would write the words of the user's language
    day = f"{_DAYS[now.tm_wday]}, {now.tm_mday:02} {_MONTHS[now.tm_mon - 1]} {now.tm_year}"
    return f"Date: {day} {now.tm_hour:02}:{now.tm_min:02}:{now.tm_sec:02} GMT\r\n".encode()


def _lines(headers: Headers) -> bytes:
    lines = b"".join([b"%b: %b\r\n" % pair for pair in headers])
    if lines.count(b"\n") != len(headers) or lines.count(b"\r") != len(headers):
        raise ValueError("a header of a response contains a line end")
    return lines


class HeaderLines(bytes):
    """The lines of headers, ready to be sent: for headers that a session sends with each response."""

    __slots__ = ()


def header_lines(headers: Headers) -> HeaderLines:
    """Return the lines of these headers. Raises ValueError if one of them contains a line end."""
    return HeaderLines(_lines(headers))


def _head(status: int, headers: Headers | HeaderLines, date: bytes, framing: bytes) -> bytes:
    lines = headers if isinstance(headers, HeaderLines) else _lines(headers)
    line = _STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
    return b"%b%b%b%b\r\n" % (line, date, lines, framing)


class _KnownRequest(Struct, frozen=True, gc=False):
    """The head of the last request on a connection, which the parser has read."""

    head: KnownHead
    target: bytes
    headers: list[tuple[bytes, bytes]]
    notes: HeadNotes


class _Awaited(Enum):
    """What a connection waits for until its deadline."""

    HEAD = auto()  # the rest of a head, or the first request
    BODY = auto()  # the rest of a body
    REQUEST = auto()  # the next request
    RESPONSE = auto()  # the handler: it takes the time that it needs
    READER = auto()  # that the peer takes what waits for it
    CLOSE = auto()  # that the peer has read the last response


class _Stop(Exception):
    """It makes the parser stop, because the request is refused; why is noted in the connection."""


class Listener:
    """All connections of one address or more: it is the protocol factory for `loop.create_server`.

    `handle` gets each request in the event loop's own callback, one at a time for each connection, and responds at once
    or later. If it raises, the client gets a 500 and the loop's exception handler gets the exception.
    `on_refused` gets what never reaches `handle`: the peer, the status, and a part of a sentence without input.
    """

    def __init__(
        self,
        handle: Callable[[Request, Responder], None],
        limits: ListenerLimits = ListenerLimits(),  # noqa: B008  # frozen
        on_refused: Callable[[Peer, int, str], None] | None = None,
    ) -> None:
        self.handle = handle
        self.limits = limits
        self.on_refused = on_refused
        self.on_stream: Callable[[HeadNotes, Responder], None] = lambda _notes, _responder: None
        """Called when a response begins that may stay open for long, with the notes of its request."""
        self.is_draining = False
        """`close_when_idle` was called."""
        self.idle_seconds = limits.idle_seconds
        """How long a connection may be without a request now."""
        self.unfinished_bytes = 0
        """Of bodies that have not come whole yet."""
        self._open: set[_Connection] = set()
        self._waiting_for_none: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        shortest = min(limits.head_seconds, limits.body_seconds, limits.idle_seconds, limits.linger_seconds)
        self._interval = min(1.0, shortest / 4)  # seconds between looks at the deadlines: one timer for all
        self.date_line = b""
        """The header `Date` of responses: made with each look at the deadlines, so at most once a second."""

    def __call__(self) -> asyncio.Protocol:
        """Return the protocol of a new connection."""
        return _Connection(self)

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._open)

    def close_when_idle(self) -> None:
        """Drain: the next response on each connection is its last. Whoever accepts connections should stop before.

        A connection without a request is closed soon, but not at once: its peer may just be sending one.
        """
        self.is_draining = True
        self.idle_seconds = min(self.limits.idle_seconds, self.limits.drain_idle_seconds)
        for connection in self._open:
            connection.drain()

    async def closed(self) -> None:
        """Wait until no connection is open. Cancelling it changes nothing."""
        while self._open:
            future = asyncio.get_running_loop().create_future()
            self._waiting_for_none.append(future)
            await future

    def close(self) -> None:
        """Break off all connections: their `on_gone` is called."""
        for connection in list(self._open):
            connection.lose()

    # --- for its connections ---

    def opened(self, connection: _Connection) -> bool:
        """Note a connection. False: there are too many, and it is not noted."""
        if len(self._open) >= self.limits.connections:
            return False
        self._open.add(connection)
        if self._timer is None:
            self._look_at_deadlines()
        return True

    def lost(self, connection: _Connection) -> None:
        """Forget a connection."""
        self._open.discard(connection)
        if not self._open:
            waiting, self._waiting_for_none = self._waiting_for_none, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _look_at_deadlines(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        self.date_line = _date_line()
        self._timer = loop.call_later(self._interval, self._look_at_deadlines)  # until the last connection is lost
        for connection in [one for one in self._open if one.deadline <= now]:
            connection.expire(now)


class _Connection(asyncio.Protocol):
    """One connection: it reads one request after another, and has at most one response in progress."""

    __slots__ = (
        "_awaited",
        "_body",
        "_early",
        "_first",
        "_headers",
        "_held",
        "_in_body",
        "_in_request",
        "_is_closing",
        "_known",
        "_limits",
        "_loop",
        "_method",
        "_missing",
        "_notes",
        "_overhead",
        "_owes_continue",
        "_parsed",
        "_parser",
        "_peer",
        "_ready",
        "_received",
        "_refusal",
        "_responder",
        "_size",
        "_target",
        "_told_full",
        "_transport",
        "_unsent",
        "_version",
        "deadline",
        "handled",
        "is_full",
        "listener",
    )

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self._limits = listener.limits
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._peer = Peer("")
        self._parser = httptools.HttpRequestParser(self)
        # the request that is being read
        self._in_request = False
        self._in_body = False
        self._received = 0  # bytes of the body for which the deadline was extended
        self._method, self._version = b"", ""
        self._target = b""
        self._notes = self.handled = HeadNotes()
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._size = 0  # bytes of the body so far
        self._held = 0  # of them, those that the listener has counted
        self._overhead = 0  # bytes since the beginning, or since the last byte of a body
        self._owes_continue = False
        self._refusal: tuple[int, str] | None = None
        self._known: _KnownRequest | None = None
        self._missing = 0  # bytes of a body whose head was known, so that the parser does not see it
        self._first = b""  # of the request that is being parsed: what came with its first byte
        self._parsed = 0  # bytes of it so far; -1: something else has come with a request, so heads are not kept
        # requests that have come whole, and the response in progress
        self._ready: list[tuple[Request, bool, bool]] = []  # few: each with "is HTTP/1.0" and "is the last one"
        self._responder: Responder | None = None
        self._told_full: Responder | None = None  # the one that knows that the peer does not read
        self._early: list[bytes] = []  # what has come since the request whose response is in progress
        self._is_closing = False
        # time
        self._awaited = _Awaited.HEAD
        self._unsent = 0  # bytes that the peer had not taken when the deadline was set
        self.deadline = math.inf
        """When the peer has taken too long for what is awaited, by the loop's clock."""
        self.is_full = False
        """The peer does not read what is written."""

    # --- for the listener and the responder ---

    def send(self, data: bytes) -> None:
        """Send bytes."""
        if self._transport is not None:
            self._transport.write(data)

    def send_all(self, parts: Sequence[bytes]) -> None:
        """Send bytes without putting them together first."""
        if self._transport is not None:
            if _WRITELINES_NEVER_PAUSES:
                self._transport.write(b"".join(parts))
            else:
                self._transport.writelines(parts)

    def unsent(self) -> int:
        """Bytes that the peer has not taken yet."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def finished(self, closes: bool) -> None:
        """The response in progress is complete; `closes`: there is no other one."""
        self._responder = None
        if closes:
            self._close()
            return
        if not self.is_full:
            self._awaited, self.deadline = _Awaited.REQUEST, self._loop.time() + self.listener.idle_seconds
        if self._ready or self._early or self._in_request or self._refusal is not None:
            self._loop.call_soon(self._serve)  # not here: this may be the stack of the handler

    def abort(self) -> None:
        """Break off the connection. Nobody is called."""
        self._responder = None
        self._is_closing = True
        if self._transport is not None:
            self._transport.abort()

    def lose(self) -> None:
        """Break off the connection; the response in progress ends with `on_gone`."""
        responder = self._responder
        self.abort()
        if responder is not None:
            self._gone(responder)

    def _gone(self, responder: Responder) -> None:
        try:
            responder.gone()
        except Exception as problem:  # it must not keep other connections from their end
            self._report_failure("A handler failed when its client was gone", problem)

    def _report_failure(self, what: str, problem: Exception) -> None:
        self._loop.call_exception_handler({"message": what, "exception": problem, "protocol": self})

    def drain(self) -> None:
        """The listener is draining: do not wait long for another request."""
        if self._awaited is _Awaited.REQUEST:
            self.deadline = min(self.deadline, self._loop.time() + self.listener.idle_seconds)

    def expire(self, now: float) -> None:
        """The deadline has come."""
        if self._awaited is _Awaited.READER:
            unsent = self.unsent()
            if unsent < self._unsent:
                self._unsent, self.deadline = unsent, now + self._limits.write_seconds
            else:
                self.lose()
        elif self._awaited is _Awaited.CLOSE:
            self.lose()
        elif self._in_request:
            self._refuse(408, f"its {'body' if self._in_body else 'head'} took too long")
        else:
            self._close()

    # --- callbacks of asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As documented."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        is_tls = transport.get_extra_info("ssl_object") is not None
        name = transport.get_extra_info("peername")
        address = str(name[0]) if isinstance(name, tuple) else ""
        self._peer = Peer(address, is_tls, transport.get_extra_info("peercert") or None)
        transport.set_write_buffer_limits(HIGH_WATER, LOW_WATER)
        if (sock := transport.get_extra_info("socket")) is not None:
            _notice_death(sock, self._limits.dead_seconds)
        self._await(_Awaited.HEAD, self._limits.head_seconds)
        if not self.listener.opened(self):
            self._refuse(503, "too many connections are open")
            self._close()

    def data_received(self, data: bytes) -> None:
        """As documented."""
        if self._is_closing:  # the rest of a refused request
            return
        if self._responder is not None or self._early or self._ready or self.is_full:
            self._keep(data)
        elif (request := self._repeated(data)) is not None:
            self._handle(request, version_1_0=False, is_last=False)
        else:
            self._feed(data)
            self._serve()

    def eof_received(self) -> bool:
        """As documented. A client that closes its writing side is gone: nothing else would show it."""
        responder, self._responder = self._responder, None
        self._close()
        if responder is not None:
            self._gone(responder)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """As documented."""
        self._is_closing = True
        self._forget_request()
        self.listener.lost(self)
        responder, self._responder = self._responder, None
        if responder is not None:
            self._gone(responder)
        self.is_full = False
        self._tell_full()

    def pause_writing(self) -> None:
        """As documented."""
        self.is_full = True
        self._await_reader()
        self._tell_full()

    def resume_writing(self) -> None:
        """As documented."""
        self.is_full = False
        if not self._is_closing and self._responder is not None:
            self._await(_Awaited.RESPONSE, math.inf)
        elif not self._is_closing:
            self._await(_Awaited.REQUEST, self.listener.idle_seconds)
        self._tell_full()
        if not self._is_closing and self._responder is None:
            self._serve()

    # --- requests, one after another ---

    def _repeated(self, data: bytes) -> Request | None:
        """The request in `data`, if it is whole and has a known head: nearly every one. None: `_feed` must read it."""
        known = self._known
        if known is None or self._in_request or (body := known.head.body_in(data)) is None:
            return None
        if len(body) > self._limits.body_bytes:
            return None
        return Request(b"POST", known.target, known.headers, body, self._peer, known.notes)

    def _feed(self, data: bytes) -> None:
        self._overhead += len(data)
        if self._known is not None and not self._in_request and (digits := self._known.head.length_in(data)):
            data = self._begin_known(self._known, digits, data)
        if self._missing:
            data = self._add_to_body(data)
        if data:
            self._parse(data)
        if self._refusal is None and self._in_request and self._overhead > self._limits.head_bytes:
            self._refusal = (431, f"its head has more than {self._limits.head_bytes} bytes")

    def _begin_known(self, known: _KnownRequest, digits: bytes, data: bytes) -> bytes:
        """Begin a request with a known head, unless its body is too long or empty; return what is left of `data`."""
        if not 0 < int(digits) <= self._limits.body_bytes:
            return data
        self.on_message_begin()
        self._target, self._headers, self._notes = known.target, known.headers, known.notes
        self._method, self._version, self._in_body = b"POST", "1.1", True
        self._missing = int(digits)
        return known.head.after(data, digits)

    def _add_to_body(self, data: bytes) -> bytes:
        """Add to the body of a request with a known head; return what comes after the body."""
        part = data[: self._missing]
        if part:
            self._missing -= len(part)
            self.on_body(part)
            if not self._missing:
                self._complete(is_last=False)
        return data[len(part) :]

    def _parse(self, data: bytes) -> None:
        if self._ready:  # it has come with the request before
            self._parsed = -1
        if self._parsed == 0:
            self._first = data
        if self._parsed >= 0:
            self._parsed += len(data)
        self._known = None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as problem:
            if self._refusal is None:
                if isinstance(problem, httptools.HttpParserCallbackError):
                    raise
                self._refusal = (400, "it is no valid HTTP")
        if self._ready:
            self._learn_head(*self._ready[0])

    def _learn_head(self, request: Request, version_1_0: bool, is_last: bool) -> None:
        """Keep the head of the request that the parser has just read, if nothing else has come with it."""
        size = self._first.find(b"\r\n\r\n") + 4
        is_alone = len(self._ready) == 1 and self._parsed == size + len(request.body)
        self._parsed = 0 if is_alone else -1
        names = [name for name, _ in request.headers]
        if is_alone and request.method == b"POST" and not (version_1_0 or is_last):
            head = known_head(self._first[:size], names, len(request.body))
            if head is not None:
                self._known = _KnownRequest(head, request.target, request.headers, request.notes)
        self._first = b""

    def _serve(self) -> None:
        """Go on: with the next request, if the response to the last one has ended."""
        while self._responder is None and not self._is_closing and not self.is_full:
            if self._ready:
                self._handle(*self._ready.pop(0))
            elif self._refusal is not None:
                self._refuse(*self._refusal)
            elif self._early:
                data = b"".join(self._early)
                self._early.clear()
                self._feed(data)
            else:
                if self._in_request:
                    self._await_rest()
                return

    def _handle(self, request: Request, version_1_0: bool, is_last: bool) -> None:
        self._awaited, self.deadline, self.handled = _Awaited.RESPONSE, math.inf, request.notes
        responder = self._responder = Responder(self, request.method == b"HEAD", version_1_0, is_last)
        try:
            self.listener.handle(request, responder)
        except Exception as problem:
            self._report_failure("The handler of a request failed", problem)
            responder.fail()

    def _await_rest(self) -> None:
        """Set the deadline for the rest of a request of which a part has come."""
        if self._in_body:
            self._count(self._size)
            if self._awaited is not _Awaited.BODY:
                self._await(_Awaited.BODY, self._limits.body_seconds)
                self._received = 0
            earned = (self._size - self._received) / self._limits.body_bytes_per_second
            self.deadline = min(self.deadline + earned, self._loop.time() + self._limits.body_seconds)
            self._received = self._size
            if self._owes_continue:
                self._owes_continue = False
                self.send(_CONTINUE)
            if self.listener.unfinished_bytes > self._limits.bodies_bytes:
                self._refuse(503, "too many long requests are being received")
        elif self._awaited is not _Awaited.HEAD:
            self._await(_Awaited.HEAD, self._limits.head_seconds)

    def _keep(self, data: bytes) -> None:
        """Keep what comes while a response is in progress."""
        self._early.append(data)
        if sum(map(len, self._early)) > self._limits.pipelined_bytes:
            self._report(400, "it was sent before the response to an earlier one, and is too long for that")
            self.lose()

    def _refuse(self, status: int, why: str) -> None:
        """Respond to a request that cannot be read, and close: where the next one would begin is not known."""
        self._report(status, why)
        body = f"hookproxy refused this request: {why}.\n".encode()
        headers = [(b"Content-Type", b"text/plain; charset=utf-8"), (b"Content-Length", b"%d" % len(body))]
        if status == 503:
            headers.append((b"Retry-After", b"1"))
        self.send(_head(status, headers, self.listener.date_line, _CLOSE) + body)
        self._forget_request()
        transport = self._transport
        if transport is None or not transport.can_write_eof():
            self._close()
        elif not self._is_closing:
            self._is_closing = True
            transport.write_eof()
            self._await(_Awaited.CLOSE, self._limits.linger_seconds)

    def _close(self) -> None:
        """Close the connection once the peer has taken what waits for it."""
        self._is_closing = True
        if self._transport is not None:
            self._transport.close()
            self._await_reader()

    def _report(self, status: int, why: str) -> None:
        if self.listener.on_refused is not None:
            self.listener.on_refused(self._peer, status, why)

    def _tell_full(self) -> None:
        """Report whether the client reads to the response in progress, or to the one that got the beginning."""
        responder, self._told_full = (self._responder, self._responder) if self.is_full else (self._told_full, None)
        if responder is not None and responder.on_full is not None:
            responder.on_full(self.is_full)

    # --- time and memory ---

    def _await(self, awaited: _Awaited, seconds: float) -> None:
        self._awaited, self.deadline = awaited, self._loop.time() + seconds

    def _await_reader(self) -> None:
        self._await(_Awaited.READER, self._limits.write_seconds)
        self._unsent = self.unsent()

    def _count(self, size: int) -> None:
        """Let the listener know how much of an unfinished body is held here."""
        self.listener.unfinished_bytes += size - self._held
        self._held = size

    def _forget_request(self) -> None:
        self._count(0)
        self._body, self._headers, self._early, self._refusal, self._in_request = [], [], [], None, False
        self._known, self._missing = None, 0
        self._ready.clear()

    # --- callbacks of the parser ---

    def on_message_begin(self) -> None:
        """As documented."""
        self._in_request, self._in_body = True, False
        self._target = b""
        self._notes = HeadNotes()
        self._headers, self._body = [], []
        self._size = 0

    def on_url(self, url: bytes) -> None:
        """As documented. It comes in pieces if it was received so."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """As documented. Trailers are ignored."""
        if not self._in_body:
            self._headers.append((name.lower(), value.strip()))

    def on_headers_complete(self) -> None:
        """As documented."""
        self._version, self._method = self._parser.get_http_version(), self._parser.get_method()
        self._check_line()
        self._check_headers()
        self._in_body = True

    def on_body(self, body: bytes) -> None:
        """As documented."""
        self._overhead = 0
        self._body.append(body)
        self._size += len(body)
        if self._size > self._limits.body_bytes:
            self._stop(413, f"its body has more than {self._limits.body_bytes} bytes")

    def on_message_complete(self) -> None:
        """As documented."""
        self._complete(is_last=self._version == "1.0" or not self._parser.should_keep_alive())

    def _complete(self, *, is_last: bool) -> None:
        """A request has come whole."""
        headers = [one for one in self._headers if one[0] != b"content-length"]
        request = Request(self._method, self._target, headers, b"".join(self._body), self._peer, self._notes)
        self._ready.append((request, self._version == "1.0", is_last))
        self._in_request = self._in_body = self._owes_continue = False
        self._overhead = 0
        self._body, self._headers = [], []
        if self._held:
            self._count(0)

    def _stop(self, status: int, why: str) -> NoReturn:
        self._refusal = (status, why)
        raise _Stop

    def _check_line(self) -> None:
        """Refuse what the parser lets pass, or what is not implemented."""
        if self._version not in _VERSIONS:
            self._stop(505, "it is neither HTTP/1.1 nor HTTP/1.0")
        if self._method not in _METHODS:
            self._stop(501, "its method is not implemented")
        if self._target[0] != _SLASH or not self._target.isascii():
            self._stop(400, "its target is not a path")
        if len(self._ready) >= self._limits.pipelined_requests:
            self._stop(400, "too many were sent before the response to the first")

    def _check_headers(self) -> None:
        headers, limits = self._headers, self._limits
        if self._overhead > limits.head_bytes:  # with bodies and other requests: a look at this head alone
            size = len(self._target) + sum(len(name) + len(value) for name, value in headers)
            if size > limits.head_bytes:
                self._stop(431, f"its head has more than {limits.head_bytes} bytes")
        if len(headers) > limits.headers:
            self._stop(431, f"it has more than {limits.headers} headers")
        hosts = 0
        for name, value in headers:
            if name in _CHECKED:
                if name == b"host":
                    hosts += 1
                else:
                    self._check_header(name, value)
        if hosts != 1:
            self._stop(400, "it has not exactly one header Host")

    def _check_header(self, name: bytes, value: bytes) -> None:  # noqa: C901  # one case for each header
        if name == b"content-length":  # digits: the parser has checked it
            if len(value) > _MAX_DIGITS or int(value) > self._limits.body_bytes:
                self._stop(413, f"its body has more than {self._limits.body_bytes} bytes")
        elif name == b"content-encoding":
            self._stop(415, "its body is encoded: send it without Content-Encoding")
        elif name == b"upgrade":
            self._stop(400, "no other protocol is spoken here: send it without Upgrade")
        elif name == b"transfer-encoding":
            if self._version == "1.0":
                self._stop(400, "HTTP/1.0 has no chunks")
            if value.lower() != b"chunked":
                self._stop(501, "its transfer encoding is not implemented")
        elif value.lower() != b"100-continue":
            self._stop(417, "what it expects is not known here")
        else:
            self._owes_continue = self._version == "1.1"


def _notice_death(sock: socket.socket, seconds: int) -> None:
    """Let TCP end the connection when the peer has been gone for so long, whether or not there is something to send."""
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    probes = (("TCP_KEEPIDLE", seconds // 2), ("TCP_KEEPINTVL", seconds // 8), ("TCP_KEEPCNT", 4))
    for name, value in (*probes, ("TCP_USER_TIMEOUT", seconds * 1000)):  # not every system has all of them
        if (option := getattr(socket, name, None)) is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, max(1, value))


def _refuse_new_connections(listening: socket.socket) -> bool:
    """Let the kernel drop the first packet of each new connection; the others go on. False: it cannot do that."""
    if not platforms.linux:
        return False
    import ctypes  # 5 ms, for the end only

    program = b"".join(_FILTER_STEP.pack(*step) for step in _DROP_SYN)
    steps = ctypes.create_string_buffer(program, len(program))
    try:
        option = _FILTER.pack(len(_DROP_SYN), ctypes.addressof(steps))
        listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, option)
    except OSError:
        return False
    return True


class Accepting:
    """A socket at which connections are accepted."""

    def __init__(self, listening: socket.socket, accept_last: Callable[[], Awaitable[None]]) -> None:
        """`accept_last` accepts the connections that wait, and then no more."""
        self._listening = listening
        self._accept_last = accept_last

    async def stop(self) -> None:
        """Accept no more connections, after those that have begun: their peers believe that they have sent a request.

        Whoever begins to connect meanwhile hears nothing, tries it again after a second, and is refused then.
        """
        if _refuse_new_connections(self._listening):
            await asyncio.sleep(_CONNECT_SECONDS)
        await self._accept_last()


async def serve_sockets(listener: Listener, listening: socket.socket, tls: ssl.SSLContext | None) -> Accepting:
    """Accept connections at a socket that listens, until the loop ends or it is stopped.

    The start of TLS has the time of a head: connections are counted only after it.
    """
    loop = asyncio.get_running_loop()
    if tls is None and isinstance(loop, DirectLoop):
        acceptor = tcp.Acceptor(listening, listener, loop)

        async def close() -> None:
            acceptor.close()

        return Accepting(listening, close)
    seconds = listener.limits.head_seconds if tls is not None else None
    server = await loop.create_server(
        listener, sock=listening, ssl=tls, backlog=_BACKLOG, ssl_handshake_timeout=seconds
    )

    async def accept_last() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                server.close()  # at once: no other connection comes in between
                return
            connection.setblocking(False)
            with suppress(OSError):  # its TLS has failed
                await loop.connect_accepted_socket(listener, connection, ssl=tls, ssl_handshake_timeout=seconds)

    return Accepting(listening, accept_last)
