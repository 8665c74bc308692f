"""Grok's hook files: programs beside the file, timeouts, matchers, recognition, and documents that Grok has cut."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from hookproxy.dialects.agent_side import agent_side
from tests.dialects.calls import inputs, read, recognised

COMMAND: Final = {"type": "command", "command": "bin/guard.sh"}


def hooks(*entries: object, event: str = "PreToolUse", matcher: str = "") -> dict[str, object]:
    return {"hooks": {event: [{"matcher": matcher, "hooks": list(entries)}]}}


def test_a_program_beside_the_file_is_run_and_another_one_by_the_shell(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/guard.sh").write_text("#!/bin/sh\n")
    found = read("grok", hooks(COMMAND, {"command": "sh guard.sh"}, {"command": "./other"}), f"{tmp_path}/a.json")
    assert [(hook.argv, hook.shell) for hook in found.hooks] == [
        ((str(tmp_path / "bin/guard.sh"),), ""),
        ((), "sh guard.sh"),
        ((), "./other"),
    ]


@pytest.mark.parametrize(("event", "timeout"), [("PreToolUse", 5), ("PostToolUse", 600), ("PostToolUseFailure", 5)])
def test_the_default_timeout_depends_on_the_event(event: str, timeout: float) -> None:
    (hook,) = read("grok", hooks(COMMAND, event=event)).hooks
    assert hook.timeout == timeout


@pytest.mark.parametrize(("matcher", "matches"), [("Bash", True), ("run_terminal", True), ("Edit", False), ("*", True)])
def test_a_matcher_may_name_grok_s_tools_or_claude_code_s(matcher: str, matches: bool) -> None:
    found = read("grok", hooks(COMMAND, matcher=matcher))
    assert bool(inputs(found, "run_command", {"command": "ls"})) is matches


@pytest.mark.parametrize("place", [".grok/hooks/a.json", ".grok/hooks.json"])
def test_a_file_in_grok_s_folders_is_recognised(place: str, tmp_path: Path) -> None:
    assert recognised(tmp_path / place, hooks(COMMAND)) == "grok"


def test_a_document_whose_arguments_grok_has_cut_is_not_judged() -> None:
    side = agent_side("grok")
    assert side is not None
    document = (
        b'{"hookEventName":"pre_tool_use","sessionId":"s","toolName":"x","toolInput":"{","toolInputTruncated":true}'
    )
    with pytest.raises(ValueError, match="toolInput is cut"):
        side.read_document(document, {})


def test_arguments_inside_of_the_call_of_a_server_s_tool_are_taken_out() -> None:
    side = agent_side("grok")
    assert side is not None
    inner = b'{"tool_name":"files__read","tool_input":{"path":"a"}}'
    document = b'{"hookEventName":"pre_tool_use","sessionId":"s","toolName":"files__read","toolInput":' + inner + b"}"
    context = side.read_document(document, {}).context
    assert (context.session.server, context.tool, context.arguments) == ("files", "read", b'{"path":"a"}')


def test_a_guard_of_files_that_are_written_sees_search_replace_too() -> None:
    side = agent_side("grok")
    assert side is not None
    arguments = b'{"file_path":"/a","old_string":"","new_string":"x"}'
    document = (
        b'{"hookEventName":"pre_tool_use","sessionId":"s","toolName":"search_replace","toolInput":' + arguments + b"}"
    )
    alias = side.read_document(document, {}).context.alias
    assert alias is not None
    assert {one.name for one in (alias, *alias.alternatives)} == {"Write", "Edit", "MultiEdit"}
