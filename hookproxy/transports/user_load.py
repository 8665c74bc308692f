"""What the agents of one user have open at a gateway: how many requests, and how much they have not read.

Law: what one user does not read takes no memory without a limit, whatever the servers send.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from .http.responder import Responder

LONG_BYTES: Final = 256 * 1024
"""Of a message that is counted before it is sent. Shorter ones are many, and their number is limited by `max_requests`
and by what may wait for each connection."""

_MOST_UNREAD: Final = 64 * 1024 * 1024  # bytes, where nobody says another limit: one of the longest messages


class Keeper(Protocol):
    """Whoever keeps messages for an agent."""

    @property
    def kept_bytes(self) -> int:
        """Bytes of messages that have not come whole, and of those that were sent and may have to be sent again."""

    def forget_kept(self) -> None:
        """Keep nothing of what was sent."""


class UserLoad:
    """What one user has open, in all sessions together."""

    __slots__ = ("__weakref__", "_most", "_report", "_unread", "keepers", "requests")

    def __init__(
        self, most: Callable[[], int] = lambda: _MOST_UNREAD, report: Callable[[str], None] = lambda _text: None
    ) -> None:
        """`most` says how many bytes may wait for the user's agents. `report` gets lines for people."""
        self._most = most
        self._report = report
        self._unread: dict[Responder, Callable[[], int]] = {}  # bytes that wait for agents that do not read
        self.requests = 0
        """How many are in flight."""
        self.keepers: set[Keeper] = set()

    @property
    def has_unread(self) -> bool:
        """Something waits for an agent that does not read."""
        return bool(self._unread)

    def note_full(self, responder: Responder, *, full: bool) -> None:
        """An agent does not read, or reads again, or is gone: as Responder.on_full says it."""
        if full:
            self._unread[responder] = responder.unsent
        else:
            self._unread.pop(responder, None)

    @property
    def waiting_bytes(self) -> int:
        """Bytes that wait for agents to read them, and those that are kept to be sent again."""
        return sum(unsent() for unsent in self._unread.values()) + sum(keeper.kept_bytes for keeper in self.keepers)

    @property
    def may_ask(self) -> bool:
        """False: so much waits for the user's agents that they must read it before they send further requests."""
        return not self._unread or self.waiting_bytes < self._most()

    def takes(self, size: int) -> bool:
        """Whether a long message of this size may wait, too. False: it was reported that it is withheld.

        A message may always wait alone. What is only kept to be sent again makes room for it.
        """
        if self._fits(size):
            return True
        for keeper in self.keepers:
            keeper.forget_kept()
        if self._fits(size):
            return True
        waiting = f"{self.waiting_bytes} bytes wait for agents of this user that do not read"
        self._report(f"a message of {size} bytes is withheld: {waiting} (max_unread_bytes)")
        return False

    def _fits(self, size: int) -> bool:
        waiting = self.waiting_bytes
        return not waiting or waiting + size <= self._most()
