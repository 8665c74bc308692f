"""HTTP+SSE of 2024-11-05: a stream names the address for messages, and brings all responses.

It is tried if the server refuses `initialize` as servers do that know only the older transport: the request waits
until the stream's first event has named the address. If the stream ends, nothing that was sent is answered any more,
and the agent's next request opens stream and session again.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ...protocol.calls import Progress
from . import messages
from .exchange import MAX_ADDRESS_SHOWN, Exchange, Kind, Wire
from .handshake import Handshake
from .in_flight import InFlight
from .messages import Message

_NOT_OLD: Final = frozenset({401, 403, 407, 408, 421, 429})
"""Statuses of a refused `initialize` that do not mean that the server has only the older transport."""


class OldTransport(Struct, eq=False):
    """The older transport of one session, if the server has only that."""

    _wire: Wire
    _in_flight: InFlight
    _handshake: Handshake
    _waiting: Exchange | None = None  # for the address
    endpoint: bytes = b""
    """Path and query for messages; empty: no stream has named it."""
    is_used: bool = False
    """The server speaks HTTP+SSE."""

    def may_help(self, exchange: Exchange) -> bool:
        """The server has refused this request as one does that has only the older transport."""
        status = exchange.status
        return self._handshake.opening is exchange and 400 <= status < 500 and status not in _NOT_OLD

    def begin(self, exchange: Exchange) -> None:
        """Ask for the stream; the request that opens the session is sent when that has named the address."""
        stream = Exchange(Kind.ENDPOINT)
        self._in_flight.add(stream)
        self._waiting = exchange
        self._wire.send(stream)

    def submit_request(self, exchange: Exchange) -> bool:
        """True: the stream has ended, so the request waits until the session is open again."""
        initialize = self._handshake.initialize
        if not self.is_used or self.endpoint or initialize is None or exchange.method == messages.INITIALIZE:
            return False
        self._handshake.hold(exchange)
        self._begin_again(initialize)
        return True

    def _begin_again(self, initialize: Message) -> None:
        """Open the stream and the session again, as at the beginning."""
        self._wire.report("the server has ended the session: a new one is opened")
        reopen = self._handshake.begin_again(initialize)
        reopen.ids = messages.keys_of(initialize.ids)
        self._in_flight.add(reopen)
        self.begin(reopen)

    def named(self, stream: Exchange, address: str) -> None:
        """The stream has named the address for messages."""
        target = self._wire.same_origin_target(stream.target, address.strip())
        if target is None:
            self._in_flight.drop(stream)
            shown = self._wire.secrets.shortened(address, MAX_ADDRESS_SHOWN)
            self.lost(stream, f"it names an address of another origin: {shown}")
            return
        self.endpoint, self.is_used = target, True
        first, self._waiting = self._waiting, None
        if first is not None and not first.is_done:
            first.restart()
            self._wire.send(first)

    def comes_in_stream(self, exchange: Exchange) -> bool:
        """Its response comes in the stream: the body is none, although some servers put it there."""
        return bool(self.endpoint) and not exchange.is_response(messages.as_one_line(bytes(exchange.collected)))

    def awaited(self) -> list[Exchange]:
        """What has been sent to the named address, and is not answered."""
        if not self.endpoint:
            return []
        return [exchange for exchange in self._in_flight.of_kind(Kind.REQUEST, Kind.REOPEN) if exchange.sent]

    def lost(self, stream: Exchange, why: str) -> None:
        """Nothing that was sent is answered any more. The next request opens a new session."""
        self._in_flight.done(stream)
        had_endpoint, self.endpoint = bool(self.endpoint), b""
        if not had_endpoint:
            first, self._waiting = self._waiting, None
            if first is not None and not first.is_done:
                self._failed(first, why)
            return
        opening = self._handshake.opening
        held = {exchange for exchange in self._in_flight.exchanges if self._handshake.is_held(exchange)}
        for exchange in self._in_flight.of_kind(Kind.REQUEST):
            if exchange not in held:
                self._wire.close_exchange(exchange)
                what = f"The server has ended the session{why and f': {why}'}"
                self._in_flight.fail(exchange, what, Progress.NO_RESPONSE)
        if opening is not None and opening.kind is Kind.REOPEN:
            self._wire.close_exchange(opening)
            self._handshake.reopen_failed(opening, why)

    def _failed(self, first: Exchange, why: str) -> None:
        """The server has no stream of the older transport for the request that has waited for it."""
        if first.kind is Kind.REOPEN:
            self._handshake.reopen_failed(first, why)
        else:
            refused = f"The server has refused the request with HTTP status {first.status}"
            self._in_flight.fail(
                first, f"{refused}{first.error_text(self._wire.secrets)}", Progress.NOT_SENT, refused=True
            )
