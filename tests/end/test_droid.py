"""Droid's hooks.json in front of a real process, for an agent that is not Droid."""

from __future__ import annotations

import json

from tests.end.agent import Agent, Json, Scene, call, refused, text_of

FAILED: Json = {"content": [{"type": "text", "text": "it broke"}], "isError": True}


async def begun(scene: Scene, event: str, command: str, matcher: str = "") -> Agent:
    """An agent behind a project's hooks.json with a hook for this event."""
    folder = scene.folder / ".factory"
    folder.mkdir()
    groups = [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]
    (folder / "hooks.json").write_text(json.dumps({event: groups}))
    agent = scene.run(f"--hooks={folder / 'hooks.json'}")  # recognised by its folder
    await agent.initialize()
    return agent


async def test_a_guard_for_droids_shell_denies_a_servers_command(scene: Scene) -> None:
    guard = """[[ $(jq -r .tool_input.command) == *"rm -rf"* ]] && { echo "not in $FACTORY_PROJECT_DIR" >&2; exit 2; }
    exit 0"""
    agent = await begun(scene, "PreToolUse", guard, "Execute")
    assert f"not in {scene.folder}" in refused(await agent.ask(call(1, "bash", command="rm -rf /")))
    assert text_of(await agent.ask(call(2, "bash", command="ls"))) == "ran bash"
    assert len(scene.calls_received()) == 1


async def test_a_rewrite_changes_only_the_arguments_that_it_names(scene: Scene) -> None:
    answer = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"a": 2}}
    agent = await begun(scene, "PreToolUse", scene.prints({"hookSpecificOutput": answer}))
    assert json.loads(text_of(await agent.ask(call(1, "echo", a=1, b=1)))) == {"a": 2, "b": 1}


async def test_a_hook_after_a_call_comments_and_does_not_run_after_a_failed_one(scene: Scene) -> None:
    agent = await begun(scene, "PostToolUse", "jq -r .tool_response >&2; exit 2")
    result = (await agent.ask(call(1, "echo", a=1)))["result"]
    assert [block["text"] for block in result["content"]] == ['{"a": 1}', '{"a": 1}']
    assert (await agent.ask(call(2, "reply", result=FAILED)))["result"] == FAILED


async def test_a_hook_that_fails_lets_the_call_go_and_is_reported(scene: Scene) -> None:
    agent = await begun(scene, "PreToolUse", "echo broken >&2; exit 1")
    assert text_of(await agent.ask(call(1, "bash"))) == "ran bash"
    assert "exited with status 1: broken" in agent.standard_error()
