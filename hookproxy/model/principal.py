"""Who calls through a gateway: an account of this machine, or the person or program that a token names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

GROUP_SIGN: Final = "@"
"""In a list of who is allowed, a name with this sign in front is a group's."""


class Principal(Struct, frozen=True):
    """Who has opened a session. Sessions belong to `id`; rules and people use `name` and `groups`."""

    id: str
    """Unique for ever, and independent of the bytes of a token: `uid:1000`, `token:alice`, `ISSUER SUBJECT`."""

    name: str
    """The account's name, the user of the token, or the claim that the configuration names."""

    groups: tuple[str, ...] = ()
    """Names, or a number where a group has no name."""

    def is_among(self, allowed: Iterable[str]) -> bool:
        """Whether a list such as `["alice", "@developers"]` names this user, or a group of the user."""
        return any(who[1:] in self.groups if who.startswith(GROUP_SIGN) else who == self.name for who in allowed)
