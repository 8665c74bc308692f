"""What comes back from the server: bodies and events become messages, and messages settle the agent's requests.

A response counts wherever it comes: in the body or the stream of its own request, in the stream of another one that is
resumed, or in that of HTTP+SSE. What is delivered is the JSON text as it came, on one line. A long response that nobody
must see whole passes on while it comes: its request is settled by its beginning, and what may still fail breaks off.
An event over the limit settles its request when the limit is reached, and not at its end, which may never come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from ...jsonrpc.known_secrets import KnownSecrets
from ...protocol import feedback
from ...protocol.calls import Progress
from ...protocol.fast_scan import END_BYTES, begins_with_method, response_id
from . import messages, mirror_headers
from .exchange import Exchange, Kind, Wire
from .handshake import Handshake
from .in_flight import InFlight
from .old_transport import OldTransport
from .sse import Event, EventReader, LongEvent, PassedEvent

JSON: Final = b"application/json"
PASSED_FROM: Final = 65_536  # bytes: shorter responses are sent whole, in one write
_READ_WHOLE: Final = frozenset({messages.INITIALIZE, messages.LIST_TOOLS})
"""Requests whose responses say something about the session, or are changed."""
_FOR_REQUESTS: Final = (Kind.REQUEST, Kind.RESUME)  # streams that are there for the responses to certain requests
_MAX_ERROR_BYTES: Final = 65536  # of the body of an error response


class Responses(Struct, eq=False):
    """Reads the responses of one session. The limit is the most bytes of a message."""

    _wire: Wire
    _limit: int
    _in_flight: InFlight
    _handshake: Handshake
    _old: OldTransport
    _refuse: Callable[[Exchange, str], None]
    """Reads nothing more of an exchange, for this reason."""
    parameters: mirror_headers.ParameterTable = field(default_factory=mirror_headers.ParameterTable)
    """Which arguments of the server's tools are repeated in headers."""

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
        if reader.dropped:
            self._unfinished_long_event(exchange, reader)
        elif exchange.passed < 0 and reader.kept >= PASSED_FROM:
            self._pass_on(exchange, reader.unfinished_message)

    def _body_piece(self, exchange: Exchange, piece: bytes) -> None:
        size = exchange.collect(piece)
        if size > self._limit:
            for raw_id in self._in_flight.take(exchange):
                self._wire.deliver_failure(feedback.response_too_long(raw_id, size, self._limit))
            self._in_flight.drop(exchange)
        elif exchange.passed < 0 and size >= PASSED_FROM and exchange.content_type == JSON:
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
        if self._old.endpoint or (passage := self._wire.open_passage(exchange.ids[key])) is None:
            return
        self._in_flight.take(exchange)
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
            self._in_flight.break_passage(exchange, f"it has more than {self._limit} bytes")
            self._in_flight.drop(exchange)
        elif exchange.passage is not None:
            exchange.passage.write(piece)

    def end_passage(self, exchange: Exchange) -> None:
        """A long response that was passed on is complete."""
        passage, exchange.passage = exchange.passage, None
        if passage is not None:
            passage.end()

    # --- messages ---

    def answered(self, exchange: Exchange) -> None:
        """The body is the response."""
        line = messages.as_one_line(bytes(exchange.collected))
        ids = messages.answered_ids(line)
        if exchange.content_type not in (JSON, b"") or ids is None:
            kind = (
                "text that is not a JSON-RPC message"
                if exchange.content_type == JSON
                else shown_type(exchange.content_type, self._wire.secrets)
            )
            self._in_flight.fail(exchange, f"The server has sent {kind} as a response", Progress.NO_RESPONSE)
            return
        self.message(exchange, line, ids)
        if exchange.ids:
            self._in_flight.fail(exchange, "The server's response belongs to another request", Progress.NO_RESPONSE)
        else:
            self._in_flight.done(exchange)

    def _event(self, exchange: Exchange, event: Event | LongEvent | PassedEvent) -> None:
        reader = exchange.reader
        assert reader is not None
        exchange.last_event_id = reader.last_id or exchange.last_event_id
        exchange.retry = reader.retry or exchange.retry
        if isinstance(event, PassedEvent):
            self.end_passage(exchange)
        elif isinstance(event, LongEvent):
            self._in_flight.break_passage(exchange, f"it has more than {self._limit} bytes")
            self._long_event(exchange, event)
        elif event.type == b"endpoint":
            if exchange.kind is Kind.ENDPOINT and not self._old.endpoint:
                self._old.named(exchange, event.data.decode(errors="replace"))
        elif event.data.strip() and event.type in (b"", b"message"):
            exchange.resumed_for = 0.0
            if exchange.kind is Kind.REOPEN:
                self._handshake.reopened(exchange, event.data)
            else:
                self.message(exchange, event.data, messages.answered_ids(event.data) or [])

    def message(self, exchange: Exchange, line: bytes, ids: list[bytes]) -> None:
        """Deliver one message that answers the requests with these ids, and note that they are answered."""
        if line.lstrip()[:1] == b"[" and self._fail_array(exchange, ids):
            return
        for raw_id in ids:
            key = messages.key_of(raw_id)
            owner = self._in_flight.owner(exchange, key)
            if owner is None:
                continue
            self._in_flight.settle(owner, key)
            if owner.kind is Kind.REOPEN:
                self._handshake.reopened(owner, line)
                return
            line = self._note_response(owner, raw_id, line)
            if not owner.ids and owner is not exchange and owner.kind is Kind.REQUEST and self._old.endpoint:
                self._in_flight.done(owner)
        self._wire.deliver(line + b"\n")

    def _fail_array(self, exchange: Exchange, ids: list[bytes]) -> bool:
        """Answer requests that came alone with an error: an array is not a response to them. False: there are none.

        Only an agent that has sent a batch (2025-03-26) can read one, and hooks judge no response in it.
        """
        alone: list[tuple[Exchange, bytes]] = []
        for key in map(messages.key_of, ids):
            owner = self._in_flight.owner(exchange, key)
            if owner is not None and key in owner.ids and owner.kind is not Kind.REOPEN and not owner.is_batch:
                alone.append((owner, owner.ids[key]))
                self._in_flight.settle(owner, key)
        for owner, raw_id in alone:
            is_call = owner.method == messages.CALL_TOOL
            why = "The server has sent an array of messages as a response"
            self._wire.deliver_failure(feedback.remote_failure(raw_id, why, Progress.NO_RESPONSE, is_call=is_call))
            if not owner.ids and owner is not exchange and self._old.endpoint:
                self._in_flight.done(owner)
            self._handshake.settled(owner)
        return bool(alone)

    def _note_response(self, owner: Exchange, raw_id: bytes, line: bytes) -> bytes:
        """Note what the response says about the session; return the line that the agent gets."""
        if owner.method == messages.LIST_TOOLS and owner.message is not None and owner.message.version:
            invalid = self.parameters.note(line)
            for name, why in invalid.items():
                self._wire.report(f"the tool {name} is left out of the list, as MCP demands: {why}")
            return feedback.without_tools(line, invalid.__contains__) if invalid else line
        if owner.method == messages.INITIALIZE:
            version = messages.negotiated_version(line)
            self._handshake.name(self._handshake.id, version)
            line = line if version else self._in_flight.credentials.mention(raw_id, line)
            if version:
                self._in_flight.credentials.accepted(owner)
            self._handshake.settled(owner)
        return line

    def _unfinished_long_event(self, exchange: Exchange, reader: EventReader) -> None:
        """An event, or a line of one, is over the limit and has not ended."""
        size = reader.dropped + reader.kept
        raw_id = response_id(reader.dropped_head, b"")
        key = messages.key_of(raw_id) if raw_id is not None else b""
        if raw_id is not None and (owner := self._in_flight.owner(exchange, key)) is not None:
            self._settle_too_long(exchange, owner, raw_id, size)
        elif raw_id is None and exchange.kind in _FOR_REQUESTS and not begins_with_method(reader.dropped_head):
            for own_id in self._in_flight.take(exchange):
                self._wire.deliver_failure(feedback.response_too_long(own_id, size, self._limit))
        if size > 2 * self._limit:
            self._refuse(exchange, f"the server has sent an event of more than {2 * self._limit} bytes without an end")

    def _long_event(self, exchange: Exchange, event: LongEvent) -> None:
        raw_id = response_id(event.head, event.tail)
        key = messages.key_of(raw_id) if raw_id is not None else b""
        owner = self._in_flight.owner(exchange, key)
        if raw_id is None or owner is None:
            self._wire.report(f"dropped a message of {event.size} bytes, which is more than {self._limit}")
            return
        self._settle_too_long(exchange, owner, raw_id, event.size)

    def _settle_too_long(self, exchange: Exchange, owner: Exchange, raw_id: bytes, size: int) -> None:
        self._in_flight.settle(owner, messages.key_of(raw_id))
        self._wire.deliver_failure(feedback.response_too_long(raw_id, size, self._limit))
        if not owner.ids and owner is not exchange and owner.kind is Kind.REQUEST and self._old.endpoint:
            self._in_flight.done(owner)


def shown_type(content_type: bytes, secrets: KnownSecrets) -> str:
    """A content type for people."""
    return secrets.shortened(content_type.decode("latin-1"), 100) if content_type else "content without a type"
