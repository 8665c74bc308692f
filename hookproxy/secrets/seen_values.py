"""Finds what another finder finds, and values that a hook has seen, as they are or with escapes of JSON.

A hook that sees values may print one without the words by which a rule has found it. A step for each byte is enough:
hooks print little.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from .finder import without_overlaps
from .literals import Found
from .readings import Reading, readings
from .session_finder import SessionFinder

_SHORTEST: Final = 8  # bytes of a value: shorter ones are in ordinary texts


class SeenValues:
    """As SessionFinder."""

    def __init__(self, finder: SessionFinder, values: Mapping[bytes, str]) -> None:
        """`values` have the rules that have found them."""
        self._finder = finder
        self._rules = values
        self._values: dict[bytes, list[bytes]] = defaultdict(list)
        for value in values:
            if len(value) >= _SHORTEST:
                self._values[value[:_SHORTEST]].append(value)

    def find(self, text: bytes) -> list[Found]:
        """As `SessionFinder.find`."""
        secrets = self._finder.find(text)
        seen = [place for reading in (Reading(text), *readings(text)) for place in self._in_reading(reading)]
        return without_overlaps([*secrets, *seen]) if seen else secrets

    def _in_reading(self, reading: Reading) -> Iterator[Found]:
        text = reading.text
        seen = [
            Found(at, at + len(value), self._rules[value])
            for at in range(len(text) - _SHORTEST + 1)
            for value in self._values.get(text[at : at + _SHORTEST], ())
            if text.startswith(value, at)
        ]
        places = reading.written(place for start, end, _ in seen for place in (start, end)) if seen else {}
        yield from (Found(places[start], places[end], rule) for start, end, rule in seen)
