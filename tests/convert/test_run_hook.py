"""A hook of one system as a hook of another system's agent: the document that it knows, and its decision translated."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from msgspec.structs import replace

from hookproxy.convert.run_hook import ForeignHook, recognise_agent, run_hooks
from hookproxy.dialects.agent_side import HookOutput, agent_side
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.errors import UserError

pytestmark = pytest.mark.anyio

COPILOT = {
    "hook_event_name": "PreToolUse",
    "session_id": "s1",
    "timestamp": "2026-01-01T00:00:00.000Z",
    "cwd": "/",
    "tool_name": "bash",
    "tool_input": {"command": "rm -rf x"},
}
AFTER = COPILOT | {
    "hook_event_name": "PostToolUse",
    "tool_name": "files-read",
    "tool_input": {"path": "a"},
    "tool_result": {"result_type": "success", "text_result_for_llm": "hello"},
}


def prints(value: object, status: int = 0) -> str:
    return f"printf %s {shlex.quote(json.dumps(value))}; exit {status}"


async def output_of(command: str, document: object, agent: str = "copilot", **fields: str) -> HookOutput:
    side = agent_side(agent)
    assert side is not None
    hook = replace(ForeignHook(DIALECTS["claude"], command), **fields)
    raw = document if isinstance(document, bytes) else json.dumps(document).encode()
    return await run_hooks([hook], side, raw, {"PATH": "/usr/bin:/bin"})


async def test_the_hook_gets_the_document_that_it_was_written_for(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    await output_of(f"cat > {shlex.quote(str(seen))}", COPILOT)
    document = json.loads(seen.read_text())
    assert (document["hook_event_name"], document["tool_name"]) == ("PreToolUse", "Bash")
    assert document["tool_input"] == {"command": "rm -rf x"}
    assert (document["session_id"], document["cwd"]) == ("s1", "/")


async def test_arguments_have_the_names_that_the_hook_knows_and_rewrites_go_back() -> None:
    document = COPILOT | {"tool_name": "edit", "tool_input": {"path": "a", "old_str": "x", "new_str": "y"}}
    rewritten = {"file_path": "b", "old_string": "x", "new_string": "y"}
    specific = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": rewritten}
    output = await output_of(prints({"hookSpecificOutput": specific}), document)
    assert json.loads(output.stdout) == {
        "permissionDecision": "allow",
        "modifiedArgs": {"path": "b", "old_str": "x", "new_str": "y"},
    }


async def test_a_denial_is_written_as_the_agent_reads_it() -> None:
    output = await output_of("echo no rm >&2; exit 2", COPILOT)
    assert (output.status, json.loads(output.stdout)) == (
        0,
        {"permissionDecision": "deny", "permissionDecisionReason": "no rm"},
    )


@pytest.mark.parametrize(
    ("matcher", "runs"),
    [("", True), ("Bash", True), ("Edit|Bash", True), ("Edit", False), ("mcp__.*", False), ("bash", True)],
)
async def test_the_hooks_own_matcher_decides(matcher: str, runs: bool) -> None:
    output = await output_of("exit 2", COPILOT, matcher=matcher)
    assert bool(output.stdout) is runs


async def test_the_hooks_own_condition_decides() -> None:
    assert (await output_of("exit 2", COPILOT, only_if="Bash(rm:*)")).stdout
    assert not (await output_of("exit 2", COPILOT, only_if="Bash(git:*)")).stdout


async def test_tools_of_servers_have_the_composed_name(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    await output_of(f"cat > {shlex.quote(str(seen))}", AFTER, matcher="mcp__files__.*")
    document = json.loads(seen.read_text())
    assert document["tool_name"] == "mcp__files__read"
    assert document["tool_response"] == [{"type": "text", "text": "hello"}]


async def test_feedback_and_replaced_output_reach_the_agent() -> None:
    specific = {"hookEventName": "PostToolUse", "updatedMCPToolOutput": "***", "additionalContext": "look"}
    output = await output_of(prints({"hookSpecificOutput": specific}), AFTER)
    assert json.loads(output.stdout) == {
        "modifiedResult": {"textResultForLlm": "***", "resultType": "success"},
        "additionalContext": "look",
    }


async def test_a_hook_for_another_event_does_not_run() -> None:
    assert await output_of("exit 2", COPILOT, event_name="PostToolUse") == HookOutput()


async def test_a_failure_of_the_hook_is_reported_and_does_what_its_own_system_says() -> None:
    output = await output_of("echo oops >&2; exit 1", COPILOT)
    assert (output.stdout, output.status) == (b"", 0)
    assert "exited with status 1: oops" in output.stderr


@pytest.mark.parametrize("document", [b"", b"{", b"[]", b'{"hook_event_name":"PreToolUse"}', b'{"a":1,"a":2}'])
async def test_a_document_that_cannot_be_read_is_an_error(document: bytes) -> None:
    with pytest.raises(UserError, match="the document on standard input cannot be read"):
        await output_of("true", document)


async def test_arguments_that_blind_hooks_by_their_depth_are_refused() -> None:
    with pytest.raises(UserError, match="nested deeper"):
        await output_of("true", json.dumps(COPILOT).replace('"rm -rf x"', "[" * 100 + "]" * 100).encode())


def test_agents_are_recognised_by_their_documents() -> None:
    assert recognise_agent(json.dumps(COPILOT).encode()).name == "copilot"
    without_time = {name: value for name, value in COPILOT.items() if name != "timestamp"}
    of = {
        "claude": without_time | {"permission_mode": "default", "tool_use_id": "t"},
        "codex": without_time | {"permission_mode": "default", "turn_id": "t1"},
        "droid": without_time | {"permission_mode": "auto-low"},
        "qwen": COPILOT | {"permission_mode": "yolo"},
        "vscode": COPILOT | {"tool_use_id": "t"},
        "gemini": COPILOT | {"hook_event_name": "BeforeTool"},
        "cascade": {"agent_action_name": "pre_run_command"},
        "cursor": {"hook_event_name": "preToolUse", "cursor_version": "3.19.10", "tool_use_id": "t"},
        "cline": {"hookName": "PreToolUse"},
        "kimi": without_time | {"client_type": "cli"},
        "goose": {"event": "PreToolUse", "matcher_context": "x"},
        "crush": {"event": "PreToolUse", "cwd": "/"},
        "lime": {"event": "PreToolUse", "hook_event_name": "PreToolUse"},
        "kiro": {"hook_event_name": "preToolUse", "tool_name": "@files/read"},
        "augment": {"hook_event_name": "PreToolUse", "conversation_id": "c", "is_mcp_tool": True},
        "claw": {"hook_event_name": "PreToolUse", "tool_input": {}, "tool_input_json": "{}"},
        "code-assist": {"hook_event": "PreToolUse", "cwd": "/", "tool_use_id": "t"},
        "docker-agent": {"hook_event_name": "pre_tool_use", "cwd": "/", "session_id": "s"},
    }
    for name, document in of.items():
        assert recognise_agent(json.dumps(document).encode()).name == name


@pytest.mark.parametrize("document", [b"{}", b'{"hook_event_name":"PreToolUse"}'])
def test_an_unknown_agent_is_an_error(document: bytes) -> None:
    with pytest.raises(UserError) as caught:
        recognise_agent(document)
    assert caught.value.hint == "name the agent: hookproxy hook --for AGENT …"


PATCH = "*** Begin Patch\n*** Add File: a\n+x\n*** Update File: .env\n@@\n-K=1\n+K=2\n*** End Patch"
CODEX = {
    "session_id": "s1",
    "turn_id": "t1",
    "cwd": "/",
    "hook_event_name": "PreToolUse",
    "tool_name": "apply_patch",
    "tool_input": {"command": PATCH},
    "tool_use_id": "x",
}


async def test_a_patch_of_codex_is_one_write_or_edit_for_each_of_its_files(tmp_path: Path) -> None:
    seen = shlex.quote(str(tmp_path / "seen"))
    output = await output_of(f"jq -c '[.tool_name, .tool_input.file_path]' >> {seen}", CODEX, "codex")
    assert (tmp_path / "seen").read_text().splitlines() == ['["Write","a"]', '["Edit",".env"]']
    assert (output.stdout, output.status) == (b"", 0)


async def test_a_guard_of_one_file_denies_the_whole_patch() -> None:
    guard = """case "$(jq -r .tool_input.file_path)" in .env) echo 'not .env' >&2; exit 2;; esac"""
    output = json.loads((await output_of(guard, CODEX, "codex")).stdout)
    assert output["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert output["hookSpecificOutput"]["permissionDecisionReason"] == "not .env"
    assert (await output_of(guard, CODEX, "codex", matcher="Write")).stdout == b""


async def test_a_rewrite_of_a_patch_is_refused() -> None:
    specific = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"file_path": "b"}}
    output = json.loads((await output_of(prints({"hookSpecificOutput": specific}), CODEX, "codex")).stdout)
    assert output["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "cannot be written as a patch" in output["hookSpecificOutput"]["permissionDecisionReason"]


@pytest.mark.parametrize("text", ["*** Add File: a", 7])
async def test_a_patch_that_cannot_be_read_is_an_error(text: object) -> None:
    with pytest.raises(UserError, match="the patch"):
        await output_of("true", CODEX | {"tool_input": {"command": text}}, "codex")


async def test_codex_gets_a_denied_permission_without_members_that_it_discards() -> None:
    decision = {"behavior": "deny", "message": "no", "interrupt": True}
    decision = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
    document = CODEX | {"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "ls"}}
    output = json.loads((await output_of(prints(decision), document, "codex")).stdout)
    assert output.keys() == {"hookSpecificOutput"}
    assert output["hookSpecificOutput"]["decision"] == {"behavior": "deny", "message": "no"}


@pytest.mark.parametrize("event", ["pretooluse", "Stop", "beforeTool"])
async def test_a_hook_for_an_event_that_its_system_does_not_have_refuses_the_call(event: str) -> None:
    with pytest.raises(UserError, match="claude cannot run this hook"):
        await output_of("exit 2", COPILOT, event_name=event)


VSCODE = {
    "timestamp": "2026-01-01T00:00:00.000Z",
    "hook_event_name": "PreToolUse",
    "tool_name": "mcp_fs_read",
    "tool_input": {},
    "tool_use_id": "t",
}


async def denies(dialect: str, document: object, agent: str, matcher: str, event_name: str = "") -> bool:
    side = agent_side(agent)
    assert side is not None
    hook = ForeignHook(DIALECTS[dialect], "echo no >&2; exit 2", event_name, matcher)
    output = await run_hooks([hook], side, json.dumps(document).encode(), {"PATH": "/usr/bin:/bin"})
    return b'"deny"' in output.stdout or output.status == 2


@pytest.mark.parametrize(
    ("dialect", "matcher", "runs"),
    [
        ("claude", ".*__fs__.*", True),
        ("claude", "mcp__fs__read", True),
        ("kiro", "@fs/read", True),
        ("copilot@current", "fs-read", True),
        ("claude", "Bash|Edit", False),
        ("gemini", "run_shell_command", False),
    ],
)
async def test_a_matcher_that_may_name_the_server_counts_where_the_agent_names_none(
    dialect: str, matcher: str, runs: bool
) -> None:
    assert await denies(dialect, VSCODE, "vscode", matcher) is runs


@pytest.mark.parametrize("matcher", ["Write", "Edit", "MultiEdit", ""])
@pytest.mark.parametrize("old", ["", "x"])
async def test_an_edit_of_cascade_may_be_any_way_to_write_a_file(matcher: str, old: str) -> None:
    edit = {"old_string": old, "new_string": "y"}
    document = {"agent_action_name": "pre_write_code", "tool_info": {"file_path": "/a", "edits": [edit]}}
    assert await denies("claude", document, "cascade", matcher)


@pytest.mark.parametrize(
    ("event", "matcher", "runs"),
    [
        ("preToolUse", "execute_*", True),
        ("preToolUse", "execute", False),
        ("PreToolUse", "execute", True),
        ("preToolUse", "@builtin", True),
    ],
)
async def test_the_forms_of_kiro_have_matchers_of_their_own(event: str, matcher: str, runs: bool) -> None:
    assert await denies("kiro", COPILOT, "copilot", matcher, event) is runs


async def test_a_program_of_cline_serves_other_agents() -> None:
    side = agent_side("copilot")
    assert side is not None
    hook = ForeignHook(DIALECTS["cline"], prints({"cancel": True, "errorMessage": "no"}))
    output = await run_hooks([hook], side, json.dumps(COPILOT).encode(), {"PATH": "/usr/bin:/bin"})
    assert json.loads(output.stdout)["permissionDecision"] == "deny"


@pytest.mark.parametrize(
    ("agent", "document"),
    [
        ("gemini", {"hook_event_name": "BeforeTool", "tool_name": "mcp_fs_read", "tool_input": {}}),
        ("gemini", {"hook_event_name": "BeforeTool", "tool_name": "mcp__fs__read", "tool_input": {}}),
        ("kiro", {"hook_event_name": "PreToolUse", "tool_name": "mcp_fs_read", "tool_input": {}}),
        ("kiro", {"hook_event_name": "PreToolUse", "tool_name": "@fs/read", "tool_input": {}}),
        ("cline", {"hookName": "PreToolUse", "preToolUse": {"toolName": "fs__read", "parameters": {}}}),
        ("copilot", COPILOT | {"tool_name": "fs-read"}),
        ("cursor", {"hook_event_name": "preToolUse", "tool_name": "MCP:read", "tool_input": {}}),
        ("qwen", COPILOT | {"tool_name": "mcp__fs__read"}),
    ],
)
@pytest.mark.parametrize("matcher", ["mcp__fs__read", "mcp__.*"])
async def test_a_hook_for_a_servers_tools_runs_for_each_form_of_their_names(
    agent: str, document: object, matcher: str
) -> None:
    side = agent_side(agent)
    assert side is not None
    hook = ForeignHook(DIALECTS["claude"], "echo no >&2; exit 2", "PreToolUse", matcher)
    output = await run_hooks([hook], side, json.dumps(document).encode(), {"PATH": "/usr/bin:/bin"})
    denied = (b'"deny"' in output.stdout, b'"cancel":true' in output.stdout, output.status == 2)
    assert any(denied)


@pytest.mark.parametrize("tool", ["my-files-read", "my-files-read-all"])
async def test_a_server_with_a_hyphen_in_its_name_is_not_mistaken_for_another(tool: str) -> None:
    document = COPILOT | {"tool_name": tool}
    assert await denies("claude", document, "copilot", f"mcp__my-files__{tool.removeprefix('my-files-')}")
