"""Each agent's documents and output, with a hook of Claude Code that denies, rewrites, asks, comments or replaces."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.convert.run_hook import ForeignHook, run_hooks
from hookproxy.dialects.agent_side import Can, HookOutput, agent_side, names
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Event

pytestmark = pytest.mark.anyio

CLAUDE: Final = {"session_id": "s1", "cwd": "/", "permission_mode": "default"}
CURSOR: Final = {"conversation_id": "c", "cursor_version": "3.19", "workspace_roots": ["/"]}
TIMED: Final = {"session_id": "s1", "cwd": "/", "timestamp": "2026-01-01T00:00:00.000Z"}
CLINE: Final = {"clineVersion": "4.1.13", "timestamp": "1", "taskId": "t", "workspaceRoots": ["/"]}
CODE_ASSIST: Final = {"tool_use_id": "t", "tool_output": None, "session_id": "s1", "agent_id": None, "cwd": "/"}
BEFORE_IFLOW: Final = {"IFLOW_HOOK_EVENT_NAME": "PreToolUse", "IFLOW_TOOL_NAME": "run_shell_command", "IFLOW_CWD": "/"}
AFTER_IFLOW: Final = {"IFLOW_HOOK_EVENT_NAME": "PostToolUse", "IFLOW_TOOL_NAME": "mcp__files__read", "IFLOW_CWD": "/"}

BEFORE: Final[dict[str, dict[str, Any]]] = {
    "claude": CLAUDE | {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "rm x"}},
    "codex": CLAUDE
    | {"turn_id": "t", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "rm x"}},
    "droid": CLAUDE
    | {
        "permission_mode": "off",
        "hook_event_name": "PreToolUse",
        "tool_name": "Execute",
        "tool_input": {"command": "rm x"},
    },
    "qwen": CLAUDE
    | TIMED
    | {"hook_event_name": "PreToolUse", "tool_name": "run_shell_command", "tool_input": {"command": "rm x"}},
    "copilot": TIMED | {"hook_event_name": "PreToolUse", "tool_name": "bash", "tool_input": {"command": "rm x"}},
    "vscode": TIMED
    | {
        "hook_event_name": "PreToolUse",
        "tool_use_id": "t",
        "tool_name": "run_in_terminal",
        "tool_input": {"command": "rm x"},
    },
    "gemini": TIMED
    | {"hook_event_name": "BeforeTool", "tool_name": "run_shell_command", "tool_input": {"command": "rm x"}},
    "cursor": CURSOR | {"hook_event_name": "preToolUse", "tool_name": "Shell", "tool_input": {"command": "rm x"}},
    "cascade": {"agent_action_name": "pre_run_command", "tool_info": {"command_line": "rm x", "cwd": "/"}},
    "kiro": {
        "hook_event_name": "preToolUse",
        "cwd": "/",
        "tool_name": "execute_bash",
        "tool_input": {"command": "rm x"},
    },
    "kimi": {
        "session_id": "s1",
        "client_type": "cli",
        "cwd": "/",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "rm x"},
    },
    "crush": {"event": "PreToolUse", "cwd": "/", "tool_name": "bash", "tool_input": {"command": "rm x"}},
    "goose": {
        "event": "PreToolUse",
        "matcher_context": "developer__shell",
        "tool_name": "developer__shell",
        "tool_input": {"command": "rm x"},
        "working_dir": "/",
    },
    "lime": {
        "event": "PreToolUse",
        "hook_event_name": "PreToolUse",
        "cwd": "/",
        "tool_name": "bash",
        "tool_input": {"command": "rm x"},
    },
    "augment": {
        "hook_event_name": "PreToolUse",
        "conversation_id": "c",
        "workspace_roots": ["/"],
        "tool_name": "launch-process",
        "tool_input": {"command": "rm x"},
        "is_mcp_tool": False,
    },
    "iflow": {"tool_input": {"command": "rm x"}},
    "claw": {
        "hook_event_name": "PreToolUse",
        "tool_name": "bash",
        "tool_input": {"command": "rm x"},
        "tool_input_json": '{"command":"rm x"}',
        "tool_output": None,
        "tool_result_is_error": False,
    },
    "code-assist": CODE_ASSIST
    | {"hook_event": "PreToolUse", "tool_name": "BashTool", "tool_input": {"command": "rm x"}},
    "docker-agent": {
        "session_id": "s1",
        "cwd": "/",
        "hook_event_name": "pre_tool_use",
        "tool_name": "shell",
        "tool_use_id": "t",
        "tool_input": {"cmd": "rm x"},
    },
    "cline": CLINE
    | {
        "hookName": "PreToolUse",
        "preToolUse": {"toolName": "execute_command", "parameters": {"command": "rm x"}},
    },
}
"""What each agent gives before it runs `rm x` by its own shell tool."""

AFTER: Final[dict[str, dict[str, Any]]] = {
    "claude": CLAUDE
    | {
        "hook_event_name": "PostToolUse",
        "tool_name": "mcp__files__read",
        "tool_input": {"path": "a"},
        "tool_response": [{"type": "text", "text": "hello"}],
    },
    "codex": CLAUDE
    | {
        "turn_id": "t",
        "hook_event_name": "PostToolUse",
        "tool_name": "mcp__files__read",
        "tool_input": {"path": "a"},
        "tool_response": {"content": [{"type": "text", "text": "hello"}], "isError": False},
    },
    "droid": CLAUDE
    | {
        "hook_event_name": "PostToolUse",
        "tool_name": "mcp__files__read",
        "tool_input": {"path": "a"},
        "tool_response": "hello",
    },
    "qwen": CLAUDE
    | TIMED
    | {
        "hook_event_name": "PostToolUse",
        "tool_name": "mcp__files__read",
        "tool_input": {"path": "a"},
        "tool_response": {"llmContent": [{"text": "hello"}], "returnDisplay": "hello"},
    },
    "copilot": TIMED
    | {
        "hook_event_name": "PostToolUse",
        "tool_name": "files-read",
        "tool_input": {"path": "a"},
        "tool_result": {"result_type": "success", "text_result_for_llm": "hello"},
    },
    "vscode": TIMED
    | {
        "hook_event_name": "PostToolUse",
        "tool_use_id": "t",
        "tool_name": "mcp_files_read",
        "tool_input": {"path": "a"},
        "tool_response": "hello",
    },
    "gemini": TIMED
    | {
        "hook_event_name": "AfterTool",
        "tool_name": "mcp_files_read",
        "tool_input": {"path": "a"},
        "tool_response": {"llmContent": [{"text": "hello"}], "returnDisplay": "hello"},
        "mcp_context": {"server_name": "files", "tool_name": "read"},
    },
    "cursor": CURSOR
    | {
        "hook_event_name": "postToolUse",
        "tool_name": "MCP:read",
        "tool_input": {"path": "a"},
        "tool_output": '{"content":[{"type":"text","text":"hello"}]}',
    },
    "cascade": {
        "agent_action_name": "post_mcp_tool_use",
        "tool_info": {
            "mcp_server_name": "files",
            "mcp_tool_name": "read",
            "mcp_tool_arguments": {"path": "a"},
            "mcp_result": "hello",
        },
    },
    "kiro": {
        "hook_event_name": "postToolUse",
        "cwd": "/",
        "tool_name": "@files/read",
        "tool_input": {"path": "a"},
        "tool_response": "hello",
    },
    "kimi": {
        "client_type": "cli",
        "cwd": "/",
        "hook_event_name": "PostToolUse",
        "tool_name": "mcp__files__read",
        "tool_input": {"path": "a"},
        "tool_output": "hello",
    },
    "goose": {
        "event": "PostToolUse",
        "matcher_context": "files__read",
        "tool_name": "files__read",
        "tool_input": {"path": "a"},
        "working_dir": "/",
    },
    "lime": {
        "event": "PostToolUse",
        "hook_event_name": "PostToolUse",
        "cwd": "/",
        "tool_name": "mcp__files__read",
        "tool_input": {"path": "a"},
        "tool_output": [{"type": "text", "text": "hello"}],
    },
    "augment": {
        "hook_event_name": "PostToolUse",
        "conversation_id": "c",
        "workspace_roots": ["/"],
        "tool_name": "read_files",
        "tool_input": {"path": "a"},
        "is_mcp_tool": True,
        "mcp_metadata": {"mcpExecutedToolName": "read_files", "mcpExecutedToolServerName": "files"},
        "tool_output": "hello",
    },
    "iflow": {"tool_input": {"path": "a"}, "tool_response": "hello"},
    "claw": {
        "hook_event_name": "PostToolUse",
        "tool_name": "mcp__files__read",
        "tool_input": {"path": "a"},
        "tool_input_json": '{"path":"a"}',
        "tool_output": "hello",
        "tool_result_is_error": False,
    },
    "code-assist": CODE_ASSIST
    | {
        "hook_event": "PostToolUse",
        "tool_name": "mcp__files__read",
        "tool_input": {"path": "a"},
        "tool_output": "hello",
    },
    "docker-agent": {
        "session_id": "s1",
        "cwd": "/",
        "hook_event_name": "post_tool_use",
        "tool_name": "files_read",
        "tool_use_id": "t",
        "tool_input": {"path": "a"},
        "tool_response": "hello",
    },
    "cline": CLINE
    | {
        "hookName": "PostToolUse",
        "postToolUse": {
            "toolName": "use_mcp_tool",
            "parameters": {"server_name": "files", "tool_name": "read", "arguments": '{"path":"a"}'},
            "result": "hello",
            "success": True,
        },
    },
}
"""What each agent gives after the tool `read` of the server `files` has answered `hello`."""

_ENVELOPE: Final = {
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "no rm",
    }
}
DENIED: Final[dict[str, Any]] = {
    **dict.fromkeys(("claude", "codex", "droid", "lime", "qwen", "vscode"), _ENVELOPE),
    "crush": {"version": 1, "decision": "deny", "reason": "no rm"},
    "code-assist": {"decision": "deny", "reason": "no rm"},
    "docker-agent": {
        "hook_specific_output": {
            "hook_event_name": "pre_tool_use",
            "permission_decision": "deny",
            "permission_decision_reason": "no rm",
        }
    },
    "copilot": {"permissionDecision": "deny", "permissionDecisionReason": "no rm"},
    "cursor": {"permission": "deny", "user_message": "no rm", "agent_message": "no rm"},
    "gemini": {"decision": "deny", "reason": "no rm"},
    "cline": {"cancel": True, "errorMessage": "no rm"},
}
BY_STATUS: Final = ("augment", "cascade", "goose", "iflow", "kimi", "kiro")
BY_TEXT: Final = ("claw",)
"""The exit status refuses, and standard output has the reason."""
WITHOUT_RESULTS: Final = ("crush", "goose")
"""Crush has no event after a call, and Goose gives its hooks no result."""
AFTERWARDS: Final = [name for name in names() if name in AFTER]
NO_DECISION: Final = {"cursor": b"{}\n"}
"""What is printed without a decision, if not nothing. In Cursor, no output is a failure of a hook with `failClosed`."""


def test_every_agent_is_tested() -> None:
    assert set(BEFORE) == {*AFTER, "crush"} == {*DENIED, *BY_STATUS, *BY_TEXT}
    assert set(names()) <= set(BEFORE)


def prints(value: object) -> str:
    return f"printf %s {shlex.quote(json.dumps(value))}"


def specific(event: str, **members: object) -> str:
    return prints({"hookSpecificOutput": {"hookEventName": event, **members}})


async def output_of(agent: str, command: str, document: object, matcher: str = "") -> HookOutput:
    side = agent_side(agent)
    assert side is not None
    hook = ForeignHook(DIALECTS["claude"], command, matcher=matcher)
    variables = ({"iflow": BEFORE_IFLOW} if document is BEFORE.get(agent) else {"iflow": AFTER_IFLOW}).get(agent, {})
    return await run_hooks([hook], side, json.dumps(document).encode(), {"PATH": "/usr/bin:/bin", **variables})


@pytest.mark.parametrize("agent", names())
async def test_a_denial_of_the_agents_own_shell(agent: str) -> None:
    output = await output_of(agent, "echo no rm >&2; exit 2", BEFORE[agent], "Bash")
    if agent in BY_STATUS:
        assert (output.status, output.stdout, output.stderr) == (2, b"", "no rm")
    elif agent in BY_TEXT:
        assert (output.status, output.stdout) == (2, b"no rm\n")
    else:
        assert (output.status, json.loads(output.stdout)) == (0, DENIED[agent])


@pytest.mark.parametrize("agent", names())
async def test_the_hook_gets_the_command_under_its_own_names(agent: str, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    output = await output_of(agent, f"cat > {shlex.quote(str(seen))}", BEFORE[agent], "Bash")
    document = json.loads(seen.read_text())
    assert (document["tool_name"], document["tool_input"]["command"]) == ("Bash", "rm x")
    assert (output.status, output.stdout) == (0, NO_DECISION.get(agent, b""))


@pytest.mark.parametrize("agent", names())
async def test_a_question_is_asked_or_refuses_the_call(agent: str) -> None:
    side = agent_side(agent)
    assert side is not None
    asks = specific("PreToolUse", permissionDecision="ask", permissionDecisionReason="sure?")
    output = await output_of(agent, asks, BEFORE[agent])
    if Can.ASK in side.can:
        assert b'"ask"' in output.stdout
    else:
        assert output.status == 2 or b'"deny"' in output.stdout or b'"cancel":true' in output.stdout
        assert "sure?" in (output.stdout.decode() + output.stderr)


@pytest.mark.parametrize("agent", names())
async def test_a_rewrite_has_the_agents_names_or_refuses_the_call(agent: str) -> None:
    side = agent_side(agent)
    assert side is not None
    rewrites = specific("PreToolUse", permissionDecision="allow", updatedInput={"command": "ls"})
    output = await output_of(agent, rewrites, BEFORE[agent])
    if Can.REWRITE in side.can:
        name = "cmd" if agent == "docker-agent" else "command"
        assert f'{{"{name}":"ls"}}' in output.stdout.decode().replace(": ", ":")
        assert b'"deny"' not in output.stdout
    else:
        assert output.status == 2 or b'"deny"' in output.stdout or b'"cancel":true' in output.stdout


@pytest.mark.parametrize("agent", AFTERWARDS)
async def test_a_hook_after_a_call_sees_the_result(agent: str, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    await output_of(agent, f"cat > {shlex.quote(str(seen))}", AFTER[agent], "mcp__files__.*")
    document = json.loads(seen.read_text())
    assert document["tool_name"].endswith("read")
    assert document["tool_input"] == {"path": "a"}
    assert ("hello" in json.dumps(document["tool_response"])) is (agent not in WITHOUT_RESULTS)


@pytest.mark.parametrize("agent", AFTERWARDS)
async def test_a_comment_reaches_the_model_or_is_reported(agent: str) -> None:
    side = agent_side(agent)
    assert side is not None
    output = await output_of(agent, specific("PostToolUse", additionalContext="look"), AFTER[agent])
    told = bool(side.can & (Can.TELL_AFTER | Can.BLOCK_AFTER))
    assert ("look" in output.stdout.decode()) is told
    assert told or "look" in output.stderr


@pytest.mark.parametrize("agent", AFTERWARDS)
async def test_output_that_is_replaced_never_stays_silently(agent: str) -> None:
    side = agent_side(agent)
    assert side is not None
    output = await output_of(agent, specific("PostToolUse", updatedMCPToolOutput="***"), AFTER[agent])
    if Can.REPLACE in side.can:
        assert b"***" in output.stdout
    else:
        assert f"{agent} does not let hooks replace the output of a tool" in output.stderr


EDITS: Final[dict[str, dict[str, Any]]] = {
    "augment": BEFORE["augment"]
    | {
        "tool_name": "str-replace-editor",
        "tool_input": {"path": "f", "old_str_1": "a", "new_str_1": "b", "old_str_2": "c", "new_str_2": "KEY"},
    },
    "docker-agent": BEFORE["docker-agent"]
    | {
        "tool_name": "edit_file",
        "tool_input": {"path": "f", "edits": [{"oldText": "a", "newText": "b"}, {"oldText": "c", "newText": "KEY"}]},
    },
}


@pytest.mark.parametrize("agent", EDITS)
@pytest.mark.parametrize(("matcher", "argument"), [("Edit", ".new_string"), ("MultiEdit", ".edits[].new_string")])
async def test_a_guard_of_edits_sees_the_text_of_each_edit(agent: str, matcher: str, argument: str) -> None:
    guard = f"jq -r '.tool_input.file_path, .tool_input{argument}' | tee /dev/stderr | grep -q KEY && exit 2"
    output = await output_of(agent, guard, EDITS[agent], matcher)
    assert output.status == 2 or b'"deny"' in output.stdout
    assert "f\n" in output.stderr or "f\\n" in output.stdout.decode()


async def test_a_rewrite_of_an_edit_of_docker_agent_is_refused() -> None:
    arguments = {"file_path": "g", "edits": [], "old_string": "", "new_string": ""}
    rewrites = specific("PreToolUse", permissionDecision="allow", updatedInput=arguments)
    output = await output_of("docker-agent", rewrites, EDITS["docker-agent"])
    assert b'"deny"' in output.stdout
    assert b"cannot be written as Docker Agent's" in output.stdout


@pytest.mark.parametrize("arguments", [{}, {"IFLOW_TOOL_ARGS": "no JSON"}])
def test_a_call_of_iflow_whose_arguments_nobody_gives_is_an_error(arguments: dict[str, str]) -> None:
    side = agent_side("iflow")
    assert side is not None
    with pytest.raises(ValueError, match=r"arguments|object|JSON"):
        side.read_document(b"", BEFORE_IFLOW | arguments)
    arguments = {"IFLOW_TOOL_ARGS": '{"command":"rm x"}'}
    event = side.read_document(b"", BEFORE_IFLOW | arguments)
    assert (event.context.tool, event.context.arguments) == ("run_shell_command", b'{"command":"rm x"}')


@pytest.mark.parametrize("text", ['{"hookSpecificOutput":{"permissionDecision":"allow"}}', ' {"continue":true}', "[]"])
async def test_a_text_for_claw_code_is_never_read_as_a_decision(text: str) -> None:
    output = await output_of("claw", specific("PreToolUse", additionalContext=text), BEFORE["claw"])
    assert output.stdout.startswith(b"The hook said: ")


async def test_a_result_that_a_hook_rejects_is_rejected_in_claw_code() -> None:
    side = agent_side("claw")
    assert side is not None
    hook = ForeignHook(DIALECTS["claw"], "echo secret; exit 2")
    output = await run_hooks([hook], side, json.dumps(AFTER["claw"]).encode(), {"PATH": "/usr/bin:/bin"})
    assert output.status == 2
    assert b"secret" in output.stdout


@pytest.mark.parametrize(
    ("agent", "changed"),
    [
        ("augment", {"tool_error": "boom", "tool_output": None}),
        ("claw", {"tool_output": "boom", "tool_result_is_error": True}),
        ("claw", {"hook_event_name": "PostToolUseFailure", "tool_error": "boom"}),
        ("code-assist", {"hook_event": "PostToolUseFailure", "tool_input": None, "tool_output": "boom"}),
        ("docker-agent", {"tool_response": "boom", "tool_error": True}),
    ],
)
def test_a_call_that_failed_is_a_failure(agent: str, changed: dict[str, Any]) -> None:
    side = agent_side(agent)
    assert side is not None
    context = side.read_document(json.dumps(AFTER[agent] | changed).encode(), {}).context
    assert context.event is Event.POST_TOOL_USE_FAILURE
    assert context.outcome is not None
    assert context.outcome.error == "boom"


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if agent_side(name)])
@pytest.mark.parametrize("document", [BEFORE["copilot"], AFTER["claude"]], ids=["own", "server"])
async def test_a_command_runs_once_for_a_call(dialect: str, document: dict[str, Any], tmp_path: Path) -> None:
    side = agent_side("copilot" if document is BEFORE["copilot"] else "claude")
    assert side is not None
    runs = tmp_path / "runs"
    hook = ForeignHook(DIALECTS[dialect], f"echo >> {shlex.quote(str(runs))}")
    await run_hooks([hook], side, json.dumps(document).encode(), {"PATH": "/usr/bin:/bin"})
    has_event = dialect != "crush" or document is BEFORE["copilot"]
    assert (runs.read_text() if runs.exists() else "") == "\n" * has_event


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dialect", "matcher", "name", "seen"),
    [
        ("cline", "", ".preToolUse.toolName", "execute_command"),
        ("cascade", "", ".agent_action_name", "pre_run_command"),
        ("claw", "", ".tool_name", "bash"),
        ("claw@current", "bash", ".tool_name", "bash"),
        ("code-assist", "", ".tool_name", "BashTool"),
        ("docker-agent", "shell", ".tool_name + .tool_input.cmd", "shellrm x"),
        ("docker-agent@current", "shell", ".tool_name + .tool_input.cmd", "shellrm x"),
        ("lime", "", ".tool_name", "bash"),
        ("copilot", "bash", ".tool_name", "bash"),
        ("copilot@current", "bash", ".tool_name", "bash"),
        ("augment", "launch-process", ".tool_name", "launch-process"),
        ("iflow", "Bash", ".tool_name", "run_shell_command"),
    ],
)
async def test_a_hook_sees_the_agents_shell_as_its_own_systems_shell(
    dialect: str, matcher: str, name: str, seen: str, tmp_path: Path
) -> None:
    side = agent_side("claude")
    assert side is not None
    note = tmp_path / "seen"
    hook = ForeignHook(DIALECTS[dialect], f"jq -r '{name}' > {shlex.quote(str(note))}", matcher=matcher)
    await run_hooks([hook], side, json.dumps(BEFORE["claude"]).encode(), {"PATH": "/usr/bin:/bin"})
    assert note.read_text().splitlines()[-1:] == [seen]


@pytest.mark.parametrize("agent", names())
@pytest.mark.parametrize("command", ["exit 1", "kill -9 $$", "/no/such/guard"])
async def test_a_failure_refuses_the_call_if_the_hook_was_configured_so(agent: str, command: str) -> None:
    side = agent_side(agent)
    assert side is not None
    environ = {"PATH": "/usr/bin:/bin", **(BEFORE_IFLOW if agent == "iflow" else {})}
    for fails_closed in (True, False):
        hook = ForeignHook(DIALECTS["claude"], command, fails_closed=fails_closed)
        output = await run_hooks([hook], side, json.dumps(BEFORE[agent]).encode(), environ)
        refuses = output.status == 2 or b'"deny"' in output.stdout or b'"cancel":true' in output.stdout
        assert refuses is fails_closed


@pytest.mark.parametrize(
    ("matcher", "tool", "runs"),
    [
        ("mcp__.*", "read_file", True),
        ("mcp__files__read_file", "read_file", True),
        ("Read", "read_file", True),
        ("Bash", "read_file", False),
        ("^WebFetch$", "read_file", False),
        ("mcp__.*", "files_read_file", True),
    ],
)
async def test_a_tool_of_docker_agent_may_be_a_servers_whatever_its_name(matcher: str, tool: str, runs: bool) -> None:
    document = BEFORE["docker-agent"] | {"tool_name": tool, "tool_input": {"path": "a"}}
    output = await output_of("docker-agent", "exit 2", document, matcher)
    assert (b'"deny"' in output.stdout) is runs


@pytest.mark.parametrize("agent", names())
async def test_a_reason_that_is_no_text_still_refuses(agent: str) -> None:
    half = (
        r'{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny",'
        r'"permissionDecisionReason":"a \ud800 b"}}'
    )
    output = await output_of(agent, f"printf %s {shlex.quote(half)}; exit 2", BEFORE[agent])
    assert output.status == 2 or b'"deny"' in output.stdout or b'"cancel":true' in output.stdout


KEYS: Final = st.sampled_from(sorted({*BEFORE["cline"], *AFTER["gemini"], *AFTER["cascade"], *BEFORE["cursor"]}))


@pytest.mark.parametrize("agent", names())
@given(
    raw=st.binary()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode())
)
def test_any_document_is_read_or_a_value_error(agent: str, raw: bytes) -> None:
    side = agent_side(agent)
    assert side is not None
    try:
        event = side.read_document(raw, {})
    except ValueError:
        return
    assert isinstance(event.context.event, Event)


@pytest.mark.parametrize("agent", names())
def test_members_of_the_wrong_type_are_a_value_error_or_absent(agent: str) -> None:
    side = agent_side(agent)
    assert side is not None
    keys = ("tool_input", "tool_info", "preToolUse", "workspaceRoots", "workspace_roots")
    values: tuple[object, ...] = (1, "x", None, [], [1], {}, {"a": 1}, "[]", '{"a":1,"a":2}')
    for key, value in product((key for key in keys if key in BEFORE[agent]), values):
        document = BEFORE[agent] | {key: value}
        with suppress(ValueError):
            event = side.read_document(json.dumps(document).encode(), {})
            assert event.context.event is Event.PRE_TOOL_USE, document
