"""Devin's hook files: events at the top or below `hooks`, recognition, and what a rewrite keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event
from tests.dialects.calls import inputs, read, recognised

COMMAND: Final = {"type": "command", "command": "./guard.sh"}
GROUP: Final = [{"matcher": "exec", "hooks": [COMMAND]}]


@pytest.mark.parametrize(
    "content", [{"PreToolUse": GROUP}, {"hooks": {"PreToolUse": GROUP}}, {"hooks": {"PreToolUse": GROUP}, "model": "x"}]
)
def test_events_are_at_the_top_or_below_hooks(content: dict[str, Any]) -> None:
    found = read("devin", content)
    assert [(hook.event, hook.fails_closed) for hook in found.hooks] == [(Event.PRE_TOOL_USE, True)]
    assert found.notes == ()


def test_settings_without_hooks_have_none() -> None:
    found = read("devin", {"model": "x", "permissions": {"allow": ["exec"]}})
    assert (found.hooks, found.notes) == ((), ())


@pytest.mark.parametrize("name", ["hooks.v1.json", "config.json", "config.local.json"])
def test_a_file_in_devins_folder_is_recognised(name: str, tmp_path: Path) -> None:
    assert recognised(tmp_path / ".devin" / name, {"PreToolUse": GROUP}) == "devin"
    assert recognised(tmp_path / ".devin" / name, {"hooks": {"PreToolUse": GROUP, "OfNextYear": []}}) == "devin"


def test_a_copy_of_its_file_is_recognised_by_its_name_and_another_may_be_droids(tmp_path: Path) -> None:
    assert recognised(tmp_path / "hooks.v1.json", {"PreToolUse": GROUP}) == "devin"
    with pytest.raises(ConfigError, match="looks like hooks of devin or droid"):
        recognised(tmp_path / "guards.json", {"PreToolUse": GROUP})


def test_an_event_that_devin_does_not_have_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="BeforeTool"):
        recognised(tmp_path / ".devin/hooks.v1.json", {"BeforeTool": GROUP})


def test_a_hook_with_a_prompt_is_left_out_and_the_others_run() -> None:
    found = read("devin", {"PreToolUse": [{"hooks": [{"type": "prompt", "prompt": "is it safe?"}, COMMAND]}]})
    assert len(found.hooks) == 1
    assert "PreToolUse[0].hooks[0] is left out: type 'prompt' cannot run behind MCP" in found.notes[0]


@pytest.mark.parametrize("matcher", ["", "*", "exec", "^exec$", "^(exec|edit)$", "xec"])
def test_a_matcher_is_a_regular_expression_that_may_match_anywhere(matcher: str) -> None:
    found = read("devin", {"PreToolUse": [{"matcher": matcher, "hooks": [COMMAND]}]})
    assert "exec" in [one.tool_name for one in inputs(found, "run_command", {"command": "ls"})]
