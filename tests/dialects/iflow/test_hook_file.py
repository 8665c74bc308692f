"""iFlow CLI's settings files: the shapes of published files, recognition, and what is told about the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.dialects.iflow import compile_matcher
from tests.dialects.calls import inputs, read, recognised


def content(event: str, matcher: str = "", **members: object) -> dict[str, Any]:
    hook = {"type": "command", "command": "python3 x.py", **members}
    return {"hooks": {event: [{"matcher": matcher, "hooks": [hook]} if matcher else {"hooks": [hook]}]}}


PUBLISHED: Final[dict[str, tuple[Any, int]]] = {
    # the page's file protection, formatter, session summary, and notification log
    "file protection": (content("PreToolUse", "Edit|MultiEdit|Write", timeout=10), 1),
    "formatter": (content("PostToolUse", "write_file", timeout=30), 2),
    "summary": (content("Stop", timeout=15), 0),
    "session": (content("SessionStart", "startup"), 1),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_shapes_of_published_files_load_without_a_warning(name: str, tmp_path: Path) -> None:
    file, hooks = PUBLISHED[name]
    assert recognised(tmp_path / ".iflow" / "settings.json", file) == "iflow"
    found = read("iflow", file)
    assert (len(found.hooks), found.notes) == (hooks, ())


def test_elsewhere_the_file_is_taken_for_claudes(tmp_path: Path) -> None:
    assert recognised(tmp_path / "settings.json", content("PreToolUse", "Edit")) == "claude"


def test_a_hook_has_the_time_that_it_needs_unless_its_entry_says_otherwise() -> None:
    assert read("iflow", content("PreToolUse")).hooks[0].timeout == 3600.0
    assert read("iflow", content("PreToolUse", timeout=10)).hooks[0].timeout == 10.0


def test_a_matcher_on_a_notifications_text_cannot_be_tried_and_is_reported() -> None:
    found = read("iflow", content("Notification", ".*permission.*"))
    assert (len(found.hooks), len(found.notes)) == (1, 1)
    assert "is ignored" in found.notes[0]


@pytest.mark.parametrize(
    ("pattern", "names", "others"),
    [
        ("", "Edit mcp__a__b", ""),
        ("*", "Edit mcp__a__b", ""),
        ("Edit", "Edit", "edit MultiEdit"),
        ("Edit|MultiEdit", "Edit MultiEdit", "edit"),
        (".*_file", "write_file", "replace"),
        ("mcp__github__.*", "mcp__github__x", "mcp__git__x"),
        ("a(b", "a(b", "ab"),
    ],
)
def test_matchers(pattern: str, names: str, others: str) -> None:
    matches = compile_matcher(pattern)
    assert [name for name in names.split() if not matches(name)] == []
    assert [name for name in others.split() if matches(name)] == []


def test_a_matcher_for_all_sees_both_names() -> None:
    hooks = read("iflow", content("PreToolUse", "*"))
    names = [one.tool_name for one in inputs(hooks, "run_command", {"command": "ls"})]
    assert names == ["mcp__files__run_command", "run_shell_command"]
