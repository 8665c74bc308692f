"""The client's side of Streamable HTTP in both eras, and of the older HTTP+SSE: a state machine without I/O.

Its rules:

1. A request of the agent gets one response: the server's, wherever it comes, or one error that says what happened.
2. A POST is sent again only if the server has not acted on it: it was redirected, not authorised, or its session was
   not known.
3. Requests go out at once and in any order; notifications go out one after another; nothing but responses goes out
   while a session is being opened.
4. What is delivered is the JSON text as it came, on one line.
5. A refusal of credentials is remembered until a request succeeds, and reported once. An `initialize` that the server
   refuses for another reason says so: an agent that tries both eras shows only its error, which hides the login.

Source: MCP 2025-11-25 and 2026-07-28, basic/transports.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import Final, Protocol

from ...protocol import feedback
from ...protocol.calls import Progress
from ...protocol.fast_scan import END_BYTES, ReadCall, response_id
from ..channel import Passage
from . import messages, mirror_headers
from .exchange import Exchange, Kind
from .messages import Message, Params
from .sse import Event, EventReader, LongEvent, PassedEvent

_JSON: Final = b"application/json"
_EVENTS: Final = b"text/event-stream"
_PASSED_FROM: Final = 65_536  # bytes: shorter responses are sent whole, in one write
_READ_WHOLE: Final = frozenset({messages.INITIALIZE, messages.LIST_TOOLS})
"""Requests whose responses say something about the session, or are changed."""
_SESSION_ID: Final = re.compile(rb"[\x21-\x7e]{1,1024}")  # visible ASCII, says the specification; the length is ours
_MAX_REDIRECTS: Final = 5  # within one origin two are usual: a slash at the end, a moved path
_MAX_RESUMES: Final = 5  # attempts in a row to resume a stream, each after twice the time: with 1 s, half a minute
_RETRY_SECONDS: Final = 1.0  # before a stream is opened again, if the server says nothing; SDKs do the same
_SHORTEST_RETRY: Final = 0.05  # seconds: a server that closes each stream at once must not keep us busy
_LONGEST_RETRY: Final = 60.0  # seconds: a server that is back after hours must not be waited for as long again
_MAX_ERROR_BYTES: Final = 65536  # of the body of an error response
_MAX_ERROR_SHOWN: Final = 500  # characters of a server's error text in ours: a page of HTML would only take tokens
_NOT_ACTED: Final = frozenset({400, 401, 403, 404, 405, 406, 410, 411, 413, 414, 415, 421, 426, 428, 429, 431})
"""Statuses with which a server refuses a request before it acts on it."""
_LOST_SESSION: Final = frozenset({-32600, -32001, -32000})
"""Error codes with which servers say that they do not know a session: the Python SDK's, the TypeScript SDK's, and the
general one. Other codes, such as that of an unknown method or resource, are about the request itself."""
_FOR_NOW: Final = frozenset({401, 408, 429, 500, 502, 503, 504})
"""Statuses that may be others after a while, or after a login."""
_NO_OLD_TRANSPORT: Final = frozenset({401, 403, 407, 408, 421, 429})
"""Statuses of a refused `initialize` that do not mean that the server has only the older transport."""


class Wire(Protocol):
    """What the state machine asks of whoever does its I/O."""

    def send(self, exchange: Exchange) -> None:
        """Send the request; `Client.head`, `body`, `complete` and `lost` tell what comes of it."""

    def close_exchange(self, exchange: Exchange) -> None:
        """Close the connection of an exchange, or forget it if it is not sent yet. Nothing more comes of it."""

    def deliver(self, lines: bytes) -> None:
        """Give the agent's side whole lines."""

    def deliver_response(self, raw_id: bytes, line: bytes) -> None:
        """Give the agent's side the response to a call that was read already; `line` has no line end."""

    def open_passage(self, raw_id: bytes) -> Passage | None:
        """Begin to pass on the response to a request before its end has come; None: it must come whole."""

    def deliver_failure(self, line: bytes) -> None:
        """Give the agent's side an error that stands for the server's response."""

    def report(self, text: str) -> None:
        """Tell people something in one line."""

    def after(self, seconds: float, callback: Callable[[], None]) -> None:
        """Call back later, unless the channel is closed by then."""

    def authorize(self, exchange: Exchange, challenge: str) -> None:
        """Ask for other credentials, once; `Client.authorized` or `Client.not_authorized` follows."""

    def same_origin_target(self, base: bytes, location: str) -> bytes | None:
        """Return path and query of an address relative to another; None: it is of another origin."""

    def finished(self) -> None:
        """The session is over, and nothing more comes."""


class Client:
    """One session with one server.

    `limit` is the most bytes of a message. `patience` is how many seconds a stream that brings no message is resumed;
    0: for ever.
    """

    def __init__(self, wire: Wire, limit: int, patience: float) -> None:
        self._wire = wire
        self._limit = limit
        self.short_below = min(_PASSED_FROM, limit + 1)
        """Bytes: a response of fewer may be handled whole."""
        self._patience = patience
        self._open: set[Exchange] = set()  # sent, or waiting for a connection
        self._awaiting: dict[bytes, Exchange] = {}  # by the key of each request that is not answered
        self._held: deque[Exchange] = deque()  # until the session is open
        self._notifications: deque[Exchange] = deque()  # the first one is being sent
        self._opening: Exchange | None = None  # the exchange that opens the session
        self._initialize: Message | None = None
        self._initialized: Message | None = None
        self._parameters = mirror_headers.ParameterTable()
        self._old_endpoint = b""  # of HTTP+SSE
        self._is_old = False  # the server speaks HTTP+SSE
        self._listening = False
        self._stateless = False  # the agent's last request was one of the stateless era
        self._earlier: tuple[str, str] | None = None  # the refusal of credentials, without a full stop, and what helps
        self._reported = ""  # the refusal that was reported last
        self.is_ending = False
        """The agent sends nothing more, and the session is being closed."""
        self._finishing = False
        self._finished = False
        self.session = b""
        self.version = ""
        """The protocol version of the handshake; empty: there was none yet."""
        self.session_headers = b""
        """Header lines of each message of the session."""

    # --- from the agent ---

    def send_line(self, line: bytes) -> None:
        """Handle one line of the agent."""
        message = messages.read(line)
        if not message.body.strip():
            return
        if message.ids:
            self._stateless = bool(message.version)
            self._submit_request(Exchange(Kind.REQUEST, message))
        elif message.method == messages.CANCELLED and self._cancel(message):
            return
        else:
            self._submit_message(Exchange(Kind.MESSAGE, message))

    def send_call(self, call: ReadCall) -> None:
        """Handle a call of the agent that was read already."""
        self._stateless = bool(call.version)
        exchange = Exchange(Kind.REQUEST, messages.of_call(call))
        if self._opening is None and not self._is_old:
            exchange.call_id = call.id
            self._awaiting[call.id] = exchange
            self._open.add(exchange)
            self._wire.send(exchange)
        else:
            self._submit_request(exchange)

    def _submit_request(self, exchange: Exchange) -> None:
        for key in exchange.ids:
            self._awaiting[key] = exchange
        self._open.add(exchange)
        if self._opening is not None:
            self._held.append(exchange)
        elif exchange.method == messages.INITIALIZE:
            self._begin_session(exchange)
            self._wire.send(exchange)
        elif self._is_old and not self._old_endpoint and self._initialize is not None:
            self._held.append(exchange)
            self._reopen_old_transport(self._initialize)
        else:
            self._wire.send(exchange)

    def _begin_session(self, exchange: Exchange) -> None:
        self._opening, self._initialize, self._initialized = exchange, exchange.message, None
        self._set_session(b"", "")

    def _set_session(self, session: bytes, version: str) -> None:
        self.session, self.version = session, version
        lines = b"Mcp-Session-Id: %b\r\n" % session if session else b""
        if version:
            lines += b"MCP-Protocol-Version: %b\r\n" % mirror_headers.encode_value(version)
        self.session_headers = lines

    def _submit_message(self, exchange: Exchange) -> None:
        """Send a response at once, and a notification after the one before it."""
        self._open.add(exchange)
        if exchange.message is not None and exchange.message.is_response:
            self._wire.send(exchange)
        elif self._opening is not None:
            self._held.append(exchange)
        else:
            self._notify(exchange)

    def _notify(self, exchange: Exchange) -> None:
        if exchange.method == messages.INITIALIZED and not self._stateless:
            self._initialized = exchange.message
            self._opening = exchange
        self._notifications.append(exchange)
        if len(self._notifications) == 1:
            self._wire.send(exchange)

    def _notified(self, exchange: Exchange) -> None:
        """The notification has arrived, or is lost: send the next one."""
        if exchange in self._notifications:
            first = self._notifications[0] is exchange
            self._notifications.remove(exchange)
            if first and self._notifications:
                self._wire.send(self._notifications[0])

    def _opened(self) -> None:
        """The session is open, or could not be opened: send what has waited for it."""
        self._opening = None
        while self._held and self._opening is None:
            exchange = self._held.popleft()
            if exchange.is_done:
                continue
            if exchange.kind is Kind.MESSAGE:
                self._notify(exchange)
            else:
                if exchange.method == messages.INITIALIZE:
                    self._begin_session(exchange)
                self._wire.send(exchange)

    def _cancel(self, message: Message) -> bool:
        """Cancel a request as its era says. False: the notification must be posted.

        In the stateless era closing the response stream is the cancellation. A request that is not sent yet never is.
        """
        key = messages.key_of(bytes(message.params.request))
        exchange = self._awaiting.get(key)
        if exchange is None:
            return self._stateless
        stateless = exchange.message is not None and bool(exchange.message.version)
        if not stateless and (exchange.sent or exchange.kind is Kind.RESUME):  # what is resumed has been sent before
            return False
        exchange.ids.pop(key, None)
        self._awaiting.pop(key, None)
        if not exchange.ids:
            self._drop(exchange)
        return True

    # --- what is sent ---

    def target(self, exchange: Exchange, default: bytes) -> bytes:
        """Path and query of the request."""
        return exchange.target or (self._old_endpoint if not exchange.is_get else b"") or default

    def headers(self, exchange: Exchange) -> bytes:
        """The header lines that depend on the session and the message, for a request that is sent now."""
        message = exchange.message
        if message is not None and message.version:
            return mirror_headers.headers(message, self._parameters.get(str(message.params.name)))
        if message is not None and self._stateless and not message.ids and not self.version:
            return b"Mcp-Method: %b\r\n" % mirror_headers.encode_value(message.method) if message.method else b""
        if exchange.kind is Kind.REOPEN or (exchange.kind is Kind.REQUEST and exchange.method == messages.INITIALIZE):
            return b""
        exchange.sent_session = self.session
        if exchange.last_event_id:
            return self.session_headers + b"Last-Event-ID: %b\r\n" % exchange.last_event_id
        return self.session_headers

    def call_headers(self, exchange: Exchange) -> bytes | None:
        """As `headers` for a call that was read already; None: they depend on its arguments."""
        message = exchange.message
        assert message is not None
        if not message.version:
            exchange.sent_session = self.session
            return self.session_headers
        name = str(message.params.name)
        return None if name in self._parameters else _headers_of_tool(message.version, name)

    # --- the response ---

    def head(self, exchange: Exchange, status: int, headers: dict[bytes, bytes]) -> None:
        """The head of the response has come. Raises BadResponse if its body cannot be read."""
        exchange.status, exchange.headers = status, headers
        exchange.content_type, is_utf8 = _content_type(headers.get(b"content-type", b""))
        if not 200 <= status < 300:
            return
        if exchange.method != messages.INITIALIZE:
            self._accepted_credentials(exchange)
        if b"content-encoding" in headers and headers[b"content-encoding"].strip().lower() != b"identity":
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
            self._refuse(exchange, f"the server has sent {_shown(exchange.content_type)} instead of a stream of events")

    def _note_session(self, session: bytes) -> None:
        if session and not _SESSION_ID.fullmatch(session):
            self._wire.report("the server's Mcp-Session-Id is not used, because it has characters that are not allowed")
            session = b""
        self._set_session(session, self.version)

    def body(self, exchange: Exchange, piece: bytes) -> None:
        """A piece of the body has come."""
        if exchange.reader is not None:
            self._stream_piece(exchange, exchange.reader, piece)
        elif exchange.passage is not None:
            self._pass_piece(exchange, piece)
        elif not 200 <= exchange.status < 300:
            if len(exchange.collected) < _MAX_ERROR_BYTES:
                exchange.collect(piece)
        elif exchange.ids or exchange.kind is Kind.REOPEN:
            self._body_piece(exchange, piece)

    def _stream_piece(self, exchange: Exchange, reader: EventReader, piece: bytes) -> None:
        for event in reader.feed(piece):
            if exchange.is_done:
                return
            self._event(exchange, event)
        if exchange.passed < 0 and reader.kept >= _PASSED_FROM:
            self._pass_on(exchange, reader.unfinished_message)

    def _body_piece(self, exchange: Exchange, piece: bytes) -> None:
        size = exchange.collect(piece)
        if size > self._limit:
            for raw_id in self._take_ids(exchange):
                self._wire.deliver_failure(feedback.response_too_long(raw_id, size, self._limit))
            self._drop(exchange)
        elif exchange.passed < 0 and size >= _PASSED_FROM and exchange.content_type == _JSON:
            self._pass_on(exchange, exchange.collected)

    # --- a long response that nobody must see whole ---

    def _pass_on(self, exchange: Exchange, beginning: bytes | bytearray) -> None:
        """Pass on a response from its beginning, if it is certainly the one to the exchange's only request."""
        exchange.passed = 0
        raw_id = response_id(bytes(beginning[:END_BYTES]), b"")
        key = messages.key_of(raw_id) if raw_id is not None else b""
        length = exchange.headers.get(b"content-length", b"")
        too_long = not length.isdigit() or int(length) > self._limit if length else False
        if key not in exchange.ids or len(exchange.ids) > 1 or exchange.method in _READ_WHOLE or too_long:
            return
        if self._old_endpoint or (passage := self._wire.open_passage(exchange.ids[key])) is None:
            return
        self._take_ids(exchange)
        exchange.passage = passage
        if exchange.reader is not None:
            exchange.reader.pass_on(lambda piece: self._pass_piece(exchange, piece))
        else:
            exchange.collected = b""
            passage.size = int(length) if length else None
            self._pass_piece(exchange, bytes(beginning))

    def _pass_piece(self, exchange: Exchange, piece: bytes) -> None:
        exchange.passed += len(piece)
        if exchange.passed > self._limit:
            self._break_passage(exchange, f"it has more than {self._limit} bytes")
            self._drop(exchange)
        elif exchange.passage is not None:
            exchange.passage.write(piece)

    def _end_passage(self, exchange: Exchange) -> None:
        passage, exchange.passage = exchange.passage, None
        if passage is not None:
            passage.end()

    def _break_passage(self, exchange: Exchange, why: str) -> None:
        passage, exchange.passage = exchange.passage, None
        if passage is not None:
            self._wire.report(f"a response of the server was broken off: {why}")
            passage.abort()

    def complete(self, exchange: Exchange) -> None:
        """The response has come to its end."""
        status = exchange.status
        if exchange.reader is not None:
            self._break_passage(exchange, "its stream has ended before it")
            self._stream_ended(exchange)
        elif exchange.passage is not None:
            self._end_passage(exchange)
            self._done(exchange)
        elif 200 <= status < 300:
            self._accepted(exchange)
        elif 300 <= status < 400:
            self._redirected(exchange)
        elif status in (401, 403):
            self._wire.authorize(exchange, exchange.headers.get(b"www-authenticate", b"").decode("latin-1"))
        else:
            self._refused(exchange)
        self._check_end()

    def takes_whole(self, exchange: Exchange, size: int) -> bool:
        """Whether `whole` may have the response to this request, with a JSON body of this size."""
        is_short = 0 < size < self.short_below
        is_usual = exchange.kind is Kind.REQUEST and bool(exchange.ids) and exchange.method != messages.INITIALIZE
        return is_short and is_usual and not self._old_endpoint

    def whole(self, exchange: Exchange, headers: dict[bytes, bytes], body: bytes) -> None:
        """A JSON response of status 200 has come whole: in place of `head`, `body` and `complete`."""
        self._accepted_credentials(exchange)
        raw_id = exchange.call_id
        if raw_id and raw_id in exchange.ids and messages.is_response_to(raw_id, body):
            exchange.ids.clear()
            exchange.is_done = True
            self._awaiting.pop(raw_id, None)
            self._open.discard(exchange)
            self._wire.deliver_response(raw_id, body)
            if self.is_ending:
                self._check_end()
            return
        exchange.status, exchange.headers, exchange.content_type, exchange.collected = 200, headers, _JSON, body
        self._answered(exchange)
        self._check_end()

    def lost(self, exchange: Exchange, why: str) -> None:
        """The request could not be sent, or its response has broken off; `why` is a sentence without a full stop."""
        self._break_passage(exchange, why)
        if exchange.reader is not None:
            self._stream_ended(exchange, why)
        elif exchange.kind is Kind.REQUEST:
            self._fail(exchange, why, Progress.NO_RESPONSE if exchange.sent else Progress.NOT_SENT)
        else:
            self._end_other(exchange, why)
        self._check_end()

    def authorized(self, exchange: Exchange) -> None:
        """Other credentials are there: send the request again."""
        exchange.authorized = True
        self._send_again(exchange)

    def not_authorized(self, exchange: Exchange, hint: str) -> None:
        """The server has refused the credentials for good; `hint` says what helps."""
        if hint:
            whose, why = "", f"because a login is needed (HTTP {exchange.status})"
        else:  # nothing that we could do would help: what the server says may
            whose, why = "the credentials of ", f"with HTTP status {exchange.status}{self._error_text(exchange)}"
        why, earlier = (f"The server has refused {whose}{which} request, {why}" for which in ("this", "an earlier"))
        text = f"{why}. {hint}".rstrip(". ")
        if text != self._reported:
            self._reported = text
            self._wire.report(text)
        self._earlier = None  # this one is reported in full
        if exchange.kind is Kind.REQUEST:
            self._fail(exchange, why, Progress.NOT_SENT, refused=True, hint=hint)
        self._earlier = earlier, hint
        if exchange.kind is not Kind.REQUEST:
            self._end_other(exchange, text)
        self._check_end()

    def _accepted_credentials(self, exchange: Exchange) -> None:
        """The server has accepted a request. If that had credentials, their next refusal is reported again."""
        self._earlier = None
        if exchange.used_authorization is not None:
            self._reported = ""

    def _send_again(self, exchange: Exchange) -> None:
        exchange.restart()
        if exchange not in self._open:
            return
        self._wire.send(exchange)

    def _accepted(self, exchange: Exchange) -> None:
        """A complete response that is no stream."""
        if exchange.kind is Kind.REQUEST and exchange.ids:
            if self._comes_in_old_stream(exchange):
                return
            if exchange.collected:
                self._answered(exchange)
            else:
                what = f"The server has accepted the request (HTTP {exchange.status}) without a response"
                self._fail(exchange, what, Progress.NO_RESPONSE)
        elif exchange.kind is Kind.REOPEN:
            if not self._comes_in_old_stream(exchange):
                self._reopened(exchange, bytes(exchange.collected))
        else:
            self._end_other(exchange, "")

    def _comes_in_old_stream(self, exchange: Exchange) -> bool:
        """Its response comes in the stream of HTTP+SSE: the body is none, although some servers put it there."""
        return bool(self._old_endpoint) and not self._is_response(exchange, _as_one_line(bytes(exchange.collected)))

    def _is_response(self, exchange: Exchange, body: bytes) -> bool:
        """The body answers a request of the exchange."""
        return any(messages.key_of(raw_id) in exchange.ids for raw_id in messages.answered_ids(body) or ())

    def _answered(self, exchange: Exchange) -> None:
        """The body is the response."""
        line = _as_one_line(bytes(exchange.collected))
        ids = messages.answered_ids(line)
        if exchange.content_type not in (_JSON, b"") or ids is None:
            kind = "no JSON-RPC message" if exchange.content_type == _JSON else _shown(exchange.content_type)
            self._fail(exchange, f"The server has sent {kind} as a response", Progress.NO_RESPONSE)
            return
        self._message(exchange, line, ids)
        if exchange.ids:
            self._fail(exchange, "The server's response belongs to another request", Progress.NO_RESPONSE)
        else:
            self._done(exchange)

    def _event(self, exchange: Exchange, event: Event | LongEvent | PassedEvent) -> None:
        reader = exchange.reader
        assert reader is not None
        exchange.last_event_id = reader.last_id or exchange.last_event_id
        exchange.retry = reader.retry or exchange.retry
        if isinstance(event, PassedEvent):
            self._end_passage(exchange)
        elif isinstance(event, LongEvent):
            self._break_passage(exchange, f"it has more than {self._limit} bytes")
            self._long_event(exchange, event)
        elif event.type == b"endpoint":
            if exchange.kind is Kind.ENDPOINT and not self._old_endpoint:
                self._old_endpoint_named(exchange, event.data.decode(errors="replace"))
        elif event.data.strip() and event.type in (b"", b"message"):
            exchange.resumed_for = 0.0
            if exchange.kind is Kind.REOPEN:
                self._reopened(exchange, event.data)
            else:
                self._message(exchange, event.data, messages.answered_ids(event.data) or [])

    def _message(self, exchange: Exchange, line: bytes, ids: list[bytes]) -> None:
        """Deliver one message that answers the requests with these ids, and note that they are answered."""
        if line.lstrip()[:1] == b"[" and self._fail_array(exchange, ids):
            return
        for raw_id in ids:
            key = messages.key_of(raw_id)
            owner = exchange if key in exchange.ids else self._awaiting.get(key)
            if owner is None:
                continue
            owner.ids.pop(key, None)
            self._awaiting.pop(key, None)
            if owner.kind is Kind.REOPEN:
                self._reopened(owner, line)
                return
            line = self._note_response(owner, raw_id, line)
            if not owner.ids and owner is not exchange and owner.kind is Kind.REQUEST and self._old_endpoint:
                self._done(owner)
        self._wire.deliver(line + b"\n")

    def _fail_array(self, exchange: Exchange, ids: list[bytes]) -> bool:
        """Answer requests that came alone with an error: an array is not a response to them. False: there are none.

        Only an agent that has sent a batch (2025-03-26) can read one, and hooks judge no response in it.
        """
        alone: list[tuple[Exchange, bytes]] = []
        for key in map(messages.key_of, ids):
            owner = exchange if key in exchange.ids else self._awaiting.get(key)
            if owner is not None and key in owner.ids and owner.kind is not Kind.REOPEN and not owner.is_batch:
                alone.append((owner, owner.ids.pop(key)))
                self._awaiting.pop(key, None)
        for owner, raw_id in alone:
            is_call = owner.method == messages.CALL_TOOL
            why = "The server has sent an array of messages as a response"
            self._wire.deliver_failure(feedback.remote_failure(raw_id, why, Progress.NO_RESPONSE, is_call=is_call))
            if not owner.ids and owner is not exchange and self._old_endpoint:
                self._done(owner)
            if self._opening is owner:
                self._opened()
        return bool(alone)

    def _note_response(self, owner: Exchange, raw_id: bytes, line: bytes) -> bytes:
        """Note what the response says about the session; return the line that the agent gets."""
        if owner.method == messages.LIST_TOOLS and owner.message is not None and owner.message.version:
            invalid = self._parameters.note(line)
            for name, why in invalid.items():
                self._wire.report(f"the tool {name} is left out of the list, as MCP demands: {why}")
            return feedback.without_tools(line, invalid.__contains__) if invalid else line
        if owner.method == messages.INITIALIZE:
            version = messages.negotiated_version(line)
            self._set_session(self.session, version)
            line = line if version else self._after_refusal(raw_id, line)
            if version:
                self._accepted_credentials(owner)
            if self._opening is owner:
                self._opened()
        return line

    def _after_refusal(self, raw_id: bytes, line: bytes) -> bytes:
        """Add to the error of an `initialize` that the server has refused credentials before."""
        if self._earlier is None or not (text := messages.error_message(line)):
            return line
        (earlier, hint), text = self._earlier, text.rstrip(".")
        why = f"{earlier}. The server has answered initialize with the error: {text}"
        failure = feedback.remote_failure(raw_id, why, Progress.NOT_SENT, is_call=False, refusal=line, hint=hint)
        return failure.rstrip(b"\n")

    def _long_event(self, exchange: Exchange, event: LongEvent) -> None:
        raw_id = response_id(event.head, event.tail)
        key = messages.key_of(raw_id) if raw_id is not None else b""
        owner = exchange if key in exchange.ids else self._awaiting.get(key)
        if raw_id is None or owner is None:
            self._wire.report(f"dropped a message of {event.size} bytes, which is more than {self._limit}")
            return
        owner.ids.pop(key, None)
        self._awaiting.pop(key, None)
        self._wire.deliver_failure(feedback.response_too_long(raw_id, event.size, self._limit))

    # --- the end of an exchange ---

    def _stream_ended(self, exchange: Exchange, why: str = "") -> None:
        """A stream of events has ended. What it has not answered is resumed, if the server can do that."""
        if exchange.kind is Kind.LISTEN:
            self._listen_again(exchange)
        elif exchange.kind is Kind.ENDPOINT:
            self._old_stream_lost(exchange, why)
        elif exchange.kind is Kind.REOPEN:
            self._reopen_failed(exchange, why)
        elif not exchange.ids:
            self._end_other(exchange, "") if exchange.kind is Kind.MESSAGE else self._done(exchange)
        elif exchange.last_event_id and not (exchange.message and exchange.message.version):
            self._resume(exchange)
        else:
            what = f"The server's response stream has ended without a response{why and f': {why}'}"
            self._fail(exchange, what, Progress.NO_RESPONSE)

    def _resume(self, exchange: Exchange) -> None:
        """Open the stream again after the time that the server wants, or twice as long after each failure."""
        wait = _retry_seconds(exchange)
        exchange.resumed_for += wait
        if 0 < self._patience < exchange.resumed_for:
            what = f"The server's response stream has brought nothing for {self._patience:g} seconds"
            self._fail(exchange, f"{what} (silence_seconds)", Progress.NO_RESPONSE)
            return
        exchange.kind = Kind.RESUME
        exchange.body = b""
        self._wire.after(wait, lambda: self._send_again(exchange))

    def _resume_failed(self, exchange: Exchange, why: str) -> None:
        exchange.failures += 1
        if exchange.failures >= _MAX_RESUMES or exchange.status in _NOT_ACTED:
            what = "The server's response stream has ended, and could not be resumed"
            self._fail(exchange, f"{what}: {why}", Progress.NO_RESPONSE)
        else:
            self._resume(exchange)

    def _listen(self) -> None:
        """Open the stream of what the server sends by itself, if it offers one."""
        if not self._listening and not self.is_ending and not self._old_endpoint:
            self._listening = True
            exchange = Exchange(Kind.LISTEN)
            self._open.add(exchange)
            self._wire.send(exchange)

    def _listen_again(self, exchange: Exchange) -> None:
        if self.is_ending or exchange not in self._open:
            self._done(exchange)
            return
        wait = _retry_seconds(exchange)
        exchange.failures += 1  # a head with a stream sets it to 0
        exchange.authorized = False
        self._wire.after(wait, lambda: self._send_again(exchange))

    def _end_other(self, exchange: Exchange, why: str) -> None:  # noqa: C901  # one case for each kind
        """The end of an exchange that answers no request; `why` is empty if all went well."""
        match exchange.kind:
            case Kind.MESSAGE:
                if why:
                    self._wire.report(f"a message of the agent has not reached the server: {why}")
                self._done(exchange)
                self._notified(exchange)
                if self._opening is exchange:
                    self._listen()  # before requests: what the server sends by itself on the first one has its stream
                    self._opened()
            case Kind.LISTEN:
                if exchange.status and exchange.status not in _FOR_NOW:  # the server has no such stream
                    self._listening = False
                    self._done(exchange)
                else:
                    self._listen_again(exchange)
            case Kind.RESUME:
                self._resume_failed(exchange, why)
            case Kind.ENDPOINT:
                self._old_stream_lost(exchange, why)
            case Kind.REOPEN:
                self._reopen_failed(exchange, why)
            case Kind.DELETE:
                self._done(exchange)
                self._finish()
            case Kind.REQUEST:
                self._done(exchange)

    def _redirected(self, exchange: Exchange) -> None:
        """Follow a redirect that stays within the origin and keeps the request's method."""
        location = exchange.headers.get(b"location", b"").decode("latin-1")
        keeps = exchange.status in (307, 308) or (exchange.is_get and exchange.status in (301, 302, 303))
        target = self._wire.same_origin_target(exchange.target, location) if location and keeps else None
        if target is None or exchange.redirects >= _MAX_REDIRECTS:
            self._refused(exchange, f"The server redirects to another address, which is not followed: {location[:200]}")
            return
        exchange.redirects += 1
        exchange.target = target
        self._send_again(exchange)

    def _refused(self, exchange: Exchange, why: str = "") -> None:
        """The server has answered with an error status."""
        if exchange.kind is not Kind.REQUEST:
            self._end_other(exchange, why or f"HTTP status {exchange.status}{self._error_text(exchange)}")
            return
        line = _as_one_line(bytes(exchange.collected))
        is_response = self._is_response(exchange, line)
        may_be_lost = exchange.status == 404 and bool(exchange.sent_session) and not exchange.session_lost
        if may_be_lost and exchange.ids and (not is_response or messages.error_code(line) in _LOST_SESSION):
            self._session_lost(exchange)
            return
        if is_response:
            self._message(
                exchange, line, messages.answered_ids(line) or []
            )  # an error that the server has written for this request
        if not exchange.ids:
            if self._opening is exchange:
                self._opened()
            self._done(exchange)
        elif self._may_be_old_transport(exchange):
            self._try_old_transport(exchange)
        else:
            progress = Progress.NOT_SENT if exchange.status in _NOT_ACTED or why else Progress.NO_RESPONSE
            why = why or f"The server has refused the request with HTTP status {exchange.status}"
            self._fail(exchange, f"{why}{self._error_text(exchange)}", progress, refused=True)

    def _error_text(self, exchange: Exchange) -> str:
        """What the server says about an error, after a colon; empty: it says nothing that can be shown."""
        body = bytes(exchange.collected)
        text = messages.error_message(body)
        if not text and exchange.content_type == b"text/plain":
            text = body.decode(errors="replace")
        text = " ".join("".join(one if one.isprintable() else " " for one in text[:_MAX_ERROR_SHOWN]).split())
        return f": {text.rstrip('.')}" if text else ""

    def _refuse(self, exchange: Exchange, why: str) -> None:
        """The body is not read: close the connection."""
        self._wire.close_exchange(exchange)
        if exchange.kind is Kind.REQUEST:
            self._fail(exchange, why[0].upper() + why[1:], Progress.NO_RESPONSE)
        else:
            self._end_other(exchange, why)
        self._check_end()

    def _fail(self, exchange: Exchange, why: str, progress: Progress, *, refused: bool = False, hint: str = "") -> None:
        """Answer all requests of an exchange with an error. `refused`: the server has answered with an error status."""
        refusal = _as_one_line(bytes(exchange.collected)) if refused else None
        if refused and exchange.method == messages.INITIALIZE and self._earlier is not None:
            why, hint = f"{self._earlier[0]}. {why}", self._earlier[1]
        is_call = exchange.method in (messages.CALL_TOOL, "")
        for raw_id in self._take_ids(exchange):
            self._wire.deliver_failure(
                feedback.remote_failure(raw_id, why, progress, is_call=is_call, refusal=refusal, hint=hint)
            )
        self._done(exchange)
        if self._opening is exchange:
            self._opened()

    def _take_ids(self, exchange: Exchange) -> list[bytes]:
        ids = list(exchange.ids.items())
        exchange.ids.clear()
        for key, _ in ids:
            if self._awaiting.get(key) is exchange:
                del self._awaiting[key]
        return [raw_id for _, raw_id in ids]

    def _done(self, exchange: Exchange) -> None:
        exchange.is_done = True
        self._open.discard(exchange)

    def _drop(self, exchange: Exchange) -> None:
        """End an exchange whose response nobody needs."""
        self._break_passage(exchange, "nobody needs it")
        self._done(exchange)
        self._wire.close_exchange(exchange)
        self._notified(exchange)
        if self._opening is exchange:
            self._opened()
        self._check_end()

    # --- a session that the server has lost ---

    def _session_lost(self, exchange: Exchange) -> None:
        """The server does not know the session, and so has not acted on the request: it waits for a new session."""
        exchange.session_lost = True
        if self._opening is None and exchange.sent_session != self.session:  # there is a new one already
            self._send_again(exchange)
        elif self._initialize is None or self._opening is not None:
            self._hold_again(exchange)
        else:
            self._hold_again(exchange)
            self._reopen(self._initialize)

    def _hold_again(self, exchange: Exchange) -> None:
        exchange.restart()
        if self._opening is None and self._initialize is None:
            self._fail(exchange, "The server has ended the session", Progress.NOT_SENT, refused=True)
        else:
            self._held.append(exchange)

    def _reopen(self, initialize: Message) -> None:
        self._wire.report("the server has lost the session: a new one is opened")
        reopen = Exchange(Kind.REOPEN)
        reopen.body = initialize.body
        self._opening = reopen
        self._open.add(reopen)
        self._listening = False
        for other in [one for one in self._open if one.kind is Kind.LISTEN]:
            self._drop(other)
        self._wire.send(reopen)

    def _reopened(self, exchange: Exchange, line: bytes) -> None:
        """The response to the repeated `initialize`. The agent does not know another version than the first one."""
        ids = messages.answered_ids(line)
        if ids == []:
            return  # a notification before the response
        version = messages.negotiated_version(line)
        if version != self.version:
            self._reopen_failed(exchange, "it offers another protocol version now" if version else "it refused to")
            return
        self._set_session(self.session, version)
        self._done(exchange)
        if exchange.reader is not None:
            self._wire.close_exchange(exchange)
        self._opening = None
        if self._initialized is None:
            self._opened()
        else:
            initialized = Exchange(Kind.MESSAGE, self._initialized)
            self._open.add(initialized)
            self._opening = initialized
            self._notifications.appendleft(initialized)
            self._wire.send(initialized)

    def _reopen_failed(self, exchange: Exchange, why: str) -> None:
        self._take_ids(exchange)
        self._done(exchange)
        what = f"The server has ended the session, and no new one could be opened{why and f': {why}'}"
        held = [one for one in self._held if one.kind is Kind.REQUEST and not one.is_done]
        self._held = deque(one for one in self._held if one.kind is not Kind.REQUEST)
        for one in held:
            self._fail(one, what, Progress.NOT_SENT)
        if self._opening is exchange:
            self._opened()

    # --- HTTP+SSE of 2024-11-05 ---

    @property
    def awaits_old_endpoint(self) -> bool:
        """The stream is asked for, and has not named the address for messages."""
        return not self._old_endpoint

    def awaited_in_old_stream(self) -> list[Exchange]:
        """What has been sent to the named address, and is not answered."""
        kinds = (Kind.REQUEST, Kind.REOPEN)
        return [one for one in self._open if one.kind in kinds and one.sent] if self._old_endpoint else []

    def _may_be_old_transport(self, exchange: Exchange) -> bool:
        status = exchange.status
        return self._opening is exchange and 400 <= status < 500 and status not in _NO_OLD_TRANSPORT

    def _try_old_transport(self, exchange: Exchange) -> None:
        """The server may offer the older transport: the stream's first event names the address for messages."""
        stream = Exchange(Kind.ENDPOINT)
        self._open.add(stream)
        self._held.appendleft(exchange)
        self._wire.send(stream)

    def _old_endpoint_named(self, stream: Exchange, address: str) -> None:
        target = self._wire.same_origin_target(stream.target, address.strip())
        if target is None:
            self._drop(stream)
            self._old_stream_lost(stream, f"it names an address of another origin: {address[:200]}")
            return
        self._old_endpoint, self._is_old = target, True
        first = self._held.popleft()
        first.restart()
        self._opening = first
        self._wire.send(first)

    def _old_stream_lost(self, stream: Exchange, why: str) -> None:
        """Nothing that was sent is answered any more. The next request opens a new session."""
        self._done(stream)
        had_endpoint, self._old_endpoint = bool(self._old_endpoint), b""
        if not had_endpoint:
            self._old_transport_failed(self._held.popleft() if self._held else None, why)
            return
        opening, waiting = self._opening, set(self._held)
        for exchange in list(self._open):
            if exchange.kind is Kind.REQUEST and exchange not in waiting:
                self._wire.close_exchange(exchange)
                self._fail(exchange, f"The server has ended the session{why and f': {why}'}", Progress.NO_RESPONSE)
        if opening is not None and opening.kind is Kind.REOPEN:
            self._wire.close_exchange(opening)
            self._reopen_failed(opening, why)

    def _old_transport_failed(self, first: Exchange | None, why: str) -> None:
        """The server has no stream of the older transport for the `initialize` that has waited for it."""
        if first is None or first.is_done:
            return
        if first.kind is Kind.REOPEN:
            self._reopen_failed(first, why)
        else:
            refused = f"The server has refused the request with HTTP status {first.status}"
            self._fail(first, f"{refused}{self._error_text(first)}", Progress.NOT_SENT, refused=True)

    def _reopen_old_transport(self, initialize: Message) -> None:
        """Open the stream and the session again, as at the beginning."""
        self._wire.report("the server has ended the session: a new one is opened")
        reopen = Exchange(Kind.REOPEN)
        reopen.body, reopen.ids = initialize.body, messages.keys_of(initialize.ids)
        self._awaiting.update(dict.fromkeys(reopen.ids, reopen))
        self._opening = reopen
        self._open.add(reopen)
        self._try_old_transport(reopen)

    # --- the end of the session ---

    def end(self) -> None:
        """The agent sends nothing more: end the session once everything is answered."""
        self.is_ending = True
        self._check_end()

    def abandon(self) -> None:
        """End the session without waiting for responses."""
        self.is_ending = True
        for exchange in [one for one in self._open if one.kind is not Kind.DELETE]:
            self._close_quietly(exchange)
        self._held.clear()
        self._notifications.clear()
        self._check_end()

    def _close_quietly(self, exchange: Exchange) -> None:
        self._break_passage(exchange, "the session ends")
        self._take_ids(exchange)
        self._done(exchange)
        self._wire.close_exchange(exchange)

    def _check_end(self) -> None:
        if not self.is_ending or self._finished:
            return
        kinds = (Kind.LISTEN, Kind.ENDPOINT)
        streams = [one for one in self._open if one.kind in kinds or one.method == messages.SUBSCRIBE]
        if len(streams) < len(self._open):
            return
        for exchange in streams:
            self._close_quietly(exchange)
        if self.session and not self._finishing:
            self._finishing = True
            delete = Exchange(Kind.DELETE)
            self._open.add(delete)
            self._wire.send(delete)
        elif not self._open:
            self._finish()

    def _finish(self) -> None:
        if not self._finished:
            self._finished = True
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


def _retry_seconds(exchange: Exchange) -> float:
    """When a stream is opened again: after the time that the server wants, or twice as long after each failure."""
    wait = (exchange.retry or _RETRY_SECONDS) * float(2 ** min(exchange.failures, 6))
    return min(max(wait, _SHORTEST_RETRY), _LONGEST_RETRY)


def _as_one_line(body: bytes) -> bytes:
    """The text of a JSON message on one line: in JSON, line ends stand only between tokens."""
    return body.strip(b" \t\r\n").replace(b"\r", b" ").replace(b"\n", b" ") if b"\n" in body or b"\r" in body else body


def _shown(content_type: bytes) -> str:
    return content_type.decode("latin-1")[:100] if content_type else "content without a type"
