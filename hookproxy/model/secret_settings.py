"""What `[secrets]` says: what is masked, what is not looked at, and where masked values become the values again.

It has no secret: a source says where one is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

SHORTEST_VALUE: Final = 8
"""Bytes of the shortest named value: a shorter one is in ordinary texts by chance."""

LONGEST_VALUE: Final = 8192
"""Bytes of the longest one: a private key has 4,000. It is looked for in all its spellings, which takes memory."""


class Source(Struct, frozen=True):
    """Where a named value is."""

    kind: Literal["env", "file", "keyring", "command"]
    what: str
    """The variable, the absolute path, SERVICE/USER, or the command as a shell would split it, without a shell."""
    folder: str = ""
    """Where a command starts."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.what}"


class SecretsOff(Struct, frozen=True):
    """Tools whose results are not looked at. Both are globs, as in rules."""

    tool: str = "*"
    server: str = "*"


class SecretsRestore(Struct, frozen=True):
    """Tools in whose arguments placeholders become the values again."""

    tool: str
    server: str = "*"
    rules: tuple[str, ...] = ("*",)
    """Globs over the ids of rules, detectors and values."""


class SecretSettings(Struct, frozen=True):
    """The table `[secrets]`."""

    detectors: Mapping[str, str] = {}
    """The user's own: a name and a regular expression in the syntax of RE2, whose first group that takes part is the
    secret, or else the whole match."""
    values: Mapping[str, Source] = {}
    """Named values, and where each one is."""
    allow: tuple[str, ...] = ()
    """Regular expressions: what a rule or a detector has found is not masked if one of them matches all of it."""
    skip: tuple[str, ...] = ()
    """The ids of the rules of gitleaks that are not used."""
    off: tuple[SecretsOff, ...] = ()
    restore: tuple[SecretsRestore, ...] = ()

    @property
    def opens(self) -> bool:
        """Something in it shows secrets to somebody."""
        return bool(self.allow or self.skip or self.off or self.restore)


def merged(user: SecretSettings | None, managed: SecretSettings | None) -> SecretSettings | None:
    """What both look for; where there are managed ones, they alone say what is not masked, and who may have values."""
    if user is None or managed is None:
        return managed or user
    detectors, values = {**user.detectors, **managed.detectors}, {**user.values, **managed.values}
    return replace(managed, detectors=detectors, values=values)
