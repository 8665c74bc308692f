"""The HTTP/1.1 server that agents reach: its connections, and the time and memory that each of them may take.

A connection reads one request after another (`request_reader`), and has at most one response in progress
(`responder`); whatever comes meanwhile is kept, because only reading shows that a peer is gone. What it waits for until
its deadline is one of `_Awaited`; one timer looks at all deadlines. Every peer is bounded in bytes, in time and in
number (`peers`). It knows nothing of the content of requests.

A request that comes whole in one read, as nearly all do, goes to `handle` at once. Of a longer one the head goes to
`admit` first: the body of a sender who is not admitted is never read, and that of another one is counted for him.
Sources: RFC 9110, RFC 9112.
"""

from __future__ import annotations

import asyncio
import math
import socket
import sys
from collections.abc import Callable, Sequence
from enum import Enum, auto
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from ..channel import HIGH_WATER, LOW_WATER
from .listener_limits import ListenerLimits
from .peers import Connected, Crowd, HeldBytes, network_of
from .request_reader import HeadNotes, Peer, Request, RequestReader
from .responder import CLOSE, Headers, Responder, date_line, response_head

_WRITELINES_NEVER_PAUSES: Final = ((3, 12) <= sys.version_info < (3, 12, 9)) or (
    (3, 13) <= sys.version_info < (3, 13, 2)
)
"""The transports of these Pythons do not say in `writelines` that the peer does not read: the memory would fill
(CVE-2024-12254)."""

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_SHED_AT_ONCE: Final = 16  # connections that are closed together when descriptors are short
_MOST_DROPPED: Final = 256 * 1024
"""Bytes of a refused request that are read and thrown away: what is under way when its sender gets the refusal. No more
is read, and the connection is closed."""


class Admitted(Struct, frozen=True):
    """The body of a request may be read."""

    payer: str
    """For whom it is counted until it is handled: a user, or a network."""


class HeadRefused(Struct, frozen=True):
    """The response to a request whose body is not read. The connection is closed then."""

    status: int
    headers: Headers
    body: bytes


Admission = Admitted | HeadRefused
Admit = Callable[[Request, Callable[[Admission], None]], Admission | None]
"""Decides on the head of a request whose body has not come whole. None: it calls the function later."""


def _admit_all(request: Request, _decide: Callable[[Admission], None]) -> Admission:
    return Admitted(network_of(request.peer.address))


class _Awaited(Enum):
    """What a connection waits for until its deadline."""

    HEAD = auto()  # the rest of a head, or the first request
    BODY = auto()  # the rest of a body
    ADMISSION = auto()  # the decision about a head: it takes the time that it needs
    REQUEST = auto()  # the next request
    RESPONSE = auto()  # the handler: it takes the time that it needs
    READER = auto()  # that the peer takes what waits for it
    CLOSE = auto()  # that the peer has read the last response


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
        on_refused: Callable[[Peer, int, str], None] = lambda _peer, _status, _why: None,
        admit: Admit = _admit_all,
    ) -> None:
        self.handle = handle
        self.admit = admit
        self.limits = limits
        self.on_refused = on_refused
        self.is_proxy: Callable[[str], bool] = lambda _address: False
        """Whether an address is a reverse proxy's: its connections are those of many, so only their sum is limited."""
        self.crowd = Crowd(
            limits.connections, limits.strangers, limits.strangers_of_network, limits.connections_of_user
        )
        self.held = HeldBytes(limits.held_bytes, limits.held_bytes_each)
        self.on_stream: Callable[[HeadNotes, Responder], None] = lambda _notes, _responder: None
        """Called when a response begins that may stay open for long, with the notes of its request."""
        self.is_draining = False
        """`close_when_idle` was called."""
        self.idle_seconds = limits.idle_seconds
        """How long a connection may be without a request now."""
        self._open: set[_Connection] = set()
        self._none_is_open = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        shortest = min(limits.head_seconds, limits.body_seconds, limits.idle_seconds, limits.linger_seconds)
        self._interval = min(1.0, shortest / 4)  # seconds between looks at the deadlines: one timer for all
        self.date_line = b""
        """The header `Date` of responses: made with each look at the deadlines, so at most once a second."""

    def __call__(self) -> asyncio.Protocol:
        """Return the protocol of a new connection."""
        return _Connection(self)

    def connection(self, begun: Connected) -> asyncio.Protocol:
        """As calling it, for what is counted already as `begun`."""
        return _Connection(self, begun)

    def is_crowded(self) -> bool:
        """So many strangers have just come that more must wait until some of these are known, or old enough to go."""
        return self.crowd.is_crowded(asyncio.get_running_loop().time())

    def counted_network(self, address: str) -> str:
        """As whose a new connection from this address is counted; empty: it is a proxy's."""
        return "" if self.is_proxy(address) else network_of(address)

    def make_room(self) -> bool:
        """Close some connections that are needed least: descriptors are short. False: there are none."""
        return self.crowd.make_room(_SHED_AT_ONCE)

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
            self._none_is_open.clear()
            await self._none_is_open.wait()

    def close(self) -> None:
        """Break off all connections: their `on_gone` is called."""
        for connection in list(self._open):
            connection.lose()

    # --- for its connections ---

    def opened(self, connection: _Connection) -> bool:
        """Note a connection. False: there are too many, and it is not noted."""
        if not self.crowd.is_counted(connection) and not self.crowd.enter(
            connection, connection.network, asyncio.get_running_loop().time()
        ):
            return False
        self._open.add(connection)
        if self._timer is None:
            self._look_at_deadlines()
        return True

    def lost(self, connection: _Connection) -> None:
        """Forget a connection."""
        self.crowd.leave(connection)
        self._open.discard(connection)
        if not self._open:
            self._none_is_open.set()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _look_at_deadlines(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        self.date_line = date_line()
        self._timer = loop.call_later(self._interval, self._look_at_deadlines)  # until the last connection is lost
        for connection in [late for late in self._open if late.deadline <= now]:
            connection.expire(now)


class _Connection(asyncio.Protocol):
    """One connection: it reads one request after another, and has at most one response in progress.

    It has more than 300 lines because whatever it waits for shares one deadline, and excludes the rest.
    """

    def __init__(self, listener: Listener, begun: Connected | None = None) -> None:
        """`begun` is what has been counted for it while TLS began."""
        self.listener = listener
        self._limits = listener.limits
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._peer = Peer("")
        self._reader: RequestReader
        self.network = ""
        """As whose it is counted while nobody knows who sends its requests."""
        self._begun = begun
        self._user = ""  # who has sent its last request; empty: nobody who is known
        self._is_admitted = False  # the request whose body is being read
        self._payer = ""  # for whom what is held is counted
        self._received = 0  # bytes of the body for which the deadline was extended
        self._held = 0  # bytes of the request that the listener has counted
        self._dropped = 0  # bytes of a refused request
        self._notes = HeadNotes()  # of the request whose response is in progress
        self._responder: Responder | None = None
        self._told_full: Responder | None = None  # the one that knows that the peer does not read
        self._early = bytearray()  # what has come since the request whose response is in progress
        self._is_closing = False
        self._awaited = _Awaited.HEAD
        self._unsent = 0  # bytes that the peer had not taken when the deadline was set
        self.deadline = math.inf
        """When the peer has taken too long for what is awaited, by the loop's clock."""
        self.is_full = False
        """The peer does not read what is written."""

    # --- for the responder, and for the listener ---

    @property
    def is_idle(self) -> bool:
        return self._awaited is _Awaited.REQUEST and not self.is_full

    def shed(self, why: str) -> None:
        self._report(503, why)
        if self._responder is None and not self._is_closing and self._transport is not None:
            self.send(self._refusal(503, why))
            self._is_closing = True
            self._transport.close()  # what it does not take at once is not worth waiting for
            if self.unsent():
                self._transport.abort()
        else:
            self.lose()

    def sent_by(self, user: str) -> bool:
        """The request in progress is of this user. False: the user has too many connections."""
        if user == self._user:
            return True
        if not self.listener.crowd.know(self, user if self.network else ""):  # a proxy's connections are nobody's
            return False
        self._user = user
        return True

    def begun_stream(self, responder: Responder) -> None:
        self.listener.on_stream(self._notes, responder)

    def send(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def send_all(self, parts: Sequence[bytes]) -> None:
        if self._transport is not None:
            if _WRITELINES_NEVER_PAUSES:
                self._transport.write(b"".join(parts))
            else:
                self._transport.writelines(parts)

    def unsent(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def finished(self, closes: bool) -> None:
        self._responder = None
        if closes:
            self._close()
            return
        if not self.is_full:
            idle = self.listener.idle_seconds if self._user else self._idle_seconds
            self._awaited, self.deadline = _Awaited.REQUEST, self._loop.time() + idle
        if self._reader.ready or self._early or self._reader.in_request or self._reader.refusal is not None:
            self._loop.call_soon(self._serve)  # not here: this may be the stack of the handler

    def abort(self) -> None:
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
            self.deadline = min(self.deadline, self._loop.time() + self._idle_seconds)

    def expire(self, now: float) -> None:
        if self._awaited is _Awaited.READER:
            unsent = self.unsent()
            if unsent < self._unsent:
                self._unsent, self.deadline = unsent, now + self._limits.write_seconds
            else:
                self.lose()
        elif self._awaited is _Awaited.CLOSE:
            self.lose()
        elif self._reader.in_request:
            self._refuse(408, f"its {'body' if self._reader.in_body else 'head'} took too long")
        else:
            self._close()

    # --- callbacks of asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        is_tls = transport.get_extra_info("ssl_object") is not None
        name = transport.get_extra_info("peername")
        address = str(name[0]) if isinstance(name, tuple) else ""
        self._peer = Peer(address, is_tls, transport.get_extra_info("peercert") or None)
        self.network = self._payer = self.listener.counted_network(address)
        if self._begun is not None:
            self.listener.crowd.replace(self._begun, self)
            self._begun = None
        self._reader = RequestReader(self._limits, self._peer)
        transport.set_write_buffer_limits(HIGH_WATER, LOW_WATER)
        if (sock := transport.get_extra_info("socket")) is not None:
            _notice_death(sock, self._limits.dead_seconds)
        self._await(_Awaited.HEAD, self._limits.head_seconds)
        if not self.listener.opened(self):
            self._refuse(503, "too many connections are open")
            self._close()

    def data_received(self, data: bytes) -> None:
        if self._is_closing:  # the rest of a refused request
            self._dropped += len(data)
            if self._dropped > _MOST_DROPPED and self._transport is not None:
                self._transport.pause_reading()
            return
        if self._responder is not None or self._early or self._reader.ready or self.is_full:
            self._keep(data)
        elif (request := self._reader.repeated(data)) is not None:
            self._handle(request)
        else:
            self._read(data)
            self._serve()

    def eof_received(self) -> bool:
        """A client that closes its writing side is gone: nothing else would show it."""
        responder, self._responder = self._responder, None
        self._close()
        if responder is not None:
            self._gone(responder)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        self._forget_request()
        self.listener.lost(self)
        responder, self._responder = self._responder, None
        if responder is not None:
            self._gone(responder)
        self.is_full = False
        self._tell_full()

    def pause_writing(self) -> None:
        self.is_full = True
        self._await_reader()
        self._tell_full()

    def resume_writing(self) -> None:
        self.is_full = False
        if not self._is_closing and self._responder is not None:
            self._await(_Awaited.RESPONSE, math.inf)
        elif not self._is_closing:
            self._await(_Awaited.REQUEST, self._idle_seconds)
        self._tell_full()
        if not self._is_closing and self._responder is None:
            self._serve()

    # --- requests, one after another ---

    def _read(self, data: bytes) -> None:
        self._reader.feed(data)
        if self._held and (self._reader.ready or not self._reader.in_request):
            self._count(0)

    def _serve(self) -> None:
        """Go on: with the next request, if the response to the last one has ended."""
        while self._responder is None and not self._is_closing and not self.is_full:
            if self._reader.ready:
                self._handle(self._reader.ready.pop(0))
            elif self._reader.refusal is not None:
                self._refuse(*self._reader.refusal)
            elif self._early:
                data = bytes(self._early)
                self._early = bytearray()
                self._read(data)
            else:
                if self._reader.in_request:
                    self._await_rest()
                return

    def _handle(self, request: Request) -> None:
        self._awaited, self.deadline, self._notes = _Awaited.RESPONSE, math.inf, request.notes
        self._is_admitted = False
        is_head, version_1_0, is_last = request.method == b"HEAD", request.is_version_1_0, request.is_last
        responder = self._responder = Responder(self, is_head, version_1_0, is_last)
        try:
            self.listener.handle(request, responder)
        except Exception as problem:
            self._report_failure("The handler of a request failed", problem)
            responder.fail()

    def _await_rest(self) -> None:
        """Set the deadline for the rest of a request of which a part has come."""
        self._count(self._reader.held)
        if not self.listener.held.may_go_on(self._payer):
            self._refuse_held()
        elif self._reader.in_body:
            if not self._is_admitted:
                self._ask_for_admission()
                return
            if self._awaited is not _Awaited.BODY:
                self._await(_Awaited.BODY, self._limits.body_seconds)
                self._received = 0
            earned = (self._reader.size - self._received) / self._limits.body_bytes_per_second
            self.deadline = min(self.deadline + earned, self._loop.time() + self._limits.body_seconds)
            self._received = self._reader.size
            if self._reader.owes_continue:
                self._reader.owes_continue = False
                self.send(_CONTINUE)
        elif self._awaited is not _Awaited.HEAD:
            self._await(_Awaited.HEAD, self._limits.head_seconds)

    def _refuse_held(self) -> None:
        if self.listener.held.is_over(self._payer):
            self._refuse(429, "too much of long requests of its sender is being received")
        else:
            self._refuse(503, "too many long requests are being received")

    def _ask_for_admission(self) -> None:
        """The head of a request has come, and not its body: find out whose it is before more is read."""
        assert self._transport is not None
        request = self._reader.head()
        try:
            decision = self.listener.admit(request, self._decided)
        except Exception as problem:
            self._report_failure("The head of a request could not be handled", problem)
            decision = HeadRefused(500, (), b"hookproxy failed to handle this request.\n")
        if decision is None:
            self._await(_Awaited.ADMISSION, math.inf)
            self._transport.pause_reading()
        else:
            self._take_decision(decision)

    def _decided(self, decision: Admission) -> None:
        """As `Admit` says: the decision has come later."""
        if self._transport is not None and not self._is_closing and self._awaited is _Awaited.ADMISSION:
            self._transport.resume_reading()
            self._take_decision(decision)

    def _take_decision(self, decision: Admission) -> None:
        if isinstance(decision, HeadRefused):
            self._respond_and_close(decision.status, decision.headers, decision.body)
            return
        self._is_admitted = True
        held = self._held
        self._count(0)
        self._payer = decision.payer
        self._count(held)
        self._await_rest()

    def _keep(self, data: bytes) -> None:
        """Keep what comes while a response is in progress."""
        self._early += data
        if len(self._early) > self._limits.pipelined_bytes:
            self._report(400, "it was sent before the response to an earlier one, and is too long for that")
            self.lose()

    def _refuse(self, status: int, why: str) -> None:
        """Respond to a request that cannot be read, and close: where the next one would begin is not known."""
        self._report(status, why)
        self.send(self._refusal(status, why))
        self._close_after_response()

    def _refusal(self, status: int, why: str) -> bytes:
        return refusal(status, why, self.listener.date_line)

    def _respond_and_close(self, status: int, headers: Headers, body: bytes) -> None:
        """Respond to a request whose body is not read."""
        framed = (*headers, (b"Content-Length", b"%d" % len(body)))
        self.send(response_head(status, framed, self.listener.date_line, CLOSE) + body)
        self._close_after_response()

    def _close_after_response(self) -> None:
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
        """Let the listener know how much of an unfinished request is held here."""
        if size != self._held:
            self.listener.held.change(self._payer, size - self._held)
            self._held = size

    @property
    def _idle_seconds(self) -> float:
        """How long it may be without a request: a stranger, no longer than a request may take to begin."""
        if self._user or not self.network:
            return self.listener.idle_seconds
        return min(self.listener.idle_seconds, self._limits.head_seconds)

    def _forget_request(self) -> None:
        self._count(0)
        self._early = bytearray()
        self._is_admitted = False
        self._reader.forget()


def refusal(status: int, why: str, date: bytes = b"") -> bytes:
    """The response to a request that nobody handles, after which the connection is closed."""
    body = f"hookproxy refused this request: {why}.\n".encode()
    headers = [(b"Content-Type", b"text/plain; charset=utf-8"), (b"Content-Length", b"%d" % len(body))]
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        headers.append((b"Retry-After", b"1"))
    return response_head(status, headers, date, CLOSE) + body


def _notice_death(sock: socket.socket, seconds: int) -> None:
    """Let TCP end the connection when the peer has been gone for so long, whether or not there is something to send."""
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    probes = (("TCP_KEEPIDLE", seconds // 2), ("TCP_KEEPINTVL", seconds // 8), ("TCP_KEEPCNT", 4))
    for name, value in (*probes, ("TCP_USER_TIMEOUT", seconds * 1000)):  # not every system has all of them
        if (option := getattr(socket, name, None)) is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, max(1, value))
