"""The labels of one session: its readings, the prints of what was read, and what a person allows.

Memory is bounded, and a bound never makes a label less (law 3): of too many prints, any text carries the reading, and
of too many readings, the oldest one and one with the same labels become one, for which a person must be asked anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from time import monotonic
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..model.flow import SEVERAL_SERVERS, ClearedFlow, KnownLabels, Reading

MOST_READINGS: Final = 256  # of a session: each is compared with each call of a sink
MOST_PRINTS: Final = 100_000  # of a session, with 100 bytes each: the words of some hundred pages
_MOST_CLEARED: Final = 256  # as many as approvals are kept: beyond it a person is asked again


class _Kept(Struct):
    reading: Reading
    since: float
    """By the clock of the session."""
    whole: bool


class SessionLabels:
    """Keeps them in this process. `policy.shared_state.SharedLabels`, without anything that may be away."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """`clock` returns seconds and never goes back."""
        self._clock = clock
        self._key = os.urandom(16)
        self._kept: dict[int, _Kept] = {}  # by the number of the reading, the oldest first
        self._readings_of: dict[int, tuple[int, ...]] = {}  # the numbers of the readings, by a print
        self._cleared: list[ClearedFlow] = []
        self._last = 0

    def use_clock(self, clock: Callable[[], float]) -> None:
        """Take the time from another clock from now on, before anything is read: a trial has a time of its own."""
        self._clock = clock

    async def key(self) -> bytes:
        """As in SharedLabels."""
        return self._key

    async def known(self, prints: Collection[int] | None) -> KnownLabels:
        """As in SharedLabels."""
        self._forget_old()
        carried = {number for number, kept in self._kept.items() if kept.whole or prints is None}
        for text in prints or ():
            carried.update(self._readings_of.get(text, ()))
        readings = tuple(kept.reading for kept in self._kept.values())
        return KnownLabels(readings, frozenset(carried & self._kept.keys()), tuple(self._cleared))

    async def add(self, reading: Reading, prints: Collection[int], whole: bool) -> None:
        """As in SharedLabels."""
        self._forget_old()
        self._last += 1
        number = self._last
        if not whole and len(self._readings_of) + len(prints) > MOST_PRINTS:
            self._forget_prints()
        whole = whole or len(self._readings_of) + len(prints) > MOST_PRINTS
        self._kept[number] = _Kept(replace(reading, number=number), self._clock(), whole)
        if not whole:
            for text in prints:
                self._readings_of[text] = (*self._readings_of.get(text, ()), number)
        if len(self._kept) > MOST_READINGS:
            self._merge_oldest()

    async def remove(self, labels: Collection[str]) -> None:
        """As in SharedLabels."""
        for number, kept in list(self._kept.items()):
            left = tuple(label for label in kept.reading.labels if label not in labels)
            if left:
                kept.reading = replace(kept.reading, labels=left)
            else:
                del self._kept[number]

    async def clear(self, cleared: ClearedFlow) -> None:
        """As in SharedLabels."""
        if len(self._cleared) < _MOST_CLEARED:
            self._cleared.append(cleared)

    def _forget_old(self) -> None:
        """The time is over for some."""
        now = self._clock()
        for number, kept in list(self._kept.items()):
            if kept.reading.seconds and now - kept.since >= kept.reading.seconds:
                del self._kept[number]

    def _forget_prints(self) -> None:
        """Forget the prints of readings that are not kept any more, or that any text carries."""
        needed = {number for number, kept in self._kept.items() if not kept.whole}
        left = {text: tuple(needed.intersection(numbers)) for text, numbers in self._readings_of.items()}
        self._readings_of = {text: numbers for text, numbers in left.items() if numbers}

    def _merge_oldest(self) -> None:
        """Make one reading of the oldest one and the next one with the same labels, or else with the next one."""
        (number, oldest), *others = self._kept.items()
        same = [other for _, other in others if other.reading.labels == oldest.reading.labels]
        newer = same[0] if same else others[0][1]
        seconds = 0.0
        if oldest.reading.seconds and newer.reading.seconds:
            seconds = max(oldest.reading.seconds + oldest.since - newer.since, newer.reading.seconds)
        labels = tuple(dict.fromkeys((*oldest.reading.labels, *newer.reading.labels)))
        del self._kept[number], self._kept[newer.reading.number]
        self._last += 1
        server = newer.reading.server if newer.reading.server == oldest.reading.server else SEVERAL_SERVERS
        merged = replace(
            newer.reading, labels=labels, server=server, place="", seconds=seconds, call="", number=self._last
        )
        self._kept = {self._last: _Kept(merged, newer.since, whole=True), **self._kept}
