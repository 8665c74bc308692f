"""Finds what a `Finder` finds and, however they are spelled, the values that a session has given to a tool.

A value that a rule has found by the name before it would pass where a tool repeats it alone, or in another encoding.
The newest `_MOST` values are known: each costs 0.1 ms for 100 kB.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from . import spellings
from .engine import Pattern, PatternError, compiled
from .finder import Finder, without_overlaps
from .literals import Found, Secret, in_literals

_MOST: Final = 32  # values: sessions give a tool one or two
_SHORTEST: Final = 8  # bytes of a part that is looked for: shorter ones are in ordinary texts
_LONGEST: Final = 256  # bytes of a part: a pattern of a kilobyte takes a megabyte, and ten times as long
_MOST_PARTS: Final = 32  # of a value: a private key has 30 lines


class SessionFinder:
    """As Finder, for one session."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._known: OrderedDict[tuple[str, bytes], Pattern] = OrderedDict()

    def use(self, finder: Finder) -> None:
        """Find what this one finds from now on. What the session has given to tools is still known."""
        self._finder = finder

    def know(self, rule: str, value: bytes) -> None:
        """Find this value wherever it is from now on; of a long one, its lines."""
        if (rule, value) in self._known:
            self._known.move_to_end((rule, value))
            return
        lines = [value] if len(value) <= _LONGEST else value.splitlines()
        parts = dict.fromkeys(part for line in lines if len(part := line.strip()[:_LONGEST]) >= _SHORTEST)
        if not parts:
            return
        try:
            pattern = compiled(b"|".join(map(spellings.pattern, list(parts)[:_MOST_PARTS])))
        except PatternError:  # it takes too much memory; the rules still find it as it is
            return
        self._known[rule, value] = pattern
        if len(self._known) > _MOST:
            self._known.popitem(last=False)

    def may_find(self, text: bytes) -> bool:
        """As `Finder.may_find`."""
        return bool(self._known) or self._finder.may_find(text)

    def find(self, text: bytes) -> list[Found]:
        """As `Finder.find`."""
        found = self._finder.find(text)
        return self._with_known(text, found) if self._known else found

    def find_in_json(self, raw: bytes) -> list[Secret]:
        """As `Finder.find_in_json`."""
        found = self.find(raw)
        return in_literals(raw, found) if found else []

    def _with_known(self, text: bytes, found: list[Found]) -> list[Found]:
        patterns = list(self._known.items())  # of this moment: a thread may search while a value becomes known
        known = [Found(*match.span(), rule) for (rule, _), pattern in patterns for match in pattern.finditer(text)]
        return without_overlaps([*found, *known]) if known else found
