"""Which rules and values may be in a text: one pass over it, and for nearly all texts the answer is none.

How it works. A rule has a gate, a pattern that matches wherever its own one does, and rarely else: its keywords, or
more of the pattern where the keywords are in ordinary texts. The gates of all rules are one set (`engine.PatternSet`).
Rules that know a secret by a name before it (`discord_token = "…"`) share one gate, which asks for any name with
a value behind it; only then it matters which names are there. (With a gate for each name, the search of a text of many
names would have as many states as there are sets of names.)

What must hold: gates see through the escapes of JSON. Where a rule would match what a text reads (`readings`), its gate
matches the text as it stands. So a text is read only if something may be in it. Two things cannot be seen so, and
`Gated.reads` says that the gates must be asked of each reading: letters as `\\u0041`, and the user's own patterns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from .engine import PatternSet, quoted
from .rules import GENERIC, Rule, RuleTable

_ASSIGNED: Final = r"""(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"""
"""What stands between a name and its secret in the patterns of gitleaks."""

_BEFORE: Final = r"(?i)[\w.-]{0,50}?"
"""What stands before the name."""

_ASSIGNED_ESCAPED: Final = rb"""[\w\s.'"\\-]*[=>:,?|]+[\s\x60'"=\\]*(?:\\[nrt][\s\x60'"=\\]*)*"""
"""As `_ASSIGNED`, in a text with escapes, and more than that matches."""

_NAMED_SECRET: Final = rb"[\w.=+/:%\\-]{8}"
"""How the secret begins whatever its name is."""

_LEAST: Final = 10
"""Characters of the shortest secret of the generic rule."""

_GENERIC_SECRET: Final = b"|".join(
    rb"[a-z_.-]{%d}[0-9=+/\\][\w.=+/\\-]{%d}" % (letters, _LEAST - 1 - letters) for letters in range(_LEAST)
)
"""How a secret of the generic rule begins: not all of it are letters, or an exception knows it."""

_GATES: Final = {
    "authress-service-client-access-key": rb"\.acc[_-]",
    "alibaba-access-key-id": rb"LTAI[A-Za-z0-9]{20}",
    "aws-access-token": rb"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}",
    "clickhouse-cloud-api-secret-key": rb"4b1d[A-Za-z0-9]{38}",
    "facebook-page-access-token": rb"EAA[MC][A-Za-z0-9]{100}",
    "jwt": rb"ey[a-zA-Z0-9]{17,}\.ey",
    "jwt-base64": rb"ZXlK",
    "kubernetes-secret-yaml": rb"""(?i)kind:[\s"'\\t]*secret""",
    "lob-api-key": rb"(?i)(?:live|test)_[a-f0-9]{35}",
    "lob-pub-api-key": rb"(?i)(?:live|test)_pub_[a-f0-9]{31}",
    "octopus-deploy-api-key": rb"API-[A-Z0-9]{26}",
    "square-access-token": rb"(?:EAAA|sq0atp-)[\w-]{22}",
    "twilio-api-key": rb"SK[0-9a-fA-F]{32}",
    "vault-service-token": rb"hvs\.|s\.[A-Za-z0-9]{24}",
    GENERIC: rb"(?i)(?:access|auth|api|credential|creds|key|passw(?:or)?d|secret|token)%s(?:%s|[a-z_.-]{%d,}[0-9=+/\\])"
    % (_ASSIGNED_ESCAPED, _GENERIC_SECRET, _LEAST),
}
"""Gates of rules whose keywords are in ordinary texts: `key`, `s.`, `lob` (in `glob`), or in base64 (`ey`, `ltai`)."""

_LETTERS: Final = rb"\\u00[2-7]"
"""A letter or a sign as an escape."""

_PLAIN: Final = re.compile(r"(?:[A-Za-z0-9_:@#=~%!<>;,-]|\[[A-Za-z0-9_:@#=~%.+-]+\]|\{\d+(?:,\d*)?\}|[()|?+*])+")
"""Patterns of users that match nothing in which there may be an escape."""


class Gated(Struct, frozen=True):
    """What may be in a text."""

    rules: frozenset[int]
    values: Sequence[int]
    reads: bool
    """What the text reads must be asked for as well."""


class Gates:
    """The gates of some rules and values, which are known by their places in the sequences."""

    def __init__(self, rules: Sequence[Rule], users: int, values: Sequence[bytes]) -> None:
        """The first `users` rules are the user's. Values are given as patterns. Raises PatternError."""
        named = {number: name for number, rule in enumerate(rules) if (name := _name(rule.table))}
        self._named = list(named)
        self._own = [number for number in range(len(rules)) if number not in named]
        own = [
            rules[number].table.regex.encode() if number < users else _gate(rules[number].table) for number in self._own
        ]
        any_name = rb"(?i)(?:%s)%s%s" % (b"|".join(named.values()), _ASSIGNED_ESCAPED, _NAMED_SECRET)
        self._first_value = len(own)
        self._letters = len(own) + len(values)
        self._any_name = self._letters + 1 if named else -1
        self._set = PatternSet([*own, *values, _LETTERS, *([any_name] if named else [])])
        self._names = PatternSet([_keywords(rules[number].table) for number in self._named])
        self._escapes_matter = any(not _PLAIN.fullmatch(rule.table.regex) for rule in rules[:users])

    def matching(self, text: bytes) -> Gated | None:
        """What may be in the text; None: nothing."""
        numbers = self._set.matching(text)
        reads = self._letters in numbers or (self._escapes_matter and b"\\" in text)
        if not numbers and not reads:
            return None
        rules = {self._own[number] for number in numbers if number < self._first_value}
        if self._any_name in numbers:
            rules.update(self._named[number] for number in self._names.matching(text))
        values = [number - self._first_value for number in numbers if self._first_value <= number < self._letters]
        return Gated(frozenset(rules), values, reads)


def _name(table: RuleTable) -> bytes:
    """The pattern of the name before the secret; empty: the rule knows it by something else, too."""
    before, assigned, secret = table.regex.partition(_ASSIGNED)
    is_named = assigned and before.startswith(_BEFORE) and r"|\b" not in secret and table.id not in _GATES
    return before.removeprefix(_BEFORE).encode() if is_named else b""


def is_named(table: RuleTable) -> bool:
    """True for a rule that knows a secret by the name before it only."""
    return bool(_name(table))


def _gate(table: RuleTable) -> bytes:
    return _GATES.get(table.id) or _keywords(table)


def _keywords(table: RuleTable) -> bytes:
    return b"(?i)(?:" + b"|".join(quoted(keyword.encode()) for keyword in table.keywords) + b")"
