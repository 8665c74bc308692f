"""Which calls a page shows: by server, tool, agent and decision, and by a word anywhere in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import urlencode

from msgspec import Struct

from ..audit.records import CallRecord

DECISIONS: Final = {
    "": "any",
    "allowed": "allowed",
    "refused": "refused",
    "asked": "asked a person",
    "rewritten": "rewritten",
    "failed": "failed",
    "watched": "otherwise in what is only watched",
}
"""The values of the filter by decision, each with its name for people."""

NAMES: Final = ("server", "tool", "agent", "decision", "text")


class CallFilter(Struct, frozen=True):
    """An empty member matches everything. Names are patterns if they have `*`, `?` or `[`, else parts of the name."""

    server: str = ""
    tool: str = ""
    agent: str = ""
    decision: str = ""
    """A key of DECISIONS."""
    text: str = ""
    """A part of the tool's name, the arguments, the reason; case does not count."""

    @staticmethod
    def from_query(query: Mapping[str, str]) -> CallFilter:
        """The filter that the address of a page names. Unknown decisions count as none."""
        values = {name: query.get(name, "").strip()[:1000] for name in NAMES}
        if values["decision"] not in DECISIONS:
            values["decision"] = ""
        return CallFilter(**values)

    @property
    def members(self) -> dict[str, str]:
        """The members that are set, by their names in addresses."""
        return {name: value for name in NAMES if (value := getattr(self, name))}

    @property
    def query(self) -> str:
        """The filter as a part of an address."""
        return urlencode(self.members)

    def matches(self, record: CallRecord) -> bool:
        """True if a call is to be shown; of one that is in flight, the record has what is known of it."""
        if self == ALL:
            return True
        if not (
            _fits(self.server, record.server) and _fits(self.tool, record.tool) and _fits(self.agent, record.agent)
        ):
            return False
        if self.decision and not _is_decided(self.decision, record):
            return False
        word = self.text.casefold()
        return not word or any(word in text.casefold() for text in _texts(record))


ALL: Final = CallFilter()


def _texts(record: CallRecord) -> Iterable[str]:
    yield from (record.tool, record.server, record.reason, record.by, record.call, record.agent)
    yield from (bytes(raw).decode(errors="replace") for raw in (record.arguments, record.rewritten) if raw)
    yield from (run.command for run in record.hooks)


def _fits(wanted: str, name: str) -> bool:
    if not wanted:
        return True
    if any(sign in wanted for sign in "*?["):
        return fnmatchcase(name, wanted)
    return wanted.casefold() in name.casefold()


def _is_decided(wanted: str, record: CallRecord) -> bool:
    match wanted:
        case "allowed":
            return record.decision.endswith("allow")
        case "refused":
            return record.decision.endswith("deny") or record.result == "refused"
        case "asked":
            return record.decision.startswith("asked")
        case "rewritten":
            return "arguments" in record.changed
        case "watched":
            return record.monitor is not None and bool(record.monitor.would)
        case _:
            return record.failed
