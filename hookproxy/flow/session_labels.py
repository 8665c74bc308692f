"""The labels of one session: its readings, the prints of what was read, and what a person allows.

Memory is bounded, and a bound never makes a label less (law 3): of too many prints, any text carries the reading, and
of too many readings, the oldest one and one with the same labels become one, for which a person must be asked anew.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Collection
from time import monotonic
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ..model.flow import SEVERAL_SERVERS, ClearedFlow, KnownLabels, Reading

MOST_READINGS: Final = 100  # of a session: each is compared with each call of a sink, in a microsecond
MOST_PRINTS: Final = 100_000  # of all readings, with 100 bytes each: the words of some hundred pages
_MOST_MERGED: Final = 1000  # readings that others stand for, until it is noted at their prints
_MOST_CLEARED: Final = 256  # as many as approvals are kept: beyond it a person is asked again


class _Kept(Struct):
    reading: Reading
    since: float
    """By the clock of the session."""
    whole: bool

    @property
    def ends(self) -> float:
        """When its labels end."""
        return self.since + self.reading.seconds if self.reading.seconds else math.inf


class Journal(Protocol):
    """Keeps what a session has read beyond this process. All functions raise StoreUnavailable."""

    def check(self) -> None:
        """Whatever was read is known."""

    def added(self, reading: Reading) -> None:
        """This is about to be read."""

    def removed(self, labels: Collection[str]) -> None:
        """These labels are about to be taken away."""


class KeptLabels:
    """Keeps them in this process: the functions of `policy.shared_state.SharedLabels`, and nothing waits in them."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """`clock` returns seconds and never goes back."""
        self._clock = clock
        self.journal: Journal | None = None
        """None: what is kept ends with this process. Otherwise functions raise as it does."""
        self.key: Final = os.urandom(16)
        """The key of prints."""
        self._kept: dict[int, _Kept] = {}  # by the number of the reading, the oldest first
        self._readings_of: dict[int, tuple[int, ...]] = {}  # the numbers of the readings, by a print
        self._links = 0  # how many numbers it has
        self._cleared: tuple[ClearedFlow, ...] = ()
        self._merged: dict[int, int] = {}  # the number of the reading that stands for another one now
        self._last = 0
        self._known: tuple[Reading, ...] | None = None  # None: it has changed
        self._whole = frozenset[int]()
        self._ends = math.inf  # when the first label ends

    def use_clock(self, clock: Callable[[], float]) -> None:
        """Take the time from another clock from now on, before anything is read: a trial has a time of its own."""
        self._clock = clock

    def known(self, prints: Collection[int] | None) -> KnownLabels:
        """As in SharedLabels."""
        if self.journal is not None:
            self.journal.check()
        self._forget_old()
        if self._known is None:
            self._known = tuple([kept.reading for kept in self._kept.values()])
            self._whole = frozenset([number for number, kept in self._kept.items() if kept.whole])
        if prints is None:
            return KnownLabels(self._known, frozenset(self._kept), self._cleared)
        with_prints = {number for text in prints for number in self._readings_of.get(text, ())}
        carried = self._whole.union(map(self._present, with_prints)) & self._kept.keys()
        return KnownLabels(self._known, carried, self._cleared)

    def add(self, reading: Reading, prints: Collection[int], whole: bool) -> None:
        """As in SharedLabels. What a run reports again, because it is not sure of it, is the same reading."""
        if whole and (same := self._same(reading)) is not None:
            same.whole, self._known = True, None
            return
        if self.journal is not None:
            self.journal.added(reading)
        self._forget_old()
        self._last += 1
        number = self._last
        if not whole and self._links + len(prints) > MOST_PRINTS:
            self._forget_prints()
        whole = whole or self._links + len(prints) > MOST_PRINTS
        self._kept[number] = kept = _Kept(replace(reading, number=number), self._clock(), whole)
        self._ends, self._known = min(self._ends, kept.ends), None
        if not whole:
            self._links += len(prints)
            for text in prints:
                self._readings_of[text] = (*self._readings_of.get(text, ()), number)
        if len(self._kept) > MOST_READINGS:
            self._merge_oldest()

    def remove(self, labels: Collection[str]) -> None:
        """As in SharedLabels."""
        if self.journal is not None:
            self.journal.removed(labels)
        self._known = None
        for number, kept in list(self._kept.items()):
            left = tuple(label for label in kept.reading.labels if label not in labels)
            if left:
                kept.reading = replace(kept.reading, labels=left)
            else:
                del self._kept[number]

    def clear(self, cleared: ClearedFlow) -> bool:
        """As in SharedLabels. Returns whether it is new."""
        is_new = cleared not in self._cleared and len(self._cleared) < _MOST_CLEARED
        if is_new:
            self._cleared = (*self._cleared, cleared)
        return is_new

    def revoke(self, cleared: ClearedFlow) -> None:
        """Nobody has allowed this."""
        self._cleared = tuple(known for known in self._cleared if known != cleared)

    def _same(self, reading: Reading) -> _Kept | None:
        """What is kept of it already."""
        for kept in self._kept.values():
            if kept.reading.at == reading.at and replace(kept.reading, number=reading.number) == reading:
                return kept
        return None

    def _forget_old(self) -> None:
        """The time is over for some."""
        if self._ends == math.inf or (now := self._clock()) < self._ends:
            return
        self._kept = {number: kept for number, kept in self._kept.items() if now < kept.ends}
        self._ends = min((kept.ends for kept in self._kept.values()), default=math.inf)
        self._known = None

    def _present(self, number: int) -> int:
        """The number of the reading that stands for this one now."""
        while (merged := self._merged.get(number)) is not None:
            number = merged
        return number

    def _forget_prints(self) -> None:
        """Forget the prints of readings that are not kept any more, or that any text carries."""
        needed = {number for number, kept in self._kept.items() if not kept.whole}
        left = {
            text: tuple(needed.intersection(map(self._present, numbers))) for text, numbers in self._readings_of.items()
        }
        self._readings_of = {text: numbers for text, numbers in left.items() if numbers}
        self._links = sum(map(len, self._readings_of.values()))
        self._merged.clear()

    def _merge_oldest(self) -> None:
        """Make one reading of the two oldest ones with the labels that most readings have; or else of any two."""
        (labels, count), *_ = Counter(kept.reading.labels for kept in self._kept.values()).most_common(1)
        alike = (kept for kept in self._kept.values() if count == 1 or kept.reading.labels == labels)
        oldest, newer = next(alike), next(alike)
        number = oldest.reading.number
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
        self._kept = {self._last: _Kept(merged, newer.since, oldest.whole or newer.whole), **self._kept}
        self._merged[number] = self._merged[newer.reading.number] = self._last
        if len(self._merged) > _MOST_MERGED:
            self._forget_prints()


class SessionLabels:
    """`policy.shared_state.SharedLabels` that are kept in this process, so nothing may be away."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """`clock` is as in `KeptLabels`."""
        self.kept: Final = KeptLabels(clock)

    def use_clock(self, clock: Callable[[], float]) -> None:
        """As in KeptLabels."""
        self.kept.use_clock(clock)

    async def key(self) -> bytes:
        """As in SharedLabels."""
        return self.kept.key

    async def known(self, prints: Collection[int] | None) -> KnownLabels:
        """As in SharedLabels."""
        return self.kept.known(prints)

    async def add(self, reading: Reading, prints: Collection[int], whole: bool) -> None:
        """As in SharedLabels."""
        self.kept.add(reading, prints, whole)

    async def remove(self, labels: Collection[str]) -> None:
        """As in SharedLabels."""
        self.kept.remove(labels)

    async def clear(self, cleared: ClearedFlow) -> None:
        """As in SharedLabels."""
        self.kept.clear(cleared)
