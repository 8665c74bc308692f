"""Who calls through a gateway: an account of this machine, or the person or program that a token names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

OF_ACCOUNT: Final = "uid:"
"""The beginning of the id of an account of this machine, of which the kernel has told at a Unix socket."""

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

    in_doubt: bool = False
    """The groups cannot be looked up now; nor can the name, if it is a number."""

    doubted: tuple[str, ...] = ()
    """Groups of which nobody can say now whether the user is in them."""

    def is_among(self, allowed: Iterable[str]) -> bool:
        """Whether a list such as `["alice", "@developers"]` names this user, or a group of the user, for certain."""
        return any(self._is_named(who) for who in allowed)

    def may_be_among(self, denied: Iterable[str]) -> bool:
        """The same, or nobody can say for certain that it does not."""
        return any(self._is_named(who) or self._may_be_named(who) for who in denied)

    def _is_named(self, who: str) -> bool:
        if who.startswith(GROUP_SIGN):
            group = who[len(GROUP_SIGN) :]
            return not self.in_doubt and group in self.groups and group not in self.doubted
        return who == self.name

    def _may_be_named(self, who: str) -> bool:
        """Two numbers are two accounts; behind a number, any name may be."""
        if who.startswith(GROUP_SIGN):
            return self.in_doubt or who[len(GROUP_SIGN) :] in self.doubted
        return self.in_doubt and self.name.isdecimal() and not who.isdecimal()
