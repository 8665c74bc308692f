"""All files of an audit in order, also while they grow and rotate; and the filter for records."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hookproxy.audit.records import BadLine, CallRecord, NoteRecord
from hookproxy.audit.view import files
from hookproxy.audit.view.files import Filter, follow, read_all
from hookproxy.audit.view.verify import verify
from hookproxy.model.errors import UserError


class Over(Exception):
    """Nothing more will come."""


def followed(path: Path, *steps: Callable[[], object]) -> list[bytes]:
    """What is read if, each time that there is nothing more, the next of the steps is done."""
    left = list(steps)

    def wait() -> None:
        if not left:
            raise Over
        left.pop(0)()

    found: list[bytes] = []
    lines = follow(str(path), wait)
    with suppress(Over):
        while True:
            found.append(next(lines)[1].raw)
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as end:
        end.write(text)


def test_older_files_are_read_first(file: Path) -> None:
    for name, text in (("", b"d\n"), (".1", b"a\n"), (".2", b"b\n"), (".10", b"c\n"), (".lock", b""), (".bak", b"x\n")):
        append(Path(f"{file}{name}"), text)
    found = [(Path(name).name, line.raw) for name, line in read_all(str(file))]
    assert [raw for _, raw in found] == [b"a", b"b", b"c", b"d"]
    assert found[0][0] == "audit.jsonl.1"
    assert [line.raw for _, line in read_all(f"{file}.2")] == [b"b"]


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_device_with_the_name_of_a_rotated_file_is_not_read(file: Path, kind: str) -> None:
    file.write_bytes(b'{"previous":"%b","continues":"audit.jsonl.1","tool":"x"}\n' % (b"0" * 64))
    older = file.with_name("audit.jsonl.1")
    if kind == "pipe":
        os.mkfifo(older)
    else:
        older.symlink_to("/dev/zero")
    for read in (lambda: list(read_all(str(file))), lambda: followed(file), lambda: verify(str(file))):
        with pytest.raises(UserError, match="is not a regular file"):
            read()


def test_a_file_that_is_missing_is_an_error(file: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        list(read_all(str(file)))


def test_lines_are_followed_as_they_are_finished(file: Path) -> None:
    append(file, b"1\n")
    steps = [lambda: append(file, b"2\n3"), lambda: append(file, b"4\n"), lambda: append(file, b"unfinished")]
    assert followed(file, *steps) == [b"1", b"2", b"34"]


def test_a_file_is_waited_for(file: Path) -> None:
    assert followed(file, lambda: None, lambda: append(file, b"1\n")) == [b"1"]


def test_no_line_is_missed_through_rotation(file: Path) -> None:
    append(file, b"1\n")

    def rotate() -> None:
        append(file, b"2\n")
        file.rename(f"{file}.1")
        append(file, b"3\n")

    def rotate_often() -> None:
        for number in (2, 3, 4):
            append(file, b"%d\n" % (number + 2))
            file.rename(f"{file}.{number}")
        append(file, b"7\n")

    assert followed(file, rotate, rotate_often) == [b"1", b"2", b"3", b"4", b"5", b"6", b"7"]


def test_a_file_that_is_moved_away_or_cut_is_read_from_its_beginning(file: Path) -> None:
    append(file, b"1\n2\n")

    def move() -> None:
        file.rename(f"{file}.old")
        append(file, b"3\n")

    assert followed(file, move, lambda: file.write_bytes(b""), lambda: append(file, b"4\n")) == [b"1", b"2", b"3", b"4"]


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
def test_a_record_matches_if_each_condition_does(look: Filter, call: bool, note: bool) -> None:
    assert (look.matches(CALL), look.matches(NOTE)) == (call, note)


def test_a_bad_line_always_matches() -> None:
    assert Filter(tool="x", since=NOW).matches(BadLine(1, "not JSON"))
    assert Filter(since=NOW).matches(CallRecord(tool="x", time="no time"))


@pytest.mark.parametrize(
    ("text", "ago"),
    [("90s", 90), ("90m", 5400), ("2h", 7200), ("7d", 604_800), ("1w", 604_800), ("2026-11-21T11:00:00Z", 3600)],
)
def test_a_time_can_be_absolute_or_a_duration_ago(text: str, ago: int) -> None:
    assert files.since(text, NOW) == NOW - timedelta(seconds=ago)


def test_a_date_is_in_local_time() -> None:
    assert files.since("2026-11-01", NOW) == datetime(2026, 11, 1).astimezone()


@pytest.mark.parametrize(
    "text", ["yesterday", "7", "h", "-2h", "2 h", "999999w", "2026-13-01", "", "٢h", "0001-01-01", "9999-12-31"]
)
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a time"):
        files.since(text, NOW)


def test_a_decision_that_no_call_can_have_is_refused() -> None:
    assert files.decision("*deny") == "*deny"
    with pytest.raises(UserError, match="there is no such decision"):
        files.decision("denied")
