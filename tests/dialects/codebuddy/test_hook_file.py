"""CodeBuddy's settings: matchers, recognition, and rewrites in the words of the IDE plugins."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Ended, HookResult
from tests.dialects.calls import inputs, read, recognised

COMMAND: Final = {"type": "command", "command": "./guard.sh"}


@pytest.mark.parametrize("matcher", ["", "*", "Bash", "execute_command", "write_to_file|execute_command"])
def test_a_matcher_may_name_tools_of_the_cli_or_of_the_ide_plugins(matcher: str) -> None:
    found = read("codebuddy", {"hooks": {"PreToolUse": [{"matcher": matcher, "hooks": [COMMAND]}]}})
    assert inputs(found, "run_command", {"command": "ls"})


def test_settings_in_its_folder_are_recognised(tmp_path: Path) -> None:
    content = {"hooks": {"PreToolUse": [{"hooks": [COMMAND]}], "OfNextYear": []}, "enabledPlugins": {}}
    assert recognised(tmp_path / ".codebuddy/settings.json", content) == "codebuddy"


@pytest.mark.parametrize(
    ("specific", "arguments"),
    [
        (b'"modifiedInput":{"modifiedInput":1}', b'{"modifiedInput":1}'),
        (b'"updatedInput":{"a":1},"modifiedInput":{"a":2}', b'{"a":1}'),
        (b'"updatedInput":{"modifiedInput":1}', b'{"modifiedInput":1}'),
    ],
)
def test_only_the_member_of_the_output_is_renamed(specific: bytes, arguments: bytes) -> None:
    (hook,) = read("codebuddy", {"hooks": {"PreToolUse": [{"hooks": [COMMAND]}]}}).hooks
    stdout = b'{"hookSpecificOutput":{"hookEventName":"PreToolUse",' + specific + b"}}"
    verdict = DIALECTS["codebuddy"].read_output(hook, HookResult(Ended.EXITED, 0, stdout))
    assert verdict.arguments == arguments


def test_settings_without_hooks_are_recognised_in_its_folder(tmp_path: Path) -> None:
    assert recognised(tmp_path / ".codebuddy/settings.json", {"permissions": {"allow": ["Bash"]}}) == "codebuddy"
