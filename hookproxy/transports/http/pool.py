"""The connections to a remote server: a request gets an idle one, a new one, or waits until there may be one more.

A connection belongs to one request at most, and is given back when its response is complete. At most `max_connections`
are open or being opened; whatever is beyond waits in order. That there is no connection is reported once, not for each
request, and so is that there is one again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from ...jsonrpc.known_secrets import NO_SECRETS, KnownSecrets
from ...model.credentials import Credentials
from ...network import connect
from ...network.address import Address, Proxy
from ...network.connection import Connection

if TYPE_CHECKING:
    import ssl


class Remote(Struct, frozen=True):
    """A remote server, and how to reach it."""

    address: Address
    credentials: Credentials
    headers: tuple[tuple[str, str], ...] = ()
    """Headers of each request, with their secret values."""
    proxy: Proxy | None = None
    tls: ssl.SSLContext | None = None
    connect_seconds: float = 10.0
    silence_seconds: float = 600.0
    """Seconds without a byte of a response after which a request is given up; 0: never."""
    max_connections: int = 256
    max_bytes: int = 64 * 1024 * 1024
    """The longest message, from either side."""
    secrets: KnownSecrets = NO_SECRETS
    """What must not be in our own texts about the server."""


class Transfer(Protocol):
    """A request that needs a connection."""

    @property
    def size(self) -> int:
        """Bytes of its body."""

    @property
    def is_wanted(self) -> bool:
        """It has not been cancelled."""

    def send_on(self, connection: Connection) -> None:
        """There is a connection: send the request."""

    def not_connected(self, why: str) -> None:
        """There is none."""


Spawn = Callable[[Coroutine[None, None, None]], None]
"""Starts a task, which ends with the channel."""


class Pool:
    """The connections of one channel. `on_flow` is called when `queued` may have changed."""

    def __init__(
        self, remote: Remote, spawn: Spawn, report: Callable[[str], None], on_flow: Callable[[], None]
    ) -> None:
        self._remote = remote
        self._spawn = spawn
        self._report = report
        self.flow_changed = on_flow
        self._connections: set[Connection] = set()
        self._idle: list[Connection] = []
        self._connecting = 0
        self._waiting: deque[Transfer] = deque()
        self._waiting_bytes = 0
        self._is_away = False  # the last attempt to connect has failed, which is reported
        self._is_closed = False
        self.is_paused = False
        """Nothing is read."""

    @property
    def queued(self) -> int:
        """Bytes of requests that the server has not taken yet."""
        return self._waiting_bytes + sum(connection.unsent for connection in self._connections)

    @property
    def has_idle(self) -> bool:
        """A connection waits for a request."""
        return bool(self._idle)

    def send(self, transfer: Transfer) -> None:
        """Send a request on a connection, now or later."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_reusable:
                transfer.send_on(connection)
                return
            connection.close()
        if self._has_room:
            self._open(transfer)
        else:
            self._waiting.append(transfer)
            self._waiting_bytes += transfer.size
            self.flow_changed()

    def withdraw(self, transfer: Transfer) -> None:
        """A request that has no connection needs none any more."""
        if transfer in self._waiting:
            self._waiting.remove(transfer)
            self._waiting_bytes -= transfer.size
            self.flow_changed()

    def pause(self, paused: bool) -> None:
        """Stop reading, or read again."""
        self.is_paused = paused
        for connection in list(self._connections):
            connection.pause(paused)

    def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        for connection in list(self._connections):
            connection.close()

    def close_old(self) -> None:
        """Close those that the server may be about to close."""
        for connection in [connection for connection in self._idle if not connection.is_reusable]:
            connection.close()

    # --- new connections ---

    @property
    def _has_room(self) -> bool:
        return len(self._connections) + self._connecting < self._remote.max_connections

    def _open(self, transfer: Transfer) -> None:
        self._connecting += 1
        self._spawn(self._open_connection(transfer))

    async def _open_connection(self, transfer: Transfer) -> None:
        remote = self._remote
        try:
            connection = await connect.connect(
                remote.address, remote.proxy, remote.tls, self, remote.connect_seconds, ca_hint=connect.CA_HINT
            )
        except (OSError, ValueError) as problem:
            self._connecting -= 1
            why = _reason(problem)
            self._report_reached(why)
            if transfer.is_wanted:
                transfer.not_connected(f"hookproxy could not connect to {remote.address.origin}: {why}")
            self._serve_waiting()
            return
        except BaseException:
            self._connecting -= 1
            raise
        self._connecting -= 1
        self._report_reached()
        self._connections.add(connection)
        if self._is_closed:
            connection.close()
            return
        if self.is_paused:
            connection.pause(True)
        if transfer.is_wanted:
            transfer.send_on(connection)
        else:  # it was cancelled meanwhile
            self.idle(connection)

    def _report_reached(self, why_not: str = "") -> None:
        if bool(why_not) == self._is_away or self._is_closed:
            return
        self._is_away = bool(why_not)
        origin = self._remote.address.origin
        self._report(f"cannot connect to {origin}: {why_not}" if why_not else f"{origin} can be reached again")

    def _serve_waiting(self) -> None:
        while self._waiting and not self._is_closed and self._has_room:
            self._open(self._next_waiting())

    def _next_waiting(self) -> Transfer:
        transfer = self._waiting.popleft()
        self._waiting_bytes -= transfer.size
        self.flow_changed()
        return transfer

    # --- Owner ---

    def idle(self, connection: Connection) -> None:
        """Give the connection to a request that waits, or keep it."""
        if self._is_closed:
            connection.close()
        elif self._waiting:
            self._next_waiting().send_on(connection)
        else:
            self._idle.append(connection)

    def closed(self, connection: Connection) -> None:
        """There may be another one."""
        self._connections.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._serve_waiting()


def _reason(problem: Exception) -> str:
    """Why there is no connection, in a few words."""
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror
    return str(problem).partition("\n")[0] or type(problem).__name__
