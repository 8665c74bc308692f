"""Antigravity's hooks.json: named sets of hooks, and the folder in which their commands run."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from hookproxy.dialects.agent_side import agent_side
from hookproxy.dialects.dialect import HookFile
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event
from tests.dialects.calls import inputs, read, recognised

COMMAND: Final = {"type": "command", "command": "./guard.sh"}
GROUP: Final = [{"matcher": "run_command", "hooks": [COMMAND]}]


def test_each_name_has_hooks_of_its_own() -> None:
    found = read("antigravity", {"a": {"PreToolUse": GROUP}, "b": {"enabled": True, "PreToolUse": GROUP}})
    assert [hook.source.partition(": ")[2] for hook in found.hooks] == [
        "a.PreToolUse[0].hooks[0]",
        "b.PreToolUse[0].hooks[0]",
    ]
    assert found.notes == found.remarks == ()


def test_a_name_that_is_switched_off_has_no_hooks() -> None:
    found = read("antigravity", {"a": {"enabled": False, "PreToolUse": GROUP}})
    assert found.hooks == ()
    assert found.remarks == ("/repo/hooks.json: a.enabled is false, so none of its hooks run",)


@pytest.mark.parametrize("odd", [0, "false", None, []])
def test_nothing_but_false_switches_hooks_off(odd: object) -> None:
    found = read("antigravity", {"a": {"enabled": odd, "PreToolUse": GROUP}})
    assert len(found.hooks) == 1
    assert found.notes == ("/repo/hooks.json: a.enabled is neither true nor false, and counts as true",)


@pytest.mark.parametrize("broken", ["x", [COMMAND], 1])
def test_a_name_without_an_object_is_left_out_and_the_others_run(broken: object) -> None:
    found = read("antigravity", {"a": broken, "b": {"PreToolUse": GROUP}})
    assert len(found.hooks) == 1
    assert "a is left out: must be an object" in found.notes[0]


def test_events_of_the_agents_turns_cannot_fire() -> None:
    found = read("antigravity", {"a": {"PreInvocation": [COMMAND], "Stop": [COMMAND]}})
    assert [remark.partition(" cannot fire")[0] for remark in found.remarks] == [
        "/repo/hooks.json: a.PreInvocation",
        "/repo/hooks.json: a.Stop",
    ]


def test_commands_run_in_the_folder_of_their_file(tmp_path: Path) -> None:
    file = HookFile(f"{tmp_path}/hooks.json", f'{{"a": {{"PreToolUse": {GROUP!r}}}}}'.replace("'", '"'), "/repo")
    assert [hook.cwd for hook in DIALECTS["antigravity"].read_hook_file(file).hooks] == [str(tmp_path)]


def test_a_failure_before_a_call_refuses_and_one_after_it_does_not() -> None:
    found = read("antigravity", {"a": {"PreToolUse": GROUP, "PostToolUse": GROUP}})
    assert {hook.event: hook.fails_closed for hook in found.hooks} == {
        Event.PRE_TOOL_USE: True,
        Event.POST_TOOL_USE: False,
        Event.POST_TOOL_USE_FAILURE: False,
    }


@pytest.mark.parametrize("matcher", ["*", "", ".*", "call_mcp_tool", "mcp"])
def test_a_matcher_may_match_anywhere_and_a_star_matches_all(matcher: str) -> None:
    found = read("antigravity", {"a": {"PreToolUse": [{"matcher": matcher, "hooks": [COMMAND]}]}})
    assert found.notes == ()
    assert [one.tool_name for one in inputs(found, "query")] == ["call_mcp_tool"]


def test_a_list_of_edits_has_antigravitys_names() -> None:
    found = read("antigravity", {"a": {"PreToolUse": [{"matcher": "multi_replace_file_content", "hooks": [COMMAND]}]}})
    edits = [{"oldText": "x", "newText": "y"}, {"oldText": "z", "newText": "KEY"}]
    (one,) = inputs(found, "edit_file", {"path": "a", "edits": edits})
    call = one.document["toolCall"]
    assert call["name"] == "multi_replace_file_content"
    assert call["args"]["TargetFile"] == "a"
    assert call["args"]["ReplacementChunks"] == [
        {"TargetContent": "x", "ReplacementContent": "y"},
        {"TargetContent": "z", "ReplacementContent": "KEY"},
    ]


def test_a_file_is_recognised_by_its_form_or_by_its_folder(tmp_path: Path) -> None:
    named = {"a": {"PreToolUse": GROUP}, "b": {"Stop": [COMMAND]}}
    assert recognised(tmp_path / "guards.json", named) == "antigravity"
    assert recognised(tmp_path / ".agents/hooks.json", named) == "antigravity"
    assert recognised(tmp_path / ".gemini/config/hooks.json", named) == "antigravity"
    like_claudes = {"hooks": {"PreToolUse": GROUP}}
    assert recognised(tmp_path / ".agents/hooks.json", like_claudes) == "antigravity"
    assert recognised(tmp_path / "hooks.json", like_claudes) == "claude"


def test_a_file_without_an_event_that_antigravity_has_stops_the_start(tmp_path: Path) -> None:
    git_hooks = {"hooks": {"pre-commit": [{"name": "a", "command": "make check"}]}}
    with pytest.raises(ConfigError, match=r"can read none of its hooks: hooks\.pre-commit is not an event"):
        recognised(tmp_path / ".agents/hooks.json", git_hooks)


def test_a_tool_without_arguments_has_none_in_its_document() -> None:
    side = agent_side("antigravity")
    assert side is not None
    document = b'{"toolCall":{"name":"list_permissions","args":null},"stepIdx":8,"conversationId":"c"}'
    event = side.read_document(document, {"PWD": "/w"})
    assert (event.name, event.context.tool, event.context.arguments) == ("PreToolUse", "list_permissions", b"{}")
    assert event.context.session.cwd == "/w"


def test_a_file_with_nothing_but_events_of_another_system_starts_and_says_so(tmp_path: Path) -> None:
    entry = {"type": "command", "command": "node .agents/hooks/start.js"}
    found = read("antigravity", {"apm": {"SessionStart": [entry], "UserPromptSubmit": [entry]}})
    assert found.hooks == ()
    assert "apm.SessionStart cannot fire behind MCP: Antigravity does not have it" in found.remarks[0]
    assert recognised(tmp_path / ".agents/hooks.json", {"apm": {"SessionStart": [entry]}}) == "antigravity"
