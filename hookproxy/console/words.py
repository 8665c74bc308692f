"""What decisions, results, times and sizes are called for people: on the pages, and in `hookproxy top`.

A word comes with its kind, which chooses its colour: good, bad, warn, wait, note or quiet.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from ..audit.records import CallRecord
from ..audit.view.statistics import duration
from ..live.messages import NOTHING

if TYPE_CHECKING:
    from msgspec import Raw

__all__ = ["NOTHING", "duration"]  # templates get them from here

STAGES: Final = {
    "hooks": ("in hooks", "note"),
    "approval": ("waits for a person", "wait"),
    "sent": ("at the server", "quiet"),
    "after": ("in hooks after it", "note"),
}
"""What a call in flight waits for."""

_DECISIONS: Final = {
    "allow": ("allowed", "good"),
    "asked-allow": ("approved", "good"),
    "deny": ("refused", "bad"),
    "asked-deny": ("not approved", "bad"),
    "asked": ("a person would be asked", "wait"),
    "": ("not decided", "quiet"),
}
_OUTCOMES: Final = {
    "error": ("error", "warn"),
    "cancelled": ("cancelled", "warn"),
    "lost": ("server exited", "warn"),
    "pending": ("goes on", "wait"),
    "begun": ("begun", "warn"),
}
"""Results that are shown in place of the decision."""

RESULTS: Final = {
    "sent": "forwarded; its response was not read",
    "begun": "forwarded, and its end is not recorded: hookproxy was stopped",
    "pending": "goes on in further requests",
    "lost": "the server exited before it answered",
    "ok": "the server answered",
    "error": "the server answered with an error",
    "refused": "not forwarded",
    "cancelled": "cancelled",
}
"""A result in a few words."""

_VERDICTS: Final = {
    "deny": ("denied", "bad"),
    "allow": ("allowed", "good"),
    "ask": ("wants a person asked", "wait"),
    "rewrite": ("rewrote", "note"),
    "replace": ("replaced the result", "note"),
    "comment": ("commented", "note"),
    "trouble": ("failed", "warn"),
    "none": ("no objection", "quiet"),
}


RULES: Final = {
    "deny": ("never allow", "bad"),
    "ask": ("ask a person", "wait"),
    "allow": ("allow without asking", "good"),
}
"""What a permission rule does."""

SETTLED: Final = {
    "allow": "Allowed once",
    "allow_session": "Allowed for this session",
    "allow_similar": "Allowed for this session, with calls like it",
    "deny": "Denied",
    "expired": "Nobody answered in time: it was denied",
    "withdrawn": "It no longer waits: the call or its run has ended",
}
"""What became of an approval."""

SETTLED_ABOUT_LOCK: Final = {
    **SETTLED,
    "allow": "Accepted and recorded",
    "deny": "Refused: it stays withheld",
    "expired": "Nobody answered in time: it stays withheld",
    "withdrawn": "It is not asked about any more",
}
"""What became of a question about what a server says of itself."""

CALL_HEADS: Final = ("Time", "Outcome", "Server", "Tool", "Arguments", "Took", "Agent")
_BEGINNING: Final = 160  # characters of arguments in a table


def decision(value: str) -> tuple[str, str]:
    """A decision of the audit."""
    return _DECISIONS.get(value, (value, "quiet"))


def verdict(value: str) -> tuple[str, str]:
    """A hook's verdict, as the audit spells it."""
    return _VERDICTS.get(value, (value, "quiet"))


def outcome(record: CallRecord) -> tuple[str, str]:
    """What became of a call."""
    return _OUTCOMES.get(record.result) or decision(record.decision)


def changes(record: CallRecord) -> list[str]:
    """What hooks did to a call and its result."""
    names = {"arguments": "rewritten", "result": "commented"}
    return [word for part, word in names.items() if part in record.changed]


def beginning(arguments: Raw) -> str:
    """The beginning of arguments, for a table."""
    text = spelled(memoryview(arguments)[: 5 * _BEGINNING])
    return text if len(text) <= _BEGINNING else f"{text[:_BEGINNING]}…"


def spelled(raw: Raw | memoryview) -> str:
    """JSON as its author spelled it."""
    return bytes(raw).decode(errors="replace")


def elapsed(since: float, now: float) -> str:
    """The time since then; both in seconds since 1970."""
    return duration(max(now - since, 0) * 1000)


def size(count: int) -> str:
    """Bytes for people."""
    if count < 10_000:
        return f"{count} bytes"
    return f"{count / 1000:.0f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def number(count: int, word: str) -> str:
    """A number with its noun."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def clock(at: datetime | None, form: str = "%Y-%m-%d %H:%M:%S") -> Markup:
    """A time of this machine's zone; nothing if there is none."""
    try:
        local = at.astimezone() if at else None
    except (OverflowError, ValueError):  # in the first or last year that datetime knows
        local = None
    if local is None:
        return Markup("")
    exact = local.isoformat(timespec="milliseconds")
    return Markup(f'<time datetime="{exact}">{local:{form}}</time>')


def moment(at: float) -> datetime | None:
    """A time in seconds since 1970; None if no calendar has it."""
    try:
        return datetime.fromtimestamp(at, UTC)
    except (OverflowError, ValueError, OSError):
        return None
