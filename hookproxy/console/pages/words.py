"""What decisions, results, times and durations are called on the pages."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from ...audit.records import CallRecord, NoteRecord
from ..html import Html, el

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
_RESULTS: Final = {
    "ok": ("ok", "quiet"),
    "error": ("error", "warn"),
    "refused": ("refused", "bad"),
    "cancelled": ("cancelled", "warn"),
    "lost": ("server exited", "warn"),
    "pending": ("goes on", "wait"),
    "sent": ("sent", "quiet"),
    "begun": ("begun", "warn"),
}
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


def badge(word: str, kind: str) -> Html:
    """A word in a box whose colour says the same."""
    return el("span", word, class_=f"badge {kind}")


def decision(value: str) -> Html:
    """A decision of the audit."""
    return badge(*_DECISIONS.get(value, (value, "quiet")))


def result(value: str) -> Html:
    """A result of the audit."""
    return badge(*_RESULTS.get(value, (value, "quiet")))


def verdict(value: str) -> Html:
    """A hook's verdict, as the audit spells it."""
    return badge(*_VERDICTS.get(value, (value, "quiet")))


def outcome_words(record: CallRecord) -> tuple[str, str]:
    """What became of a call, in one or two words, and what kind of outcome this is."""
    if record.result in ("error", "lost", "cancelled", "pending", "begun"):
        return _RESULTS[record.result]
    return _DECISIONS.get(record.decision, (record.decision, "quiet"))


def outcome(record: CallRecord) -> Html:
    """`outcome_words` in a box."""
    return badge(*outcome_words(record))


def duration(ms: float) -> str:
    """Milliseconds for people."""
    if ms < 1000:
        return f"{ms:.1f} ms" if ms < 10 else f"{ms:.0f} ms"
    return f"{ms / 1000:.1f} s" if ms < 100_000 else f"{ms / 60_000:.0f} min"


def size(count: int) -> str:
    """Bytes for people."""
    if count < 10_000:
        return f"{count} bytes"
    return f"{count / 1000:.0f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def number(count: int, word: str) -> str:
    """A number with its noun."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def clock(at: datetime | None, otherwise: str = "") -> Html:
    """A time of this machine's zone, with its day."""
    if at is None:
        return el("span", otherwise)
    try:
        local = at.astimezone()
    except (OverflowError, ValueError):  # in the first or last year that datetime knows
        return el("span", otherwise)
    return el("time", f"{local:%Y-%m-%d %H:%M:%S}", datetime=at.isoformat(timespec="milliseconds"))


def moment(at: float) -> datetime | None:
    """A time in seconds since 1970; None if it is none that a calendar has."""
    try:
        return datetime.fromtimestamp(at, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def time_of(record: CallRecord | NoteRecord) -> Html:
    """When a line of the audit was written."""
    return clock(record.at, record.time)


def code(value: str) -> Html:
    """A name as a machine spells it."""
    return el("code", value)
