"""Qoder's settings: types of entries, conditions, hooks in the background, recognition."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from hookproxy.model.hooks import Event
from tests.dialects.calls import inputs, read, recognised

COMMAND: Final = {"type": "command", "command": "./guard.sh"}
GROUP: Final = [{"matcher": "Bash", "hooks": [COMMAND]}]


def test_prompts_and_powershell_are_left_out_and_the_others_run() -> None:
    entries = [{"type": "prompt", "prompt": "safe?"}, {**COMMAND, "shell": "powershell"}, COMMAND]
    found = read("qoder", {"hooks": {"PreToolUse": [{"hooks": entries}]}})
    assert [hook.event for hook in found.hooks] == [Event.PRE_TOOL_USE]
    assert len(found.notes) == 2


def test_an_entry_has_a_condition_variables_and_a_timeout_of_ten_minutes() -> None:
    entry = {**COMMAND, "if": "Bash(rm *)", "env": {"A": "b"}, "async": True}
    (hook,) = read("qoder", {"hooks": {"PreToolUse": [{"hooks": [entry], "async": False}]}}).hooks
    assert (hook.only_if, hook.env, hook.background, hook.timeout) == ("Bash(rm *)", (("A", "b"),), True, 600)


@pytest.mark.parametrize(("matcher", "matches"), [("*", True), ("Bash", True), ("Read|Bash", True), ("Bas", False)])
def test_a_matcher_is_a_name_a_list_or_an_expression(matcher: str, matches: bool) -> None:
    found = read("qoder", {"hooks": {"PreToolUse": [{"matcher": matcher, "hooks": [COMMAND]}]}})
    assert bool(inputs(found, "run_command", {"command": "ls"})) is matches


@pytest.mark.parametrize("place", [".qoder/settings.json", ".qoder/settings.local.json", ".qoder-cn/settings.json"])
def test_settings_in_qoder_s_folder_are_recognised_and_the_same_elsewhere_are_claude_s(
    place: str, tmp_path: Path
) -> None:
    assert recognised(tmp_path / place, {"hooks": {"PreToolUse": GROUP}, "model": "x"}) == "qoder"
    assert recognised(tmp_path / "settings.json", {"hooks": {"PreToolUse": GROUP}}) == "claude"


@pytest.mark.parametrize("content", [{"permissions": {"allow": ["Bash"]}}, {"//": "x", "statusLine": {"command": ""}}])
def test_settings_without_hooks_are_recognised_in_its_folder(content: object, tmp_path: Path) -> None:
    assert recognised(tmp_path / ".qoder/settings.json", content) == "qoder"
