"""What several hooks of one file decide together, where their system settles that itself; with real processes.

Sources: `codex-rs/hooks/src/events/{pre_tool_use,post_tool_use}.rs` of openai/codex: the first block reason in the
configured order, `join_text_chunks` of all feedback, `latest_updated_input` by completion order; `hookAggregator.ts` of
google-gemini/gemini-cli, `mergeWithOrDecision`: reasons joined by line ends; cursor.com/docs/hooks: `env` of
sessionStart is "Available to all subsequent hook executions".
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.dialects.dialect import Group
from hookproxy.dialects.registry import DIALECTS
from hookproxy.hooks.evaluate import Hooks
from hookproxy.model.decision import Decision, Proceed, Refuse
from hookproxy.model.hooks import Ended, Event, EventContext, HookResult, Outcome
from hookproxy.model.settings import OnAsk, Settings
from hookproxy.processes.environment import VARIABLE_LIMIT
from tests.dialects.calls import SESSION, inputs, read, text_outcome

pytestmark = pytest.mark.anyio

LATER = "sleep 0.1; "


def prints(output: object, before: str = "") -> str:
    """A command that prints this as JSON."""
    return f"{before}echo {shlex.quote(json.dumps(output))}"


def before(**members: object) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **members}}


def hooks_of(dialect: str, **events: list[str]) -> Hooks:
    """The hooks of a file with these commands, in groups of one."""
    groups = {name: [{"hooks": [{"type": "command", "command": each}]} for each in events[name]] for name in events}
    return running(group_of(dialect, {"hooks": groups}))


def group_of(dialect: str, content: object) -> Group:
    """The hooks of a file, which run in a folder that there is."""
    specs = tuple(replace(spec, cwd="/") for spec in read(dialect, content).hooks)
    return Group(DIALECTS[dialect], dialect, specs, DIALECTS[dialect].tool_names)


def running(*groups: Group) -> Hooks:
    return Hooks(groups, Settings(on_ask=OnAsk.DENY), SESSION.server, {"PATH": "/usr/bin:/bin"})


async def decide(hooks: Hooks) -> Decision:
    context = EventContext(Event.PRE_TOOL_USE, SESSION, "peek", "peek", "call_1", b'{"a":1}')
    with anyio.fail_after(30):
        return (await hooks.run_pre_hooks(context, None, [])).decision


async def replacement(hooks: Hooks, outcome: Outcome) -> bytes | None:
    context = EventContext(Event.POST_TOOL_USE, SESSION, "peek", "peek", "call_1", b"{}", outcome=outcome)
    with anyio.fail_after(30):
        return (await hooks.run_post_hooks(context, [])).replacement


async def test_codex_gives_the_reason_of_the_first_denial_in_the_file_alone() -> None:
    first = prints(before(permissionDecision="deny", permissionDecisionReason="first"), LATER)
    second = prints({"decision": "block", "reason": "second"})
    decision = await decide(hooks_of("codex", PreToolUse=[prints({}), first, second]))
    assert isinstance(decision, Refuse)
    assert decision.reason == "first"


async def test_codex_calls_with_the_arguments_of_the_hook_that_ended_last() -> None:
    def rewrites(value: int, wait: str = "") -> str:
        return prints(before(permissionDecision="allow", updatedInput={"a": value}), wait)

    decision = await decide(hooks_of("codex", PreToolUse=[rewrites(2, LATER), rewrites(3)]))
    assert isinstance(decision, Proceed)
    assert json.loads(decision.arguments or b"") == {"a": 2}


async def test_codex_replaces_a_result_with_the_feedback_of_all_hooks_in_the_order_of_the_file() -> None:
    stops = prints({"continue": False, "stopReason": "second"})
    commands = [prints({"decision": "block", "reason": "first"}, LATER), "exit 1", stops, "echo third >&2; exit 2"]
    found = await replacement(hooks_of("codex", PostToolUse=commands), text_outcome("secret"))
    assert found == b'"first\\n\\nsecond\\n\\nthird"'


async def test_one_hook_of_codex_replaces_a_result_alone() -> None:
    found = await replacement(hooks_of("codex", PostToolUse=["exit 1", "echo no >&2; exit 2"]), text_outcome("secret"))
    assert found == b'"no"'


async def test_gemini_replaces_a_result_with_all_reasons() -> None:
    commands = [prints({"decision": "deny", "reason": "one"}, LATER), prints({"continue": False, "stopReason": "two"})]
    found = await replacement(hooks_of("gemini", AfterTool=commands), text_outcome("secret"))
    assert found == b'"one\\ntwo"'


async def test_what_a_text_is_not_is_not_joined() -> None:
    """Claude Code's hooks may replace a result with blocks: the last one in the file counts, as before."""
    outputs = [
        {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": each}} for each in ("a", "b")
    ]
    found = await replacement(hooks_of("claude", PostToolUse=list(map(prints, outputs))), text_outcome("secret"))
    assert found == b'"b"'


async def test_the_same_command_runs_as_often_as_codex_runs_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    await decide(hooks_of("codex", PreToolUse=[f"echo x >>{log}"] * 2))
    assert log.read_text() == "x\nx\n"
    log.unlink()
    await decide(hooks_of("claude", PreToolUse=[f"echo x >>{log}"] * 2))
    assert log.read_text() == "x\n"


@pytest.mark.parametrize(
    ("other", "runs"),
    [
        ({}, 1),
        ({"statusMessage": "checking"}, 1),
        ({"args": ["x"]}, 2),
        ({"if": "mcp__files__peek(*)"}, 2),
        ({"onFailure": "block"}, 2),
        ({"timeout": 5}, 2),  # Claude Code runs the first; here no guard is lost to an entry that gives up earlier
    ],
)
def test_entries_with_the_same_command_and_arguments_run_once(other: dict[str, Any], runs: int) -> None:
    """code.claude.com/docs/en/hooks: "Command hooks are deduplicated by command string and args"."""
    entry = {"type": "command", "command": "x"}
    groups = [{"hooks": [entry]}, {"matcher": "mcp__.*", "hooks": [entry | other]}]
    assert len(inputs(read("claude", {"hooks": {"PreToolUse": groups}}), "peek")) == runs


@pytest.mark.parametrize(
    ("dialect", "event", "with_error"),
    [("gemini", "AfterTool", False), ("vscode", "PostToolUse", False), ("qwen", "PostToolUseFailure", True)],
)
async def test_an_error_without_a_result_has_an_event_only_where_its_system_has_one(
    tmp_path: Path, dialect: str, event: str, with_error: bool
) -> None:
    """`coreToolHookTriggers.ts` of Gemini CLI, `toolCalling.tsx` of VS Code: hooks follow a tool that has returned."""
    log = tmp_path / "log"
    hooks = hooks_of(dialect, **{event: [f"echo x >>{log}"]})
    failed = EventContext(Event.POST_TOOL_USE_FAILURE, SESSION, "peek", "peek", "call_1", b"{}")
    for outcome in (text_outcome("broken", failed=True), Outcome(error="MCP error -32603: broken")):
        with anyio.fail_after(30):
            await hooks.run_post_hooks(replace(failed, outcome=outcome), [])
    assert log.read_text() == "x\n" * (1 + with_error)


async def test_variables_of_cursors_session_start_reach_its_later_hooks_and_no_others(tmp_path: Path) -> None:
    log = tmp_path / "log"
    start = {"command": prints({"env": {"TEAM": "blue", "PATH": "/usr/bin:/bin:/mine"}})}
    guard = {"command": f'echo "cursor $TEAM $PATH" >>{log}'}
    hooks = {"version": 1, "hooks": {"sessionStart": [start], "preToolUse": [guard], "sessionEnd": [guard]}}
    entry = {"type": "command", "command": f'echo "claude $TEAM" >>{log}'}
    of_claude = group_of("claude", {"hooks": {"PreToolUse": [{"hooks": [entry]}]}})
    all_hooks = running(group_of("cursor", hooks), of_claude)
    await decide(all_hooks)
    with anyio.fail_after(30):
        await all_hooks.run_event_hooks(EventContext(Event.SESSION_START, SESSION, trigger="startup"))
    await decide(all_hooks)
    with anyio.fail_after(30):
        await all_hooks.run_event_hooks(EventContext(Event.SESSION_END, SESSION, trigger="other"))
    assert log.read_text().splitlines() == [
        "cursor  /usr/bin:/bin",
        "claude ",
        "cursor blue /usr/bin:/bin:/mine",
        "claude ",
        "cursor blue /usr/bin:/bin:/mine",
    ]
    log.unlink()
    after_reload = running(group_of("cursor", hooks))
    after_reload.go_on_from(all_hooks)
    await decide(after_reload)
    assert log.read_text() == "cursor blue /usr/bin:/bin:/mine\n"


@pytest.mark.parametrize(
    ("dialect", "event", "member"),
    [("codex", "PostToolUse", "tool_response"), ("cursor", "postToolUse", "tool_output")],
)
@pytest.mark.parametrize("spelling", ['{"n":1}', r'{"\u006e":1}'])
def test_a_result_keeps_structured_content_that_a_text_repeats(
    dialect: str, event: str, member: str, spelling: str
) -> None:
    """codex-rs, `core/src/tools/handlers/mcp.rs`: the CallToolResult; Cursor's page: the result payload."""
    entry = {"type": "command", "command": "x"}
    content = {"hooks": {event: [entry if dialect == "cursor" else {"hooks": [entry]}]}}
    blocks = json.dumps([{"type": "text", "text": spelling}]).encode()
    outcome = Outcome(blocks, True, structured=spelling.encode(), repeats_structured=True)
    (found,) = inputs(read(dialect, content), "peek", {}, Event.POST_TOOL_USE, outcome)
    result = found.document[member]
    result = json.loads(result) if isinstance(result, str) else result
    assert result["structuredContent"] == {"n": 1}
    assert result["content"] == [{"type": "text", "text": spelling}]


def test_a_variable_with_which_no_program_could_be_started_is_not_set() -> None:
    longest = VARIABLE_LIMIT - len("A=\0")
    spec = read("cursor", {"version": 1, "hooks": {"sessionStart": [{"command": "x"}]}}).hooks[0]
    for length, kept in ((longest, 1), (longest + 1, 0)):
        stdout = json.dumps({"env": {"A": "x" * length}}).encode()
        verdict = DIALECTS["cursor"].read_output(spec, HookResult(Ended.EXITED, 0, stdout))
        assert (len(verdict.variables), len(verdict.messages)) == (kept, 1 - kept)


def test_structured_content_that_could_be_read_in_two_ways_stays_out() -> None:
    twins = '{"n":1,"n":2}'
    blocks = json.dumps([{"type": "text", "text": twins}]).encode()
    outcome = Outcome(blocks, True, structured=twins.encode(), repeats_structured=True)
    hook_file = {"hooks": {"PostToolUse": [{"hooks": [{"type": "command", "command": "x"}]}]}}
    (found,) = inputs(read("codex", hook_file), "peek", {}, Event.POST_TOOL_USE, outcome)
    assert found.document["tool_response"] == {"content": [{"type": "text", "text": twins}], "isError": False}
