"""Which calls a page shows: by server, tool, agent and decision, and by a word anywhere in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import urlencode

from msgspec import Raw, Struct

from ..audit.records import CallRecord

DECISIONS: Final = {
    "": "any",
    "allowed": "allowed",
    "refused": "refused",
    "asked": "asked a person",
    "rewritten": "rewritten",
    "failed": "failed",
}
"""The values of the filter by decision, each with its name for people."""

NAMES: Final = ("server", "tool", "agent", "decision", "text")


class CallFacts(Struct, frozen=True):
    """What a filter looks at."""

    server: str
    tool: str
    agent: str
    decision: str = ""
    """As in the audit; empty: not decided yet."""
    refused: bool = False
    rewritten: bool = False
    failed: bool = False


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

    def matches(self, facts: CallFacts, texts: Iterable[str]) -> bool:
        """True if a call is to be shown; `texts` are where a word is looked for."""
        if not (_fits(self.server, facts.server) and _fits(self.tool, facts.tool) and _fits(self.agent, facts.agent)):
            return False
        if self.decision and not _decided(self.decision, facts):
            return False
        word = self.text.casefold()
        return not word or any(word in text.casefold() for text in texts)

    def matches_record(self, record: CallRecord) -> bool:
        """As `matches`, for a record of the audit."""
        if self == ALL:
            return True
        facts = CallFacts(
            record.server,
            record.tool,
            record.agent,
            record.decision,
            record.result == "refused",
            "arguments" in record.changed,
            record.failed,
        )
        return self.matches(facts, _texts(record) if self.text else ())

    def matches_in_flight(self, server: str, tool: str, agent: str, arguments: Raw) -> bool:
        """As `matches`, for a call that is not decided yet."""
        if self == ALL:
            return True
        facts = CallFacts(server, tool, agent)
        return self.matches(facts, (tool, server, bytes(arguments).decode(errors="replace")) if self.text else ())


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


def _decided(wanted: str, facts: CallFacts) -> bool:
    match wanted:
        case "allowed":
            return facts.decision.endswith("allow")
        case "refused":
            return facts.decision.endswith("deny") or facts.refused
        case "asked":
            return facts.decision.startswith("asked")
        case "rewritten":
            return facts.rewritten
        case _:
            return facts.failed
