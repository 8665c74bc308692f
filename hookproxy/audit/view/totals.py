"""Calls, refusals, rewrites and the time of hooks, summed up in one pass, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ..records import CallRecord, Entry, HookRun

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
    troubles: int = 0


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
        hook.troubles += run.verdict == "trouble"


def _room(name: str, known: dict[str, OfTool] | dict[str, OfHook]) -> str:
    return name if name in known or len(known) < _MOST else OTHERS
