"""Trae's hook files: the events at the top or below `hooks`, addresses, entries that are left out, recognition."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event
from tests.dialects.calls import inputs, read, recognised

COMMAND: Final = {"type": "command", "command": "./guard.sh"}
GROUP: Final = [{"matcher": "RunCommand", "loop_limit": 5, "hooks": [COMMAND]}]


@pytest.mark.parametrize(
    "content",
    [{"version": 1, "hooks": {"PreToolUse": GROUP}}, {"hooks": {"PreToolUse": GROUP}}, {"PreToolUse": GROUP}],
)
def test_events_are_below_hooks_or_at_the_top(content: dict[str, object]) -> None:
    found = read("trae", content)
    assert [(hook.event, hook.fails_closed) for hook in found.hooks] == [(Event.PRE_TOOL_USE, True)]
    assert found.notes == ()


def test_an_entry_may_call_an_address() -> None:
    entry = {"type": "http", "url": "http://localhost:4100/hook", "timeout": 10}
    (hook,) = read("trae", {"version": 1, "hooks": {"PreToolUse": [{"hooks": [entry]}]}}).hooks
    assert (hook.type, hook.timeout, hook.fails_closed) == ("http", 10, True)


def test_entries_without_a_group_are_left_out_and_said() -> None:
    found = read("trae", {"version": 1, "hooks": {"PreToolUse": [{"command": "./a.sh"}, *GROUP]}})
    assert len(found.hooks) == 1
    assert "PreToolUse[0] is left out" in found.notes[0]


@pytest.mark.parametrize("matcher", ["", "*", "RunCommand", "Run", "^Bash$", "Read|Bash"])
def test_a_matcher_may_name_trae_s_tools_or_claude_code_s(matcher: str) -> None:
    found = read("trae", {"version": 1, "hooks": {"PreToolUse": [{"matcher": matcher, "hooks": [COMMAND]}]}})
    seen = [one.tool_name for one in inputs(found, "run_command", {"command": "ls"})]
    assert {"RunCommand", "Bash"} & set(seen)


@pytest.mark.parametrize("folder", [".trae", ".trae-cn"])
def test_a_file_in_trae_s_folder_is_recognised(folder: str, tmp_path: Path) -> None:
    assert recognised(tmp_path / folder / "hooks.json", {"version": 1, "hooks": {"PreToolUse": GROUP}}) == "trae"
    assert recognised(tmp_path / folder / "hooks.json", {"hooks": {"PreToolUse": GROUP, "PostFileSave": []}}) == "trae"


def test_a_file_elsewhere_may_be_of_another_system(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="trae"):
        recognised(tmp_path / "guards.json", {"version": 1, "hooks": {"PreToolUse": GROUP}})
