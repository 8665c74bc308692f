"""What the audit says: pages of calls from the newest on, one call, sums over a period, and exports.

All of it reads files and takes time: it is called in a worker thread.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from time import monotonic
from typing import Final

from msgspec import Struct

from ..audit.records import BadLine, CallRecord, Entry, Line, NoteRecord, entry, joined
from ..audit.view.from_end import Place, lines_since, newest_first
from ..audit.view.over_time import OverTime
from .call_filter import CallFilter

PAGE: Final = 100
"""Calls on one page."""

_SECONDS: Final = 0.5  # how long a page may search for calls that match: then it offers to search on
_MOST_SEARCHED: Final = 2_000_000  # lines that one call is searched in; some gigabytes
_HEAD_BYTES: Final = 4096  # of a line: its call's id stands near its beginning
_EXPORT_BYTES: Final = 64 * 1024  # that are written at a time


class Query(Struct, frozen=True):
    """Which calls of an audit file."""

    calls: CallFilter = CallFilter()
    since: datetime | None = None
    until: datetime | None = None

    def matches(self, record: CallRecord) -> bool:
        """True if the call is one of them. A call without a time is at any time."""
        if (at := record.at) is not None and (
            (self.since is not None and at < self.since) or (self.until is not None and at > self.until)
        ):
            return False
        return self.calls.matches_record(record)


class Row(Struct, frozen=True):
    """One line of the table."""

    place: Place
    entry: Entry


class Listing(Struct):
    """One page of the table, the newest call first."""

    rows: list[Row]
    older: Place | None = None
    """Where the next page begins; None: there is none."""
    searched_to: str = ""
    """The time up to which lines were searched before the time for it was over; empty: it was not."""


def listing(path: str, query: Query, before: Place | None = None, seconds: float = _SECONDS) -> Listing:
    """The newest calls, or those before a place. Raises UserError if the audit cannot be read."""
    found = Listing([])
    ended: set[tuple[str, str, int]] = set()
    until, time = monotonic() + seconds, ""
    for number, (place, raw) in enumerate(newest_first(path, before)):
        if len(found.rows) >= PAGE:
            break
        one = entry(Line(0, raw))
        if isinstance(one, CallRecord | NoteRecord):
            if query.since is not None and one.at is not None and one.at < query.since - timedelta(minutes=1):
                found.older = None
                return found
            time = one.time
        if _shown(one, query, ended):
            found.rows.append(Row(place, one))
        found.older = place
        if number % 256 == 255 and monotonic() > until:
            found.searched_to = time
            return found
    else:
        found.older = None
    return found


def _shown(one: Entry, query: Query, ended: set[tuple[str, str, int]]) -> bool:
    """Whether a line belongs into the table; a line that a call has begun does not, if its end is there."""
    if isinstance(one, CallRecord):
        if one.result == "begun" and one.key in ended:
            return False
        ended.add(one.key)
        return query.matches(one)
    if isinstance(one, NoteRecord):
        at = one.at
        return query.calls == CallFilter() and not (at and query.until and at > query.until)
    return query.calls == CallFilter()


def find(path: str, call: str, session: str) -> list[CallRecord]:
    """All records of one call, the oldest first; none if it is not there. Raises UserError."""
    wanted, found, until = call.encode(errors="replace"), list[CallRecord](), 0.0
    for _, raw in islice(newest_first(path), _MOST_SEARCHED):
        if wanted in raw[:_HEAD_BYTES]:
            one = entry(Line(0, raw))
            if isinstance(one, CallRecord) and one.call == call and one.session == session:
                found.append(one)
                until = monotonic() + _SECONDS  # a call that ran as a task has older records
        if until and monotonic() > until:
            break
    return [one for one in joined(reversed(found)) if isinstance(one, CallRecord)]


def over_time(path: str, query: Query) -> OverTime:
    """Sums over the period, from the first call to now if it names none. Raises UserError."""
    until = query.until or datetime.now(UTC)
    since = query.since or _first_time(path, until)
    sums = OverTime(since, max(until, since + timedelta(seconds=1)))
    for record in _records(path, Query(query.calls, since, until)):
        sums.add(record)
    return sums


def _first_time(path: str, until: datetime) -> datetime:
    for raw in islice(lines_since(path, datetime.min.replace(tzinfo=UTC) + timedelta(days=2)), 100):
        one = entry(Line(0, raw))
        if isinstance(one, CallRecord) and one.at:
            return one.at
    return until - timedelta(days=1)


def entries(path: str, query: Query) -> Iterator[Entry]:
    """The matching calls, and the lines that are none, the oldest first. Raises UserError."""
    since = query.since or datetime.min.replace(tzinfo=UTC) + timedelta(days=2)
    read = (entry(Line(number, raw)) for number, raw in enumerate(lines_since(path, since), 1))
    return (
        one for one in joined(read) if isinstance(one, BadLine) or (isinstance(one, CallRecord) and query.matches(one))
    )


def _records(path: str, query: Query) -> Iterator[CallRecord]:
    return (one for one in entries(path, query) if isinstance(one, CallRecord))


# --- exports ---

_COLUMNS: Final = (
    *("time", "server", "tool", "agent", "decision", "result", "by", "cause", "reason", "ms", "hook_ms"),
    *("arguments", "rewritten", "session", "call", "user", "host"),
)
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a formula begins with in a spreadsheet, also in full width: such a program runs it."""


def export_lines(path: str, query: Query) -> Iterator[bytes]:
    """The lines of the matching calls as they are in the audit, in pieces. Raises UserError."""
    since = query.since or datetime.min.replace(tzinfo=UTC) + timedelta(days=2)
    piece = bytearray()
    for raw in lines_since(path, since):
        one = entry(Line(0, raw))
        if isinstance(one, CallRecord) and query.matches(one):
            piece += raw + b"\n"
            if len(piece) > _EXPORT_BYTES:
                yield bytes(piece)
                piece.clear()
    yield bytes(piece)


def export_csv(path: str, query: Query) -> Iterator[bytes]:
    """The matching calls as a table, in pieces. No cell is a formula. Raises UserError."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    for record in _records(path, query):
        writer.writerow([_cell(getattr(record, name)) for name in _COLUMNS])
        if text.tell() > _EXPORT_BYTES:
            yield text.getvalue().encode("utf-8", "backslashreplace")
            text.seek(0)
            text.truncate()
    yield text.getvalue().encode("utf-8", "backslashreplace")


def _cell(value: object) -> str | float:
    if isinstance(value, int | float):
        return value
    text = value if isinstance(value, str) else bytes(memoryview(value)).decode(errors="replace")  # type: ignore[arg-type]  # msgspec.Raw is a buffer
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text
