"""Which records somebody looks for."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Final

import msgspec

from ...model.errors import UserError
from ..records import CallRecord, Entry, NoteRecord

DECISIONS: Final = ("allow", "deny", "asked-allow", "asked-deny", "asked")
"""The words of a record's `decision`."""

_AGO: Final = re.compile(r"([0-9]{1,6})([smhdw])")
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}  # seconds
_HINT: Final = "a date (2026-11-01), a time (2026-11-01T10:30), or how long ago: 90m, 2h, 7d"


class Wanted(msgspec.Struct, frozen=True):
    """What is looked for; what is empty does not matter."""

    tool: str = ""
    """A glob pattern, tried on the tool's name and on mcp__SERVER__TOOL."""
    decision: str = ""
    """A word of DECISIONS, or a glob pattern over them."""
    since: datetime | None = None
    session: str = ""
    """How the session's id begins."""

    def fits(self, entry: Entry) -> bool:
        """True if the record is looked for; one that cannot be read may be."""
        if not isinstance(entry, CallRecord | NoteRecord):
            return True
        if self.since is not None and entry.at is not None and entry.at < self.since:
            return False
        if not entry.session.startswith(self.session):
            return False
        if isinstance(entry, NoteRecord):
            return not (self.tool or self.decision)
        names = (entry.tool, f"mcp__{entry.server}__{entry.tool}")
        if self.tool and not any(fnmatchcase(name, self.tool) for name in names):
            return False
        return not self.decision or fnmatchcase(entry.decision, self.decision)


def decision(word: str) -> str:
    """What `--decision` names. Raises UserError if no record can have it."""
    if any(fnmatchcase(each, word) for each in DECISIONS):
        return word
    raise UserError(
        f"--decision {word!r}: no call is decided so", f"one of {', '.join(DECISIONS)}; or '*deny' for both"
    )


def since(text: str, now: datetime) -> datetime:
    """The moment that `--since` names; a time without a zone is the zone's of this machine. Raises UserError."""
    try:
        if ago := _AGO.fullmatch(text):
            return now - timedelta(seconds=int(ago[1]) * _UNITS[ago[2]])
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise UserError(f"--since {text!r}: is no time", _HINT) from None


def now() -> datetime:
    """This moment."""
    return datetime.now(UTC)
