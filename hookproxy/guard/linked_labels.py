"""The labels of a run whose agent may have other runs and hooks: those of the session in the guard.

How it works: a run is *alone* until it reaches a guard, and keeps its labels itself. Once it has reached one, the
guard's session has them, with all that this run has read before. While that guard is away, every call carries what it
reported last and what this run has read since; a guard that was started anew gets all of it from this run. So no label
is lost, whatever happens to the guard, and none gets into another session of the agent (law 3).

A session is known by the key of its prints. Prints are of use only where they were made with that key; else the texts
that they are of may carry anything.

Other processes of this account can report to the guard that a person has cleared something, and that a hook has taken a
label away. So what the administrator requires is cleared in this run alone, and so are labels taken away (law 1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from typing import Final, Protocol

import anyio
from msgspec.structs import replace

from ..flow.session_labels import MOST_READINGS, KeptLabels
from ..model.flow import SEVERAL_SERVERS, ClearedFlow, KnownLabels, Reading
from ..policy.shared_state import StoreUnavailable
from .run_messages import LONGEST, Clear, KnownNow, LabelKey, LabelRequest, Read, Response

_MOST_PRINTS: Final = LONGEST // 24  # of 20 digits each, with room for the rest of the line
_MADE_WITH: Final[ContextVar[bytes]] = ContextVar("the key of the prints that a call makes", default=b"")
"""Each call has a task of its own, and asks for the key just before it makes prints."""


class Guard(Protocol):
    """What is asked: the guard of the person, by way of `link`."""

    connections: int
    """How often it has been reached anew."""

    @property
    def is_away(self) -> bool:
        """There is no guard now, so that `ask` would raise."""

    async def ask(self, request: LabelRequest) -> Response:
        """The response. Raises StoreUnavailable: there is no guard, or it does not answer."""


class LinkedLabels:
    """`SharedLabels`: those of the session in the guard, and this run's own while there is none."""

    def __init__(self, link: Guard) -> None:
        self._link = link
        # what one call learns of the session holds for the next one; without another one, none waits a turn of the loop
        self._asking = anyio.Lock(fast_acquire=True)
        self._own = KeptLabels()  # what the run has read while it was alone
        self._key = b""  # that of the guard's session; empty: the run is alone
        self._connection = 0  # on which the guard reported that key
        self._last = KnownLabels()  # what the guard has reported last
        self._since: list[Reading] = []  # what this run has reported to it since then
        self._waiting: list[Reading] = []  # what it has read while the guard was away
        self._removed: dict[str, int] = {}  # labels that were taken away, up to the reading with this number
        self._cleared: list[ClearedFlow] = []  # what a person allows in this run alone

    async def key(self) -> bytes:
        """As in SharedLabels; no guard is no failure, here and in what follows."""
        with suppress(StoreUnavailable):
            await self._ask(LabelKey())
        key = self._key or self._own.key
        _MADE_WITH.set(key)
        return key

    async def known(self, prints: Collection[int] | None) -> KnownLabels:
        """As in SharedLabels."""
        sent = None if prints is None or len(prints) > _MOST_PRINTS else tuple(prints)
        try:
            self._last = (await self._ask(KnownNow(sent, _MADE_WITH.get()))).known or KnownLabels()
        except StoreUnavailable:
            return self._known_without_guard(prints)
        self._since = []
        return self._for_this_run(self._last)

    async def add(self, reading: Reading, prints: Collection[int], whole: bool) -> None:
        """As in SharedLabels."""
        whole = whole or len(prints) > _MOST_PRINTS
        try:
            await self._ask(Read(reading, () if whole else tuple(prints), whole, _MADE_WITH.get()))
            _append(self._since, reading)
        except StoreUnavailable:
            if self._key:
                _append(self._waiting, reading)
            else:
                self._own.add(reading, prints, whole or not self._are_own(prints))

    async def remove(self, labels: Collection[str]) -> None:
        """As in SharedLabels, for this run alone."""
        known = await self.known(())
        last = max((reading.number for reading in known.readings), default=0)
        self._removed.update(dict.fromkeys(labels, last))
        self._own.remove(labels)
        for later in (self._since, self._waiting):
            later[:] = [left for reading in later if (left := _without(reading, labels)) is not None]

    async def clear(self, cleared: ClearedFlow) -> None:
        """As in SharedLabels; what the administrator requires, for this run alone."""
        if not cleared.managed:
            with suppress(StoreUnavailable):
                await self._ask(Clear(cleared, self._key))
                return
        if len(self._cleared) < MOST_READINGS:
            self._cleared.append(cleared)

    # --- with the guard ---

    async def _ask(self, request: LabelRequest) -> Response:
        """The response of the guard, whose session then knows what this run knows. Raises StoreUnavailable."""
        if self._link.is_away:
            raise StoreUnavailable("no guard runs")
        async with self._asking:
            await self._report_waiting()
            response = await self._link.ask(request)
            while response.label_key != self._key:
                self._begin(response.label_key)
                await self._report_waiting()
                response = await self._link.ask(request if isinstance(request, KnownNow) else LabelKey())
            return response

    def _begin(self, key: bytes) -> None:
        """Go on in the session with this key: where the agent has begun another one, without anything of the last."""
        is_other_session = bool(self._key) and self._connection == self._link.connections
        if not is_other_session:
            known = self._last if self._key else self._own.known(None)
            self._waiting = [*self._for_this_run(known).readings, *self._since, *self._waiting]
        self._key, self._connection = key, self._link.connections
        self._last, self._since, self._removed, self._cleared = KnownLabels(), [], {}, []

    async def _report_waiting(self) -> None:
        """Report to the guard what it does not know. Raises StoreUnavailable."""
        while self._key and self._waiting:
            await self._link.ask(Read(self._waiting[0], whole=True))
            _append(self._since, self._waiting.pop(0))

    # --- without ---

    def _known_without_guard(self, prints: Collection[int] | None) -> KnownLabels:
        if not self._key:
            return self._for_this_run(self._own.known(prints if prints is None or self._are_own(prints) else None))
        known = self._for_this_run(self._last)
        later = (*self._since, *self._waiting)
        readings = (*known.readings, *(replace(reading, number=-at) for at, reading in enumerate(later, 1)))
        return replace(known, readings=readings, carried=frozenset(reading.number for reading in readings))

    def _are_own(self, prints: Collection[int]) -> bool:
        """Whether prints were made with the run's own key."""
        return not prints or _MADE_WITH.get() == self._own.key

    def _for_this_run(self, known: KnownLabels) -> KnownLabels:
        """What is known, with what was taken away and cleared in this run alone."""
        readings = known.readings if not self._removed else tuple(self._left_of(known.readings))
        shared = [cleared for cleared in known.cleared if not cleared.managed]
        return KnownLabels(readings, known.carried, (*shared, *self._cleared))

    def _left_of(self, readings: Iterable[Reading]) -> Iterator[Reading]:
        """The readings without the labels that were taken away."""
        for reading in readings:
            gone = [label for label, last in self._removed.items() if reading.number <= last]
            if (left := _without(reading, gone)) is not None:
                yield left


def _without(reading: Reading, labels: Collection[str]) -> Reading | None:
    """The reading without these labels; None: it has no other one."""
    if not labels:
        return reading
    left = tuple(label for label in reading.labels if label not in labels)
    return replace(reading, labels=left) if left else None


def _append(readings: list[Reading], reading: Reading) -> None:
    """Of too many, the last two become one, which has the labels of both and comes from anywhere."""
    readings.append(reading)
    if len(readings) > MOST_READINGS:
        last, before = readings.pop(), readings.pop()
        labels = tuple(dict.fromkeys((*before.labels, *last.labels)))
        seconds = max(before.seconds, last.seconds) if before.seconds and last.seconds else 0.0
        readings.append(replace(last, labels=labels, server=SEVERAL_SERVERS, seconds=seconds))
