"""The client's side of Streamable HTTP in both eras, and of the older HTTP+SSE: a state machine without I/O.

Its rules:

1. A request of the agent gets one response: the server's, wherever it comes, or one error that says what happened.
2. A POST is sent again only if the server has not acted on it: it was redirected, not authorised, or its session was
   not known.
3. Requests go out at once and in any order; notifications go out one after another; nothing but responses goes out
   while a session is being opened.
4. What is delivered is the JSON text as it came, on one line.
5. A refusal of credentials is remembered until a request succeeds, and reported once.

How it works: each HTTP request is an `Exchange`. `Client` makes it of a line of the agent, says what its head has, and
passes on what comes of it to the objects that keep the state, each with one subject:

- `in_flight`: the exchanges that have not ended, the requests that have no response yet, and what to say of a login
  that is needed;
- `handshake`: the session's phase, and what waits until the session is open;
- `old_transport`: HTTP+SSE, if the server has only that;
- `responses`: what comes back becomes messages; `outcomes`: how an exchange ends, or begins again.

Beside the phase of the session stands its `Life`, which only goes forward: the agent may stop sending in any phase.

Source: MCP 2025-11-25 and 2026-07-28, basic/transports.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from typing import Final

from ...protocol.fast_scan import ReadCall
from . import messages, mirror_headers
from .exchange import Exchange, Kind, Wire
from .handshake import Handshake
from .in_flight import InFlight
from .messages import Message, Params
from .old_transport import OldTransport
from .outcomes import Outcomes
from .responses import JSON, PASSED_FROM, Responses, shown_type
from .sse import EventReader

_EVENTS: Final = b"text/event-stream"
_SESSION_ID: Final = re.compile(rb"[\x21-\x7e]{1,1024}")  # visible ASCII, says the specification; the length is ours


class Life(IntEnum):
    """How far the session has come to its end."""

    RUNNING = 0
    ENDING = 1  # the agent sends nothing more, and waits for responses
    DELETING = 2  # everything has its response: the server is told
    FINISHED = 3


class Client:
    """One session with one server.

    `limit` is the most bytes of a message. `patience` is how many seconds a stream that brings no message is resumed;
    0: for ever.
    """

    def __init__(self, wire: Wire, limit: int, patience: float) -> None:
        self._wire = wire
        self._limit = limit
        self._in_flight = InFlight(wire)
        self._handshake = Handshake(wire, self._in_flight)
        self.old = OldTransport(wire, self._in_flight, self._handshake)
        self._responses = Responses(wire, limit, self._in_flight, self._handshake, self.old, self._refuse)
        self._outcomes = Outcomes(wire, self._in_flight, self._handshake, self.old, self._responses, patience)
        self._in_flight.on_over = self._over
        self._life = Life.RUNNING
        self.short_below = min(PASSED_FROM, limit + 1)
        """Bytes: a response of fewer may be handled whole."""

    # --- from the agent ---

    def send_line(self, line: bytes) -> None:
        """Handle one line of the agent."""
        message = messages.read(line)
        if not message.body.strip():
            return
        if message.ids:
            self._handshake.is_stateless = bool(message.version)
            self._submit_request(Exchange(Kind.REQUEST, message))
        elif message.method == messages.CANCELLED and self._cancel(message):
            return
        else:
            exchange = Exchange(Kind.MESSAGE, message)
            self._in_flight.add(exchange)
            self._handshake.submit_message(exchange)

    def send_call(self, call: ReadCall) -> None:
        """Handle a call of the agent that was read already."""
        self._handshake.is_stateless = bool(call.version)
        exchange = Exchange(Kind.REQUEST, messages.of_call(call))
        if self._handshake.opening is None and not self.old.is_used:
            exchange.call_id = call.id
            self._in_flight.add_call(exchange)
            self._wire.send(exchange)
        else:
            self._submit_request(exchange)

    def _submit_request(self, exchange: Exchange) -> None:
        self._in_flight.add(exchange)
        if self.old.is_used and self._handshake.opening is None and self.old.submit_request(exchange):
            return
        self._handshake.submit_request(exchange)

    def _over(self, exchange: Exchange) -> None:
        """An exchange has failed, or was dropped: whatever has waited for it goes on."""
        self._handshake.notified(exchange)
        self._handshake.settled(exchange)

    def _cancel(self, message: Message) -> bool:
        """Cancel a request as its era says. False: the notification must be posted.

        In the stateless era closing the response stream is the cancellation. A request that is not sent yet never is.
        """
        key = messages.key_of(bytes(message.params.request))
        exchange = self._in_flight.awaiting(key)
        if exchange is None:
            return self._handshake.is_stateless
        stateless = exchange.message is not None and bool(exchange.message.version)
        if not stateless and (exchange.sent or exchange.kind is Kind.RESUME):  # what is resumed has been sent before
            return False
        self._in_flight.settle(exchange, key)
        if not exchange.ids:
            self._in_flight.drop(exchange)
            self._check_end()
        return True

    # --- what is sent ---

    def target(self, exchange: Exchange, default: bytes) -> bytes:
        """Path and query of the request."""
        return exchange.target or (self.old.endpoint if not exchange.is_get else b"") or default

    def headers(self, exchange: Exchange) -> bytes:
        """The header lines that depend on the session and the message, for a request that is sent now."""
        message, session = exchange.message, self._handshake
        if message is not None and message.version:
            return mirror_headers.headers(message, self._responses.parameters.get(str(message.params.name)))
        if message is not None and session.is_stateless and not message.ids and not session.version:
            return b"Mcp-Method: %b\r\n" % mirror_headers.encode_value(message.method) if message.method else b""
        if exchange.kind is Kind.REOPEN or (exchange.kind is Kind.REQUEST and exchange.method == messages.INITIALIZE):
            return b""
        exchange.sent_session = session.id
        if exchange.last_event_id:
            return session.headers + b"Last-Event-ID: %b\r\n" % exchange.last_event_id
        return session.headers

    def call_headers(self, exchange: Exchange) -> bytes | None:
        """As `headers` for a call that was read already; None: they depend on its arguments."""
        message = exchange.message
        assert message is not None
        if not message.version:
            exchange.sent_session = self._handshake.id
            return self._handshake.headers
        name = str(message.params.name)
        return None if name in self._responses.parameters else _headers_of_tool(message.version, name)

    # --- what comes of it ---

    def head(self, exchange: Exchange, status: int, headers: dict[bytes, bytes]) -> None:
        """The head of the response has come."""
        exchange.status, exchange.headers = status, headers
        exchange.content_type, is_utf8 = _content_type(headers.get(b"content-type", b""))
        if not 200 <= status < 300:
            return
        if exchange.method != messages.INITIALIZE:
            self._in_flight.credentials.accepted(exchange)
        if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
            self._refuse(exchange, "the server has sent a compressed response, which was not requested")
            return
        if not is_utf8:
            self._refuse(exchange, "the server has sent a response that is not UTF-8")
            return
        if exchange.method == messages.INITIALIZE or exchange.kind is Kind.REOPEN:
            self._note_session(headers.get(b"mcp-session-id", b""))
        if exchange.content_type == _EVENTS:
            exchange.reader = EventReader(self._limit)
            exchange.failures = 0
        elif exchange.is_get:
            what = shown_type(exchange.content_type, self._wire.secrets)
            self._refuse(exchange, f"the server has sent {what} instead of a stream of events")

    def _refuse(self, exchange: Exchange, why: str) -> None:
        self._outcomes.refuse(exchange, why)
        self._check_end()

    def _note_session(self, session: bytes) -> None:
        if session and not _SESSION_ID.fullmatch(session):
            self._wire.report("the server's Mcp-Session-Id is not used, because it has characters that are not allowed")
            session = b""
        self._handshake.name(session, self._handshake.version)

    def body(self, exchange: Exchange, piece: bytes) -> None:
        """A piece of the body has come."""
        self._responses.body(exchange, piece)
        if self._life:  # it is not RUNNING
            self._check_end()

    def complete(self, exchange: Exchange) -> None:
        """The response has come to its end."""
        self._outcomes.complete(exchange)
        self._check_end()

    def takes_whole(self, exchange: Exchange, size: int) -> bool:
        """Whether `whole` may have the response to this request, with a JSON body of this size."""
        is_short = 0 < size < self.short_below
        is_usual = exchange.kind is Kind.REQUEST and bool(exchange.ids) and exchange.method != messages.INITIALIZE
        return is_short and is_usual and not self.old.endpoint

    def whole(self, exchange: Exchange, headers: dict[bytes, bytes], body: bytes) -> None:
        """A JSON response of status 200 has come whole: in place of `head`, `body` and `complete`."""
        self._in_flight.credentials.accepted(exchange)
        raw_id = exchange.call_id
        if raw_id and raw_id in exchange.ids and messages.is_response_to(raw_id, body):
            self._in_flight.settle_call(exchange)
            self._wire.deliver_response(raw_id, body)
        else:
            exchange.status, exchange.headers, exchange.content_type, exchange.collected = 200, headers, JSON, body
            self._responses.answered(exchange)
        if self._life:  # it is not RUNNING
            self._check_end()

    def lost(self, exchange: Exchange, why: str) -> None:
        """The request could not be sent, or its response has broken off; `why` is a sentence without a full stop."""
        self._outcomes.lost(exchange, why)
        self._check_end()

    def authorized(self, exchange: Exchange) -> None:
        """Other credentials are there: send the request again."""
        exchange.authorized = True
        self._in_flight.send_again(exchange)

    def not_authorized(self, exchange: Exchange, hint: str) -> None:
        """The server has refused the credentials for good; `hint` says what helps."""
        self._outcomes.not_authorized(exchange, hint)
        self._check_end()

    # --- the end of the session ---

    @property
    def is_ending(self) -> bool:
        """The agent sends nothing more, and the session is being closed."""
        return self._life is not Life.RUNNING

    def end(self) -> None:
        """The agent sends nothing more: end the session once everything is answered."""
        self._life = max(self._life, Life.ENDING)
        self._outcomes.listen_no_more()
        self._check_end()

    def abandon(self) -> None:
        """End the session without waiting for responses."""
        for exchange in [exchange for exchange in self._in_flight.exchanges if exchange.kind is not Kind.DELETE]:
            self._in_flight.drop_quietly(exchange)
        self._handshake.forget_all()
        self.end()

    def _check_end(self) -> None:
        """If nothing is in flight but streams that bring nothing more, close them, and then the session."""
        if self._life is Life.RUNNING or self._life is Life.FINISHED:
            return
        exchanges, kinds = self._in_flight.exchanges, (Kind.LISTEN, Kind.ENDPOINT)
        streams = [stream for stream in exchanges if stream.kind in kinds or stream.method == messages.SUBSCRIBE]
        if len(streams) < len(exchanges):
            return
        for stream in streams:
            self._in_flight.drop_quietly(stream)
        if self._handshake.id and self._life is Life.ENDING:
            self._life = Life.DELETING
            delete = Exchange(Kind.DELETE)
            self._in_flight.add(delete)
            self._wire.send(delete)
        else:
            self._life = Life.FINISHED
            self._wire.finished()


@lru_cache(maxsize=32)  # a server has a few, and each response has one
def _content_type(header: bytes) -> tuple[bytes, bool]:
    """Return the type without its parameters, and whether its text is UTF-8."""
    kind, _, parameters = header.lower().partition(b";")
    charset = parameters.partition(b"charset=")[2].partition(b";")[0].strip(b' "')
    return kind.strip(), charset in (b"", b"utf-8", b"utf8", b"us-ascii")


@lru_cache(maxsize=256)  # an agent calls a few tools
def _headers_of_tool(version: str, name: str) -> bytes:
    return mirror_headers.headers(Message(b"", method=messages.CALL_TOOL, params=Params(name), version=version), None)
