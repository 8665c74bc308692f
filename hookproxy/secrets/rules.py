"""Compiles `gitleaks.toml`, `more_rules.toml` and the user's detectors: what each finds, as gitleaks means its rules.

How it works. What a rule's pattern matches is a secret if it is random enough (Shannon's entropy) and if no allowlist
knows it: neither the rule's own nor that of all rules. `gates` says which rules are worth trying on a text.

Differences from gitleaks: which file or commit a text comes from is not known, so exceptions for files hold nowhere.
`gitleaks:allow` in a text means nothing, because whoever wrote the text could show a secret with it. What may follow a
secret is more, except for the rule that knows any random text behind a word such as `key`.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import Final, Literal

import msgspec

from .engine import Match, Pattern, compiled, quoted

_LINE: Final = 500
"""Bytes before and behind a match in which exceptions for its line are looked for: a line may be all of a text."""

_BEFORE_NAME: Final = r"[\w.-]{0,50}?"
"""What patterns have where a name stands before the secret. It is tried from each character of a word, and no secret
depends on it: it is left out, and an exception for the match gets it back."""

_LONGEST_BEFORE: Final = 50  # as there
_BEFORE: Final = re.compile(rb"[\w.-]*\Z", re.ASCII)

_ENDS: Final = (
    (
        r"""(?:[\x60'"\s;]|\\[nr]|$)""",
        r"""(?:[\x60'"\s;&)\]}<>|]|\\[nrtu"]|[.,:!?](?:[\s'"\\]|$)|$)""",
    ),
    (r"(?:\s|\z)", r"(?:[\s\"]|\z)"),
)
"""What follows a secret in the patterns of gitleaks, and what it is here: texts of tools are sentences, addresses with
`&`, HTML and strings of JSON as well."""

GENERIC: Final = "generic-api-key"
"""The rule for whatever is random and stands behind a word such as `key`."""


class Allowlist(msgspec.Struct, frozen=True):
    """What is not a secret although a rule has found it."""

    target: Literal["secret", "match", "line"]
    regexes: Pattern | None
    stopwords: Pattern | None
    needs_both: bool

    def knows(self, text: bytes, match: tuple[int, int], secret: bytes) -> bool:
        """True if it allows this secret, found as a part of the match in the text."""
        start, end = match
        if self.target == "match" and (before := _BEFORE.search(text, max(start - _LONGEST_BEFORE, 0), start)):
            start = before.start()
        elif self.target == "line":
            start = max(text.rfind(b"\n", max(start - _LINE, 0), start) + 1, start - _LINE, 0)
            stop = text.find(b"\n", end, end + _LINE)
            end = min(end + _LINE, len(text)) if stop < 0 else stop
        by_regex = (
            self.regexes is not None
            and self.regexes.search(secret if self.target == "secret" else text[start:end]) is not None
        )
        by_word = self.stopwords is not None and self.stopwords.search(secret) is not None
        return by_regex and by_word if self.needs_both else by_regex or by_word


class Rule:
    """A rule. Its pattern is compiled when it is first tried."""

    def __init__(self, table: RuleTable, allowlists: Sequence[Allowlist] | None = None) -> None:
        """`allowlists` are in the place of those of gitleaks."""
        self.id = table.id
        self.table = table
        self._given = allowlists

    @cached_property
    def pattern(self) -> Pattern:
        """Its pattern. Raises PatternError for a user's that cannot be compiled."""
        regex = self.table.regex.replace(_BEFORE_NAME, "")
        for end, more in _ENDS if self.id != GENERIC else ():
            regex = regex.replace(end, more)
        return compiled(regex.encode())

    @cached_property
    def _allowlists(self) -> Sequence[Allowlist]:
        if self._given is not None:
            return self._given
        own = [_allowlist(table) for table in self.table.allowlists]
        return [_global_allowlist(), *own]

    def find(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Where the secrets are that it finds."""
        group = self.table.secret_group
        for match in self.pattern.finditer(text):
            start, end = match.span()
            while end > start and text[end - 1 : end] == b"\n":
                end -= 1
            place = match.span(group) if group else next(_taking_part(match, self.pattern.groups), (start, end))
            secret = text[place[0] : place[1]]
            if self.table.entropy and entropy(secret) <= self.table.entropy:
                continue
            if not any(allowlist.knows(text, (start, end), secret) for allowlist in self._allowlists):
                yield place


def user_rule(name: str, regex: str) -> Rule:
    """A detector of the user's own: no exceptions of gitleaks hold for it."""
    return Rule(RuleTable(name, regex), allowlists=())


def entropy(secret: bytes) -> float:
    """Shannon's, in bits for each byte: 0 for equal bytes, about 4.5 for 40 random letters and digits."""
    size = len(secret)
    return -sum(n / size * math.log2(n / size) for n in (secret.count(byte) for byte in set(secret)))


@cache
def known_rules() -> Sequence[Rule]:
    """The rules of both files. Reading them takes some milliseconds, once."""
    return [Rule(table) for name in ("gitleaks.toml", "more_rules.toml") for table in _file(name).rules]


# --- the file ---


class _AllowlistTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    condition: Literal["OR", "AND"] = "OR"
    regex_target: Literal["secret", "match", "line"] = "secret"
    regexes: Sequence[str] = ()
    stopwords: Sequence[str] = ()


class RuleTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A table of the file, as gitleaks spells it."""

    id: str
    regex: str
    entropy: float = 0.0
    secret_group: int = 0
    keywords: Sequence[str] = ()
    allowlists: Sequence[_AllowlistTable] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rules: Sequence[RuleTable]
    allowlist: _AllowlistTable = _AllowlistTable()
    """For all rules of both files."""


@cache
def _file(name: str) -> _File:
    with open(os.path.join(os.path.dirname(__file__), name), "rb") as file:
        return msgspec.convert(tomllib.load(file), _File)


@cache
def _global_allowlist() -> Allowlist:
    return _allowlist(_file("gitleaks.toml").allowlist)


def _allowlist(table: _AllowlistTable) -> Allowlist:
    stopwords = b"(?i)" + b"|".join(quoted(word.encode()) for word in table.stopwords)
    return Allowlist(
        table.regex_target,
        compiled("|".join(f"(?:{regex})" for regex in table.regexes).encode()) if table.regexes else None,
        compiled(stopwords) if table.stopwords else None,
        table.condition == "AND" and bool(table.regexes and table.stopwords),
    )


def _taking_part(match: Match, groups: int) -> Iterator[tuple[int, int]]:
    for group in range(1, groups + 1):
        start, end = match.span(group)
        if end > start:
            yield start, end
