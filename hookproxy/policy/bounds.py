"""What users of a gateway may have at a time: sessions, and memory of their servers. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from ..model.principal import Principal


class Bound(Struct, frozen=True):
    """What may be had at a time: by each user, or by all users together."""

    name: str
    """Its table in gateway.toml, for people."""
    sessions: int | None = None
    memory: int | None = None
    """Bytes that servers' processes use."""
    users: tuple[str, ...] = ()
    """Whom it is about, as `Principal.is_among` has it; empty: everybody."""
    servers: frozenset[str] = frozenset()
    """Empty: all servers together."""
    together: bool = False
    """It counts all users together, and not each one alone."""

    def is_about(self, principal: Principal | None, server: str) -> bool:
        """Whether it counts what this user has at a server; None: what belongs to all users."""
        if self.servers and server not in self.servers:
            return False
        if principal is None:
            return self.together and not self.users
        return not self.users or principal.may_be_among(self.users)
