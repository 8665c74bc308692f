"""Comparing two configurations: which recorded calls they are asked about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hookproxy.audit.records import read
from hookproxy.trial import compare


def record(tool: str, arguments: str = "{}", **others: object) -> str:
    members = {"v": 1, "time": "2026-11-20T10:00:00.000Z", "session": "s", "server": "mail", "tool": tool, "id": 1}
    rest = {"hooks": [], "decision": "allow", "result": "ok", "ms": 1, "hook_ms": 0, **others}
    return json.dumps({**members, "arguments": json.loads(arguments), **rest})


def asked(lines: list[str], folder: Path) -> list[tuple[str, bytes]]:
    path = folder / "audit.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return [(question.call.tool, question.call.arguments) for question in compare.recorded(read(str(path)), "audit")]


def test_a_call_that_was_recorded_often_is_asked_about_once(tmp_path: Path) -> None:
    lines = [record("a", '{"x":1}'), record("b"), record("a", '{"x": 1}'), record("a", '{"x":2}')]
    assert asked(lines, tmp_path) == [("b", b"{}"), ("a", b'{"x": 1}'), ("a", b'{"x": 2}')]


def test_calls_without_arguments_and_those_of_a_rate_limit_are_left_out(tmp_path: Path) -> None:
    digest = record("a").replace('"arguments": {}', '"arguments_sha256": "00"')
    assert asked([digest, record("b", by="limits[0]", decision="deny"), "not a record", record("c")], tmp_path) == [
        ("c", b"{}")
    ]


def test_only_the_last_ones_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "MOST_RECORDED", 2)
    assert [tool for tool, _ in asked([record(name) for name in "abc"], tmp_path)] == ["b", "c"]
