"""The exchanges that have not ended, and the agent's requests that have no response yet.

Both tables stand here, so that they agree: a request is awaited from when its exchange is added until it is settled, by
a response (`settle`) or an error (`fail`), or until nobody needs it any more (`take`). An exchange with requests that
are not settled has not ended. A response may come in another exchange than its request: `owner` finds that one.
"""

from __future__ import annotations

from collections.abc import Callable

from ...protocol import feedback
from ...protocol.calls import Progress
from . import messages
from .exchange import Exchange, Kind, Wire


class InFlight:
    """What is in flight in one session."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.credentials = RefusedCredentials(wire)
        self.exchanges: set[Exchange] = set()
        """Those that are sent, or wait for a connection or for their turn."""
        self._awaited: dict[bytes, Exchange] = {}  # by the key of each request that is not settled
        self.on_over: Callable[[Exchange], None] = lambda _exchange: None
        """Called with an exchange that has failed, or is dropped: others may have waited for it."""

    def add(self, exchange: Exchange) -> None:
        """A new exchange, with all its requests."""
        for key in exchange.ids:
            self._awaited[key] = exchange
        self.exchanges.add(exchange)

    def add_call(self, exchange: Exchange) -> None:
        """As `add` for a call that was read already: its id is its key."""
        self._awaited[exchange.call_id] = exchange
        self.exchanges.add(exchange)

    def done(self, exchange: Exchange) -> None:
        """It has ended."""
        exchange.is_done = True
        self.exchanges.discard(exchange)

    # --- requests ---

    def awaiting(self, key: bytes) -> Exchange | None:
        """The exchange that waits for the response to a request."""
        return self._awaited.get(key)

    def owner(self, exchange: Exchange, key: bytes) -> Exchange | None:
        """The exchange of the request to which a response belongs that has come in `exchange`; None: of nobody."""
        return exchange if key in exchange.ids else self._awaited.get(key)

    def settle(self, owner: Exchange, key: bytes) -> bytes | None:
        """One of its requests has its response. Return the id as spelled; None: another exchange had this key."""
        self._awaited.pop(key, None)
        return owner.ids.pop(key, None)

    def settle_call(self, exchange: Exchange) -> None:
        """The only request of an exchange has its response, and so the exchange has ended."""
        self._awaited.pop(exchange.call_id, None)
        exchange.ids.clear()
        exchange.is_done = True
        self.exchanges.discard(exchange)

    def take(self, exchange: Exchange) -> list[bytes]:
        """All its requests, as spelled; they are awaited no longer."""
        ids = dict(exchange.ids)
        exchange.ids.clear()
        for key in ids:
            if self._awaited.get(key) is exchange:
                del self._awaited[key]
        return list(ids.values())

    # --- how an exchange ends ---

    def fail(self, exchange: Exchange, why: str, progress: Progress, *, refused: bool = False, hint: str = "") -> None:
        """Answer all its requests with an error. `refused`: the server has answered with an error status."""
        refusal = self._refusal_without_secrets(exchange) if refused else None
        if refused and exchange.method == messages.INITIALIZE and self.credentials.earlier is not None:
            earlier, hint = self.credentials.earlier
            why = f"{earlier}. {why}"
        is_call = exchange.method in (messages.CALL_TOOL, "")
        for raw_id in self.take(exchange):
            self._wire.deliver_failure(
                feedback.remote_failure(raw_id, why, progress, is_call=is_call, refusal=refusal, hint=hint)
            )
        self.done(exchange)
        self.on_over(exchange)

    def _refusal_without_secrets(self, exchange: Exchange) -> bytes:
        """The server's error, on one line; of one with secrets, only its code."""
        line = messages.as_one_line(bytes(exchange.collected))
        if self._wire.secrets.removed_from_bytes(line) == line:
            return line
        return b'{"error":{"code":%d}}' % code if (code := messages.error_code(line)) is not None else b""

    def drop(self, exchange: Exchange) -> None:
        """End an exchange whose response nobody needs."""
        self.break_passage(exchange, "nobody needs it")
        self.done(exchange)
        self._wire.close_exchange(exchange)
        self.on_over(exchange)

    def drop_quietly(self, exchange: Exchange) -> None:
        """End an exchange with the session: its requests get no response."""
        self.break_passage(exchange, "the session ends")
        self.take(exchange)
        self.done(exchange)
        self._wire.close_exchange(exchange)

    def send_again(self, exchange: Exchange) -> None:
        """Forget the response, and send the request again, if it has not ended meanwhile."""
        exchange.restart()
        if exchange in self.exchanges:
            self._wire.send(exchange)

    def break_passage(self, exchange: Exchange, why: str) -> None:
        """The rest of a response that is on its way to the agent does not come."""
        passage, exchange.passage = exchange.passage, None
        if passage is not None:
            self._wire.report(f"a response of the server was broken off: {why}")
            passage.abort()

    def of_kind(self, *kinds: Kind) -> list[Exchange]:
        """The exchanges of these kinds."""
        return [exchange for exchange in self.exchanges if exchange.kind in kinds]


class RefusedCredentials:
    """Refusals of credentials: each is reported once, and remembered until the server accepts a request.

    An `initialize` that the server refuses for another reason says so: an agent that tries both eras shows only its
    error, which hides the login.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._reported = ""  # the refusal that was reported last
        self.earlier: tuple[str, str] | None = None
        """The refusal that later errors mention, without a full stop, and what helps; None: there is none."""

    def accepted(self, exchange: Exchange) -> None:
        """The server has accepted a request. If that had credentials, their next refusal is reported again."""
        self.earlier = None
        if exchange.used_authorization is not None:
            self._reported = ""

    def refused(self, exchange: Exchange, hint: str) -> tuple[str, str]:
        """Report a refusal; return why this request fails, and what an error says of it later. Remember it then.

        `hint` says what helps; empty: nothing that we could do, but what the server says may.
        """
        if hint:
            whose, why = "", f"because a login is needed (HTTP {exchange.status})"
        else:
            whose, why = (
                "the credentials of ",
                f"with HTTP status {exchange.status}{exchange.error_text(self._wire.secrets)}",
            )
        this, earlier = (f"The server has refused {whose}{which} request, {why}" for which in ("this", "an earlier"))
        text = f"{this}. {hint}".rstrip(". ")
        if text != self._reported:
            self._reported = text
            self._wire.report(text)
        self.earlier = None  # this one is reported in full
        return this, earlier

    def mention(self, raw_id: bytes, line: bytes) -> bytes:
        """Add to the error of an `initialize` that the server has refused credentials before."""
        if self.earlier is None or not (text := messages.error_message(line)):
            return line
        (earlier, hint), text = self.earlier, self._wire.secrets.removed_from(text).rstrip(".")
        why = f"{earlier}. The server has answered initialize with the error: {text}"
        failure = feedback.remote_failure(raw_id, why, Progress.NOT_SENT, is_call=False, refusal=line, hint=hint)
        return failure.rstrip(b"\n")
