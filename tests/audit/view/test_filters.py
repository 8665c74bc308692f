"""Which records somebody looks for: by tool, decision, time and session."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hookproxy.audit.records import BadLine, CallRecord, NoteRecord
from hookproxy.audit.view import files
from hookproxy.audit.view.files import Filter
from hookproxy.model.errors import UserError

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
CALL = CallRecord(
    tool="git_push", server="git", session="abc-1", decision="asked-deny", time="2026-11-20T12:00:00+00:00"
)
NOTE = NoteRecord(note="x", session="abc-1", time="2026-11-20T12:00:00+00:00")


@pytest.mark.parametrize(
    ("look", "call", "note"),
    [
        (Filter(), True, True),
        (Filter(tool="git_*"), True, False),
        (Filter(tool="git"), False, False),
        (Filter(tool="mcp__git__*"), True, False),
        (Filter(tool="GIT_*"), False, False),
        (Filter(decision="asked-deny"), True, False),
        (Filter(decision="*deny"), True, False),
        (Filter(decision="deny"), False, False),
        (Filter(session="abc"), True, True),
        (Filter(session="bc"), False, False),
        (Filter(since=NOW), False, False),
        (Filter(since=NOW - timedelta(days=1)), True, True),
        (Filter(tool="git_*", session="x"), False, False),
    ],
)
def test_a_record_fits_if_all_that_is_asked_for_does(look: Filter, call: bool, note: bool) -> None:
    assert (look.matches(CALL), look.matches(NOTE)) == (call, note)


def test_what_cannot_be_read_may_be_what_is_looked_for() -> None:
    assert Filter(tool="x", since=NOW).matches(BadLine(1, "not JSON"))
    assert Filter(since=NOW).matches(CallRecord(tool="x", time="no time"))


@pytest.mark.parametrize(
    ("text", "ago"),
    [("90s", 90), ("90m", 5400), ("2h", 7200), ("7d", 604_800), ("1w", 604_800), ("2026-11-21T11:00:00Z", 3600)],
)
def test_a_time_is_given_or_how_long_it_is_ago(text: str, ago: int) -> None:
    assert files.since(text, NOW) == NOW - timedelta(seconds=ago)


def test_a_date_is_this_machines() -> None:
    assert files.since("2026-11-01", NOW) == datetime(2026, 11, 1).astimezone()


@pytest.mark.parametrize("text", ["yesterday", "7", "h", "-2h", "2 h", "999999w", "2026-13-01", "", "٢h"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a time"):
        files.since(text, NOW)


def test_a_decision_that_no_call_can_have_is_refused() -> None:
    assert files.decision("*deny") == "*deny"
    with pytest.raises(UserError, match="there is no such decision"):
        files.decision("denied")
