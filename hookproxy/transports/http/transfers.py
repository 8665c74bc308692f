"""The exchanges of a channel that are on a connection, or wait for one.

A transfer begins when the client sends an exchange, gets a connection of the pool, waits for credentials if they are
not ready, and ends with its response, or when nobody needs it. What is read and not complete is bounded: if all of it
together takes more than the longest message may, only the response that has come furthest is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from ...model.credentials import NoCredentials, NotReady
from ...network.connection import Connection
from .client import Client
from .exchange import Exchange
from .pool import Pool, Remote, Spawn
from .request_heads import RequestHeads

_SMALL_RESPONSE: Final = 1024 * 1024  # bytes: so much of each response may always be in memory


class Transfer(Struct, eq=False):
    """One exchange: it passes what comes to the client."""

    _transfers: Transfers
    exchange: Exchange
    connection: Connection | None = None
    """None: it waits for one."""
    linger_until: float = 0.0
    """When its stream, which has brought its response, is closed; 0: it has not brought it."""

    # --- for the pool ---

    @property
    def size(self) -> int:
        """Bytes of its body."""
        return len(self.exchange.body)

    @property
    def is_wanted(self) -> bool:
        """It has not ended."""
        return self._transfers.open.get(self.exchange) is self

    def send_on(self, connection: Connection) -> None:
        """There is a connection: send the request, once there are credentials."""
        self.connection = connection
        transfers = self._transfers
        if connection.is_closed:
            self.on_lost("it has closed the connection at once")
            return
        try:
            value = transfers.credentials.value_now() if transfers.uses_credentials else None
        except NotReady:
            transfers.spawn(transfers.send_authorized(connection, self))
        else:
            transfers.write(connection, self, value)

    def not_connected(self, why: str) -> None:
        """There is no connection."""
        self._transfers.ended(self)
        self._transfers.client.lost(self.exchange, why)

    # --- Handler ---

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None:
        """Pass it on; cookies are kept."""
        transfers = self._transfers
        if b"set-cookie" in headers:
            transfers.heads.note_cookies(self.exchange, headers[b"set-cookie"])
        transfers.client.head(self.exchange, status, headers)

    def on_body(self, piece: bytes) -> None:
        """Pass it on."""
        transfers = self._transfers
        transfers.client.body(self.exchange, piece)
        if self.exchange.kept > _SMALL_RESPONSE or transfers.stalled:
            transfers.bound_memory()

    def on_complete(self) -> None:
        """The response is complete."""
        self._transfers.ended(self)
        self._transfers.client.complete(self.exchange)

    def takes_whole(self, size: int) -> bool:
        """Nearly every short response to a call."""
        client = self._transfers.client
        if self.exchange.call_id and 0 < size < client.short_below:
            return True
        return client.takes_whole(self.exchange, size)

    def on_whole(self, headers: dict[bytes, bytes], body: bytes) -> None:
        """The response has come whole."""
        self._transfers.ended(self)
        self._transfers.client.whole(self.exchange, headers, body)

    def on_lost(self, why: str) -> None:
        """The response does not come."""
        transfers = self._transfers
        transfers.ended(self)
        transfers.client.lost(self.exchange, f"The connection to {transfers.origin} has failed: {why}")


class Transfers:
    """All transfers of one channel."""

    def __init__(self, remote: Remote, client: Client, pool: Pool, spawn: Spawn) -> None:
        self.client = client
        self.heads = heads = RequestHeads(remote, client)
        self.origin = remote.address.origin
        self.credentials = remote.credentials
        self.uses_credentials = not heads.gives_authorization and not isinstance(remote.credentials, NoCredentials)
        self._max_bytes = remote.max_bytes
        self._pool = pool
        self.spawn = spawn
        self.on_sent: Callable[[], None] = lambda: None
        """Called after each request."""
        self.is_closed = False
        """Nothing is sent."""
        self.open: dict[Exchange, Transfer] = {}
        """Those that have not ended."""
        self.stalled: set[Connection] = set()
        """Connections that are not read for now, because too much is in memory."""

    def send(self, exchange: Exchange) -> None:
        """Send an exchange."""
        if self.is_closed:
            return
        transfer = Transfer(self, exchange)
        self.open[exchange] = transfer
        self._pool.send(transfer)

    def close(self, exchange: Exchange) -> None:
        """Close the connection of an exchange, or forget the exchange."""
        transfer = self.open.pop(exchange, None)
        if transfer is None:
            return
        self._read_stalled()
        if transfer.connection is not None:
            transfer.connection.close()
        else:
            self._pool.withdraw(transfer)

    def ended(self, transfer: Transfer) -> None:
        """Its response is complete, or lost."""
        if self.open.get(transfer.exchange) is transfer:
            del self.open[transfer.exchange]
        if self.stalled:
            self._read_stalled()

    # --- credentials ---

    async def send_authorized(self, connection: Connection, transfer: Transfer) -> None:
        """Send a request on a connection, once there are credentials."""
        try:
            value = await self.credentials.value()
        except (OSError, ValueError) as problem:
            if transfer.is_wanted:
                self.ended(transfer)
                self._pool.idle(connection)
                why = f"The credentials for the server cannot be used: {problem}"
                self.client.lost(transfer.exchange, why.rstrip(". "))
            return
        if not transfer.is_wanted:
            if not connection.is_closed:
                self._pool.idle(connection)
        elif connection.is_closed:
            self.send(transfer.exchange)
        else:
            self.write(connection, transfer, value)

    def write(self, connection: Connection, transfer: Transfer, authorization: str | None) -> None:
        """Send a request on a connection."""
        exchange = transfer.exchange
        exchange.sent, exchange.used_authorization = True, authorization
        connection.request(self.heads.write(exchange, authorization), exchange.body, transfer)
        exchange.sent_at = connection.last_byte
        self.on_sent()

    def authorize(self, exchange: Exchange, challenge: str) -> None:
        """Ask for other credentials, once."""
        if self.uses_credentials and not exchange.authorized:
            self.spawn(self._authorize(exchange, challenge))
        else:
            self.client.not_authorized(exchange, "" if self.heads.gives_authorization else self.credentials.hint)

    async def _authorize(self, exchange: Exchange, challenge: str) -> None:
        try:
            value = await self.credentials.refused(exchange.status, challenge, exchange.used_authorization)
        except (OSError, ValueError) as problem:
            self.client.not_authorized(exchange, f"{_sentence(str(problem))} {self.credentials.hint}".strip())
            return
        if value is None:
            self.client.not_authorized(exchange, self.credentials.hint)  # the refusal may have changed it
        else:
            self.client.authorized(exchange)

    # --- memory ---

    def bound_memory(self) -> None:
        """If unfinished responses take more than the longest message may, read only the one that has come furthest."""
        if sum(exchange.kept for exchange in self.open) <= self._max_bytes:
            self._read_stalled()
            return
        furthest = max(self.open, key=lambda exchange: exchange.kept)
        for exchange, transfer in self.open.items():
            if exchange.kept > _SMALL_RESPONSE and exchange is not furthest and transfer.connection is not None:
                transfer.connection.pause(True)
                self.stalled.add(transfer.connection)
        connection = self.open[furthest].connection
        if connection in self.stalled:
            self.stalled.discard(connection)
            connection.pause(self._pool.is_paused)

    def _read_stalled(self) -> None:
        """Read on: a response that was in memory is complete, or given up."""
        stalled, self.stalled = self.stalled, set()
        for connection in stalled:
            connection.pause(self._pool.is_paused)


def _sentence(text: str) -> str:
    return text if not text or text.endswith(".") else f"{text}."
