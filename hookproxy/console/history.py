"""What the audit says: pages of calls from the newest on, one call, sums over a period, and exports.

All of it reads files and takes time: it is called in a worker thread.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from time import monotonic
from typing import Final
from urllib.parse import urlencode

from msgspec import Struct

from ..audit.records import BadLine, CallRecord, Entry, Line, NoteRecord, entry, joined
from ..audit.view import files
from ..audit.view.from_end import Place, lines_since, newest_first
from ..audit.view.statistics import OverTime
from .call_filter import ALL, CallFilter
from .mistakes import as_mistakes

PAGE: Final = 100
"""Calls on one page."""

PERIODS: Final = {"1h": "1 hour", "24h": "1 day", "7d": "7 days", "30d": "30 days", "all": "all"}
"""Periods up to now that one click chooses."""

_SECONDS: Final = 0.5  # how long a page may search for calls that match: then it offers to search on
_MOST_SEARCHED: Final = 2_000_000  # lines that one call is searched in; some gigabytes
_HEAD_BYTES: Final = 4096  # of a line: its call's id stands near its beginning
_EXPORT_BYTES: Final = 64 * 1024  # that are written at a time
_DEFAULT_PERIOD: Final = "7d"
_ALL_TIME: Final = datetime.min.replace(tzinfo=UTC) + timedelta(days=2)  # with room for time zones before it


class Query(Struct, frozen=True):
    """Which calls of an audit file."""

    calls: CallFilter = ALL
    since: datetime | None = None
    until: datetime | None = None

    def matches(self, record: CallRecord) -> bool:
        """True if the call is one of them. A call without a time is at any time."""
        if (at := record.at) is not None and (
            (self.since is not None and at < self.since) or (self.until is not None and at > self.until)
        ):
            return False
        return self.calls.matches(record)


class View(Struct, frozen=True):
    """Which calls the address of a page names."""

    calls: CallFilter
    since: str = _DEFAULT_PERIOD
    """As `hookproxy audit --since`; `all`: from the first line on."""
    until: str = ""

    @staticmethod
    def from_query(query: Mapping[str, str]) -> View:
        """The view of an address."""
        since = query.get("since", "").strip()[:100] or _DEFAULT_PERIOD
        return View(CallFilter.from_query(query), since, query.get("until", "").strip()[:100])

    def address(self, **more: object) -> str:
        """The view as a part of an address."""
        until = {"until": self.until} if self.until else {}
        return urlencode({**self.calls.members, "since": self.since, **until, **more})

    def over(self, period: str) -> View:
        """The same calls, but of this period up to now."""
        return View(self.calls, period)

    def query(self) -> Query:
        """What to look for now. Raises Mistake for times that cannot be read."""
        now = files.now()
        with as_mistakes():
            since = None if self.since == "all" else files.since(self.since, now)
            return Query(self.calls, since, files.since(self.until, now) if self.until else None)


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
    page = Listing([])
    ended: set[tuple[str, str, int]] = set()
    until, time = monotonic() + seconds, ""
    for number, (place, raw) in enumerate(newest_first(path, before)):
        if len(page.rows) >= PAGE:
            break
        record = entry(Line(0, raw))
        if isinstance(record, CallRecord | NoteRecord):
            if query.since is not None and record.at is not None and record.at < query.since - timedelta(minutes=1):
                page.older = None
                return page
            time = record.time
        if _shown(record, query, ended):
            page.rows.append(Row(place, record))
        page.older = place
        if number % 256 == 255 and monotonic() > until:
            page.searched_to = time
            return page
    else:
        page.older = None
    return page


def _shown(record: Entry, query: Query, ended: set[tuple[str, str, int]]) -> bool:
    """Whether a line belongs into the table; a line that a call has begun does not, if its end is there."""
    if isinstance(record, CallRecord):
        if record.result == "begun" and record.key in ended:
            return False
        ended.add(record.key)
        return query.matches(record)
    if isinstance(record, NoteRecord):
        at = record.at
        shown = query.calls == ALL and not files.is_checkpoint(record)
        return shown and not (at and query.until and at > query.until)
    return query.calls == ALL


def find(path: str, call: str, session: str) -> list[CallRecord]:
    """All records of one call, the oldest first; none if it is not there. Raises UserError."""
    wanted, records, until = call.encode(errors="replace"), list[CallRecord](), 0.0
    for _, raw in islice(newest_first(path), _MOST_SEARCHED):
        if wanted in raw[:_HEAD_BYTES]:
            record = entry(Line(0, raw))
            if isinstance(record, CallRecord) and record.call == call and record.session == session:
                records.append(record)
                until = monotonic() + _SECONDS  # a call that ran as a task has older records
        if until and monotonic() > until:
            break
    return [record for record in joined(reversed(records)) if isinstance(record, CallRecord)]


def over_time(path: str, query: Query) -> OverTime:
    """Sums over the period, from the first call to now if it names none. Raises UserError."""
    until = query.until or datetime.now(UTC)
    since = query.since or _first_time(path, until)
    sums = OverTime(since, max(until, since + timedelta(seconds=1)))
    for record in _records(path, Query(query.calls, since, until)):
        sums.add(record)
    return sums


def _first_time(path: str, until: datetime) -> datetime:
    for record in map(entry, islice(lines_since(path, _ALL_TIME), 100)):
        if isinstance(record, CallRecord) and record.at:
            return record.at
    return until - timedelta(days=1)


def entries(path: str, query: Query) -> Iterator[Entry]:
    """The matching calls, and the lines that are none, the oldest first. Raises UserError."""
    for record in joined(map(entry, lines_since(path, query.since or _ALL_TIME))):
        if isinstance(record, BadLine) or (isinstance(record, CallRecord) and query.matches(record)):
            yield record


def _records(path: str, query: Query) -> Iterator[CallRecord]:
    return (record for record in entries(path, query) if isinstance(record, CallRecord))


# --- exports ---

_COLUMNS: Final = (
    *("time", "server", "tool", "agent", "decision", "result", "by", "cause", "reason", "ms", "hook_ms"),
    *("arguments", "rewritten", "session", "call", "user", "host"),
)
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a formula begins with in a spreadsheet, also in full width: such a program runs it."""


def export_lines(path: str, query: Query) -> Iterator[bytes]:
    """The lines of the matching calls as they are in the audit, in pieces. Raises UserError."""
    piece = bytearray()
    for line in lines_since(path, query.since or _ALL_TIME):
        record = entry(line)
        if isinstance(record, CallRecord) and query.matches(record):
            piece += line.raw + b"\n"
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
