"""The log of refusals: who floods the gateway with requests that it refuses does not fill its log as well.

Of each address and reason there is one line in ten seconds. How many more there were is said after that time.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final

import anyio
from msgspec import Struct

from ..model.counts import counted
from ..session.change_event import ChangeEvent

SECONDS: Final = 10.0
"""From the first refusal to the line that says how many have followed."""

_MOST: Final = 1_000
"""Addresses and reasons that are kept apart: 200 KB. More in ten seconds are a flood from many networks, of which the
sum says enough."""

_OTHERS: Final = "other addresses", ""


class _Seen(Struct):
    """What was refused since the line about it."""

    text: str
    since: float
    more: int = 0


class RefusalLog:
    """Reports refusals, and counts those that are not reported."""

    def __init__(self, report: Callable[[str], None], clock: Callable[[], float] = monotonic) -> None:
        self._report = report
        self._clock = clock
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._changes = ChangeEvent()

    def note(self, who: str, reason: str, text: str = "") -> None:
        """`who` was refused for a reason. `text` is the line, and may name more than the reason. Default: both."""
        line = text or f"a request from {who} was refused: {reason}"
        key = who, reason
        if (seen := self._seen.get(key)) is None and len(self._seen) >= _MOST:
            key, line = _OTHERS, "requests from many addresses were refused: each is counted, and not reported"
            seen = self._seen.get(key)
        if seen is not None:
            seen.more += 1
            return
        self._seen[key] = _Seen(line, self._clock())
        self._report(line)
        self._changes.notify()

    def report_counts(self) -> None:
        """Report how many more there were, of all whose ten seconds are over."""
        now = self._clock()
        for key, seen in list(self._seen.items()):
            if now - seen.since < SECONDS:
                continue
            del self._seen[key]
            if seen.more:
                self._report(f"{seen.text} ({counted(seen.more, 'more time')} in {round(now - seen.since)} seconds)")

    async def keep_reporting(self) -> None:
        """Report counts until it is cancelled. While nothing is refused, nothing wakes up."""
        while True:
            await self._changes.until(lambda: bool(self._seen))
            await anyio.sleep(SECONDS)
            self.report_counts()
