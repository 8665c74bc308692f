"""Finds secrets in texts: by the rules of gitleaks and the user's own detectors, and named values in all spellings.

How it works. One pass over a text says which rules and values may be in it (`gates`); for nearly all texts that is
none, and they cost nothing more. Otherwise the pattern of each of these is tried. A text in which something is
escaped as JSON is also searched as it reads (`readings`): what is found there is masked with its escapes.

What holds: the time is linear in the length of the text. What is found does not overlap and is in order. Where several
rules find the same, the most specific names all of it: a named value, a detector of the user's, a rule for a form of
token, a rule for what stands behind a name, `generic-api-key`. No value is in an error or a `repr`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from ..model.secret_settings import SHORTEST_VALUE, SecretSettings
from . import spellings
from .engine import Pattern, compiled
from .gates import Gated, Gates, is_named
from .literals import Found
from .placeholders import PLACEHOLDER
from .readings import Reading, readings
from .rules import GENERIC, Rule, known_rules, user_rule

_LATER_BYTES: Final = frozenset(bytes((byte,)) for byte in range(0x80, 0xC0))
"""The bytes of a character in UTF-8 but its first."""

_BEGINNING: Final = b"{{secret:"
_PLACEHOLDER: Final = re.compile(PLACEHOLDER.pattern.encode())

_NAMED, _USERS, _OWN_FORM, _BEHIND_NAME, _LEAST = range(5)
"""How specific it is what finds a secret, from the most specific one on."""


class _Candidate(NamedTuple):
    start: int
    end: int
    rank: int
    """The smaller, the more specific."""
    rule: str

    @property
    def is_value(self) -> bool:
        """It is a named value."""
        return self.rank == _NAMED


_NOTHING_MORE: Final = Gated(frozenset(), (), reads=False)
_NOTHING: Final = _Candidate(-1, -1, _LEAST, "")


class _ValuePart:
    """A part of a named value, or all of it. Its pattern is compiled when it is first tried."""

    def __init__(self, name: str, value: bytes) -> None:
        self.name = name
        self.beginning = spellings.beginning(value)
        self._value = value

    @cached_property
    def pattern(self) -> Pattern:
        return compiled(spellings.pattern(self._value))


class Finder:
    """What is looked for. It keeps no text, and may be used for any number of texts."""

    def __init__(self, settings: SecretSettings, values: Mapping[str, bytes]) -> None:
        """`values` are the named ones, at least `SHORTEST_VALUE` bytes each.

        Compiling takes 20 ms. Raises PatternError for a detector that is not a regular expression, and UserError if
        the package for them is not installed.
        """
        own = [user_rule(name, regex) for name, regex in settings.detectors.items()]
        known = [rule for rule in known_rules() if rule.id not in settings.skip]
        self._rules: Sequence[Rule] = [*own, *known]
        self._ranks = [_USERS] * len(own) + [_rank(rule) for rule in known]
        self._values: list[_ValuePart] = []
        self._lines: set[int] = set()
        """Which of the values are lines of keys."""
        self._keys: list[range] = []
        """Which of them are the parts of a key that has lines, in order."""
        for name, value in values.items():
            parts, lines = spellings.parts(value), spellings.lines_of_key(value)
            first, behind = len(self._values), len(self._values) + len(parts)
            self._values += [_ValuePart(name, part) for part in (*parts, *lines)]
            self._keys += [range(first, behind)] if lines else []
            self._lines.update(range(behind, len(self._values)))
        self._gates = Gates(self._rules, len(own), [value.beginning for value in self._values])
        self._allow = [compiled(regex.encode()) for regex in settings.allow]

    def may_find(self, text: bytes) -> bool:
        """There may be something in the text: to find it takes a hundred times as long as this."""
        return self._gates.matching(text) is not None

    def find(self, text: bytes) -> list[Found]:
        """The secrets in a text, in order. What is escaped as JSON in it is found, too, with its escapes."""
        gated = self._gates.matching(text)
        if gated is None:
            return []
        candidates = [place for reading in self._readings(text, gated) for place in self._in_reading(*reading)]
        if not text.isascii():
            candidates = [_with_whole_characters(text, candidate) for candidate in candidates]
        return _merged(candidates)

    def _readings(self, text: bytes, gated: Gated) -> Iterator[tuple[Reading, Gated]]:
        """What the text reads, each with what may be in it. Patterns of values see through escapes by themselves."""
        yield Reading(text), gated
        rules = gated.rules
        for reading in readings(text) if rules or gated.reads else ():
            more = (self._gates.matching(reading.text) if gated.reads else None) or _NOTHING_MORE
            rules |= more.rules
            yield reading, Gated(rules, more.values, reads=True)

    def _in_reading(self, reading: Reading, gated: Gated) -> Iterator[_Candidate]:
        candidates = [*self._by_values(reading.text, gated.values), *self._by_rules(reading.text, gated.rules)]
        places = reading.written(place for candidate in candidates for place in candidate[:2]) if candidates else {}
        for candidate in candidates:
            yield candidate._replace(start=places[candidate.start], end=places[candidate.end])

    def _by_values(self, text: bytes, numbers: Iterable[int]) -> Iterator[_Candidate]:
        parts = {number: self._places(text, number) for number in numbers if number not in self._lines}
        lines = self._lines.intersection(numbers)
        if lines and (rest := self._without_keys(text, parts)) != text:
            lines &= set((self._gates.matching(rest) or _NOTHING_MORE).values)
        for number, places in (parts | {number: self._places(text, number) for number in sorted(lines)}).items():
            for place in places:
                yield _Candidate(*place, _NAMED, self._values[number].name)

    def _places(self, text: bytes, number: int) -> list[tuple[int, int]]:
        return [match.span() for match in self._values[number].pattern.finditer(text)]

    def _without_keys(self, text: bytes, places: Mapping[int, Sequence[tuple[int, int]]]) -> bytes:
        """The text with blanks in place of whole keys; `places` are those of parts.

        Their lines need not be looked for: to compile the patterns of a key's lines takes half a second.
        """
        rest = bytearray(text)
        for key in self._keys:
            ends = [dict(places.get(number, ())) for number in key]
            for start, end in ends[0].items():
                for ends_of_part in ends[1:]:  # in base64, one character has bits of two parts
                    end = ends_of_part.get(end) or ends_of_part.get(end - 1, -1)
                if end > 0:
                    rest[start:end] = b" " * (end - start)
        return bytes(rest)

    def _by_rules(self, text: bytes, numbers: Iterable[int]) -> Iterator[_Candidate]:
        for number in numbers:
            rule = self._rules[number]
            for start, end in rule.find(text):
                if not self._is_allowed(text[start:end]):
                    for place in _around_placeholders(text, start, end):
                        yield _Candidate(*place, self._ranks[number], rule.id)

    def _is_allowed(self, secret: bytes) -> bool:
        """True for what the user has listed."""
        return any(pattern.fullmatch(secret) for pattern in self._allow)


def _rank(rule: Rule) -> int:
    if rule.id == GENERIC:
        return _LEAST
    return _BEHIND_NAME if is_named(rule.table) else _OWN_FORM


def _around_placeholders(text: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """What of a secret is not masked already; a few signs beside a placeholder, such as `Bearer`, are not secret."""
    placeholders = list(_PLACEHOLDER.finditer(text, start, end)) if text.find(_BEGINNING, start, end) >= 0 else ()
    if not placeholders:
        yield start, end
        return
    for stop, after in [*(match.span() for match in placeholders), (end, end)]:
        if len(text[start:stop].strip()) >= SHORTEST_VALUE:
            yield start, stop
        start = after


def _with_whole_characters(text: bytes, candidate: _Candidate) -> _Candidate:
    """The candidate with all bytes of its first and its last character in UTF-8: patterns are about bytes."""
    start, end = candidate.start, candidate.end
    while start > 0 and text[start : start + 1] in _LATER_BYTES:
        start -= 1
    while text[end : end + 1] in _LATER_BYTES:
        end += 1
    return candidate._replace(start=start, end=end)


def _merged(candidates: list[_Candidate]) -> list[Found]:
    """What overlaps is one, under the name of the most specific, or of the longest; so are parts of a value."""
    merged: list[_Candidate] = []
    for candidate in sorted(candidates):
        last = merged[-1] if merged else _NOTHING
        if candidate.start < last.end or (candidate.start == last.end and candidate[2:] == last[2:] and last.is_value):
            better = min(last, candidate, key=lambda either: (either.rank, either.start - either.end))
            merged[-1] = _Candidate(last.start, max(last.end, candidate.end), better.rank, better.rule)
        elif candidate.end > candidate.start:
            merged.append(candidate)
    return [Found(start, end, rule) for start, end, _, rule in merged]


def without_overlaps(secrets: list[Found]) -> list[Found]:
    """The secrets in order; what overlaps is one, under the name of the longest."""
    return _merged([_Candidate(start, end, 0, rule) for start, end, rule in secrets]) if secrets else []
