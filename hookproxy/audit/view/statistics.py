"""Calls, refusals, rewrites and the time of hooks, summed up in one pass, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from ..records import CallRecord, Entry, HookRun
from .table import Screen

OTHERS: Final = "(others)"
"""Where tools or hooks are summed up for which there is no room."""

_MOST: Final = 1000  # names of each kind: agents choose those of tools


class OfTool(msgspec.Struct):
    """The calls of one tool."""

    calls: int = 0
    refused: int = 0
    rewritten: int = 0
    failed: int = 0
    """Error, lost or cancelled."""


class OfHook(msgspec.Struct):
    """The runs of one hook."""

    runs: int = 0
    ms: float = 0.0
    longest: float = 0.0
    refusals: int = 0
    rewrites: int = 0
    problems: int = 0


class Sums(msgspec.Struct):
    """What all calls come to."""

    all: OfTool = msgspec.field(default_factory=OfTool)
    tools: dict[str, OfTool] = msgspec.field(default_factory=dict)
    hooks: dict[str, OfHook] = msgspec.field(default_factory=dict)
    """By what runs, and at which event."""
    first: str = ""
    last: str = ""
    """Times of the first and the last call, as they stand in the files."""

    def add(self, entries: Iterable[Entry]) -> None:
        """Count them in."""
        for entry in entries:
            if isinstance(entry, CallRecord):
                self._add(entry)

    def _add(self, call: CallRecord) -> None:
        self.first = self.first or call.time
        self.last = call.time
        name = _room(f"{call.server}/{call.tool}", self.tools)
        for sums in (self.all, self.tools.setdefault(name, OfTool())):
            sums.calls += 1
            sums.refused += call.result == "refused"
            sums.rewritten += "arguments" in call.changed
            sums.failed += call.result in ("error", "lost", "cancelled")
        for run in call.hooks:
            self._run(run)

    def _run(self, run: HookRun) -> None:
        hook = self.hooks.setdefault(_room(f"{run.command} ({run.event})", self.hooks), OfHook())
        hook.runs += 1
        hook.ms += run.ms
        hook.longest = max(hook.longest, run.ms)
        hook.refusals += run.outcome == "blocking"
        hook.rewrites += run.verdict == "rewrite"
        hook.problems += run.verdict == "trouble"


def _room(name: str, known: dict[str, OfTool] | dict[str, OfHook]) -> str:
    return name if name in known or len(known) < _MOST else OTHERS


_WIDE: Final = 80  # columns: on fewer, a tool's name has its own line, as a hook's always has
_NAME: Final = 30  # columns of a tool's name
_TIME: Final = 19  # columns: 2026-11-21T16:50:01
_BAR: Final = 20  # columns of the longest bar
_LEAST: Final = 20  # columns of a hook's name, however much it did
_MOST_ROWS: Final = 20  # tools or hooks that are drawn: the others are few calls each, and counted
_NUMBERS: Final = ("CALLS", "REFUSED", "REWRITTEN")


def charts(sums: Sums, screen: Screen) -> Iterator[str]:
    """The lines, without their ends."""
    if not sums.all.calls:
        yield "no calls"
        return
    of = sums.all
    yield (
        f"{_count(of.calls, 'call')}, {of.refused} refused, {of.rewritten} rewritten, {of.failed} failed or cancelled"
    )
    yield f"from {screen.cut(sums.first[:19], _TIME)} to {screen.cut(sums.last[:19], _TIME)}"
    yield ""
    yield from _tools(sums.tools, screen)
    if sums.hooks:
        yield ""
        yield from _hooks(sums.hooks, screen)


def _tools(tools: dict[str, OfTool], screen: Screen) -> Iterator[str]:
    calls, refused, rewritten = _NUMBERS
    legend = f"{_full(screen)} forwarded {_light(screen)} refused"
    before = "  " if _narrow(screen) else f"{'TOOL':{_NAME}} "
    yield screen.paint(f"{before}{legend:{_BAR + 2}} {calls:>7} {refused:>8} {rewritten:>9}", "bold")
    ordered = sorted(tools.items(), key=lambda item: -item[1].calls)
    most = ordered[0][1].calls
    for name, of in ordered[:_MOST_ROWS]:
        dark = _columns(of.calls - of.refused, most)
        light = _columns(of.refused, most, _BAR - dark)
        bar = _full(screen) * dark + screen.paint(_light(screen) * light, "red")
        blanks = " " * (_BAR + 2 - dark - light)
        before = f"{screen.fitted(name, _NAME)} "
        if _narrow(screen):
            yield screen.cut(name, screen.width)
            before = "  "
        yield f"{before}{bar}{blanks} {of.calls:>7} {of.refused:>8} {of.rewritten:>9}"
    yield from _more(len(ordered), "tool")


def _hooks(hooks: dict[str, OfHook], screen: Screen) -> Iterator[str]:
    yield screen.paint("HOOK, by the time that calls have waited for it", "bold")
    ordered = sorted(hooks.items(), key=lambda item: -item[1].ms)
    most = max(ordered[0][1].ms, 0.001)
    for name, of in ordered[:_MOST_ROWS]:
        did = [(of.refusals, "refusal"), (of.rewrites, "rewrite"), (of.problems, "trouble")]
        told = ", ".join(_count(number, word) for number, word in did if number)
        width = (screen.width or 80) - len(told) - 2
        yield f"{screen.cut(name, max(width, _LEAST))}{f'  {told}' if told else ''}"
        longest = _BAR // 2 if _narrow(screen) else _BAR
        bar = _full(screen) * -(-_columns(of.ms, most) * longest // _BAR)
        times = f"{_time(of.ms / of.runs)} each, {_time(of.longest)} at most"
        yield f"  {bar:{longest}} {_time(of.ms):>8}  {_count(of.runs, 'run')}, {times}"
    yield from _more(len(ordered), "hook")


def _narrow(screen: Screen) -> bool:
    return 0 < screen.width < _WIDE


def _more(number: int, word: str) -> Iterator[str]:
    if number > _MOST_ROWS:
        yield f"and {_count(number - _MOST_ROWS, word)} more"


def _columns(part: float, whole: float, room: int = _BAR) -> int:
    """How long a bar is: what is not nothing is seen, where there is room."""
    return min(max(round(part / whole * _BAR), 1), room) if part > 0 else 0


def _full(screen: Screen) -> str:
    return screen.drawn("█", "#")


def _light(screen: Screen) -> str:
    return screen.drawn("░", "-")


def _time(ms: float) -> str:
    if ms < 1000:
        return f"{ms:.1f} ms" if ms < 10 else f"{ms:.0f} ms"
    return f"{ms / 1000:.1f} s" if ms < 100_000 else f"{ms / 60_000:.0f} min"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
