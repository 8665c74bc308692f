"""The response to one request of an agent: its head, its framing, and what its writer learns of the client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from email.utils import formatdate
from http import HTTPStatus
from typing import Final, Protocol

Headers = Sequence[tuple[bytes, bytes]]
"""Names and values, in order. Those of a request have names in lower case and values without blanks at their ends."""

_REASONS: Final = {**{int(status): status.phrase for status in HTTPStatus}, 413: "Content Too Large"}
"""The words after a status, for people who read the bytes: as in RFC 9110, also where this Python has older ones."""

_STATUS_LINES: Final = {status: f"HTTP/1.1 {status} {reason}\r\n".encode() for status, reason in _REASONS.items()}
_WITHOUT_BODY: Final = frozenset({204, 304})  # responses that have no body and no length
_OK: Final = b"HTTP/1.1 200 OK\r\n%b%b%bContent-Length: %d\r\n\r\n%b"
"""A whole response of nearly every kind: the date, the headers, whether the connection closes, the body."""
CLOSE: Final = b"Connection: close\r\n"
_CHUNKED: Final = b"Transfer-Encoding: chunked\r\n"
_LAST_CHUNK: Final = b"0\r\n\r\n"
SMALL_PIECE: Final = 64 * 1024  # bytes: copying less takes less time than a second write


class Listener(Protocol):
    """What all connections share, as far as responses need it."""

    is_draining: bool
    """The next response on each connection is its last."""
    date_line: bytes


class Connection(Protocol):
    """The connection of a response, as far as its writer needs it."""

    is_full: bool
    """The peer does not read what is written."""

    @property
    def listener(self) -> Listener:
        """What all connections share."""

    def send(self, data: bytes) -> None:
        """Send bytes."""

    def send_all(self, parts: Sequence[bytes]) -> None:
        """Send bytes without putting them together first."""

    def unsent(self) -> int:
        """Bytes that the peer has not taken yet."""

    def begun_stream(self, responder: Responder) -> None:
        """A response has begun that may stay open for long."""

    def sent_by(self, user: str) -> bool:
        """The request is of this user. False: the user has too many connections."""

    def finished(self, closes: bool) -> None:
        """The response in progress is complete; `closes`: there is no other one."""

    def abort(self) -> None:
        """Break off the connection. Nobody is called."""


class Responder:
    """Takes the response to one request: either `respond`, or `start`, any number of `write`, and `end`.

    Everything happens in the event loop's own thread, and nothing blocks. What is written after the end, or once the
    client is gone, is dropped.
    """

    def __init__(self, connection: Connection, head_only: bool, version_1_0: bool, is_last: bool) -> None:
        self._connection: Connection | None = connection
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

    def sent_by(self, user: str) -> bool:
        """Note that the request is of this user. False: the user has too many connections, and all are busy."""
        return self._connection is None or self._connection.sent_by(user)

    def close_after(self) -> None:
        """Close the connection after this response."""
        self._is_last = True

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
        if status == 200 and isinstance(headers, HeaderLines) and len(body) < SMALL_PIECE and not self._head_only:
            connection.send(_OK % (connection.listener.date_line, headers, CLOSE if closes else b"", len(body), body))
            self._finish(connection, closes)
            return
        framing = b"" if status in _WITHOUT_BODY else b"Content-Length: %d\r\n" % len(body)
        if closes:
            framing += CLOSE
        if self._head_only or status in _WITHOUT_BODY:
            body = b""
        head = response_head(status, headers, connection.listener.date_line, framing)
        if len(body) < SMALL_PIECE:
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
            framing += CLOSE
            self._is_last = True
        head = response_head(status, headers, connection.listener.date_line, framing)
        self._is_started = True
        connection.send(head + self._framed(piece))
        if is_stream:
            connection.begun_stream(self)

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
        if len(piece) < SMALL_PIECE:
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

    def _finish(self, connection: Connection, closes: bool) -> None:
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


def date_line() -> bytes:
    """The header `Date`, as it is now."""
    return f"Date: {formatdate(usegmt=True)}\r\n".encode()


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


def response_head(status: int, headers: Headers | HeaderLines, date: bytes, framing: bytes) -> bytes:
    """The head of a response. Raises ValueError if a header contains a line end."""
    lines = headers if isinstance(headers, HeaderLines) else _lines(headers)
    line = _STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
    return b"%b%b%b%b\r\n" % (line, date, lines, framing)
