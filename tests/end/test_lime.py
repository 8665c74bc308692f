"""Lime's settings files and the scripts of its hooks page in front of a real process, for an agent that is not Lime."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.dialects.tables import sample
from tests.end.agent import Agent, Json, Scene, call, cancel, refused, request, text_of

# The scripts of the page, unchanged; the line breaks and the indentation that its text had lost are restored.

AUDIT = r"""#!/usr/bin/env bash
jq -c '. | {event: .event, tool: .tool_name, ok: (.is_error|not)}' \
  >> ~/.lime/audit.log
"""

BLOCK = """#!/usr/bin/env bash
# PreToolUse — refuses anything that looks like rm -rf
input="$HOOK_TOOL_INPUT"
if [[ "$HOOK_TOOL_NAME" == "bash" && "$input" == *"rm -rf"* ]]; then
  cat <<'EOF'
{ "hookSpecificOutput": { "permissionDecision": "deny", "permissionDecisionReason": "rm -rf is blocked by hook" }}
EOF
  exit 0
fi
"""

INJECT = """#!/usr/bin/env bash
cat <<'EOF'
{ "hookSpecificOutput": { "additionalContext": "Note: this repo uses pnpm, not npm." }}
EOF
"""

SETTINGS = sample("lime.json")

PROTOCOL = """{ "systemMessage": "Suppressed by audit hook.", "reason": "Hook policy", "hookSpecificOutput": {
    "permissionDecision": "deny", "permissionDecisionReason": "git push to main is restricted",
    "additionalContext": "see runbook RB-42", "updatedInput": { "command": "git push origin feature/branch" },
    "updatedPermissions": ["Bash(git push:*)"], "interrupt": true },
  "interrupt": true, "continue": false, "decision": "block"}
"""

FAILED: Json = {"content": [{"type": "text", "text": "it broke"}], "isError": True}


def settings(scene: Scene, events: dict[str, list[str]]) -> str:
    """The path of a settings file with these hooks."""
    return scene.file("settings.json", json.dumps({"hooks": events}))


def hooks(scene: Scene, **events: list[str]) -> str:
    return f"--hooks=lime={settings(scene, events)}"


def awaiting(scene: Scene, **events: list[str]) -> str:
    """`--config` with the settings file and `await_post`."""
    file = settings(scene, events)
    return scene.config(f'[[use]]\nfile = "{file}"\ndialect = "lime"\nawait_post = true\n')


def script(scene: Scene, name: str, text: str) -> str:
    return scene.file(name, text, mode=0o700)


async def begun(scene: Scene, *options: str) -> Agent:
    agent = scene.run(*options)
    await agent.initialize()
    return agent


def audit_log(scene: Scene) -> Path:
    folder = Path(scene.env["HOME"]) / ".lime"
    folder.mkdir()
    return folder / "audit.log"


def logged(log: Path) -> list[Json]:
    return [json.loads(line) for line in log.read_text().splitlines()]


# --- the scripts of the page ---


async def test_the_audit_script_logs_each_event_and_never_blocks(scene: Scene) -> None:
    log, done = audit_log(scene), scene.gate("done")
    audit = script(scene, "audit.sh", AUDIT)
    after = f"{audit}; {done.report}"
    agent = await begun(
        scene, hooks(scene, SessionStart=[audit], PreToolUse=[audit], PostToolUse=[after], PostToolUseFailure=[after])
    )
    assert text_of(await agent.ask(call(1, "bash", command="rm -rf /"))) == "ran bash"
    await done.reached()
    assert (await agent.ask(call(2, "reply", result=FAILED)))["result"] == FAILED
    await done.reached()
    assert logged(log) == [
        {"event": "SessionStart", "tool": None, "ok": True},
        {"event": "PreToolUse", "tool": "bash", "ok": True},
        {"event": "PostToolUse", "tool": "bash", "ok": True},
        {"event": "PreToolUse", "tool": "reply", "ok": True},
        {"event": "PostToolUseFailure", "tool": "reply", "ok": False},
    ]
    assert agent.reports() == ""


async def test_the_audit_script_blocks_nothing_even_where_it_cannot_write(scene: Scene) -> None:
    agent = await begun(scene, hooks(scene, PreToolUse=[script(scene, "audit.sh", AUDIT)]))
    assert text_of(await agent.ask(call(1, "bash"))) == "ran bash"
    assert "PreToolUse hook audit.sh" in agent.standard_error()
    assert "exited with status 1" in agent.standard_error()


async def test_the_script_against_destructive_shell_blocks_that_and_nothing_else(scene: Scene) -> None:
    agent = await begun(scene, hooks(scene, PreToolUse=[script(scene, "block.sh", BLOCK)]))
    text = refused(await agent.ask(call(1, "bash", command="cd /tmp && rm -rf .")))
    assert text == "Blocked by the PreToolUse hook block.sh: rm -rf is blocked by hook"
    assert scene.calls_received() == []
    assert text_of(await agent.ask(call(2, "bash", command="rm -r build"))) == "ran bash"
    assert text_of(await agent.ask(call(3, "echo", text="rm -rf"))) == '{"text": "rm -rf"}'
    assert len(scene.calls_received()) == 2


async def test_the_script_against_destructive_shell_sees_through_other_spellings(scene: Scene) -> None:
    agent = await begun(scene, hooks(scene, PreToolUse=[script(scene, "block.sh", BLOCK)]))
    for number, spelling in enumerate((rb"rm\u0020-rf", rb"rm \u002drf", rb"\u0072m -rf")):
        params = b'{"name":"b\\u0061sh","arguments":{"command":"%b /"}}' % spelling
        await agent.send(b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%b}\n' % (number, params))
        assert "rm -rf is blocked by hook" in refused(await agent.answer(number))
    assert scene.calls_received() == []


async def test_the_script_that_injects_context_adds_it_to_the_result(scene: Scene) -> None:
    agent = await begun(scene, hooks(scene, PreToolUse=[script(scene, "inject.sh", INJECT)]))
    result = (await agent.ask(call(1, "bash")))["result"]
    assert [block["text"] for block in result["content"]] == ["ran bash", "Note: this repo uses pnpm, not npm."]


async def test_the_settings_of_the_page_run_unchanged(scene: Scene) -> None:
    project = scene.folder / "project"
    (project / ".lime").mkdir(parents=True)
    (project / "scripts").mkdir()
    (project / ".lime/settings.json").write_text(SETTINGS)
    gates = {}
    for name in ("before_tool", "log_tool", "alert", "cleanup", "notify", "audit"):
        gates[name] = scene.gate(name)
        path = project / f"scripts/{name}.sh"
        path.write_text(f"#!/bin/sh\n{gates[name].report}\n")
        path.chmod(0o700)
    agent = scene.run(f"--hooks={project}/.lime/settings.json")  # the dialect is recognised by the file's shape
    assert "instructions" not in (await agent.initialize())["result"]
    assert text_of(await agent.ask(call(1, "bash"))) == "ran bash"
    await gates["before_tool"].reached()
    await gates["log_tool"].reached()
    await agent.ask(call(2, "reply", result=FAILED))
    await gates["alert"].reached()
    agent.end_input()
    await agent.rest()
    assert await agent.ended() == 0
    await gates["cleanup"].reached()
    assert not gates["notify"].visited
    assert "hooks.PostCompact cannot fire behind MCP" in agent.standard_error()
    assert "1 of 1 hook lets a call pass if it fails" in agent.standard_error()
    assert len(agent.standard_error().splitlines()) == 2


async def test_the_answer_of_the_page_denies_the_call_and_the_other_pending_calls(scene: Scene) -> None:
    gate, stops = scene.gate("held"), scene.prints(PROTOCOL)
    select = f'if [ "$HOOK_TOOL_NAME" = echo ]; then {gate.script}; else {stops}; fi'
    agent = await begun(scene, hooks(scene, PreToolUse=[select]))
    await agent.send(call(1, "echo"))
    await gate.reached()
    text = refused(await agent.ask(call(2, "bash", command="git push origin main")))
    assert "git push to main is restricted" in text
    assert "Make no further calls" in text
    assert text.endswith("see runbook RB-42")
    assert "git push to main is restricted" in refused(await agent.answer(1))
    assert scene.calls_received() == []
    assert ": Suppressed by audit hook.\n" in agent.standard_error()
    assert ": Hook policy\n" in agent.standard_error()


# --- other rules of the page ---


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("exit 2", "gave no reason"),
        ("echo 'not today' >&2; exit 2", "not today"),
        ("echo 'not today'; exit 2", "not today"),
        ('echo \'{"reason":"not today"}\'; echo else >&2; exit 2', "not today"),
        ('echo \'{"decision":"block","reason":"not today"}\'', "not today"),
        ('echo \'{"continue":false,"reason":"not today"}\'', "not today"),
        ('echo \'{"hookSpecificOutput":{"interrupt":true}}\'', "Make no further calls"),
    ],
)
async def test_a_denial_keeps_the_call_from_the_server(scene: Scene, command: str, reason: str) -> None:
    agent = await begun(scene, hooks(scene, PreToolUse=[command]))
    assert reason in refused(await agent.ask(call(1, "bash")))
    assert scene.calls_received() == []


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo plain; echo aside >&2", ""),
        ("echo '[1]'", ""),
        ("echo broken >&2; exit 1", "exited with status 1: broken"),
        ("kill -KILL $$", "was ended by signal SIGKILL"),
        ("./no/such/hook", "exited with status 127"),
        ("echo '{nonsense}'", "printed JSON that cannot be read"),
        ('echo \'{"decision":"block"\'', "printed JSON that is incomplete or followed by other text"),
        ('echo \'{"decision":"block"}\'; exit 3', "exited with status 3"),
    ],
)
async def test_a_hook_without_output_or_that_fails_lets_the_call_pass(
    scene: Scene, command: str, expected: str
) -> None:
    agent = await begun(scene, hooks(scene, PreToolUse=[command]))
    assert (await agent.ask(call(1, "echo", a=1)))["result"] == {"content": [{"type": "text", "text": '{"a": 1}'}]}
    assert expected in agent.standard_error()
    assert bool(expected) is bool(agent.reports())


async def test_on_failure_deny_blocks_what_the_page_lets_go(scene: Scene) -> None:
    agent = await begun(scene, scene.config('on_failure = "deny"\n'), hooks(scene, PreToolUse=["echo '{'"]))
    assert 'on_failure = "deny"' in refused(await agent.ask(call(1, "bash")))


async def test_updated_input_replaces_the_arguments(scene: Scene) -> None:
    rewrite = scene.prints({"hookSpecificOutput": {"updatedInput": {"command": "git push origin feature/branch"}}})
    agent = await begun(scene, hooks(scene, PreToolUse=[rewrite]))
    await agent.ask(call(1, "bash", command="git push origin main", force=True))
    assert scene.calls_received()[0]["params"]["arguments"] == {"command": "git push origin feature/branch"}


async def test_hooks_run_one_after_another_in_the_order_of_the_file(scene: Scene) -> None:
    first, second = scene.gate("first"), scene.gate("second")
    agent = await begun(scene, hooks(scene, PreToolUse=[first.script, second.report]))
    await agent.send(call(1, "bash"))
    await first.reached()
    await agent.ask(request(2, "ping"))
    assert not second.visited
    first.open()
    await agent.answer(1)
    assert second.visited


async def test_a_hook_after_a_call_is_not_waited_for(scene: Scene) -> None:
    gate = scene.gate("after")
    inject = script(scene, "inject.sh", INJECT)
    agent = await begun(scene, hooks(scene, PostToolUse=[f"{gate.script}; {inject}"]))
    assert (await agent.ask(call(1, "bash")))["result"] == {"content": [{"type": "text", "text": "ran bash"}]}
    await gate.reached()
    gate.open()


@pytest.mark.parametrize(("tool", "arguments"), [("bash", {}), ("reply", {"result": FAILED})])
async def test_a_hook_after_a_call_that_is_waited_for_adds_its_context(
    scene: Scene, tool: str, arguments: Json
) -> None:
    inject = script(scene, "inject.sh", INJECT)
    agent = await begun(scene, awaiting(scene, PostToolUse=[inject], PostToolUseFailure=[inject]))
    result = (await agent.ask(call(1, tool, **arguments)))["result"]
    assert [block["text"] for block in result["content"]][1:] == ["Note: this repo uses pnpm, not npm."]


async def test_variables_and_standard_input_agree_and_name_no_other_system(scene: Scene) -> None:
    recorded, env = scene.folder / "recorded", scene.folder / "env"
    agent = scene.run(
        awaiting(scene, PostToolUseFailure=[f"cat >'{recorded}'; env >'{env}'"]),
        env={"CLAUDE_PROJECT_DIR": "/elsewhere", "CLAUDECODE": "1", "HOOK_TRUSTED": "kept"},
    )
    await agent.initialize()
    await agent.ask(call("seven", "error", error={"code": -32602, "message": "no é"}))
    document = json.loads(recorded.read_text())
    variables = dict(line.partition("=")[::2] for line in env.read_text().splitlines())
    assert document["event"] == variables["HOOK_EVENT"] == "PostToolUseFailure"
    assert document["tool_name"] == variables["HOOK_TOOL_NAME"] == "error"
    assert document["tool_input"] == json.loads(variables["HOOK_TOOL_INPUT"])
    assert document["tool_output"] == json.loads(variables["HOOK_TOOL_OUTPUT"]) == "MCP error -32602: no é"
    assert (document["is_error"], variables["HOOK_TOOL_IS_ERROR"]) == (True, "1")
    assert document["cwd"] == str(scene.folder)
    assert variables["HOOK_TRUSTED"] == "kept"
    assert not {name for name in variables if name.startswith("CLAUDE")}


async def test_an_output_too_long_for_a_variable_is_whole_on_standard_input(scene: Scene) -> None:
    recorded, env = scene.folder / "recorded", scene.folder / "env"
    keep = f"cat >'{recorded}'; echo \"${{#HOOK_TOOL_OUTPUT}} $HOOK_TRUNCATED\" >'{env}'"
    agent = await begun(scene, awaiting(scene, PostToolUse=[keep]))
    await agent.ask(call(1, "big", size=200_000))
    assert json.loads(recorded.read_text())["tool_output"][0]["text"] == "x" * 200_000
    length, truncated = env.read_text().split()
    assert 130_000 < int(length) < 131_072
    assert truncated == "1"


async def test_a_hook_file_in_toml_runs(scene: Scene) -> None:
    path = scene.file("settings.local.toml", "[hooks]\nPreToolUse = [\"echo 'not in TOML either' >&2; exit 2\"]\n")
    agent = await begun(scene, f"--hooks=lime={path}")
    assert "not in TOML either" in refused(await agent.ask(call(1, "bash")))


# --- events of permissions, turns and questions ---


async def test_hooks_run_for_a_denied_call_whoever_denied_it(scene: Scene) -> None:
    log = audit_log(scene)
    audit, gate = script(scene, "audit.sh", AUDIT), scene.gate("ran")
    recorded = hooks(scene, PermissionDenied=[f"{audit}; {gate.report}"])
    agent = await begun(scene, scene.hooks(PreToolUse="exit 2"), recorded)
    refused(await agent.ask(call(1, "bash")))
    await gate.reached()
    assert logged(log) == [{"event": "PermissionDenied", "tool": "bash", "ok": True}]


async def test_hooks_run_for_a_cancelled_call(scene: Scene) -> None:
    recorded, gate = scene.folder / "recorded", scene.gate("stopped")
    agent = await begun(scene, hooks(scene, PreToolUse=["true"], Stop=[f"cat >'{recorded}'; {gate.report}"]))
    await agent.send(call(1, "hold"))
    await agent.notified("notifications/holding")
    await agent.send(cancel(1))
    await gate.reached()
    assert json.loads(recorded.read_text())["event"] == "Stop"


@pytest.mark.parametrize(("answer", "passes"), [("allow", True), ("deny", False)])
async def test_a_hook_answers_an_elicitation_in_the_persons_place(scene: Scene, answer: str, passes: bool) -> None:
    ask = scene.prints({"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "sure?"}})
    say = scene.prints({"hookSpecificOutput": {"permissionDecision": answer}})
    agent = await begun(scene, hooks(scene, PreToolUse=[ask], PermissionRequest=[say]))
    result = (await agent.ask(call(1, "bash")))["result"]
    assert result.get("isError", False) is not passes
    assert len(scene.calls_received()) == passes
