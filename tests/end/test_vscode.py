"""A hook file of VS Code's local agent in front of a real process, for an agent that is not VS Code."""

from __future__ import annotations

import json
import shlex

from tests.end.agent import Agent, Json, Scene, call, refused, text_of

FAILED: Json = {"content": [{"type": "text", "text": "it broke"}], "isError": True}


def prints(value: object) -> str:
    return f"printf %s {shlex.quote(json.dumps(value))}"


async def begun(scene: Scene, **events: str) -> Agent:
    """An agent behind a repository's hook file with a command for each of these events."""
    folder = scene.folder / ".github/hooks"
    folder.mkdir(parents=True)
    hooks = {name: [{"type": "command", "command": command}] for name, command in events.items()}
    (folder / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    agent = scene.run(f"--hooks={folder / 'hooks.json'}")  # recognised by its events and its folder
    await agent.initialize()
    return agent


async def test_a_guard_that_looks_for_the_terminal_denies_a_servers_command(scene: Scene) -> None:
    guard = """jq -e '.tool_name == "run_in_terminal" and (.tool_input.command | test("rm -rf"))' >/dev/null || exit 0
    echo 'no rm -rf' >&2; exit 2"""
    agent = await begun(scene, PreToolUse=guard)
    assert "no rm -rf" in refused(await agent.ask(call(1, "bash", command="rm -rf .")))
    assert text_of(await agent.ask(call(2, "bash", command="ls"))) == "ran bash"
    assert len(scene.calls_received()) == 1


async def test_a_hook_rewrites_the_arguments(scene: Scene) -> None:
    specific = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"a": 2}}
    agent = await begun(scene, PreToolUse=prints({"hookSpecificOutput": specific}))
    assert json.loads(text_of(await agent.ask(call(1, "echo", a=1)))) == {"a": 2}


async def test_a_hook_comments_on_every_result_and_not_on_an_error_without_one(scene: Scene) -> None:
    specific = {"hookEventName": "PostToolUse", "additionalContext": "look"}
    agent = await begun(scene, PostToolUse=prints({"hookSpecificOutput": specific}))
    result = (await agent.ask(call(1, "echo", a=1)))["result"]
    assert [block["text"] for block in result["content"]] == ['{"a": 1}', "look"]
    failed = (await agent.ask(call(2, "reply", result=FAILED)))["result"]
    assert ([block["text"] for block in failed["content"]], failed["isError"]) == (["it broke", "look"], True)
    error = {"code": -32000, "message": "it is gone"}
    assert (await agent.ask(call(3, "error", error=error)))["error"] == error


async def test_a_hook_that_fails_lets_the_call_go_and_is_reported(scene: Scene) -> None:
    agent = await begun(scene, PreToolUse="echo broken >&2; exit 1")
    assert text_of(await agent.ask(call(1, "bash"))) == "ran bash"
    assert "exited with status 1: broken" in agent.standard_error()


async def test_a_guard_that_looks_for_the_servers_own_name_denies_a_command_too(scene: Scene) -> None:
    guard = """jq -e '.tool_name | test("^mcp_.*_bash$")' >/dev/null || exit 0; echo 'not this server' >&2; exit 2"""
    agent = await begun(scene, PreToolUse=guard)
    assert "not this server" in refused(await agent.ask(call(1, "bash", command="ls")))
    assert scene.calls_received() == []


async def test_a_guard_that_looks_for_no_name_gives_its_reason_and_its_comment_once(scene: Scene) -> None:
    agent = await begun(scene, PreToolUse="echo 'no commands' >&2; exit 2")
    assert refused(await agent.ask(call(1, "bash", command="ls"))).count("no commands") == 1


async def test_the_second_run_of_a_hook_does_not_undo_the_rewrite_of_its_first(scene: Scene) -> None:
    rewrite = """jq '(if .tool_name == "run_in_terminal" then . else .tool_input.command = "true" end)
    | {hookSpecificOutput: {hookEventName: "PreToolUse", permissionDecision: "allow", updatedInput: .tool_input}}'"""
    agent = await begun(scene, PreToolUse=rewrite)
    await agent.ask(call(1, "bash", command="rm -rf ."))
    (received,) = scene.calls_received()
    assert received["params"]["arguments"] == {"command": "true"}
