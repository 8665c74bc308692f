"""The file that hooks find at `transcript_path`: what is in it, who may read it, and that nothing of it is left."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookproxy.model.hooks import Event, EventContext, Outcome, Session
from hookproxy.session import transcript
from hookproxy.session.transcript import Transcript

CALL = EventContext(
    Event.PRE_TOOL_USE,
    Session("s", "files", "/", "/"),
    tool="read",
    tool_use_id="t1",
    arguments=b'{"path":"a"}',
    at=1.0,
)


@pytest.fixture
def reported() -> list[str]:
    return []


@pytest.fixture
def file(tmp_path: Path, reported: list[str]) -> Iterator[Transcript]:
    file = Transcript(str(tmp_path / "transcripts"), reported.append)
    yield file
    file.close()


def lines(file: Transcript) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(file.path).read_text().splitlines()]


def ended(outcome: Outcome) -> EventContext:
    return EventContext(Event.POST_TOOL_USE, CALL.session, tool="read", tool_use_id="t1", outcome=outcome)


def test_a_call_and_its_result_are_lines_as_claude_code_writes_them(file: Transcript) -> None:
    file.note_call(CALL)
    file.note_result(ended(Outcome(b'[{"type":"text","text":"x"}]', has_result=True)))
    file.note_result(ended(Outcome(error="it failed")))
    call, result, failure = lines(file)
    assert (call["type"], call["sessionId"], call["cwd"], call["parentUuid"]) == ("assistant", "s", "/", None)
    assert call["message"]["content"] == [
        {"type": "tool_use", "id": "t1", "name": "mcp__files__read", "input": {"path": "a"}}
    ]
    assert (result["type"], result["parentUuid"]) == ("user", call["uuid"])
    assert result["message"]["content"][0]["content"] == [{"type": "text", "text": "x"}]
    assert [entry["message"]["content"][0]["is_error"] for entry in (result, failure)] == [False, True]


def test_nobody_else_can_read_it_and_it_ends_with_the_session(file: Transcript) -> None:
    file.note_call(CALL)
    path = Path(file.path)
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent)] == [0o600, 0o700]
    file.close()
    assert list(path.parent.iterdir()) == []


def test_it_begins_anew_when_it_is_long(file: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "_LONGEST", 1000)
    for _ in range(10):
        file.note_call(CALL)
    assert 0 < Path(file.path).stat().st_size <= 1000
    assert lines(file)


def test_those_of_killed_runs_are_removed_and_other_files_stay(file: Transcript, tmp_path: Path) -> None:
    folder = tmp_path / "transcripts"
    folder.mkdir(mode=0o700)
    names = ("999999999-a.jsonl", f"{os.getpid()}-other.jsonl", "notes.txt", "999999999-a.txt")
    for name in names:
        (folder / name).touch()
    file.note_call(CALL)
    assert {path.name for path in folder.iterdir()} == {*names[1:], Path(file.path).name}


def test_if_it_cannot_be_written_it_is_said_once(tmp_path: Path, reported: list[str]) -> None:
    (tmp_path / "file").touch()
    file = Transcript(str(tmp_path / "file" / "transcripts"), reported.append)
    file.note_call(CALL)
    file.note_call(CALL)
    assert len(reported) == 1
    assert "hooks get no transcript" in reported[0]
