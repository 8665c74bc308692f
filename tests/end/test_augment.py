"""A settings file of Augment in front of a real process, for an agent that is not Augment."""

from __future__ import annotations

import json

from tests.end.agent import Agent, Json, Scene, call, refused, specific, text_of

FAILED: Json = {"content": [{"type": "text", "text": "it broke"}], "isError": True}


async def begun(scene: Scene, event: str, matcher: str, command: str) -> Agent:
    folder = scene.folder / ".augment"
    folder.mkdir()
    hooks = {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command, "timeout": 9000}]}]}
    (folder / "settings.json").write_text(json.dumps({"hooks": hooks}))
    agent = scene.run("--name=shell", f"--hooks={folder / 'settings.json'}")
    await agent.initialize()
    return agent


async def test_a_guard_for_augments_shell_denies_a_servers_command(scene: Scene) -> None:
    guard = "jq -r .tool_input.command | grep -q 'rm -rf' && { echo 'no rm -rf' >&2; exit 2; }; exit 0"
    agent = await begun(scene, "PreToolUse", "launch-process", guard)
    assert refused(await agent.ask(call(1, "bash", command="rm -rf /"))).endswith(": no rm -rf")
    assert text_of(await agent.ask(call(2, "bash", command="ls"))) == "ran bash"


async def test_a_hook_for_a_servers_tools_rewrites_the_arguments(scene: Scene) -> None:
    rewrite = scene.prints(specific("PreToolUse", permissionDecision="allow", updatedInput={"a": 2}))
    agent = await begun(scene, "PreToolUse", "mcp:.*_shell$", rewrite)
    await agent.ask(call(1, "echo", a=1, b=1))
    assert scene.calls_received()[0]["params"]["arguments"] == {"a": 2}


async def test_a_hook_after_a_call_comments_on_a_failure(scene: Scene) -> None:
    comment = """jq '{hookSpecificOutput: {additionalContext: ("seen: " + (.tool_error // .tool_output))}}'"""
    agent = await begun(scene, "PostToolUse", ".*", comment)
    assert text_of(await agent.ask(call(1, "reply", result=FAILED))) == "it broke\nseen: it broke"
    assert text_of(await agent.ask(call(2, "echo", a=1))) == '{"a": 1}\nseen: {"a": 1}'


async def test_a_hook_that_fails_lets_the_call_go_and_is_reported(scene: Scene) -> None:
    agent = await begun(scene, "PreToolUse", "mcp:*", "echo broken >&2; exit 1")
    assert text_of(await agent.ask(call(1, "echo", a=1))) == '{"a": 1}'
    assert "exited with status 1: broken" in agent.standard_error()
