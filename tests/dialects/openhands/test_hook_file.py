"""OpenHands' hook files: both spellings of events, what a matcher is, hooks in the background, recognition."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from hookproxy.dialects.agent_side import agent_side
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event
from tests.dialects.calls import inputs, read, recognised

COMMAND: Final = {"type": "command", "command": "./guard.sh"}
GROUP: Final = [{"matcher": "terminal", "hooks": [COMMAND]}]


@pytest.mark.parametrize(
    "content",
    [
        {"pre_tool_use": GROUP},
        {"PreToolUse": GROUP},
        {"hooks": {"pre_tool_use": GROUP}},
        {"hooks": {"PreToolUse": GROUP}},
    ],
)
def test_events_are_in_snake_case_or_claude_code_s_names(content: dict[str, object]) -> None:
    found = read("openhands", content)
    assert [hook.event for hook in found.hooks] == [Event.PRE_TOOL_USE]
    assert found.notes == ()


def test_one_event_in_two_spellings_is_an_error() -> None:
    with pytest.raises(ConfigError, match="one event in two spellings"):
        read("openhands", {"pre_tool_use": GROUP, "PreToolUse": GROUP})


@pytest.mark.parametrize("matcher", ["", "*", "terminal", "/term.*/", "term.*", "terminal|browser"])
def test_a_matcher_matches_the_whole_name(matcher: str) -> None:
    found = read("openhands", {"pre_tool_use": [{"matcher": matcher, "hooks": [COMMAND]}]})
    assert "terminal" in [one.tool_name for one in inputs(found, "run_command", {"command": "ls"})]


@pytest.mark.parametrize("matcher", ["term", "/term/", "term.", "terminal(", "Terminal"])
def test_a_matcher_of_a_part_an_invalid_one_or_another_case_does_not_match(matcher: str) -> None:
    found = read("openhands", {"pre_tool_use": [{"matcher": matcher, "hooks": [COMMAND]}]})
    assert inputs(found, "run_command", {"command": "ls"}) == []


def test_a_hook_may_run_in_the_background() -> None:
    hooks = {"pre_tool_use": [{"hooks": [{"command": "./log.sh", "async": True, "name": "log"}]}]}
    (hook,) = read("openhands", hooks).hooks
    assert (hook.background, hook.timeout, hook.label) == (True, 60, "log")


def test_a_file_in_its_folder_is_recognised_and_elsewhere_by_its_events(tmp_path: Path) -> None:
    assert recognised(tmp_path / ".openhands/hooks.json", {"hooks": {"PreToolUse": GROUP}}) == "openhands"
    assert recognised(tmp_path / "hooks.json", {"pre_tool_use": GROUP}) == "openhands"


def test_a_list_of_edits_is_one_of_the_editor() -> None:
    found = read("openhands", {"pre_tool_use": [{"matcher": "file_editor", "hooks": [COMMAND]}]})
    arguments = {"path": "a", "edits": [{"oldText": "x", "newText": "y"}, {"oldText": "v", "newText": "w"}]}
    (seen,) = inputs(found, "edit_file", arguments)
    assert (seen.document["tool_input"]["command"], seen.document["tool_input"]["path"]) == ("str_replace", "a")


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("view", {"Read"}),
        ("create", {"Write"}),
        ("str_replace", {"Edit", "MultiEdit"}),
        ("insert", {"Read", "Write", "Edit", "MultiEdit"}),
    ],
)
def test_what_the_editor_does_decides_which_guards_of_other_systems_run(command: str, names: set[str]) -> None:
    side = agent_side("openhands")
    assert side is not None
    document = (
        b'{"event_type":"PreToolUse","tool_name":"file_editor","tool_input":{"command":"%s","path":"/a"},'
        b'"session_id":"s","working_dir":"/"}'
    )
    alias = side.read_document(document % command.encode(), {}).context.alias
    assert alias is not None
    assert {one.name for one in (alias, *alias.alternatives)} == names
