"""Finds what a `Finder` finds and, however they are spelled, the values that a session has given to a tool.

A value that a rule has found by the name before it would pass where a tool repeats it alone, or in another encoding.
The newest `_MOST` values are known in every spelling: each costs 0.1 ms for 100 kB. `_MOST_OLDER` older ones are found
as they are and as JSON has them, all together in one pattern.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from ..jsonrpc import raw_json
from . import spellings
from .engine import Pattern, PatternError, compiled, quoted
from .finder import Finder, without_overlaps
from .literals import Found

_MOST: Final = 32  # values: sessions give a tool one or two
_ESCAPED: Final = "secret"  # what has found an older value with escapes
_MOST_OLDER: Final = 512  # values; the pattern of so many takes a megabyte
_SHORTEST: Final = 8  # bytes of a part that is looked for: shorter ones are in ordinary texts
_LONGEST: Final = 256  # bytes of a part: a pattern of a kilobyte takes a megabyte, and ten times as long
_MOST_PARTS: Final = 32  # of a value: a private key has 30 lines


class _Known:
    """A value that is found in every spelling. Its pattern is compiled when a text is searched: that takes some ms."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    @cached_property
    def pattern(self) -> Pattern | None:
        """None: there is nothing to look for, or it takes too much memory; the rules still find the value as it is."""
        lines = [self._value] if len(self._value) <= _LONGEST else self._value.splitlines()
        parts = dict.fromkeys(part for line in lines if len(part := line.strip()[:_LONGEST]) >= _SHORTEST)
        if not parts:
            return None
        try:
            return compiled(b"|".join(map(spellings.pattern, list(parts)[:_MOST_PARTS])))
        except PatternError:
            return None


class _Older:
    """Values that are found as they are, and as they are in strings of JSON."""

    def __init__(self) -> None:
        self._rules: OrderedDict[bytes, str] = OrderedDict()
        self._pattern: Pattern | None = None

    def know(self, rule: str, value: bytes) -> None:
        if len(value) < _SHORTEST:
            return
        self._rules[value[:_LONGEST]] = rule
        self._rules.move_to_end(value[:_LONGEST])
        if len(self._rules) > _MOST_OLDER:
            self._rules.popitem(last=False)
        self._pattern = None

    def find(self, text: bytes) -> Iterator[Found]:
        rules = dict(self._rules)  # of this moment
        if (pattern := self._pattern) is None and rules:
            pattern = self._pattern = _pattern_of(list(rules))
        for match in pattern.finditer(text) if pattern is not None else ():
            start, end = match.span()
            yield Found(start, end, rules.get(text[start:end], _ESCAPED))


def _pattern_of(values: list[bytes]) -> Pattern:
    """A pattern of the newest of these values, the last ones; of all, unless they are long."""
    spelled = {way for value in values for way in _in_strings(value)}
    try:
        return compiled(b"|".join(map(quoted, sorted(spelled, key=len, reverse=True))))
    except PatternError:  # it takes too much memory
        return _pattern_of(values[len(values) // 2 :])


def _in_strings(value: bytes) -> Iterator[bytes]:
    """The value as it is, in a string of JSON, and in one in another one."""
    for _ in range(3):
        yield value
        value = raw_json.encode(value.decode(errors="replace"))[1:-1]


class SessionFinder:
    """As Finder, for one session."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._known: OrderedDict[tuple[str, bytes], _Known] = OrderedDict()
        self._older = _Older()

    def use(self, finder: Finder) -> None:
        """Find what this one finds from now on. What the session has given to tools is still known."""
        self._finder = finder

    def know(self, rule: str, value: bytes) -> None:
        """Find this value wherever it is from now on; of a long one, its lines."""
        self._known.setdefault((rule, value), _Known(value))
        self._known.move_to_end((rule, value))
        if len(self._known) > _MOST:
            self._older.know(*self._known.popitem(last=False)[0])

    def may_find(self, text: bytes) -> bool:
        """As `Finder.may_find`."""
        return bool(self._known) or self._finder.may_find(text)

    def find(self, text: bytes) -> list[Found]:
        """As `Finder.find`."""
        secrets = self._finder.find(text)
        return self._with_known(text, secrets) if self._known else secrets

    def _with_known(self, text: bytes, secrets: list[Found]) -> list[Found]:
        known = list(self._older.find(text))
        for (rule, _), value in list(self._known.items()):  # of this moment: a thread may search while one is added
            if value.pattern is not None:
                known += [Found(*match.span(), rule) for match in value.pattern.finditer(text)]
        return without_overlaps([*secrets, *known]) if known else secrets
