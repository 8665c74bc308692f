"""What becomes of an exchange when its response is complete, is an error, or does not come.

A POST is sent again only if the server has not acted on it: it was redirected, not authorised, or its session was not
known. A response stream that breaks off is resumed from its last event, if it can be, and the stream of what the server
sends by itself is opened again: after the time that the server names, or twice as long after each failure. Otherwise
the agent's requests get an error that says what happened, and that they were not sent, or have no response.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ...protocol.calls import Progress
from . import messages
from .exchange import Exchange, Kind, Wire
from .handshake import Handshake
from .in_flight import InFlight
from .old_transport import OldTransport
from .responses import Responses

_MAX_REDIRECTS: Final = 5  # within one origin two are usual: a slash at the end, a moved path
_LOST_SESSION: Final = frozenset({-32600, -32001, -32000})
"""Error codes with which servers say that they do not know a session: the Python SDK's, the TypeScript SDK's, and the
general one. Other codes, such as that of an unknown method or resource, are about the request itself."""

_MAX_RESUMES: Final = 5  # attempts in a row to resume a stream, each after twice the time: with 1 s, half a minute
_RETRY_SECONDS: Final = 1.0  # before a stream is opened again, if the server says nothing; SDKs do the same
_SHORTEST_RETRY: Final = 0.05  # seconds: a server that closes each stream at once must not keep us busy
_LONGEST_RETRY: Final = 60.0  # seconds: a server that is back after hours must not be waited for as long again
_FOR_NOW: Final = frozenset({401, 408, 429, 500, 502, 503, 504})
"""Statuses that may be others after a while, or after a login."""


class Outcomes(Struct, eq=False):
    """Ends the exchanges of one session. The patience is as in Client."""

    _wire: Wire
    _in_flight: InFlight
    _handshake: Handshake
    _old: OldTransport
    _responses: Responses
    _patience: float
    _listens_no_more: bool = False

    def complete(self, exchange: Exchange) -> None:
        """The response has come to its end."""
        status = exchange.status
        if exchange.reader is not None:
            self._in_flight.break_passage(exchange, "its stream has ended before it")
            self._stream_ended(exchange)
        elif exchange.passage is not None:
            self._responses.end_passage(exchange)
            self._in_flight.done(exchange)
        elif 200 <= status < 300:
            self._accepted(exchange)
        elif 300 <= status < 400:
            self._redirected(exchange)
        elif status in (401, 403):
            self._wire.authorize(exchange, exchange.headers.get(b"www-authenticate", b"").decode("latin-1"))
        else:
            self._refused(exchange)

    def lost(self, exchange: Exchange, why: str) -> None:
        """The request could not be sent, or its response has broken off; `why` is a sentence without a full stop."""
        self._in_flight.break_passage(exchange, why)
        if exchange.reader is not None:
            self._stream_ended(exchange, why)
        elif exchange.kind is Kind.REQUEST:
            self._in_flight.fail(exchange, why, Progress.NO_RESPONSE if exchange.sent else Progress.NOT_SENT)
        else:
            self._end_other(exchange, why)

    def not_authorized(self, exchange: Exchange, hint: str) -> None:
        """The server has refused the credentials for good; `hint` says what helps."""
        why, earlier = self._in_flight.credentials.refused(exchange, hint)
        if exchange.kind is Kind.REQUEST:
            self._in_flight.fail(exchange, why, Progress.NOT_SENT, refused=True, hint=hint)
        self._in_flight.credentials.earlier = earlier, hint
        if exchange.kind is not Kind.REQUEST:
            self._end_other(exchange, f"{why}. {hint}".rstrip(". "))

    def _accepted(self, exchange: Exchange) -> None:
        """A complete response that is not a stream."""
        if exchange.kind is Kind.REQUEST and exchange.ids:
            if self._old.comes_in_stream(exchange):
                return
            if exchange.collected:
                self._responses.answered(exchange)
            else:
                what = f"The server has accepted the request (HTTP {exchange.status}) without a response"
                self._in_flight.fail(exchange, what, Progress.NO_RESPONSE)
        elif exchange.kind is Kind.REOPEN:
            if not self._old.comes_in_stream(exchange):
                self._handshake.reopened(exchange, bytes(exchange.collected))
        else:
            self._end_other(exchange, "")

    def _stream_ended(self, exchange: Exchange, why: str = "") -> None:
        """A stream of events has ended. What it has not answered is resumed, if the server can do that."""
        if exchange.kind is Kind.LISTEN:
            self._listen_again(exchange)
        elif exchange.kind is Kind.ENDPOINT:
            self._old.lost(exchange, why)
        elif exchange.kind is Kind.REOPEN:
            self._handshake.reopen_failed(exchange, why)
        elif not exchange.ids:
            self._end_other(exchange, "") if exchange.kind is Kind.MESSAGE else self._in_flight.done(exchange)
        elif exchange.last_event_id and not (exchange.message and exchange.message.version):
            self._resume(exchange)
        else:
            what = f"The server's response stream has ended without a response{why and f': {why}'}"
            self._in_flight.fail(exchange, what, Progress.NO_RESPONSE)

    def _end_other(self, exchange: Exchange, why: str) -> None:  # noqa: C901  # one case for each kind
        """The end of an exchange that answers no request; `why` is empty if all went well."""
        match exchange.kind:
            case Kind.MESSAGE:
                if why:
                    self._wire.report(f"a message of the agent has not reached the server: {why}")
                self._in_flight.done(exchange)
                self._handshake.notified(exchange)
                if self._handshake.opening is exchange and not self._old.endpoint:
                    self._listen()  # before requests: what the server sends by itself on the first has a stream
                self._handshake.settled(exchange)
            case Kind.LISTEN:
                self._listening_failed(exchange)
            case Kind.RESUME:
                self._resume_failed(exchange, why)
            case Kind.ENDPOINT:
                self._old.lost(exchange, why)
            case Kind.REOPEN:
                self._handshake.reopen_failed(exchange, why)
            case Kind.DELETE | Kind.REQUEST:
                self._in_flight.done(exchange)

    def _redirected(self, exchange: Exchange) -> None:
        """Follow a redirect that stays within the origin and keeps the request's method."""
        location = exchange.headers.get(b"location", b"").decode("latin-1")
        keeps = exchange.status in (307, 308) or (exchange.is_get and exchange.status in (301, 302, 303))
        target = self._wire.same_origin_target(exchange.target, location) if location and keeps else None
        if target is None or exchange.redirects >= _MAX_REDIRECTS:
            shown = exchange.shown_location(self._wire.secrets)
            self._refused(exchange, f"The server redirects to another address, which is not followed: {shown}")
            return
        exchange.redirects += 1
        exchange.target = target
        self._in_flight.send_again(exchange)

    def _refused(self, exchange: Exchange, why: str = "") -> None:
        """The server has answered with an error status."""
        if exchange.kind is not Kind.REQUEST:
            self._end_other(exchange, why or f"HTTP status {exchange.status}{exchange.error_text(self._wire.secrets)}")
            return
        line = messages.as_one_line(bytes(exchange.collected))
        is_response = exchange.is_response(line)
        may_be_lost = exchange.status == 404 and bool(exchange.sent_session) and not exchange.session_lost
        if may_be_lost and exchange.ids and (not is_response or messages.error_code(line) in _LOST_SESSION):
            self._handshake.lost(exchange)
            return
        if is_response:
            self._responses.message(exchange, line, messages.answered_ids(line) or [])
        if not exchange.ids:
            self._handshake.settled(exchange)
            self._in_flight.done(exchange)
        elif self._old.may_help(exchange):
            self._old.begin(exchange)
        else:
            progress = Progress.NOT_SENT if exchange.is_refused_unread or why else Progress.NO_RESPONSE
            why = why or f"The server has refused the request with HTTP status {exchange.status}"
            self._in_flight.fail(exchange, f"{why}{exchange.error_text(self._wire.secrets)}", progress, refused=True)

    def refuse(self, exchange: Exchange, why: str) -> None:
        """The body is not read: close the connection."""
        self._wire.close_exchange(exchange)
        if exchange.kind is Kind.REQUEST:
            self._in_flight.fail(exchange, why[0].upper() + why[1:], Progress.NO_RESPONSE)
        else:
            self._end_other(exchange, why)

    # --- streams that are opened again ---

    def _listen(self) -> None:
        """Open the stream of what the server sends by itself, unless it is there."""
        if not self._listens_no_more and not self._in_flight.of_kind(Kind.LISTEN):
            stream = Exchange(Kind.LISTEN)
            self._in_flight.add(stream)
            self._wire.send(stream)

    def listen_no_more(self) -> None:
        """The agent sends nothing more: the stream is not opened again when it ends."""
        self._listens_no_more = True

    def _listen_again(self, stream: Exchange) -> None:
        """It has ended: open it again later, unless it is not needed any more."""
        if self._listens_no_more:
            self._in_flight.done(stream)
        elif stream in self._in_flight.exchanges:
            wait = _retry_seconds(stream)
            stream.failures += 1  # a head with a stream sets it to 0
            stream.authorized = False
            self._wire.after(wait, lambda: self._in_flight.send_again(stream))

    def _listening_failed(self, stream: Exchange) -> None:
        """It could not be opened: try it again later, if the server may have such a stream."""
        if stream.status and stream.status not in _FOR_NOW:
            self._in_flight.done(stream)
        else:
            self._listen_again(stream)

    def _resume(self, exchange: Exchange) -> None:
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

    def _resume_failed(self, exchange: Exchange, why: str) -> None:
        """It could not be resumed: try it again, some times."""
        exchange.failures += 1
        if exchange.failures >= _MAX_RESUMES or exchange.is_refused_unread:
            what = "The server's response stream has ended, and could not be resumed"
            self._in_flight.fail(exchange, f"{what}: {why}", Progress.NO_RESPONSE)
        else:
            self._resume(exchange)


def _retry_seconds(stream: Exchange) -> float:
    """When a stream is opened again: after the time that the server wants, or twice as long after each failure."""
    wait = (stream.retry or _RETRY_SECONDS) * float(2 ** min(stream.failures, 6))
    return min(max(wait, _SHORTEST_RETRY), _LONGEST_RETRY)
