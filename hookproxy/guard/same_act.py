"""An act that reaches the guard by several entries is judged once: the others get what the first one gets.

VS Code and Copilot CLI read the same folder, Cursor also reads Claude's file, a project's file may repeat a person's.
What must hold: nothing is taken for another act that was not judged with the same arguments (law 1). Acts that have an
id of their own are the same if agent, session, event, id and document are. Without an id, only another entry's event
may be the same act, and only for as long as entries of one event run beside each other. Agents whose ids are counters
use one again: as soon as the call with an id has gone on to its next event, the event before is over.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final

import anyio
from msgspec import Struct, field

from ..dialects.agent_side import HookOutput

_SECONDS: Final = 2.0  # an agent starts the entries of one event at the same time, or one after another
_MOST: Final = 1024  # acts that are remembered: those of two seconds, of agents that are as fast as hooks can be

Key = tuple[str, str, str, str, bytes]
"""Agent, session, event, the act's id or "", and a digest of its arguments."""


class _Act(Struct):
    """An act that is judged, or was a moment ago."""

    entries: set[str]
    """The entries by which it has come."""
    at: float
    judged: anyio.Event = field(default_factory=anyio.Event)
    output: HookOutput | None = None
    """None: it is being judged, or judging it was cancelled."""


class SameActs:
    """The acts of the last moments."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """`clock` returns seconds and never goes back."""
        self._clock = clock
        self._acts: OrderedDict[Key, _Act] = OrderedDict()
        self._newest: OrderedDict[tuple[str, str, str], Key] = OrderedDict()  # of each id

    async def judged(self, key: Key, entry: str, judge: Callable[[], Awaitable[HookOutput]]) -> HookOutput:
        """The output of `judge`, or of the same act by another entry. On cancel, others judge it anew."""
        self._forget()
        act = self._acts.get(key)
        while act is not None and (key[3] or entry not in act.entries):
            act.entries.add(entry)
            await act.judged.wait()
            if act.output is not None:
                return act.output
            act = self._acts.get(key)
        self._go_on(key)
        self._acts[key] = act = _Act({entry}, self._clock())
        self._acts.move_to_end(key)
        try:
            act.output = await judge()
            return act.output
        finally:
            if act.output is None and self._acts.get(key) is act:
                del self._acts[key]
            act.at = self._clock()
            act.judged.set()

    def _go_on(self, key: Key) -> None:
        """Forget the event before of the call with this id."""
        agent, session, event, call, _ = key
        if not call:
            return
        before = self._newest.pop((agent, session, call), None)
        if before is not None and before[2] != event:
            self._acts.pop(before, None)
        self._newest[agent, session, call] = key
        if len(self._newest) > _MOST:
            self._newest.popitem(last=False)

    def _forget(self) -> None:
        """Forget acts that were judged long ago, and the oldest of too many."""
        now = self._clock()
        while self._acts:
            key, act = next(iter(self._acts.items()))
            if not act.judged.is_set() and len(self._acts) <= _MOST:
                return
            if act.judged.is_set() and now - act.at < _SECONDS and len(self._acts) <= _MOST:
                return
            del self._acts[key]
