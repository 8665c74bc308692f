"""What one open page must get of the state: everything at first, then what has changed. Pure.

The page asks when it is ready for more, so a slow browser gets fewer and larger changes, and nothing waits in memory.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Final

import msgspec
from msgspec import Struct, field

from .call_filter import CallFilter
from .pages import live
from .state import State

MOST_ROWS: Final = 200
"""Calls in the list of a page: the browser removes older ones."""


class PageChange(Struct, omit_defaults=True):
    """One event of the stream, as JSON. All markup is made here, with what others wrote as text."""

    first: bool = False
    """The page forgets what it shows."""
    counts: str = ""
    runs: str = ""
    in_flight: str = ""
    ended: list[str] = field(default_factory=list)
    """Rows of further calls, the newest last."""
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """New approvals: key, markup, and a sentence for a notification."""
    settled: list[tuple[str, str]] = field(default_factory=list)
    """Approvals that wait no more: key, and what became of them."""
    waiting: int = 0
    """How many approvals wait."""

    @property
    def encoded(self) -> bytes:
        """The event as JSON, on one line."""
        return msgspec.json.encode(self, enc_hook=str)  # Html is a str


class LiveView:
    """The changes for one page with its filter."""

    def __init__(self, state: State, calls: CallFilter, token: str) -> None:
        self._state = state
        self._calls = calls
        self._token = token
        self._number = -1
        self._version = -1
        self._shown: set[tuple[str, str]] = set()

    @property
    def is_current(self) -> bool:
        """Nothing has changed since the last `change`."""
        return self._version == self._state.version

    @property
    def has_calls_in_flight(self) -> bool:
        """There are calls whose time goes on."""
        return any(run.calls for run in self._state.runs.values())

    def change(self) -> PageChange:
        """What has changed since the last time; the first time, everything."""
        state, first = self._state, self._number < 0
        change = PageChange(first=first, waiting=len(state.approvals))
        self._version = state.version
        flying = sum(len(run.calls) for run in state.runs.values())
        change.counts = live.counts(state.counts, flying)
        change.runs = live.runs(state)
        change.in_flight = live.in_flight(state, self._calls)
        change.ended = self._new_rows()
        self._approvals(change)
        return change

    def _new_rows(self) -> list[str]:
        """Rows of the newest matching calls that the page has not got yet, the newest last."""
        new = takewhile(lambda one: one.number > self._number, reversed(self._state.ended))
        rows: list[str] = []
        for one in new:
            if self._calls.matches_record(one.record):
                rows.append(live.ended(one))
                if len(rows) >= MOST_ROWS:
                    break
        self._number = self._state.number
        return rows[::-1]

    def _approvals(self, change: PageChange) -> None:
        waiting = self._state.approvals
        for key in [key for key in self._shown if key not in waiting]:
            self._shown.remove(key)
            change.settled.append((live.key(*key), live.settled(self._state.settled.get(key))))
        for key, one in waiting.items():
            if key not in self._shown:
                self._shown.add(key)
                run = self._state.runs.get(one.run)
                session = run.sessions.get(one.approval.session) if run else None
                markup = live.approval(one, session.agent if session else "", self._token)
                sentence = f"{one.approval.tool} of {one.approval.server} waits for your approval"
                change.asked.append((live.key(*key), markup, sentence))
