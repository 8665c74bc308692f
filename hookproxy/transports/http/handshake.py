"""The session with a remote server: how it is opened, and opened again when the server has lost it.

A session is opened by `initialize`, and is in use once `notifications/initialized` has arrived. While one of both is on
its way, everything but responses to the server is held, in its order: the phase says what is awaited, and `opening` is
its exchange. In `Phase.OPEN` nothing is awaited: before the first handshake, and in the stateless era, there is nothing
else, and requests pass as in a session.

                 initialize                 initialized
        OPEN ─────────────────▶ INITIALIZING      OPEN ─────────────────▶ CONFIRMING
        OPEN ◀───────────────── INITIALIZING      OPEN ◀───────────────── CONFIRMING
                  settled                           settled      ▲
                                                                 │ initialized
        OPEN ─────────────────▶ REOPENING ───────────────────────┘
                   lost

A server that has lost the session has acted on no request of it. So the `initialize` of the agent, which is kept, is
sent again (`REOPENING`), and so is its `initialized`, and then the requests that were refused. The agent does not learn
of it, and so the session must have the version that it had before.

Notifications go out one after another: the first of `_notifications` is on its way. Requests go out at once.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from typing import Final

from ...protocol.calls import Progress
from . import messages, mirror_headers
from .exchange import Exchange, Kind, Wire
from .in_flight import InFlight
from .messages import Message


class Phase(Enum):
    """What of the handshake is on its way."""

    OPEN = auto()  # nothing
    INITIALIZING = auto()  # `initialize` of the agent
    CONFIRMING = auto()  # `notifications/initialized`
    REOPENING = auto()  # `initialize`, which is sent again


class Step(Enum):
    """What changes the phase."""

    INITIALIZE = auto()  # the agent's request is sent
    INITIALIZED = auto()  # the notification is sent, by the agent or again
    LOST = auto()  # the server does not know the session
    SETTLED = auto()  # what is awaited has its response, has arrived, or has failed


_NEXT: Final = {
    (Phase.OPEN, Step.INITIALIZE): Phase.INITIALIZING,
    (Phase.OPEN, Step.INITIALIZED): Phase.CONFIRMING,
    (Phase.OPEN, Step.LOST): Phase.REOPENING,
    (Phase.INITIALIZING, Step.SETTLED): Phase.OPEN,
    (Phase.CONFIRMING, Step.SETTLED): Phase.OPEN,
    (Phase.REOPENING, Step.SETTLED): Phase.OPEN,
    (Phase.REOPENING, Step.INITIALIZED): Phase.CONFIRMING,
}
"""All changes that there are: another one is a fault of ours."""


class Handshake:
    """The session, and what waits until it is open."""

    def __init__(self, wire: Wire, in_flight: InFlight) -> None:
        self._wire = wire
        self._in_flight = in_flight
        self._held: deque[Exchange] = deque()  # until the session is open
        self._notifications: deque[Exchange] = deque()  # the first one is being sent
        self._initialized: Message | None = None
        self.phase = Phase.OPEN
        self.opening: Exchange | None = None
        """What is on its way; None in Phase.OPEN."""
        self.initialize: Message | None = None
        """The agent's last request to open a session."""
        self.is_stateless = False
        """The agent's last request was one of the stateless era."""
        self.id = b""
        self.version = ""
        """The protocol version of the handshake; empty: there was none yet."""
        self.headers = b""
        """Header lines of each message of the session."""

    def _move(self, step: Step, opening: Exchange | None) -> None:
        self.phase, self.opening = _NEXT[self.phase, step], opening

    def name(self, session: bytes, version: str) -> None:
        """The session has this id, and this version."""
        self.id, self.version = session, version
        lines = b"Mcp-Session-Id: %b\r\n" % session if session else b""
        if version:
            lines += b"MCP-Protocol-Version: %b\r\n" % mirror_headers.encode_value(version)
        self.headers = lines

    # --- what is sent when ---

    def submit_request(self, exchange: Exchange) -> None:
        """Send a request of the agent, or hold it until the session is open."""
        if self.opening is not None:
            self._held.append(exchange)
            return
        if exchange.method == messages.INITIALIZE:
            self._begin(exchange)
        self._wire.send(exchange)

    def submit_message(self, exchange: Exchange) -> None:
        """Send a response at once, and a notification after the one before it."""
        if exchange.message is not None and exchange.message.is_response:
            self._wire.send(exchange)
        elif self.phase is not Phase.OPEN:
            self._held.append(exchange)
        else:
            self._notify(exchange)

    def hold(self, exchange: Exchange) -> None:
        """Send it when the session is open."""
        self._held.append(exchange)

    def is_held(self, exchange: Exchange) -> bool:
        """It waits for the session."""
        return exchange in self._held

    def forget_all(self) -> None:
        """Send nothing of what waits."""
        self._held.clear()
        self._notifications.clear()

    def _begin(self, exchange: Exchange) -> None:
        self._move(Step.INITIALIZE, exchange)
        self.initialize, self._initialized = exchange.message, None
        self.name(b"", "")

    def _notify(self, exchange: Exchange) -> None:
        if exchange.method == messages.INITIALIZED and not self.is_stateless:
            self._initialized = exchange.message
            self._move(Step.INITIALIZED, exchange)
        self._notifications.append(exchange)
        if len(self._notifications) == 1:
            self._wire.send(exchange)

    def notified(self, exchange: Exchange) -> None:
        """The notification has arrived, or is lost: send the next one."""
        if exchange in self._notifications:
            first = self._notifications[0] is exchange
            self._notifications.remove(exchange)
            if first and self._notifications:
                self._wire.send(self._notifications[0])

    def settled(self, exchange: Exchange) -> None:
        """If it is what was awaited: the session is open, or could not be opened. Send what has waited for it."""
        if self.opening is not exchange:
            return
        self._move(Step.SETTLED, None)
        while self._held and self.phase is Phase.OPEN:
            waiting = self._held.popleft()
            if waiting.is_done:
                continue
            if waiting.kind is Kind.MESSAGE:
                self._notify(waiting)
            else:
                self.submit_request(waiting)

    # --- a session that the server has lost ---

    def lost(self, exchange: Exchange) -> None:
        """The server does not know the session, and so has not acted on the request: it waits for a new session."""
        exchange.session_lost = True
        if self.phase is not Phase.OPEN:
            exchange.restart()
            self._held.append(exchange)
        elif exchange.sent_session != self.id:  # there is a new one already
            self._in_flight.send_again(exchange)
        elif self.initialize is None:
            exchange.restart()
            self._in_flight.fail(exchange, "The server has ended the session", Progress.NOT_SENT, refused=True)
        else:
            exchange.restart()
            self._held.append(exchange)
            self._reopen(self.initialize)

    def _reopen(self, initialize: Message) -> None:
        self._wire.report("the server has lost the session: a new one is opened")
        for stream in self._in_flight.of_kind(Kind.LISTEN):
            self._in_flight.drop(stream)
        self._wire.send(self.begin_again(initialize))

    def begin_again(self, initialize: Message) -> Exchange:
        """Return the exchange that opens the session again; it is not sent yet."""
        reopen = Exchange(Kind.REOPEN)
        reopen.body = initialize.body
        self._in_flight.add(reopen)
        self._move(Step.LOST, reopen)
        return reopen

    def reopened(self, exchange: Exchange, line: bytes) -> None:
        """The response to the repeated `initialize`. The agent does not know another version than the first one."""
        if messages.answered_ids(line) == []:
            return  # a notification before the response
        version = messages.negotiated_version(line)
        if version != self.version:
            self.reopen_failed(exchange, "it offers another protocol version now" if version else "it refused to")
            return
        self.name(self.id, version)
        self._in_flight.done(exchange)
        if exchange.reader is not None:
            self._wire.close_exchange(exchange)
        if self._initialized is None:
            self.settled(exchange)
        else:
            initialized = Exchange(Kind.MESSAGE, self._initialized)
            self._in_flight.add(initialized)
            self._move(Step.INITIALIZED, initialized)
            self._notifications.appendleft(initialized)
            self._wire.send(initialized)

    def reopen_failed(self, exchange: Exchange, why: str) -> None:
        """There is no session any more: what has waited for it fails."""
        self._in_flight.take(exchange)
        self._in_flight.done(exchange)
        what = f"The server has ended the session, and no new one could be opened{why and f': {why}'}"
        requests = [waiting for waiting in self._held if waiting.kind is Kind.REQUEST and not waiting.is_done]
        self._held = deque(waiting for waiting in self._held if waiting.kind is not Kind.REQUEST)
        for request in requests:
            self._in_flight.fail(request, what, Progress.NOT_SENT)
        self.settled(exchange)
