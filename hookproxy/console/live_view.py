"""What one open page must get of the state: everything at first, then what has changed, as a stream of events.

The page asks when it is ready for more, so a slow browser gets fewer and larger changes, and nothing waits in memory.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from msgspec import Struct, field

from ..live.messages import Settled
from . import words
from .call_filter import CallFilter
from .html import part
from .state import State

if TYPE_CHECKING:
    from markupsafe import Markup

MOST_ROWS: Final = 200
"""Calls in the list of a page: the browser removes older ones."""

_MOST_IN_FLIGHT: Final = 100  # calls that are listed; all are counted
_PAUSE: Final = 0.2  # seconds between two events of a page: to a person, that is at once
_TICK: Final = 1.0  # second after which the times of calls in flight are shown anew
_SILENCE: Final = 15.0  # seconds after which an event is sent without a change: it finds pages that are gone


class PageChange(Struct, omit_defaults=True):
    """One event of the stream, as JSON. All markup is made here, with what others wrote as text."""

    first: bool = False
    """The page forgets what it shows."""
    counts: str = ""
    runs: str = ""
    in_flight: str = ""
    ended: Sequence[str] = field(default_factory=list)
    """Rows of further calls, the newest last."""
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """New approvals: key, markup, and a sentence for a notification."""
    settled: list[tuple[str, str]] = field(default_factory=list)
    """Approvals that no longer wait: key, and what became of them."""
    waiting: int = 0
    """How many approvals wait."""

    @property
    def encoded(self) -> bytes:
        """The event as JSON, on one line."""
        return msgspec.json.encode(self, enc_hook=str)  # Markup is a str


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
        return self._state.in_flight_count > 0

    def change(self) -> PageChange:
        """What has changed since the last time; the first time, everything."""
        state, first = self._state, self._number < 0
        change = PageChange(first=first, waiting=len(state.approvals))
        self._version = state.version
        change.counts = part("counts", state.counts, state.in_flight_count)
        change.runs = part("runs", list(state.runs.values()))
        newest = deque(state.in_flight(self._calls), _MOST_IN_FLIGHT)
        change.in_flight = part("in_flight", reversed(newest), time.time())
        change.ended = self._new_rows()
        self._approvals(change)
        return change

    def _new_rows(self) -> list[Markup]:
        """Rows of the newest matching calls that the page has not got yet, the newest last."""
        new = takewhile(lambda call: call.number > self._number, reversed(self._state.ended))
        matching = (call for call in new if self._calls.matches(call.record))
        rows = [part("ended", call.run, call.record) for call in islice(matching, MOST_ROWS)]
        self._number = self._state.number
        return rows[::-1]

    def _approvals(self, change: PageChange) -> None:
        waiting = self._state.approvals
        for key in self._shown - waiting.keys():
            change.settled.append(
                ("/".join(key), settled(self._state.settled.get(key), about_lock=key in self._state.about_lock))
            )
        for key, shown in waiting.items():
            if key not in self._shown:
                name, approval = "/".join(key), shown.approval
                markup = part("approval", name, shown.run, approval, self._state.agent_of(shown), self._token)
                change.asked.append((name, markup, f"{approval.tool} of {approval.server} waits for your approval"))
        self._shown = set(waiting)


def settled(approval: Settled | None, *, about_lock: bool = False) -> str:
    """What became of an approval, in a sentence."""
    sentences = words.SETTLED_ABOUT_LOCK if about_lock else words.SETTLED
    if approval is None:
        return sentences["withdrawn"]
    return f"{sentences[approval.action]}{f' by {approval.by}' if approval.by else ''}"


class ChangeStreams:
    """The streams of all pages that are open. They end with the console."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._waiting: set[anyio.Event] = set()  # one for each stream that waits for a change
        self._has_ended = False

    def close(self) -> None:
        """End all streams."""
        self._has_ended = True
        for changed in self._waiting:
            changed.set()

    async def events(self, view: LiveView) -> AsyncIterator[bytes]:
        """The events of one page."""
        while not self._has_ended:
            yield b"data: " + view.change().encoded + b"\n\n"
            await anyio.sleep(_PAUSE)
            if view.is_current and not self._has_ended:
                await self._next_change(_TICK if view.has_calls_in_flight else _SILENCE)

    async def _next_change(self, most: float) -> None:
        """Wait for a change of the state, at most so many seconds."""
        changed = anyio.Event()
        end = self._state.listen(changed.set)
        self._waiting.add(changed)
        try:
            with anyio.move_on_after(most):
                await changed.wait()
        finally:
            end()
            self._waiting.remove(changed)
