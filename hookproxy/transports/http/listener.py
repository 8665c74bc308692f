"""The HTTP/1.1 server that agents reach: connections, and the framing of requests. It knows nothing of their content.

What two readers could frame differently is refused and the connection is closed, so that nobody in front of this
listener sees other requests than it does. Every peer is bounded in bytes, in time and in number.
Sources: RFC 9110, RFC 9112.
"""

from __future__ import annotations

import asyncio
import math
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Final

import httptools
from msgspec import Struct

from ..channel import HIGH_WATER, LOW_WATER

Headers = Sequence[tuple[bytes, bytes]]
"""Names and values, in order. Those of a request have names in lower case and values without blanks at their ends."""

_METHODS: Final = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"})
"""Others are not implemented: some make a tunnel (CONNECT), return what they get (TRACE) or belong to RTSP."""

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

_STATUS_LINES: Final = {status: b"HTTP/1.1 %d %b\r\n" % (status, reason) for status, reason in _REASONS.items()}
_WITHOUT_BODY: Final = frozenset({204, 304})  # responses that have no body and no length
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CLOSE: Final = b"Connection: close\r\n"
_CHUNKED: Final = b"Transfer-Encoding: chunked\r\n"
_LAST_CHUNK: Final = b"0\r\n\r\n"
_SMALL_PIECE: Final = 64 * 1024  # bytes: copying less takes less time than a second write
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class ListenerLimits(Struct, frozen=True):
    """What one peer, and all peers together, may take. Sizes are in bytes, times in seconds."""

    connections: int = 10_000
    """Open connections; one more gets a 503. Ten thousand idle streams take about 100 MB."""
    head_bytes: int = 64 * 1024
    """Of a request's target and headers (431), and of what may come between two bytes of a body (trailers, extensions of
    chunks). It is eight times what other servers allow, because tokens and arguments travel in headers."""
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
    """From the first byte of a request, or from the start of the connection, to the end of the head (408). Over the worst
    networks a head takes three round trips of a second."""
    body_seconds: float = 20.0
    """That a body may take in any case (408), as in Apache's mod_reqtimeout."""
    body_bytes_per_second: float = 500.0
    """How fast the rest of a body must come on average, as there: the slowest modem is faster."""
    idle_seconds: float = 75.0
    """That a connection stays open without a request. Balancers close theirs after 60: they must be first, or a request
    meets a connection that is being closed."""
    drain_idle_seconds: float = 5.0
    """The same once `close_when_idle` was called: a connection in use has its next request before, and learns of the end
    by the response to it."""
    write_seconds: float = 120.0
    """That a peer may take none of the bytes that wait for it, before it is disconnected."""
    linger_seconds: float = 2.0
    """That the rest of a refused request is read and thrown away, so that the peer can read why it was refused: to close
    at once would make its system forget the response."""
    dead_seconds: int = 120
    """After which a peer that is gone without a word is noticed by TCP: the whole seconds until its silence, probed four
    times in the second half, ends the connection."""


class Peer(Struct, frozen=True):
    """Who is at the other end of a connection."""

    address: str
    """The IP address; empty on a Unix socket."""
    is_tls: bool = False
    certificate: Mapping[str, object] | None = None
    """The verified certificate of the client, as `ssl.SSLSocket.getpeercert` describes it; None: it has sent none."""


class Request(Struct, frozen=True, gc=False):
    """One request, complete. Its framing has been checked, its content has not."""

    method: bytes
    target: bytes
    """As sent: it begins with a slash, and nothing in it is decoded."""
    headers: list[tuple[bytes, bytes]]
    """In the order in which they came, repeated ones included; names in lower case. One of them is `host`."""
    body: bytes
    peer: Peer

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

    __slots__ = ("_chunked", "_connection", "_head_only", "_is_started", "_version_1_0", "on_full", "on_gone")

    def __init__(self, connection: _Connection, *, head_only: bool, version_1_0: bool) -> None:
        self._connection: _Connection | None = connection
        self._head_only = head_only
        self._version_1_0 = version_1_0
        self._is_started = False
        self._chunked = False
        self.on_gone: Callable[[], None] | None = None
        """Called once if the client disconnects before the response has ended, also while nothing is written."""
        self.on_full: Callable[[bool], None] | None = None
        """`True`: the client does not read what is written, so that whoever writes should pause. `False`: it reads again."""

    @property
    def is_open(self) -> bool:
        """True until the response has ended or the client is gone."""
        return self._connection is not None

    @property
    def is_full(self) -> bool:
        """True while the client does not read what is written: the last that `on_full` would have said."""
        return self._connection is not None and self._connection.is_full

    def respond(self, status: int, headers: Headers = (), body: bytes = b"") -> None:
        """Send a whole response in one write. Its length is added to the headers; its connection's end if it must end.

        Raises ValueError if a header contains a line end, or if the response has been started already.
        """
        connection = self._connection
        if connection is None:
            return
        self._check_new()
        closes = connection.closes or self._version_1_0
        length = b"" if status in _WITHOUT_BODY else b"Content-Length: %d\r\n" % len(body)
        head = _head(status, headers, connection.date_line, length + _CLOSE if closes else length)
        if self._head_only or not length:
            connection.send(head)
        elif len(body) < _SMALL_PIECE:
            connection.send(head + body)
        else:
            connection.send(head)
            connection.send(body)
        self._connection = None
        connection.finished(closes=closes)

    def start(self, status: int, headers: Headers = (), piece: bytes = b"") -> None:
        """Send the head of a response whose length is not known yet, at once, with the first piece of its body.

        Raises ValueError if a header contains a line end, or if the response has been started already.
        """
        connection = self._connection
        if connection is None:
            return
        self._check_new()
        self._chunked = not self._version_1_0
        framing = _CHUNKED if self._chunked else b""
        if connection.closes or self._version_1_0:
            framing += _CLOSE
        head = _head(status, headers, connection.date_line, framing)
        self._is_started = True
        connection.send(head + self._framed(piece))

    def write(self, piece: bytes) -> None:
        """Send a piece of the body. An empty one sends nothing. Raises ValueError before `start`."""
        connection = self._connection
        if connection is None:
            return
        self._check_started()
        if not piece or self._head_only:
            return
        if len(piece) < _SMALL_PIECE:
            connection.send(self._framed(piece))
        elif self._chunked:
            connection.send(b"%x\r\n" % len(piece))
            connection.send(piece)
            connection.send(b"\r\n")
        else:
            connection.send(piece)

    def end(self, piece: bytes = b"") -> None:
        """Send the last piece and end the response. Raises ValueError before `start`."""
        connection = self._connection
        if connection is None:
            return
        self._check_started()
        last = self._framed(piece)
        if self._chunked and not self._head_only:
            last += _LAST_CHUNK
        if last:
            connection.send(last)
        self._connection = None
        connection.finished(closes=connection.closes or self._version_1_0)

    def abort(self) -> None:
        """Break off the connection, so that the client cannot take what it has for a whole response. Nobody is called."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    def gone(self) -> None:
        """Called by the connection: the client is gone."""
        self._connection = None
        if self.on_gone is not None:
            self.on_gone()

    def _framed(self, piece: bytes) -> bytes:
        if not piece or self._head_only:
            return b""
        return b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece

    def _check_new(self) -> None:
        if self._is_started:
            raise ValueError("the response has been started already")

    def _check_started(self) -> None:
        if not self._is_started:
            raise ValueError("the response has not been started")


def _head(status: int, headers: Headers, date: bytes, framing: bytes) -> bytes:
    lines = b"".join([b"%b: %b\r\n" % pair for pair in headers])
    if lines.count(b"\n") != len(headers) or lines.count(b"\r") != len(headers) or b"\0" in lines:
        raise ValueError("a header of a response contains a line end or NUL")
    line = _STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
    return b"%b%b%b%b\r\n" % (line, date, lines, framing)


class _Awaited(Enum):
    """What a connection waits for until its deadline."""

    HEAD = auto()  # the rest of a head, or the first request
    BODY = auto()  # the rest of a body
    REQUEST = auto()  # the next request
    RESPONSE = auto()  # the handler: it takes the time that it needs
    READER = auto()  # that the peer takes what waits for it
    CLOSE = auto()  # that the peer has read the last response


class _Stop(Exception):  # noqa: N818  # no error: it makes the parser stop
    """The request is refused; why is noted in the connection."""


class Listener:
    """All connections of one address or more: a protocol factory for `loop.create_server`, to be called without arguments.

    `handle` gets each request in the event loop's own callback, one at a time for each connection, and responds at once
    or later. If it raises, the client gets a 500 and the loop's exception handler gets the exception.
    `on_refused` is told of what never reaches `handle`: the peer, the status, and a part of a sentence without input.
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
        self.is_draining = False
        """`close_when_idle` was called."""
        self.unfinished_bytes = 0
        """Of bodies that have not come whole yet."""
        self._open: set[_Connection] = set()
        self._waiting_for_none: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        shortest = min(limits.head_seconds, limits.body_seconds, limits.idle_seconds, limits.linger_seconds)
        self._interval = min(1.0, shortest / 4)  # seconds between looks at the deadlines: one timer for all
        self._second = 0
        self._date = b""

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
