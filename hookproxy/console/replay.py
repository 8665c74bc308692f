"""Replays recorded calls through a configuration, within bounds of number and time. Hooks run for real.

Only code that the command line of the console names runs: a page chooses one of its configurations, and may add rules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

import anyio
from msgspec import Struct, field

from ..audit.records import BadLine, CallRecord, Entry
from ..config.load import Loaded
from ..trial.replay import Difference, Replay, Tally
from . import history

MOST_CALLS: Final = 2000
"""Calls in one replay: at 30 ms for a hook that is one minute."""

_SECONDS: Final = 120.0  # until a replay is ended: a person waits for it
_MOST_SHOWN: Final = 100  # differences on one page


class TypedReplay(Struct, frozen=True):
    """What was typed into the form."""

    view: history.View
    configuration: int = 0
    """The number of the configuration in the list."""
    rules: str = ""
    newest: int = 200


class Recorded(Struct, frozen=True):
    """The newest calls of a period."""

    entries: tuple[Entry, ...]
    """The oldest first, with the lines between them that are not records."""
    left_out: bool
    """There are older ones in the period."""


class Replayed(Struct):
    """What a replay has found."""

    tally: Tally
    left_out: bool
    """There are older calls in the period."""
    differences: list[Difference] = field(default_factory=list)
    more: int = 0
    """Differences beyond those that are shown."""
    unfinished: bool = False
    """The time for it was over."""


def newest(path: str, query: history.Query, count: int) -> Recorded:
    """The newest matching calls of an audit, at most so many. Raises UserError."""
    kept: deque[Entry] = deque(maxlen=count + 1)
    kept.extend(entry for entry in history.entries(path, query) if isinstance(entry, CallRecord | BadLine))
    return Recorded(tuple(kept)[-count:], len(kept) > count)


async def replay(loaded: Loaded, recorded: Recorded, environ: Mapping[str, str], cwd: str) -> Replayed:
    """Replay the calls, one after another. On cancel the hooks are ended. Raises UserError."""
    async with Replay(loaded, environ, cwd) as running:
        replayed = Replayed(running.tally, recorded.left_out)
        with anyio.move_on_after(_SECONDS) as scope:
            async for result in running.over(recorded.entries):
                if not isinstance(result, Difference):
                    continue
                if len(replayed.differences) < _MOST_SHOWN:
                    replayed.differences.append(result)
                else:
                    replayed.more += 1
        replayed.unfinished = scope.cancelled_caught
    return replayed
