"""What `[secrets]` says: what is masked, what is not looked at, and where masked values become the values again.

It has no secret: `values` says where each of them is.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class SecretsOff(Struct, frozen=True):
    """A table of `[[secrets.off]]`: tools whose results are not looked at. Both are patterns with `*`, as in rules."""

    tool: str = "*"
    server: str = "*"


class SecretsRestore(Struct, frozen=True):
    """A table of `[[secrets.restore]]`: where placeholders in arguments become the values again."""

    tool: str
    server: str = "*"
    rules: tuple[str, ...] = ("*",)
    """Patterns with `*` over the ids of rules, detectors and values."""


class SecretSettings(Struct, frozen=True):
    """The table `[secrets]`."""

    detectors: Mapping[str, str] = {}
    """The user's own: a name and a regular expression in the syntax of RE2, whose first group that takes part is the
    secret, or else the whole match."""
    values: Mapping[str, str] = {}
    """Named values: a name, and where the value is, as "env:NAME", "file:PATH", "keyring:SERVICE/USER" or "command:…".
    A path is absolute."""
    allow: tuple[str, ...] = ()
    """Regular expressions: what a detector has found is not masked if one of them matches all of it."""
    off: tuple[SecretsOff, ...] = ()
    restore: tuple[SecretsRestore, ...] = ()
