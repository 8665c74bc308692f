"""Calls, refusals and the time of hooks over a period, in parts of equal length, in one pass and bounded memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import msgspec

from ..records import CallRecord, HookRun
from .statistics import Statistics

if TYPE_CHECKING:
    from datetime import datetime


PARTS: Final = 48
"""Parts of a period: half an hour each for one day, and as many bars as a narrow screen can show."""

_STEP: Final = 1.2  # two times of hooks that differ by less than this factor are counted as the same
_CLASSES: Final = 80  # from 0.1 ms to some days


class Part(msgspec.Struct):
    """What happened in one part of the period."""

    calls: int = 0
    refused: int = 0
    failed: int = 0
    """Results `error`, `lost` and `cancelled`."""
    hook_runs: int = 0
    hook_ms: float = 0.0
    longest: float = 0.0
    classes: list[int] = msgspec.field(default_factory=list)
    """How many hooks took how long: by powers of `_STEP` from 0.1 ms on. Empty without hooks."""

    def quantile(self, share: float) -> float:
        """Milliseconds that this share of the hooks did not exceed, to about a tenth; 0 without hooks."""
        wanted, seen = self.hook_runs * share, 0
        for number, count in enumerate(self.classes):
            seen += count
            if count and seen >= wanted:
                return float(min(0.1 * _STEP ** (number + 0.5), self.longest))
        return 0.0

    def add_run(self, run: HookRun) -> None:
        """Count a hook's run."""
        self.hook_runs += 1
        self.hook_ms += run.ms
        self.longest = max(self.longest, run.ms)
        self.classes = self.classes or [0] * _CLASSES
        number = int(math.log(run.ms / 0.1, _STEP)) if run.ms > 0.1 else 0
        self.classes[min(number, _CLASSES - 1)] += 1


class OverTime:
    """Calls between two times."""

    def __init__(self, since: datetime, until: datetime) -> None:
        self.since, self.until = since, until
        self.parts = [Part() for _ in range(PARTS)]
        self.sums = Statistics()
        self._seconds = max((until - since).total_seconds() / PARTS, 1e-3)

    def start_of(self, number: int) -> datetime:
        """When a part begins; that of PARTS is the end."""
        return self.since + (self.until - self.since) * number / PARTS

    def add(self, call: CallRecord) -> None:
        """Count a call, unless it was at another time."""
        at = call.at
        if at is None or not self.since <= at <= self.until:
            return
        part = self.parts[min(int((at - self.since).total_seconds() / self._seconds), PARTS - 1)]
        part.calls += 1
        part.refused += call.result == "refused"
        part.failed += call.result in ("error", "lost", "cancelled")
        for run in call.hooks:
            part.add_run(run)
        self.sums.add((call,))
