"""Notes of start-up get a line, and are assigned to the hook that they are about."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hookproxy.checks.report import Finding
from hookproxy.checks.startup_notes import KeyLines, concerns, event_of, finding

TEXT = """{
 "hooks": {
  "PreToolUse": [
   {"hooks": [{}]}],
  "odd name": []
 },
 "disableAllHooks": true
}
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A hook file whose name itself looks like the beginning of a note."""
    (tmp_path / "a: b.json").write_text(TEXT)
    return str(tmp_path / "a: b.json")


@pytest.mark.parametrize(
    ("note", "line", "key", "text"),
    [
        ("hooks.odd name cannot fire", 5, "hooks.odd name", "hooks.odd name cannot fire"),
        (
            "hooks.PreToolUse[0].hooks[0] does not run: x",
            4,
            "hooks.PreToolUse[0].hooks[0]",
            "hooks.PreToolUse[0].hooks[0] does not run: x",
        ),
        ("hooks.PreToolUse[0].hooks[0]: a remark: x", 4, "hooks.PreToolUse[0].hooks[0]", "a remark: x"),
        ("disableAllHooks is true", 7, "disableAllHooks", "disableAllHooks is true"),
        ("contains no hooks", None, "", "contains no hooks"),
    ],
)
def test_a_note_is_split_into_its_parts(path: str, note: str, line: int | None, key: str, text: str) -> None:
    assert finding(f"{path}: {note}", KeyLines()) == Finding(path, line, key, text)


def test_a_line_in_the_note_itself_is_used(path: str) -> None:
    assert finding(f"{path}:3: something", KeyLines()) == Finding(path, 3, "", "something")


@pytest.mark.parametrize("note", ["no file: x", "/no/such/file: x", "/no/such/file", ""])
def test_a_note_without_a_file_stays_whole(note: str) -> None:
    assert finding(note, KeyLines()) == Finding("", None, "", note)


def test_a_file_that_cannot_be_read_again_has_no_lines(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "odd.json").write_bytes(b'{"a": "\xff"}')
    for name in ("pipe.json", "odd.json", "gone.json"):
        assert KeyLines().line(str(tmp_path / name), "a") is None
    assert finding(f"{tmp_path}/pipe.json: a is odd", KeyLines()) == Finding(
        f"{tmp_path}/pipe.json", None, "", "a is odd"
    )


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("hooks.A[0].hooks[1]", True),
        ("hooks.A[0].hooks[1].timeout", True),
        ("hooks.A[0].matcher", True),
        ("hooks.A[0]", True),
        ("hooks.A", True),
        ("hooks", True),
        ("hooks.A[0].hooks[0]", False),
        ("hooks.A[0].hooks[0].timeout", False),
        ("hooks.A[0].hooks[10]", False),
        ("hooks.A[1].matcher", False),
        ("hooks.B", False),
        ("hooks.A[0].hooks[1]x", False),
        ("", False),
    ],
)
def test_a_note_concerns_the_hooks_inside_and_around_its_key(key: str, wanted: bool) -> None:
    note = Finding("/x", None, key, "text")
    assert concerns(note, "/x", "hooks.A[0].hooks[1]") is wanted
    assert not concerns(note, "/y", "hooks.A[0].hooks[1]")


@pytest.mark.parametrize(
    ("key", "event"),
    [
        ("hooks.Stop", "Stop"),
        ("hooks.Stop[0].hooks[2]", "Stop"),
        ("hooks.Stop[0].matcher", ""),
        ("hooks.Stopped", ""),
        ("hooks", ""),
        ("hooks[0]", ""),
    ],
)
def test_an_entry_belongs_to_the_event_that_its_key_names(key: str, event: str) -> None:
    assert event_of(key, ["Stop", "Start"]) == event


def test_a_key_under_its_former_name_has_its_line(tmp_path: Path) -> None:
    file = tmp_path / "hookproxy.toml"
    file.write_text('\n\non_trouble = "allow"\n[[use]]\nfile = "a"\non_trouble = "deny"\n')
    assert finding(f"{file}: on_failure is not used: x", KeyLines()).line == 3
    assert KeyLines().line(str(file), "use[0].on_failure") == 6
    assert KeyLines().line(str(file), "on_ask") is None
