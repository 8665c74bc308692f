"""Records as rows for people: legible at 80 columns, and nothing in them that a terminal obeys."""

from __future__ import annotations

import msgspec
import pytest
from rich.cells import cell_len

from hookproxy.audit.records import CallRecord, Entry, HookRun, NoteRecord
from hookproxy.audit.view import table
from hookproxy.audit.view.table import Screen

PLAIN = Screen(0, "utf-8", lambda text, _style: text)
NARROW = Screen(80, "utf-8", lambda text, _style: text)
OWN = ("me", "here")
EVIL = "\x1b]0;owned\x07\r\n\x9b2J\u202e\u2028"


def rows(entry: Entry, screen: Screen = PLAIN) -> list[str]:
    return list(table.rows(entry, screen, OWN))


def call(**members: object) -> CallRecord:
    return msgspec.structs.replace(CallRecord(tool="write", server="files", decision="allow", result="ok"), **members)


def test_a_row_has_the_time_the_decision_the_result_and_the_tool() -> None:
    (row,) = rows(call(time="2026-11-01T10:00:00+00:00", ms=12.6))
    assert row[:10] == "2026-11-01"
    assert row.split()[2:] == ["allow", "ok", "13", "files/write"]
    assert table.header(PLAIN).index("TOOL") == row.index("files")


def test_below_a_row_are_its_arguments_and_the_verdicts_of_its_hooks() -> None:
    hook_runs = (
        HookRun(command="guard.sh", verdict="deny", reason="no"),
        HookRun(command="quiet.sh", verdict="none"),
        HookRun(command="lint.sh", verdict="comment", feedback=("a", "b")),
    )
    got = rows(
        call(arguments=msgspec.Raw(b'{"a":1}'), rewritten=msgspec.Raw(b'{"a":2}'), hooks=hook_runs, reason="no")
    )[1:]
    assert [row.strip() for row in got] == [
        '{"a":1}',
        'ran with {"a":2}',
        "deny: guard.sh: no",
        "comment: lint.sh: a b",
    ]


def test_a_reason_that_no_hook_gave_has_its_own_line() -> None:
    assert rows(call(reason="a rule"))[1:] == ["    a rule"]
    assert rows(call(reason="too many", by="limits[0]"))[1:] == ["    limits[0]: too many"]


def test_other_writers_are_named() -> None:
    assert rows(call(user="me", host="here")) == rows(call())
    assert rows(call(user="eve", host="there", agent="Lean 1"))[1:] == ["    eve on there, Lean 1"]


@pytest.mark.parametrize("screen", [PLAIN, NARROW])
def test_no_text_of_a_record_reaches_the_terminal_raw(screen: Screen) -> None:
    run = HookRun(command=EVIL, verdict=EVIL, reason=EVIL, messages=(EVIL,), feedback=(EVIL,))
    evil = call(
        **dict.fromkeys(("tool", "server", "time", "decision", "result", "reason", "user", "host", "agent"), EVIL),
        hooks=(run,),
        arguments=msgspec.Raw(b'{"a":"' + EVIL.encode() + b'"}'),
    )
    for row in (*rows(evil, screen), *rows(NoteRecord(note=EVIL, server=EVIL, time=EVIL), screen)):
        assert row.isprintable(), row


def test_rows_fit_a_terminal() -> None:
    wide = "漢字" * 100
    long = call(tool=wide, reason=wide, arguments=msgspec.Raw(f'"{wide}"'.encode()), decision=wide, ms=1e300)
    for row in (*rows(long, NARROW), *rows(NoteRecord(note=wide), NARROW)):
        assert cell_len(row) <= 80


def test_without_a_width_rows_are_cut_only_at_the_general_limit() -> None:
    row = rows(call(reason="x" * 5000))[1]
    assert row == f"    {'x' * 2000}..."


def test_characters_that_a_terminal_cannot_show_are_escaped() -> None:
    (row,) = rows(call(tool="é"), Screen(80, "ascii", lambda text, _style: text))
    assert row.endswith("files/\\xe9")


def test_times_at_the_ends_of_the_calendar_are_shown_as_they_are() -> None:
    for time in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        assert len(rows(call(time=time))[0]) > 20
