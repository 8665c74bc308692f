"""Hooks of other systems as interceptors of AGENT-HOOKS-0.1, and such interceptors in other systems' agents."""

from __future__ import annotations

import json
import shlex
import subprocess
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

from hookproxy.cli.convert import main
from hookproxy.convert.run_hook import ForeignHook, run_hooks
from hookproxy.dialects.agent_side import side_of
from hookproxy.dialects.registry import hook_system
from hookproxy.model.errors import UserError

pytestmark = pytest.mark.anyio

CONTEXT: Final = {
    "spec": "agent-hooks/0.1",
    "interception_point": "pre_tool_call",
    "timestamp": "2026-06-19T14:03:11.123Z",
    "sequence": 1,
    "agent": {"id": "a", "framework": "langchain"},
    "session": {"id": "s"},
}
BASH: Final = {"tool_call": {"id": "1", "name": "Bash", "args": {"command": "rm x"}}, "target": {"command": "rm x"}}
FAILED: Final = BASH | {
    "interception_point": "post_tool_call",
    "tool_result": {"value": "no x", "is_error": True},
    "target": "no x",
}
RESULT: Final = FAILED | {"tool_result": {"value": "hello", "is_error": False}, "target": "hello"}


def specific(event: str, **members: object) -> str:
    return f"printf %s {shlex.quote(json.dumps({'hookSpecificOutput': {'hookEventName': event, **members}}))}"


async def verdict_of(
    command: str, document: object, matcher: str = "", event: str = "", fails_closed: bool = False
) -> dict[str, Any]:
    """The verdict of a hook of Claude Code about a context; it is one by the schema of the standard."""
    side = side_of("agent-hooks")
    assert side is not None
    hook = ForeignHook(hook_system("claude"), command, event, matcher, fails_closed=fails_closed)
    raw = document if isinstance(document, bytes) else json.dumps(document).encode()
    output = await run_hooks([hook], side, raw, {"PATH": "/usr/bin:/bin"})
    assert output.status == 0
    verdict: dict[str, Any] = json.loads(output.stdout)
    schema = json.loads((files("agent_hooks") / "schema" / "verdict.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(verdict)
    return verdict


@pytest.mark.parametrize(
    ("command", "members", "verdict"),
    [
        ("true", BASH, {"decision": "allow"}),
        ("echo no rm >&2; exit 2", BASH, {"decision": "deny", "message": "no rm"}),
        (
            specific("PreToolUse", permissionDecision="ask", permissionDecisionReason="sure?"),
            BASH,
            {"decision": "deny", "message": "sure?", "approval": {}},
        ),
        (
            specific("PreToolUse", permissionDecision="allow", updatedInput={"command": "ls"}),
            BASH,
            {"decision": "transform", "transform": {"path": "$target", "value": {"command": "ls"}}},
        ),
        (
            specific("PreToolUse", permissionDecision="ask", updatedInput={"command": "ls"}),
            BASH,
            {
                "decision": "deny",
                "message": "A hook wants a person to approve changed arguments, and a verdict cannot say both.",
            },
        ),
        ('echo \'{"systemMessage": "look"}\'', BASH, {"decision": "allow", "warnings": [{"message": "look"}]}),
        (
            specific("PostToolUse", updatedToolOutput="bye"),
            RESULT,
            {"decision": "transform", "transform": {"path": "$target", "value": "bye"}},
        ),
        ("exit 1", RESULT, {"decision": "allow"}),
    ],
)
async def test_each_decision_of_a_hook_is_a_verdict(command: str, members: dict[str, Any], verdict: object) -> None:
    assert await verdict_of(command, CONTEXT | members) == verdict


@pytest.mark.parametrize(
    ("value", "replaced"),
    [
        ("hello", "bye"),
        ([{"type": "text", "text": "hello"}], [{"type": "text", "text": "bye"}]),
        ({"content": [{"type": "text", "text": "hello"}]}, {"content": [{"type": "text", "text": "bye"}]}),
        ({"greeting": "hello"}, "bye"),
        (5, "bye"),
    ],
)
async def test_a_replaced_result_has_the_form_of_the_hosts_own(value: object, replaced: object) -> None:
    command = specific("PostToolUse", updatedMCPToolOutput={"content": [{"type": "text", "text": "bye"}]})
    members = RESULT | {"tool_result": {"value": value, "is_error": False}, "target": value}
    verdict = await verdict_of(command, CONTEXT | members)
    assert verdict == {"decision": "transform", "transform": {"path": "$target", "value": replaced}}


async def test_a_replacement_that_is_more_than_text_stays_as_it_is() -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    for content in ([image], [1]):
        command = specific("PostToolUse", updatedMCPToolOutput={"content": content})
        verdict = await verdict_of(command, CONTEXT | RESULT)
        assert verdict["transform"]["value"] == content


async def test_a_result_that_a_failed_hook_withholds_is_replaced() -> None:
    verdict = await verdict_of("exit 1", CONTEXT | RESULT, fails_closed=True)
    assert verdict["decision"] == "transform"
    assert "hello" not in verdict["transform"]["value"]


@pytest.mark.parametrize(
    ("output", "verdict"),
    [
        ("hello", {"decision": "allow", "warnings": [{"message": "hello"}]}),
        ('{"continue": false}', {"decision": "deny", "message": "a hook stops the agent"}),
    ],
)
async def test_a_hook_of_a_session_warns_or_stops_it(output: str, verdict: object) -> None:
    startup = {"interception_point": "agent_startup", "agent_init": {"tools_registered": []}, "target": {}}
    assert await verdict_of(f"echo {shlex.quote(output)}", CONTEXT | startup) == verdict


@pytest.mark.parametrize("point", ["input", "pre_model_call", "post_model_call", "output"])
async def test_points_that_other_systems_do_not_have_are_allowed_without_a_run(point: str) -> None:
    assert await verdict_of("exit 2", CONTEXT | {"interception_point": point}) == {"decision": "allow"}


async def test_a_failed_call_runs_no_hook_for_calls_that_succeeded() -> None:
    assert await verdict_of("exit 2", CONTEXT | FAILED, event="PostToolUse") == {"decision": "allow"}


@pytest.mark.parametrize(
    "document",
    [
        CONTEXT | {"interception_point": "pre_tool"},
        CONTEXT,
        CONTEXT | {"tool_call": {"name": "Bash", "args": {}}, "target": [1]},
        b"{",
    ],
)
async def test_a_context_that_cannot_be_read_raises_so_that_the_call_is_denied(document: object) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        await verdict_of("true", document)
    side = side_of("agent-hooks")
    assert side is not None
    assert json.loads(side.refuse("why").stdout) == {"decision": "deny", "message": "why"}


@pytest.mark.parametrize(
    ("agent", "name", "matcher", "runs"),
    [
        ({"id": "files", "framework": "hookproxy"}, "read", "mcp__files__read", True),
        ({"id": "files", "framework": "hookproxy"}, "read", "mcp__mail__.*", False),
        ({"id": "files", "framework": "hookproxy"}, "Bash", "mcp__files__.*", True),
        (CONTEXT["agent"], "Bash", "Bash", True),
        (CONTEXT["agent"], "Bash", "Write", False),
        (CONTEXT["agent"], "read", "mcp__files__.*", True),
        (CONTEXT["agent"], "mcp__files__read", "mcp__files__.*", True),
        (CONTEXT["agent"], "mcp__files__read", "mcp__mail__.*", False),
    ],
)
async def test_a_matcher_that_may_be_about_the_tool_counts(agent: object, name: str, matcher: str, runs: bool) -> None:
    call = {"tool_call": {"id": "1", "name": name, "args": {}}, "target": {}, "agent": agent}
    verdict = await verdict_of("exit 2", CONTEXT | call, matcher)
    assert verdict["decision"] == ("deny" if runs else "allow")


async def test_an_interceptor_in_an_agent_gets_a_context_and_its_failure_refuses_the_call(tmp_path: Path) -> None:
    side, standard = side_of("claude"), hook_system("agent-hooks")
    assert side is not None
    call = {"hook_event_name": "PreToolUse", "session_id": "s", "permission_mode": "default"}
    document = json.dumps(call | {"tool_name": "Bash", "tool_input": {"command": "rm x"}}).encode()

    async def decision(command: str, event: str = "", matcher: str = "") -> str:
        hook = ForeignHook(standard, command, event, matcher)
        output = await run_hooks([hook], side, document, {"PATH": "/usr/bin:/bin"})
        return output.stdout.decode() + output.stderr

    assert '"ask"' in await decision("""echo '{"decision": "deny", "approval": {}, "message": "sure?"}'""")
    rewrites = """echo '{"decision": "transform", "transform": {"path": "$target.command", "value": "ls"}}'"""
    assert '{"command":"ls"}' in await decision(rewrites)
    assert '"deny"' in await decision("true")  # it printed no verdict
    assert await decision("exit 1", matcher="Write") == ""
    seen = tmp_path / "seen"
    await decision(f"""cat >{seen}; echo '{{"decision": "allow"}}'""")
    context = json.loads(seen.read_text())
    assert (context["tool_call"]["name"], context["target"]) == ("Bash", {"command": "rm x"})
    with pytest.raises(UserError, match="cannot run this hook"):
        await decision("true", event="input")


def written(tmp_path: Path, text: str) -> Path:
    (tmp_path / "hookproxy.toml").write_text(text)
    return tmp_path / "hookproxy.toml"


def test_what_is_lost_of_a_hookproxy_toml_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    interceptor = '[[hooks.PreToolUse]]\ntype = "agent-hooks"\ncommand = "guard"\n'
    path = written(
        tmp_path,
        f'{interceptor}matcher = "Bash"\n{interceptor}mode = "evaluate_only"\n'
        '[[hooks.PreToolUse]]\ncommand = "own"\n[hooks.composition]\nprofile = "parallel/unanimous"\n',
    )
    assert main([str(path), "--from", "agent-hooks", "--to", "claude"]) == 1
    printed = capsys.readouterr()
    (group,) = json.loads(printed.out)["hooks"]["PreToolUse"]
    assert "--as agent-hooks --matcher Bash --fail-closed -- guard" in group["hooks"][0]["command"]
    for told in ("hooks.PreToolUse[1] is left out: it is evaluate_only", "not of agent-hooks", "hooks.composition"):
        assert told in printed.err
    with pytest.raises(UserError) as raised:
        main([str(path), "--to", "claude"])
    assert raised.value.hint.startswith("name what to convert of it: --from agent-hooks")
    with pytest.raises(UserError, match="this is another file"):
        main(["settings.json", "--from", "agent-hooks", "--to", "claude"])


@pytest.mark.slow
def test_a_hook_goes_to_the_standard_and_back_and_still_denies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".claude").mkdir()
    line = 'grep -q \'"command":"rm \' && { echo no rm >&2; exit 2; } || true'
    group = {"matcher": "Bash", "hooks": [{"type": "command", "command": line}]}
    (tmp_path / ".claude/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [group]}}))
    assert main([".claude/settings.json", "--to", "agent-hooks", "--write"]) == 1
    assert "its matcher names tools as claude does, and each host" in capsys.readouterr().err
    (table,) = tomllib.loads((tmp_path / "hookproxy.toml").read_text())["hooks"]["PreToolUse"]
    given = json.dumps(CONTEXT | BASH)
    ended = subprocess.run(table["command"], shell=True, input=given, capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout) == {"decision": "deny", "message": "no rm"}
    capsys.readouterr()
    assert main(["hookproxy.toml", "--from", "agent-hooks", "--to", "cursor", "--write"]) == 1  # Cursor cannot ask
    (hook,) = json.loads((tmp_path / ".cursor/hooks.json").read_text())["hooks"]["preToolUse"]
    call = {"hook_event_name": "preToolUse", "cursor_version": "2", "conversation_id": "c", "tool_use_id": "1"}
    given = json.dumps(call | {"tool_name": "Shell", "tool_input": {"command": "rm x"}, "cwd": str(tmp_path)})
    ended = subprocess.run(hook["command"], shell=True, input=given, capture_output=True, text=True, check=False)
    assert "no rm" in ended.stdout
    assert '"deny"' in ended.stdout
