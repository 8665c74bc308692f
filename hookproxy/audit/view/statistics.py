"""Calls, refusals, rewrites and times of hooks, summed up in one pass and bounded memory; `audit stats` draws them.

Statistics are sums of all calls. OverTime also has the sums of each part of a period, for the console's charts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from ...model.counts import counted
from ..records import CallRecord, Entry, HookRun, Monitor
from .table import Screen

if TYPE_CHECKING:
    from datetime import datetime

OTHERS: Final = "(others)"
"""The name under which tools or hooks beyond the limit are summed up."""

_MOST_NAMES: Final = 1000  # tools, and hooks, that are counted separately: agents choose tools' names


class ToolTotals(msgspec.Struct):
    """The calls of one tool."""

    calls: int = 0
    refused: int = 0
    rewritten: int = 0
    failed: int = 0
    """Results `error`, `lost` and `cancelled`."""

    def add(self, call: CallRecord) -> None:
        """Count a call."""
        self.calls += 1
        self.refused += call.result == "refused"
        self.rewritten += "arguments" in call.changed
        self.failed += call.failed


class HookTotals(msgspec.Struct):
    """The runs of one hook."""

    runs: int = 0
    ms: float = 0.0
    longest: float = 0.0
    refusals: int = 0
    rewrites: int = 0
    problems: int = 0

    def add(self, run: HookRun) -> None:
        """Count a run."""
        self.runs += 1
        self.ms += run.ms
        self.longest = max(self.longest, run.ms)
        self.refusals += run.outcome == "blocking"
        self.rewrites += run.verdict == "rewrite"
        self.problems += run.verdict == "trouble"


class WatchedTotals(msgspec.Struct):
    """What one rule, limit or hook would have changed that is only watched."""

    would: dict[str, int] = msgspec.field(default_factory=dict)
    """How many calls would have been `refused`, `asked about`, `rewritten` and so on."""
    calls: int = 0
    example: str = ""
    """One of the calls: its id, server and tool."""

    def add(self, call: CallRecord, watched: Monitor) -> None:
        """Count a call that would have been changed."""
        self.calls += 1
        for word in watched.would:
            self.would[word] = self.would.get(word, 0) + 1
        self.example = self.example or f"{call.call} {call.full_name}".strip()


class Statistics(msgspec.Struct):
    """Totals of all calls, of each tool and of each hook."""

    all: ToolTotals = msgspec.field(default_factory=ToolTotals)
    tools: dict[str, ToolTotals] = msgspec.field(default_factory=dict)
    hooks: dict[str, HookTotals] = msgspec.field(default_factory=dict)
    """By command and event."""
    first: str = ""
    last: str = ""
    """Times of the first and the last call, as the files spell them."""
    watched: int = 0
    """How many calls a policy was about that is only watched."""
    changed: int = 0
    """How many of these it would have changed."""
    would_be: dict[str, WatchedTotals] = msgspec.field(default_factory=dict)
    """What it would have changed, by who would have done it."""

    def add(self, entries: Iterable[Entry]) -> None:
        """Count the records."""
        for entry in entries:
            if isinstance(entry, CallRecord):
                self.add_call(entry)

    def add_call(self, call: CallRecord) -> None:
        """Count a call and its hooks."""
        self.first = self.first or call.time
        self.last = call.time
        self.all.add(call)
        self.tools.setdefault(_name_or_others(call.full_name, self.tools), ToolTotals()).add(call)
        for run in call.hooks:
            name = _name_or_others(f"{run.command} ({run.event})", self.hooks)
            self.hooks.setdefault(name, HookTotals()).add(run)
        if call.monitor is not None:
            self.watched += 1
            if call.monitor.would:
                self.changed += 1
                by = _name_or_others(call.monitor.decided_by or "the policy", self.would_be)
                self.would_be.setdefault(by, WatchedTotals()).add(call, call.monitor)


def _name_or_others(name: str, known: dict[str, ToolTotals] | dict[str, HookTotals] | dict[str, WatchedTotals]) -> str:
    return name if name in known or len(known) < _MOST_NAMES else OTHERS


# --- over a period ---

PARTS: Final = 48
"""Parts of a period: half an hour each for one day, and as many bars as a narrow screen can show."""

_STEP: Final = 1.2  # two times of hooks that differ by less than this factor are counted as the same
_CLASSES: Final = 80  # from 0.1 ms to some days


class Part(ToolTotals):
    """What happened in one part of the period."""

    hooks: HookTotals = msgspec.field(default_factory=HookTotals)
    classes: list[int] = msgspec.field(default_factory=lambda: [0] * _CLASSES)
    """How many hooks took how long: by powers of `_STEP` from 0.1 ms on."""

    def quantile(self, share: float) -> float:
        """Milliseconds that this share of the hooks did not exceed, to about a tenth; 0 without hooks."""
        wanted, seen = self.hooks.runs * share, 0
        for number, count in enumerate(self.classes):
            seen += count
            if count and seen >= wanted:
                return float(min(0.1 * _STEP ** (number + 0.5), self.hooks.longest))
        return 0.0

    def add_run(self, run: HookRun) -> None:
        """Count a hook's run."""
        self.hooks.add(run)
        number = int(math.log(run.ms / 0.1, _STEP)) if run.ms > 0.1 else 0
        self.classes[min(number, _CLASSES - 1)] += 1


class OverTime:
    """Calls between two times, in parts of equal length."""

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
        part.add(call)
        for run in call.hooks:
            part.add_run(run)
        self.sums.add_call(call)


# --- charts for a terminal ---

_WIDEST: Final = 1000  # columns where the output is not a screen: names of tools may be long
_WIDE_SCREEN: Final = 80  # columns: on a narrower screen a tool's name has its own line
_NAME: Final = 30  # columns of a tool's name
_TIME: Final = 19  # columns: 2026-11-21T16:50:01
_BAR: Final = 20  # columns of the longest bar
_LEAST_NAME: Final = 20  # least columns of a hook's name
_MOST_ROWS: Final = 20  # tools or hooks that are drawn; the others are only counted
_COLUMNS: Final = ("CALLS", "REFUSED", "REWRITTEN")


def charts(sums: Statistics, screen: Screen) -> Iterator[str]:
    """The lines of the charts, without line feeds."""
    if not sums.all.calls:
        yield "no calls"
        return
    totals = sums.all
    calls = counted(totals.calls, "call")
    yield f"{calls}, {totals.refused} refused, {totals.rewritten} rewritten, {totals.failed} failed or cancelled"
    yield f"from {screen.cut(sums.first[:19], _TIME)} to {screen.cut(sums.last[:19], _TIME)}"
    yield ""
    yield from _tools(sums.tools, screen)
    if sums.hooks:
        yield ""
        yield from _hooks(sums.hooks, screen)
    if sums.watched:
        yield ""
        yield from _watched(sums, screen)


def _tools(tools: dict[str, ToolTotals], screen: Screen) -> Iterator[str]:
    calls, refused, rewritten = _COLUMNS
    legend = f"{_full(screen)} forwarded {_light(screen)} refused"
    before = "  " if _narrow(screen) else f"{'TOOL':{_NAME}} "
    yield screen.paint(f"{before}{legend:{_BAR + 2}} {calls:>7} {refused:>8} {rewritten:>9}", "bold")
    ordered = sorted(tools.items(), key=lambda item: -item[1].calls)
    most = ordered[0][1].calls
    for name, totals in ordered[:_MOST_ROWS]:
        dark = _columns(totals.calls - totals.refused, most)
        light = _columns(totals.refused, most, _BAR - dark)
        bar = _full(screen) * dark + screen.paint(_light(screen) * light, "red")
        blanks = " " * (_BAR + 2 - dark - light)
        before = f"{screen.fitted(name, _NAME)} "
        if _narrow(screen):
            yield screen.cut(name, screen.width)
            before = "  "
        yield f"{before}{bar}{blanks} {totals.calls:>7} {totals.refused:>8} {totals.rewritten:>9}"
    yield from _more(len(ordered), "tool")


def _hooks(hooks: dict[str, HookTotals], screen: Screen) -> Iterator[str]:
    yield screen.paint("HOOK, by the time that calls have waited for it", "bold")
    ordered = sorted(hooks.items(), key=lambda item: -item[1].ms)
    most = max(ordered[0][1].ms, 0.001)
    for name, totals in ordered[:_MOST_ROWS]:
        counts = [(totals.refusals, "refusal"), (totals.rewrites, "rewrite"), (totals.problems, "failure")]
        effects = ", ".join(counted(number, word) for number, word in counts if number)
        width = (screen.width or 80) - len(effects) - 2
        yield f"{screen.cut(name, max(width, _LEAST_NAME))}{f'  {effects}' if effects else ''}"
        longest = _BAR // 2 if _narrow(screen) else _BAR
        bar = _full(screen) * -(-_columns(totals.ms, most) * longest // _BAR)
        times = f"{duration(totals.ms / totals.runs)} each, {duration(totals.longest)} at most"
        yield f"  {bar:{longest}} {duration(totals.ms):>8}  {counted(totals.runs, 'run')}, {times}"
    yield from _more(len(ordered), "hook")


def _watched(sums: Statistics, screen: Screen) -> Iterator[str]:
    of_calls = counted(sums.watched, "call")
    yield screen.paint(f"ONLY WATCHED: {sums.changed} of {of_calls} would have ended otherwise", "bold")
    ordered = sorted(sums.would_be.items(), key=lambda item: (-item[1].calls, item[0]))
    for name, totals in ordered[:_MOST_ROWS]:
        words = ", ".join(f"{number} {word}" for word, number in totals.would.items())
        yield screen.cut(name, screen.width or _WIDEST)
        yield screen.cut(f"  {words}, such as {totals.example}", screen.width or _WIDEST)
    yield from _more(len(ordered), "rule or hook")


def _narrow(screen: Screen) -> bool:
    return 0 < screen.width < _WIDE_SCREEN


def _more(number: int, word: str) -> Iterator[str]:
    if number > _MOST_ROWS:
        yield f"and {counted(number - _MOST_ROWS, word)} more"


def _columns(part: float, whole: float, room: int = _BAR) -> int:
    """The length of a bar in columns: at least one if the part is not zero and there is room."""
    return min(max(round(part / whole * _BAR), 1), room) if part > 0 else 0


def _full(screen: Screen) -> str:
    return screen.symbol("█", "#")


def _light(screen: Screen) -> str:
    return screen.symbol("░", "-")


def duration(ms: float) -> str:
    """Milliseconds for people."""
    if ms < 1000:
        return f"{ms:.1f} ms" if ms < 10 else f"{ms:.0f} ms"
    return f"{ms / 1000:.1f} s" if ms < 100_000 else f"{ms / 60_000:.0f} min"
