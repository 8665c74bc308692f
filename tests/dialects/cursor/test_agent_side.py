"""Cursor as the agent of a hook that was written for another system."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.convert.run_hook import ForeignHook, run_hooks
from hookproxy.dialects.agent_side import HookOutput
from hookproxy.dialects.cursor.agent_side import AGENT_SIDE
from hookproxy.dialects.dialect import WrittenEntry
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.errors import UserError

pytestmark = pytest.mark.anyio

CALL: Final[dict[str, Any]] = {
    "conversation_id": "c",
    "hook_event_name": "preToolUse",
    "cursor_version": "3.19.10",
    "tool_name": "Shell",
    "tool_input": {"command": "rm -rf x"},
    "tool_use_id": "t",
    "cwd": "/",
}
RESULT: Final = json.dumps({"content": [{"type": "text", "text": "hello"}]})


def prints(value: object) -> str:
    return f"printf %s {shlex.quote(json.dumps(value))}"


async def output_of(command: str, document: object, matcher: str = "") -> HookOutput:
    hook = ForeignHook(DIALECTS["claude"], command, matcher=matcher)
    return await run_hooks([hook], AGENT_SIDE, json.dumps(document).encode(), {"PATH": "/usr/bin:/bin", "PWD": "/"})


@pytest.mark.parametrize(
    ("changes", "matcher", "seen"),
    [
        ({}, "Bash", ("PreToolUse", "Bash")),
        ({"tool_name": "Read", "tool_input": {"file_path": "a"}}, "Read", ("PreToolUse", "Read")),
        ({"tool_name": "Task", "tool_input": {}}, "Task", ("PreToolUse", "Task")),
        ({"tool_name": "MCP:read", "tool_input": {}}, "mcp__files__read", ("PreToolUse", "mcp____read")),
        ({"hook_event_name": "postToolUse", "tool_output": '{"stdout":"x"}'}, "Bash", ("PostToolUse", "Bash")),
        (
            {"hook_event_name": "postToolUseFailure", "error_message": "broke", "failure_type": "error"},
            "Bash",
            ("PostToolUseFailure", "Bash"),
        ),
    ],
)
async def test_the_hook_gets_the_document_of_its_own_system(
    tmp_path: Path, changes: dict[str, Any], matcher: str, seen: tuple[str, str]
) -> None:
    file = tmp_path / "seen"
    await output_of(f"cat > {shlex.quote(str(file))}", CALL | changes, matcher)
    document = json.loads(file.read_text())
    assert (document["hook_event_name"], document["tool_name"]) == seen
    assert (document["session_id"], document["cwd"]) == ("c", "/")


async def test_a_denial_and_a_rewrite_are_written_as_cursor_reads_them() -> None:
    denied = await output_of("echo no rm >&2; exit 2", CALL)
    assert json.loads(denied.stdout) == {"permission": "deny", "user_message": "no rm", "agent_message": "no rm"}
    specific = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"command": "ls"}}
    rewritten = await output_of(prints({"hookSpecificOutput": specific}), CALL)
    assert json.loads(rewritten.stdout) == {"permission": "allow", "updated_input": {"command": "ls"}}


async def test_a_hook_without_a_decision_answers_all_the_same_because_silence_is_a_failure_with_fail_closed() -> None:
    assert (await output_of("true", CALL)).stdout == b"{}\n"


async def test_where_a_hook_asks_the_call_is_refused_because_cursor_does_not_enforce_it() -> None:
    specific = {"hookEventName": "PreToolUse", "permissionDecision": "ask"}
    asked = await output_of(prints({"hookSpecificOutput": specific}), CALL)
    assert json.loads(asked.stdout)["permission"] == "deny"


@pytest.mark.parametrize(
    ("replacement", "written"),
    [("***", {"content": [{"type": "text", "text": "***"}]}), ({"rows": 1}, {"rows": 1})],
)
async def test_output_of_a_servers_tool_can_be_replaced(replacement: object, written: object) -> None:
    specific = {"hookEventName": "PostToolUse", "updatedMCPToolOutput": replacement, "additionalContext": "look"}
    after = CALL | {"hook_event_name": "postToolUse", "tool_name": "MCP:read", "tool_output": RESULT}
    output = await output_of(prints({"hookSpecificOutput": specific}), after)
    assert json.loads(output.stdout) == {"updated_mcp_tool_output": written, "additional_context": "look"}


async def test_output_of_cursors_own_tools_cannot_and_people_read_why() -> None:
    specific = {"hookEventName": "PostToolUse", "updatedMCPToolOutput": "***"}
    output = await output_of(prints({"hookSpecificOutput": specific}), CALL | {"hook_event_name": "postToolUse"})
    assert output.stdout == b""
    assert "cursor does not let hooks replace the output of its own tools" in output.stderr


async def test_an_event_that_is_not_converted_is_an_error() -> None:
    with pytest.raises(UserError, match="beforeShellExecution is an event that hookproxy does not convert"):
        await output_of("true", CALL | {"hook_event_name": "beforeShellExecution"})


def test_a_written_entry_has_cursors_names_of_tools_and_its_keys() -> None:
    names = tuple(spelling.name for spelling in AGENT_SIDE.tool_spellings()["Bash"])
    entry = WrittenEntry("preToolUse", "guard", (*names, AGENT_SIDE.mcp_tool_name("files", "read")), timeout=5.0)
    ((path, text),) = AGENT_SIDE.write_hook_file([entry, WrittenEntry("preToolUse", "x", fails_closed=True)]).items()
    assert path == ".cursor/hooks.json"
    assert json.loads(text) == {
        "version": 1,
        "hooks": {
            "preToolUse": [
                {"command": "guard", "matcher": "^(?:Shell|MCP:read)$", "timeout": 5},
                {"command": "x", "failClosed": True},
            ]
        },
    }
