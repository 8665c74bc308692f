"""Replays recorded calls through a configuration, within bounds of number and time. Hooks run for real.

Only code that the command line of the console names runs: a page chooses one of its configurations, and may add rules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

import anyio
from msgspec import Struct

from ..audit.records import BadLine, CallRecord, Entry
from ..config.load import Loaded
from ..trial.replay import Difference, Replay
from . import history
from .pages.replay import Replayed

MOST_CALLS: Final = 2000
"""Calls in one replay: at 30 ms for a hook that is one minute."""

_SECONDS: Final = 120.0  # until a replay is ended: a person waits for it
_MOST_SHOWN: Final = 100  # differences on one page


class Recorded(Struct, frozen=True):
    """The newest calls of a period."""

    entries: tuple[Entry, ...]
    """The oldest first, with the lines between them that are no records."""
    left_out: bool
    """There are older ones in the period."""


def newest(path: str, query: history.Query, count: int) -> Recorded:
    """The newest matching calls of an audit, at most so many. Raises UserError."""
    kept: deque[Entry] = deque(maxlen=count + 1)
    for one in history.entries(path, query):
        if isinstance(one, CallRecord | BadLine):
            kept.append(one)
    left_out = len(kept) > count
    return Recorded(tuple(kept)[-count:], left_out)


async def replay(loaded: Loaded, recorded: Recorded, environ: Mapping[str, str], cwd: str) -> Replayed:
    """Replay the calls, one after another. On cancel the hooks are ended. Raises UserError."""
    async with Replay(loaded, environ, cwd) as running:
        found = Replayed(running.tally, [], left_out=recorded.left_out)
        with anyio.move_on_after(_SECONDS) as scope:
            async for one in running.over(recorded.entries):
                if isinstance(one, Difference):
                    if len(found.differences) < _MOST_SHOWN:
                        found.differences.append(one)
                    else:
                        found.more += 1
        found.unfinished = scope.cancelled_caught
    return found
