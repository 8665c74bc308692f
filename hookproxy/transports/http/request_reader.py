"""Reads the requests of one connection: bytes in, requests or a refusal out, without I/O and without a clock.

What two readers could frame differently is refused, and nothing is read after it: where the next request would begin is
not known. The parser (llhttp) reads the framing, and what it lets pass that others might not is refused here.

A connection is between two requests, in a head (`in_request`), or in a body (`in_body` as well). Requests that have
come whole are in `ready`, in order; `refusal` says why there are no more. Peers send the same head again and again, but
for its length: the last one is kept (`_known`), and a request that has it is not parsed. Its body, of which `_missing`
bytes are to come, is then collected past the parser, which sees whole requests only: `_parsed` counts the bytes of the
one it reads, and is -1 once something else has come with it, of which no head is learnt.
"""

# ruff: noqa: D102  # methods without a docstring are described by llhttp
from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NoReturn

import httptools
import msgspec
from msgspec import Struct

from ...network.known_head import KnownHead, known_head
from .listener_limits import ListenerLimits

_METHODS: Final = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"})
"""Others are not implemented: some make a tunnel (CONNECT), return what they get (TRACE) or belong to RTSP."""
_SLASH: Final = ord("/")
_MAX_DIGITS: Final = 18  # of a length: leading zeros are allowed, and no number of so many digits takes long to read
_VERSIONS: Final = frozenset({"1.1", "1.0"})
_SMALL_PIECE: Final = 4096  # bytes of a body that come together: fewer are put together with those before
_FEW_CHUNKS: Final = 256  # which may have any size: a library that writes a message in pieces has a few dozen
_SMALL_CHUNK: Final = 64  # bytes: to read the frame of a smaller chunk takes longer than to read its content

_CHECKED: Final = frozenset(
    {b"host", b"content-length", b"transfer-encoding", b"content-encoding", b"upgrade", b"expect"}
)
"""Headers that are looked at here."""


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
    is_version_1_0: bool = False
    is_last: bool = False
    """The connection ends with its response."""
    pieces: tuple[bytes, ...] = ()
    """A long body, in place of `body`, which is empty then: to put it together takes time."""
    is_whole: bool = True
    """False: only its head has come, and the body is empty for that reason."""


_MOST_EMPTY: Final = 64
"""Bytes of line ends before a request: some clients send one after a body, and the parser skips them."""


class _KnownRequest(Struct, frozen=True, gc=False):
    """The head of the last request on a connection, which the parser has read."""

    head: KnownHead
    target: bytes
    headers: list[tuple[bytes, bytes]]
    notes: HeadNotes


class _Stop(Exception):
    """It makes the parser stop, because the request is refused; why is noted in the reader."""


class RequestReader:
    """The requests of one connection."""

    def __init__(self, limits: ListenerLimits, peer: Peer) -> None:
        self._limits = limits
        self._peer = peer
        self._parser = httptools.HttpRequestParser(self)
        self._method, self._version = b"", ""
        self._target = b""
        self._notes = HeadNotes()
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._small = bytearray()  # the end of it that has come in small pieces, each of which would take an object
        self._chunks = 0  # of the body
        self._overhead = 0  # bytes since the beginning, or since the last byte of a body
        self._known: _KnownRequest | None = None
        self._missing = 0  # bytes of a body whose head was known, so that the parser does not see it
        self._first = b""  # of the request that is being parsed: what came with its first byte
        self._parsed = 0  # bytes of it so far; -1: something else has come with a request, so heads are not kept
        self.in_request = False
        self.in_body = False
        self.size = 0
        """Bytes of its body so far."""
        self.owes_continue = False
        """The peer waits for a 100 before it sends the body."""
        self.ready: list[Request] = []
        self.refusal: tuple[int, str] | None = None
        """The status, and why."""

    @property
    def held(self) -> int:
        """Bytes that are kept of the request that has begun."""
        return self.size + self._overhead

    def head(self) -> Request:
        """The request whose body has not come whole yet, without the body. Its length is in the headers."""
        headers, is_old = list(self._headers), self._version == "1.0"
        if self._missing:  # it was not parsed
            headers.append((b"content-length", b"%d" % (self._missing + self.size)))
        return Request(
            self._method, self._target, headers, b"", self._peer, self._notes, is_old, is_last=True, is_whole=False
        )

    def repeated(self, data: bytes) -> Request | None:
        """The request in `data`, if it is whole and has a known head: nearly every one. None: `_feed` must read it."""
        known = self._known
        if known is None or self.in_request or (body := known.head.body_in(data)) is None:
            return None
        if len(body) > self._limits.body_bytes or len(body) >= self._limits.long_bytes:
            return None
        return Request(b"POST", known.target, known.headers, body, self._peer, known.notes)

    def feed(self, data: bytes) -> None:
        """Read what has come: further requests are in `ready` then, or `refusal` says why not."""
        self._overhead += len(data)
        if self._known is not None and not self.in_request and (digits := self._known.head.length_in(data)):
            data = self._begin_known(self._known, digits, data)
        if self._missing:
            data = self._add_to_body(data)
        if data:
            self._parse(data)
        if self.refusal is None and self.in_request and self._overhead > self._limits.head_bytes:
            self.refusal = (431, f"its head has more than {self._limits.head_bytes} bytes")
        elif self.refusal is None and not (self.in_request or self.ready) and self._overhead > _MOST_EMPTY:
            self.refusal = (400, "only empty lines come, and no request")

    def _begin_known(self, known: _KnownRequest, digits: bytes, data: bytes) -> bytes:
        """Begin a request with a known head, unless its body is too long or empty; return what is left of `data`."""
        if not 0 < int(digits) <= self._limits.body_bytes:
            return data
        self.on_message_begin()
        self._target, self._headers, self._notes = known.target, known.headers, known.notes
        self._method, self._version, self.in_body = b"POST", "1.1", True
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
        if self.ready:  # it has come with the request before
            self._parsed = -1
        if self._parsed == 0:
            self._first = data
        if self._parsed >= 0:
            self._parsed += len(data)
        self._known = None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as problem:
            if self.refusal is None:
                if isinstance(problem, httptools.HttpParserCallbackError):
                    raise
                self.refusal = (400, "it is not valid HTTP")
        if self.ready:
            self._learn_head(self.ready[0])

    def _learn_head(self, request: Request) -> None:
        """Keep the head of the request that the parser has just read, if nothing else has come with it."""
        size = self._first.find(b"\r\n\r\n") + 4
        length = len(request.body) + sum(map(len, request.pieces))
        is_alone = len(self.ready) == 1 and self._parsed == size + length
        self._parsed = 0 if is_alone else -1
        names = [name for name, _ in request.headers]
        if is_alone and request.method == b"POST" and not (request.is_version_1_0 or request.is_last):
            head = known_head(self._first[:size], names, length)
            if head is not None:
                self._known = _KnownRequest(head, request.target, request.headers, request.notes)
        self._first = b""

    def forget(self) -> None:
        """Drop what has come: nothing more is read."""
        self._body, self._headers, self.refusal, self.in_request = [], [], None, False
        self._small = bytearray()
        self._known, self._missing = None, 0
        self.ready.clear()

    # --- callbacks of the parser ---

    def on_message_begin(self) -> None:
        self.in_request, self.in_body = True, False
        self._target = b""
        self._notes = HeadNotes()
        self._headers, self._body, self._small = [], [], bytearray()
        self.size = self._chunks = 0

    def on_url(self, url: bytes) -> None:
        """It comes in pieces if it was received so."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Trailers are ignored."""
        if not self.in_body:
            if len(self._headers) >= self._limits.headers:
                self._stop(431, f"it has more than {self._limits.headers} headers")
            self._headers.append((name.lower(), value.strip()))

    def on_headers_complete(self) -> None:
        self._version, self._method = self._parser.get_http_version(), self._parser.get_method()
        self._check_line()
        self._check_headers()
        self.in_body = True

    def on_body(self, body: bytes) -> None:
        self._overhead = 0
        is_first = not self.size
        self.size += len(body)
        if len(body) < _SMALL_PIECE and not is_first:
            self._small += body
        else:
            self._body += (bytes(self._small), body) if self._small else (body,)
            self._small = bytearray()
        if self.size > self._limits.body_bytes:
            self._stop(413, f"its body has more than {self._limits.body_bytes} bytes")

    def on_chunk_header(self) -> None:
        self._chunks += 1
        if self._chunks > _FEW_CHUNKS + self.size // _SMALL_CHUNK:
            self._stop(400, f"its chunks are too small: most have fewer than {_SMALL_CHUNK} bytes")

    def on_message_complete(self) -> None:
        self._complete(is_last=self._version == "1.0" or not self._parser.should_keep_alive())

    def _complete(self, *, is_last: bool) -> None:
        """A request has come whole."""
        headers = [header for header in self._headers if header[0] != b"content-length"]
        if self._small:
            self._body.append(bytes(self._small))
        is_version_1_0 = self._version == "1.0"
        is_long = self.size >= self._limits.long_bytes
        body, pieces = (b"", tuple(self._body)) if is_long else (b"".join(self._body), ())
        self.ready.append(
            Request(self._method, self._target, headers, body, self._peer, self._notes, is_version_1_0, is_last, pieces)
        )
        self.in_request = self.in_body = self.owes_continue = False
        self._overhead = 0
        self._body, self._headers, self._small = [], [], bytearray()

    def _stop(self, status: int, why: str) -> NoReturn:
        self.refusal = (status, why)
        raise _Stop

    def _check_line(self) -> None:
        """Refuse what the parser lets pass, or what is not implemented."""
        if self._version not in _VERSIONS:
            self._stop(505, "it is neither HTTP/1.1 nor HTTP/1.0")
        if self._method not in _METHODS:
            self._stop(501, "its method is not implemented")
        if self._target[0] != _SLASH or not self._target.isascii():
            self._stop(400, "its target is not a path")
        if len(self.ready) >= self._limits.pipelined_requests:
            self._stop(400, "too many were sent before the response to the first")

    def _check_headers(self) -> None:
        headers, limits = self._headers, self._limits
        if self._overhead > limits.head_bytes:  # with bodies and other requests: a look at this head alone
            size = len(self._target) + sum(len(name) + len(value) for name, value in headers)
            if size > limits.head_bytes:
                self._stop(431, f"its head has more than {limits.head_bytes} bytes")
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
            self.owes_continue = self._version == "1.1"
