"""One HTTP/1.1 connection to the server, for one request after another. It decides nothing; it checks the framing.

What two readers could frame differently is an error, and the connection is closed: a response must not be taken for the
response to another request.

It is busy with a `_handler` from a request to the end of its response, which is in its head first (`_in_head`), then in
its body. What comes is parsed, unless it is a whole response with the head of the one before (`_known`), or the rest of
a long body (`_unparsed` bytes), which is passed on as it is. `_end` gives the connection back to its owner; `_break`
closes it.
"""

# ruff: noqa: D102  # methods without a docstring are described by asyncio.Protocol
from __future__ import annotations

import asyncio
import select
import socket
from typing import Final, Protocol

import httptools
from msgspec import Struct

from .known_head import KnownHead, known_head

_MAX_HEAD_BYTES: Final = 64 * 1024
"""Bytes that may come without a byte of a body: heads, trailers, extensions of chunks. It is several times what servers
send; the parser has no limit of its own."""
_MAX_INTERIM: Final = 8  # responses with status 1xx before the real one: servers send one at most
_IDLE_SECONDS: Final = 4.0  # that an idle connection is used again, if the server names no time: Node closes after 5
_LONGEST_IDLE: Final = 60.0  # seconds, whatever the server says: balancers in between may close earlier
_IDLE_MARGIN: Final = 1.0  # seconds before the server closes that a connection is not used any more
_SMALL_BODY: Final = 64 * 1024  # bytes: copying less takes less time than a second write
_LONG_REST: Final = 256 * 1024  # bytes of a body: for fewer, a new parser takes more time than it saves
_MAX_DIGITS: Final = 18  # of a length, as in known_head
_FRAMES: Final = frozenset({b"transfer-encoding", b"connection", b"upgrade"})
"""Headers that may change how the body comes, or what comes after it."""
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
"""A peer that is gone without a word is noticed after two minutes."""


class Handler(Protocol):
    """Whoever gets a response. After `on_complete` or `on_lost` nothing more is called."""

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None:
        """The head has come. Names are in lower case; repeated ones are joined by commas, those of cookies by LF."""

    def on_body(self, piece: bytes) -> None:
        """A piece of the body has come."""

    def on_complete(self) -> None:
        """The response is complete."""

    def takes_whole(self, size: int) -> bool:
        """Whether a JSON body of this size may come in one call, to `on_whole`."""

    def on_whole(self, headers: dict[bytes, bytes], body: bytes) -> None:
        """A response of status 200 has come whole: in place of `on_head`, `on_body` and `on_complete`.

        The headers are those of an earlier response, which differ from this one's in the length only.
        """

    def on_lost(self, why: str) -> None:
        """There will be no complete response; `why` is a part of a sentence."""


class Owner(Protocol):
    """Whoever keeps the connections."""

    def idle(self, connection: Connection) -> None:
        """The connection is ready for another request."""

    def closed(self, connection: Connection) -> None:
        """The connection is closed."""

    def flow_changed(self) -> None:
        """The server takes no more bytes now, or takes them again."""


_READ_EACH_TIME: Final = frozenset({b"set-cookie", b"keep-alive"})
"""Headers that say something new each time."""


class _KnownResponse(Struct, frozen=True, gc=False):
    """The head of the last response on a connection, which the parser has read."""

    head: KnownHead
    headers: dict[bytes, bytes]
    is_json: bool
    """Its content type is JSON's, and nothing says that the body is encoded."""


class Connection(asyncio.Protocol):
    """One connection. It belongs to `owner`, and at any time to one request at most."""

    def __init__(self, owner: Owner, loop: asyncio.AbstractEventLoop) -> None:
        self._owner = owner
        self._loop = loop
        self._handler: Handler | None = None
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[bytes, bytes] = {}
        self._overhead = 0  # bytes since the last byte of a body
        self._interim = 0
        self._in_head = True
        self._received = 0  # bytes of the body
        self._until_close = False
        self._complete = False
        self._keep_alive = False
        self._fault = ""
        self._paused = False
        self._known: _KnownResponse | None = None
        self._unparsed = 0  # bytes of a long body that are still to come, and that the parser need not see
        self.idle_seconds = _IDLE_SECONDS
        """How long it may be idle and still be used again. A server may name another time."""
        self.last_byte = 0.0
        """When something was sent or received last, by the loop's clock."""
        self.is_closed = False

    # --- for the owner ---

    def request(self, head: bytes, body: bytes, handler: Handler) -> None:
        """Send a request; its response goes to `handler`."""
        assert self._transport is not None
        assert self._handler is None
        self._handler = handler
        self._in_head, self._until_close, self._complete, self._fault = True, False, False, ""
        self._overhead = self._interim = self._unparsed = 0
        self._headers = {}
        self.last_byte = self._loop.time()
        if len(body) < _SMALL_BODY:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._transport.write(body)
        if self._transport.get_write_buffer_size():
            self._owner.flow_changed()

    @property
    def is_reusable(self) -> bool:
        """It is open, and was not idle for so long that the server may be about to close it."""
        return not self.is_closed and self._loop.time() - self.last_byte <= self.idle_seconds

    @property
    def has_unread(self) -> bool:
        """There is something that the event loop has not read yet: the end, or unexpected bytes."""
        assert self._transport is not None
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(poll.poll(0))

    @property
    def unsent(self) -> int:
        """Bytes of the request that the server has not taken yet."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def pause(self, paused: bool) -> None:
        """Stop reading, or read again."""
        if self._transport is not None and paused != self._paused and not self._transport.is_closing():
            self._paused = paused
            (self._transport.pause_reading if paused else self._transport.resume_reading)()

    def close(self) -> None:
        """Close it at once. The handler hears nothing more."""
        self._handler = None
        if not self.is_closed:
            self.is_closed = True
            self._owner.closed(self)
        if self._transport is not None:
            self._transport.abort()

    # --- callbacks of asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.last_byte = self._loop.time()
        if (sock := transport.get_extra_info("socket")) is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _KEEPALIVE:
                if (option := getattr(socket, name, None)) is not None:
                    sock.setsockopt(socket.IPPROTO_TCP, option, value)

    def data_received(self, data: bytes) -> None:
        self.last_byte = self._loop.time()
        if self._handler is None:  # bytes that nobody has asked for could be taken for the next response
            self.close()
            return
        if self._unparsed:
            self._add_to_long_body(self._handler, data)
            return
        if self._in_head and not self._overhead and self._is_known_response(self._handler, data):
            return
        self._parse(data)

    def _parse(self, data: bytes) -> None:
        self._overhead += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fault = "it has switched to another protocol"
        except httptools.HttpParserError as problem:
            self._fault = self._fault or f"its HTTP is invalid ({problem})"
        if self._overhead > _MAX_HEAD_BYTES and not self._complete:
            self._fault = f"the head of its response has more than {_MAX_HEAD_BYTES} bytes"
        if self._fault:
            self._break(self._fault)
        elif self._complete and self._handler is not None:
            self._learn_head(data)
            self._end(self._handler)
        elif not self._complete:
            self._unparsed = self._rest_of_long_body()

    def _add_to_long_body(self, handler: Handler, data: bytes) -> None:
        """Pass on a part of a long body whose length is known: to parse it would be to copy it."""
        part = data if len(data) <= self._unparsed else data[: self._unparsed]
        self._unparsed -= len(part)
        handler.on_body(part)
        if self._unparsed or self._handler is not handler:
            return
        self._complete = self._keep_alive = True
        self._parser = httptools.HttpResponseParser(self)  # the one before still waits for the body
        if len(part) < len(data):
            self._break("it has sent a second response")
        else:
            self._end(handler)

    def _is_known_response(self, handler: Handler, data: bytes) -> bool:
        """Handle a whole response whose head is that of an earlier one: nearly every short one. False: it is none."""
        known = self._known
        if known is None or (body := known.head.body_in(data)) is None:
            return False
        self._complete = self._keep_alive = True
        if known.is_json and handler.takes_whole(len(body)):
            self._release()
            handler.on_whole(known.headers, body)
            return True
        handler.on_head(200, {**known.headers, b"content-length": b"%d" % len(body)})
        if self._handler is handler and body:
            handler.on_body(body)
        if self._handler is handler:
            self._end(handler)
        return True

    def _learn_head(self, data: bytes) -> None:
        """Keep the head of a response that has come whole, and alone, in `data`."""
        size, length = data.find(b"\r\n\r\n") + 4, self._headers.get(b"content-length", b"")
        is_whole = length.isdigit() and len(data) == size + int(length) and not self._interim and self._keep_alive
        is_usual = self._parser.get_status_code() == 200 and _READ_EACH_TIME.isdisjoint(self._headers)
        head = known_head(data[:size], self._headers, int(length)) if is_whole and is_usual else None
        is_json = self._headers.get(b"content-type") == b"application/json" and b"content-encoding" not in self._headers
        self._known = _KnownResponse(head, self._headers, is_json) if head is not None else None

    def _rest_of_long_body(self) -> int:
        """How much of a long body is still to come, if its length is all that there is to know; else 0."""
        length = self._headers.get(b"content-length", b"")
        if self._in_head or not length.isdigit() or len(length) > _MAX_DIGITS or not _FRAMES.isdisjoint(self._headers):
            return 0
        is_usual = self._parser.get_status_code() == 200 and self._parser.get_http_version() == "1.1"
        rest = int(length) - self._received
        return rest if is_usual and rest >= _LONG_REST else 0

    def eof_received(self) -> bool:
        if self._handler is not None and self._until_close and not self._in_head:
            self._complete = True
            self._end(self._handler, reusable=False)
        else:
            self._break("it has closed the connection")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._break(f"the connection broke: {exc}" if exc else "it has closed the connection")

    def pause_writing(self) -> None:
        self._owner.flow_changed()

    def resume_writing(self) -> None:
        self._owner.flow_changed()

    def _break(self, why: str) -> None:
        handler = self._handler
        self.close()
        if handler is not None:
            handler.on_lost(why)

    def _end(self, handler: Handler, *, reusable: bool = True) -> None:
        """The response is complete."""
        self._release(reusable=reusable)
        handler.on_complete()

    def _release(self, *, reusable: bool = True) -> None:
        """Give the connection back to its owner, or close it: its response is complete."""
        self._handler = None
        if not reusable or self._until_close or self.unsent or not self._keep_alive:
            self.close()
        else:
            self._parser = httptools.HttpResponseParser(self) if self._interim else self._parser
            self._owner.idle(self)

    # --- callbacks of the parser ---

    def on_message_begin(self) -> None:
        """A second response to one request is an error."""
        if self._complete:
            self._fault = "it has sent a second response"

    def on_header(self, name: bytes, value: bytes) -> None:
        """Trailers are ignored."""
        if not self._in_head:
            return
        name = name.lower()
        if name in self._headers:
            if name in (b"content-length", b"transfer-encoding"):
                self._fault = f"it has sent two headers {name.decode('latin-1')}"
            separator = b"\n" if name == b"set-cookie" else b", "  # dates in cookies have commas
            value = self._headers[name] + separator + value
        self._headers[name] = value

    def on_headers_complete(self) -> None:
        status, headers = self._parser.get_status_code(), self._headers
        if 100 <= status < 200:
            self._interim += 1
            self._headers = {}
            if self._interim > _MAX_INTERIM or status == 101:
                self._fault = "it has sent no final response"
            return
        chunked = headers.get(b"transfer-encoding")
        if chunked is not None and (chunked.strip().lower() != b"chunked" or b"content-length" in headers):
            self._fault = "the length of its response is ambiguous"
        self._until_close = chunked is None and b"content-length" not in headers and status not in (204, 304)
        self._note_idle_time(headers.get(b"keep-alive", b""))
        self._in_head = False
        self._received = 0
        if self._handler is not None and not self._fault:
            self._handler.on_head(status, headers)

    def _note_idle_time(self, keep_alive: bytes) -> None:
        seconds = keep_alive.lower().partition(b"timeout=")[2].partition(b",")[0].strip()
        if seconds.isdigit() and len(seconds) < 6:
            self.idle_seconds = min(int(seconds) - _IDLE_MARGIN, _LONGEST_IDLE)

    def on_body(self, body: bytes) -> None:
        self._overhead = 0
        self._received += len(body)
        if self._handler is not None and not self._fault and not self._complete:
            self._handler.on_body(body)

    def on_message_complete(self) -> None:
        if not self._in_head:
            self._complete = True
            self._keep_alive = self._parser.should_keep_alive()  # it is known only now
