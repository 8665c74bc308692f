"""The streams of a session that are opened again: what the server sends by itself, and responses that broke off.

A stream is opened again after the time that the server names, or twice as long after each failure. A response stream is
resumed from its last event, as long as its request has no response.
"""

from __future__ import annotations

from typing import Final

from ...protocol.calls import Progress
from .exchange import Exchange, Kind
from .in_flight import InFlight
from .wire import Wire

_MAX_RESUMES: Final = 5  # attempts in a row to resume a stream, each after twice the time: with 1 s, half a minute
_RETRY_SECONDS: Final = 1.0  # before a stream is opened again, if the server says nothing; SDKs do the same
_SHORTEST_RETRY: Final = 0.05  # seconds: a server that closes each stream at once must not keep us busy
_LONGEST_RETRY: Final = 60.0  # seconds: a server that is back after hours must not be waited for as long again
_FOR_NOW: Final = frozenset({401, 408, 429, 500, 502, 503, 504})
"""Statuses that may be others after a while, or after a login."""


class Streams:
    """The streams of one session. `patience` is as in Client."""

    def __init__(self, wire: Wire, in_flight: InFlight, patience: float) -> None:
        self._wire = wire
        self._in_flight = in_flight
        self._patience = patience
        self._is_closed = False

    def listen(self) -> None:
        """Open the stream of what the server sends by itself, unless it is there."""
        if not self._is_closed and not self._in_flight.of_kind(Kind.LISTEN):
            stream = Exchange(Kind.LISTEN)
            self._in_flight.add(stream)
            self._wire.send(stream)

    def close(self) -> None:
        """The agent sends nothing more: listen no more, if the stream ends."""
        self._is_closed = True

    def listen_again(self, stream: Exchange) -> None:
        """It has ended: open it again later, unless it is not needed any more."""
        if self._is_closed:
            self._in_flight.done(stream)
        elif stream in self._in_flight.exchanges:
            wait = _retry_seconds(stream)
            stream.failures += 1  # a head with a stream sets it to 0
            stream.authorized = False
            self._wire.after(wait, lambda: self._in_flight.send_again(stream))

    def listening_failed(self, stream: Exchange) -> None:
        """It could not be opened: try it again later, if the server may have such a stream."""
        if stream.status and stream.status not in _FOR_NOW:
            self._in_flight.done(stream)
        else:
            self.listen_again(stream)

    def resume(self, exchange: Exchange) -> None:
        """Open the stream of a response again from its last event."""
        wait = _retry_seconds(exchange)
        exchange.resumed_for += wait
        if 0 < self._patience < exchange.resumed_for:
            what = f"The server's response stream has brought nothing for {self._patience:g} seconds"
            self._in_flight.fail(exchange, f"{what} (silence_seconds)", Progress.NO_RESPONSE)
            return
        exchange.kind = Kind.RESUME
        exchange.body = b""
        self._wire.after(wait, lambda: self._in_flight.send_again(exchange))

    def resume_failed(self, exchange: Exchange, why: str) -> None:
        """It could not be resumed: try it again, some times."""
        exchange.failures += 1
        if exchange.failures >= _MAX_RESUMES or exchange.is_refused_unread:
            what = "The server's response stream has ended, and could not be resumed"
            self._in_flight.fail(exchange, f"{what}: {why}", Progress.NO_RESPONSE)
        else:
            self.resume(exchange)


def _retry_seconds(stream: Exchange) -> float:
    """When a stream is opened again: after the time that the server wants, or twice as long after each failure."""
    wait = (stream.retry or _RETRY_SECONDS) * float(2 ** min(stream.failures, 6))
    return min(max(wait, _SHORTEST_RETRY), _LONGEST_RETRY)
