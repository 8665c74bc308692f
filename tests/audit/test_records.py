"""Audit files are read whatever they hold: each line is a record, a note, or reported with its number."""

from __future__ import annotations

import io
import json
import os
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hookproxy.audit import records
from hookproxy.audit.call_record import Record
from hookproxy.audit.log import Audit
from hookproxy.audit.records import BadLine, CallRecord, Entry, Line, NoteRecord
from hookproxy.model.errors import UserError
from hookproxy.model.hooks import Ended, Event, HookResult, HookRun, HookSpec, Permission, Session, Verdict
from hookproxy.model.settings import Settings


def entry(text: str | bytes, finished: bool = True) -> Entry:
    return records.entry(Line(7, text if isinstance(text, bytes) else text.encode(), finished))


def test_what_the_audit_writes_is_read_back(tmp_path: Path) -> None:
    path = str(tmp_path / "audit.jsonl")
    audit = Audit(Settings(audit_file=path))
    spec = HookSpec("claude", "hooks.json: 0", Event.PRE_TOOL_USE, "guard", argv=("guard", "-x"))
    one = Record("session", "files", "write", b'"7"', b'{"a":1.0}', agent="Lean 1")
    one.hook_runs = [HookRun(spec, HookResult(Ended.EXITED, 2, ms=1.25), Verdict(Permission.DENY, "no"))]
    one.final, one.decision, one.result, one.reason, one.ms = b'{"a":2}', "deny", "refused", "no", 3.5
    audit.write(one)
    audit.note(Session("session", "files", "/", "/"), "dropped a response")
    audit.close()
    call, note = records.read(path)
    assert isinstance(call, CallRecord)
    assert (call.line, call.v, call.server, call.tool, call.agent) == (1, 1, "files", "write", "Lean 1")
    assert (bytes(call.id), bytes(call.arguments), bytes(call.rewritten)) == (b'"7"', b'{"a":1.0}', b'{"a":2}')
    assert (call.decision, call.result, call.reason, call.changed) == ("deny", "refused", "no", ("arguments",))
    assert [(run.source, run.event, run.verdict, run.ms) for run in call.hooks] == [
        ("hooks.json: 0", "PreToolUse", "deny", 1.25)
    ]
    assert call.at is not None
    assert call.at.tzinfo is UTC
    assert isinstance(note, NoteRecord)
    assert (note.line, note.note) == (2, "dropped a response")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("nonsense", "not JSON"),
        ('{"tool":"x"', "not JSON"),
        ("[]", "not have the form of a record"),
        ("null", "not have the form of a record"),
        ("{}", "neither a tool nor a note"),
        ('{"tool":7}', "tool"),
        ('{"tool":"x","hooks":{}}', "hooks"),
        ('{"tool":"x","hooks":[7]}', "hooks"),
        ('{"v":"one","tool":"x"}', "$.v"),
        ('{"tool":"\x00"}', "not JSON"),
        (b'{"tool":"\xff"}', "not UTF-8"),
        ("[" * 100_000, ""),
        ('{"tool":"x","arguments":' + "[" * 100_000, ""),
    ],
)
def test_a_line_that_is_not_a_record_is_reported_with_its_number(line: str | bytes, why: str) -> None:
    got = entry(line)
    assert isinstance(got, BadLine)
    assert got.line == 7
    assert why in got.why
    assert not got.torn


def test_members_of_a_newer_format_are_ignored() -> None:
    got = entry('{"v":9,"tool":"x","colour":"red","hooks":[{"verdict":"deny","mood":1}]}')
    assert isinstance(got, CallRecord)
    assert (got.v, got.tool, got.hooks[0].verdict) == (9, "x", "deny")


def test_a_line_cannot_set_its_own_number() -> None:
    got = entry('{"tool":"x","line":99}')
    assert isinstance(got, CallRecord)
    assert got.line == 7


def test_an_unfinished_last_line_is_reported_as_such() -> None:
    got = entry('{"tool":"x","argum', finished=False)
    assert got == BadLine(7, "it is unfinished: its writer was stopped, or is still writing", torn=True)
    assert isinstance(entry('{"tool":"x"}', finished=False), CallRecord), "it only lacks its end"


def test_lines_end_only_at_line_feeds() -> None:
    file = io.BytesIO('{"tool":"a\u2028b"}\r\n\n  \n{"tool":"c"}\n{"to'.encode())
    got = list(records.entries(file))
    assert [one.line for one in got] == [1, 4, 5]
    assert isinstance(got[0], CallRecord)
    assert got[0].tool == "a\u2028b"


@pytest.mark.parametrize("size", [1, 1024 * 1024 - 1, 1024 * 1024, 1024 * 1024 + 1, 3 * 1024 * 1024])
def test_a_line_may_be_longer_than_what_is_read_at_a_time(size: int) -> None:
    file = io.BytesIO(json.dumps({"tool": "x" * size}).encode() + b'\n{"tool":"y"}\n')
    assert [len(one.tool) for one in records.entries(file) if isinstance(one, CallRecord)] == [size, 1]


def test_of_an_endless_line_only_the_limit_is_kept() -> None:
    tracemalloc.start()
    try:
        with open("/dev/zero", "rb", buffering=0) as zeros:
            first = 40 * 1024 * 1024
            file = io.BufferedReader(_Some(zeros, first))  # type: ignore[type-var]  # a raw stream is one
            (line,) = records.lines(file, longest=1000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(line.raw), line.too_long, line.finished) == (1000, True, False)
    assert peak < 8 * 1024 * 1024


class _Some(io.RawIOBase):
    """The first bytes of a file."""

    def __init__(self, file: io.RawIOBase, left: int) -> None:
        self.file, self.left = file, left

    def readable(self) -> bool:
        return True

    def readinto(self, into: bytearray) -> int:  # type: ignore[override]  # a buffer, which has no type of its own
        size = min(self.left, len(into))
        self.left -= size
        into[:size] = bytes(size)
        return size


def test_after_a_line_that_is_too_long_the_next_is_read() -> None:
    got = list(records.lines(io.BytesIO(b"x" * 3000 + b"\n" + b"y" * 1000 + b"\nz\n"), longest=1000))
    assert [(line.number, len(line.raw), line.too_long) for line in got] == [
        (1, 1000, True),
        (2, 1000, False),
        (3, 1, False),
    ]
    bad_line = records.entry(got[0])
    assert isinstance(bad_line, BadLine)
    assert "too long" in bad_line.why


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "missing", "no such file"), (tmp_path, "is a folder")):
        with pytest.raises(UserError, match=why):
            list(records.read(str(path)))
    with pytest.raises(UserError, match="NUL"):
        list(records.read("a\0b"))
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UserError, match="cannot be read"):
        list(records.read(str(tmp_path / "loop")))


@pytest.mark.skipif(os.getuid() == 0, reason="root may read all")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("")
    (tmp_path / "secret").chmod(0)
    with pytest.raises(UserError, match="Permission denied"):
        list(records.read(str(tmp_path / "secret")))


def test_a_pipe_is_read_as_a_file_is() -> None:
    out, into = os.pipe()
    os.write(into, b'{"tool":"x"}\n')
    os.close(into)
    try:
        (got,) = records.read(f"/dev/fd/{out}")
    finally:
        os.close(out)
    assert isinstance(got, CallRecord)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-11-01T10:00:00.123+00:00", datetime(2026, 11, 1, 10, 0, 0, 123_000, UTC)),
        ("2026-11-01T10:00:00", datetime(2026, 11, 1, 10, tzinfo=UTC)),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("yesterday", None),
        ("", None),
    ],
)
def test_a_time_has_a_zone_or_is_invalid(text: str, at: datetime | None) -> None:
    assert records.parse_time(text) == at
