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
from hookproxy.model.hooks import Ended, Event, HookResult, HookSpec, Permission
from tests.dialects.tables import agents

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

AGENTS: Final = agents()
BEFORE: Final = {name: agent.before for name, agent in AGENTS.items()}
AFTER: Final = {name: agent.after for name, agent in AGENTS.items() if agent.after is not None}
BEFORE_IFLOW: Final = AGENTS["iflow"].before_variables
WITHOUT_RESULTS: Final = ("antigravity", "crush", "goose")
"""Crush has no event after a call; Antigravity and Goose give their hooks no result."""
AFTERWARDS: Final = list(AFTER)


def prints(value: object) -> str:
    return f"printf %s {shlex.quote(json.dumps(value))}"


def specific(event: str, **members: object) -> str:
    return prints({"hookSpecificOutput": {"hookEventName": event, **members}})


async def output_of(agent: str, command: str, document: object, matcher: str = "") -> HookOutput:
    side = agent_side(agent)
    assert side is not None
    hook = ForeignHook(DIALECTS["claude"], command, matcher=matcher)
    known = AGENTS[agent]
    variables = known.before_variables if document is known.before else known.after_variables
    return await run_hooks([hook], side, json.dumps(document).encode(), {"PATH": "/usr/bin:/bin", **variables})


def refuses(agent: str, output: HookOutput) -> bool:
    """Whether the agent reads this output of a hook before a call as a denial, by our reading of its hooks."""
    name = next(name for name, event in DIALECTS[agent].events.items() if event is Event.PRE_TOOL_USE)
    spec = HookSpec(agent, "f", Event.PRE_TOOL_USE, "h", shell="h", event_name=name)
    result = HookResult(Ended.EXITED, output.status, output.stdout, output.stderr.encode())
    return DIALECTS[agent].read_output(spec, result).permission is Permission.DENY


@pytest.mark.parametrize("agent", names())
def test_what_refuses_a_call_that_cannot_be_judged_is_read_as_a_denial(agent: str) -> None:
    side = agent_side(agent)
    assert side is not None
    assert refuses(agent, side.refuse("no folder"))
    assert not refuses(agent, HookOutput(AGENTS[agent].no_decision.encode()))


@pytest.mark.parametrize("agent", names())
async def test_a_denial_of_the_agents_own_shell(agent: str) -> None:
    output = await output_of(agent, "echo no rm >&2; exit 2", BEFORE[agent], "Bash")
    denied = AGENTS[agent].denied
    if isinstance(denied, dict):
        assert (output.status, json.loads(output.stdout)) == (0, denied)
    else:
        assert (output.status, output.stdout.decode()) == (2, denied)
        assert denied or output.stderr == "no rm"


@pytest.mark.parametrize("agent", names())
async def test_the_hook_gets_the_command_under_its_own_names(agent: str, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    output = await output_of(agent, f"cat > {shlex.quote(str(seen))}", BEFORE[agent], "Bash")
    document = json.loads(seen.read_text())
    assert (document["tool_name"], document["tool_input"]["command"]) == ("Bash", "rm x")
    assert (output.status, output.stdout) == (0, AGENTS[agent].no_decision.encode())


@pytest.mark.parametrize("agent", names())
async def test_a_question_is_asked_or_refuses_the_call(agent: str) -> None:
    side = agent_side(agent)
    assert side is not None
    asks = specific("PreToolUse", permissionDecision="ask", permissionDecisionReason="sure?")
    output = await output_of(agent, asks, BEFORE[agent])
    if Can.ASK in side.can:
        assert b'ask"' in output.stdout
    else:
        assert refuses(agent, output)
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
        assert refuses(agent, output)


@pytest.mark.parametrize(("agent", "permission"), [("claude", {}), ("codex", {"permissionDecision": "allow"})])
async def test_a_rewrite_without_a_decision_allows_a_call_only_where_the_agent_demands_it(
    agent: str, permission: dict[str, str]
) -> None:
    rewritten = {"updatedInput": {"command": "ls"}}
    output = await output_of(agent, specific("PreToolUse", **rewritten), BEFORE[agent])
    assert json.loads(output.stdout)["hookSpecificOutput"] == {"hookEventName": "PreToolUse", **permission, **rewritten}


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
    assert refuses(agent, output)
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
        assert refuses(agent, output) is fails_closed


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
    assert refuses(agent, output)


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
