"""Reports to people what texts of a server hide, after the agent has them: nothing waits for it.

Each text is looked at once. With `hidden_text = "withhold"` nothing is left to report: `lock_comparison` has withheld
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Final

import anyio.lowlevel

from ..jsonrpc import raw_json
from ..lock import hidden_text
from ..lock.description import Kind, entry
from ..protocol import list_edits

_SLICE_SECONDS: Final = 0.002  # of work between two turns of the event loop: calls do not notice it
_MOST_SEEN: Final = 4096  # texts that are known, by their hashes: more than any server has


class HiddenTextWatch:
    """The texts of one session's server. `foreign` are other servers' tools, by name."""

    def __init__(self, report: Callable[[str], None], foreign: Mapping[str, str]) -> None:
        """`report` gets one line about each text, once."""
        self._report = report
        self._foreign = foreign
        self._seen: set[int] = set()

    async def look_at_list(self, kind: Kind, line: bytes) -> None:
        """Look at the entries of a page. One that cannot be read has no text to look at."""
        try:
            items, _ = list_edits.items_of(line, kind.list_member)
        except raw_json.AMBIGUOUS:
            return
        end = perf_counter() + _SLICE_SECONDS
        for raw in items or ():
            self._look_at(kind, raw)
            if perf_counter() > end:
                await anyio.lowlevel.checkpoint()
                end = perf_counter() + _SLICE_SECONDS

    async def look_at_instructions(self, line: bytes) -> None:
        """Look at the instructions in a response to `initialize` or `server/discover`."""
        try:
            result = raw_json.fields(raw_json.fields(line).get("result", b"{}"))
        except ValueError:
            return
        self._report_hidden(
            hidden_text.in_instructions(raw_json.text(result.get("instructions", b"")) or "", self._foreign)
        )

    def _look_at(self, kind: Kind, raw: bytes) -> None:
        key = hash(raw)
        if key in self._seen:
            return
        if len(self._seen) >= _MOST_SEEN:
            self._seen.clear()
        self._seen.add(key)
        try:
            self._report_hidden(hidden_text.in_entry(entry(kind, raw), self._foreign))
        except raw_json.AMBIGUOUS:
            return

    def _report_hidden(self, hidden: Sequence[hidden_text.Hidden]) -> None:
        for text in hidden:
            self._report(text.line())
