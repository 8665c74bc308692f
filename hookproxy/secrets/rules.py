"""Compiles `gitleaks.toml` and the user's own detectors: what each finds in a text, as gitleaks means its rules.

How it works. A rule has a pattern of its own, which is tried on a text only if its `gate` matches there: all gates are
one pass over the text (`engine.PatternSet`). What a pattern matches is a secret if it is random enough (Shannon's
entropy) and if no allowlist knows it: neither the rule's own nor that of all rules.

Differences from gitleaks: which file or commit a text comes from is not known, so rules that it limits to files are
tried on every text, and exceptions for files hold nowhere; `gitleaks:allow` in a text means nothing, because whoever
wrote the text could hide a secret with it.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import Final, Literal

import msgspec

from .engine import Match, Pattern, compiled, quoted

_LINE: Final = 500
"""Bytes before and behind a match in which exceptions for its line are looked for: a line may be all of a text."""

_BEFORE_NAME: Final = r"(?i)[\w.-]{0,50}?"
"""How patterns begin in which a name stands before the secret."""

_GENERIC: Final = "generic-api-key"

_ASSIGNED: Final = r"""(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"""
"""What stands between the name and the secret in these patterns."""

_ASSIGNED_ESCAPED: Final = rb"""[\w\s.'"\\-]*[=>:,?|]+[\s\x60'"=\\]*(?:\\[nrt][\s\x60'"=\\]*)*"""
"""The same with escapes of JSON in it."""

_LEAST: Final = 10
"""Characters of the shortest secret of `generic-api-key`."""

_GENERIC_SECRET: Final = b"|".join(
    rb"[a-z_.-]{%d}[0-9=+/\\][\w.=+/\\-]{%d}" % (letters, _LEAST - 1 - letters) for letters in range(_LEAST)
)
"""Its beginning: something in it is not a letter, which an allowlist asks for."""

_GATES: Final = {
    "authress-service-client-access-key": rb"\.acc[_-]",
    "aws-access-token": rb"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}",
    "facebook-page-access-token": rb"EAA[MC][A-Za-z0-9]{100}",
    "jwt": rb"ey[a-zA-Z0-9]{17}",
    "kubernetes-secret-yaml": rb"""(?i)kind:[\s"'\\]*secret""",
    "octopus-deploy-api-key": rb"API-[A-Z0-9]{26}",
    "square-access-token": rb"(?:EAAA|sq0atp-)[\w-]{22}",
    "twilio-api-key": rb"SK[0-9a-fA-F]{32}",
    "vault-service-token": rb"hvs\.|s\.[A-Za-z0-9]{24}",
    _GENERIC: rb"(?i)(?:access|auth|api|credential|creds|key|passw(?:or)?d|secret|token)%s(?:%s|[a-z_.-]{%d,}[0-9=])"
    % (_ASSIGNED_ESCAPED, _GENERIC_SECRET, _LEAST),
}
"""The gates of rules whose keywords are in ordinary texts (`key`, `s.`)."""


class Allowlist(msgspec.Struct, frozen=True):
    """What is not a secret although a rule has found it."""

    target: Literal["secret", "match", "line"]
    regexes: Pattern | None
    stopwords: Pattern | None
    needs_both: bool

    def knows(self, text: bytes, match: tuple[int, int], secret: bytes) -> bool:
        """True if it allows this secret, found as a part of the match in the text."""
        start, end = match
        if self.target == "line":
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

    def __init__(self, table: _RuleTable, allowlists: Sequence[Allowlist] | None = None) -> None:
        self.id = table.id
        self.is_generic = table.id == _GENERIC
        self.gate = _gate(table)
        self.has_own_form = not table.regex.startswith(_BEFORE_NAME)
        """What it finds is known by its own form, not by a name before it."""
        self._table = table
        self._extra = allowlists

    @cached_property
    def pattern(self) -> Pattern:
        """Its pattern."""
        return compiled(self._table.regex.encode())

    @cached_property
    def _allowlists(self) -> Sequence[Allowlist]:
        if self._extra is not None:
            return self._extra
        own = [_allowlist(table) for table in self._table.allowlists]
        return [_global_allowlist(), *own]

    def find(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Where the secrets are that it finds."""
        group = self._table.secret_group
        for match in self.pattern.finditer(text):
            start, end = match.span()
            while end > start and text[end - 1 : end] == b"\n":
                end -= 1
            place = match.span(group) if group else next(_taking_part(match, self.pattern.groups), (start, end))
            secret = text[place[0] : place[1]]
            if self._table.entropy and entropy(secret) <= self._table.entropy:
                continue
            if not any(allowlist.knows(text, (start, end), secret) for allowlist in self._allowlists):
                yield place


def user_rule(name: str, regex: str) -> Rule:
    """A detector of the user's own: no exceptions of gitleaks hold for it."""
    return Rule(_RuleTable(name, regex), allowlists=())


def entropy(secret: bytes) -> float:
    """Shannon's, in bits for each byte: 0 for equal bytes, about 4.5 for 40 random letters and digits."""
    size = len(secret)
    return -sum(n / size * math.log2(n / size) for n in (secret.count(byte) for byte in set(secret)))


@cache
def gitleaks_rules() -> Sequence[Rule]:
    """All rules of the file, in its order. Reading it takes some milliseconds, once."""
    return [Rule(table) for table in _file().rules]


# --- the file ---


class _AllowlistTable(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    condition: Literal["OR", "AND"] = "OR"
    regex_target: Literal["secret", "match", "line"] = "secret"
    regexes: Sequence[str] = ()
    stopwords: Sequence[str] = ()


class _RuleTable(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    id: str
    regex: str
    entropy: float = 0.0
    secret_group: int = 0
    keywords: Sequence[str] = ()
    allowlists: Sequence[_AllowlistTable] = ()


class _File(msgspec.Struct, forbid_unknown_fields=True):
    allowlist: _AllowlistTable
    rules: Sequence[_RuleTable]


@cache
def _file() -> _File:
    with open(os.path.join(os.path.dirname(__file__), "gitleaks.toml"), "rb") as file:
        return msgspec.convert(tomllib.load(file), _File)


@cache
def _global_allowlist() -> Allowlist:
    return _allowlist(_file().allowlist)


def _allowlist(table: _AllowlistTable) -> Allowlist:
    stopwords = b"(?i)" + b"|".join(quoted(word.encode()) for word in table.stopwords)
    return Allowlist(
        table.regex_target,
        compiled("|".join(f"(?:{regex})" for regex in table.regexes).encode()) if table.regexes else None,
        compiled(stopwords) if table.stopwords else None,
        table.condition == "AND" and bool(table.regexes and table.stopwords),
    )


def _gate(table: _RuleTable) -> bytes:
    """A pattern that matches wherever the rule's own does, also in a text with escapes of JSON; and rarely else."""
    known = _GATES.get(table.id)
    if known is not None:
        return known
    name, assigned, secret = table.regex.removeprefix(_BEFORE_NAME).partition(_ASSIGNED)
    if assigned and r"|\b" not in secret:
        return b"(?i)%s%s[\\w.=+/:%%\\\\-]{8}" % (name.encode(), _ASSIGNED_ESCAPED)
    if table.keywords:
        return b"(?i)(?:" + b"|".join(quoted(keyword.encode()) for keyword in table.keywords) + b")"
    return table.regex.encode()


def _taking_part(match: Match, groups: int) -> Iterator[tuple[int, int]]:
    for group in range(1, groups + 1):
        start, end = match.span(group)
        if end > start:
            yield start, end
