"""Qwen Code's settings in front of a real process, for an agent that is not Qwen Code."""

from __future__ import annotations

import json

import pytest

from tests.end.agent import Agent, Json, Scene, call, refused, text_of

FAILED: Json = {"content": [{"type": "text", "text": "it broke"}], "isError": True}


async def begun(scene: Scene, event: str, *commands: str, matcher: str = "", sequential: bool = False) -> Agent:
    """An agent behind a project's settings with hooks for this event."""
    folder = scene.folder / ".qwen"
    folder.mkdir()
    hooks = [{"type": "command", "command": command} for command in commands]
    groups = [{"matcher": matcher, "sequential": sequential, "hooks": hooks}]
    (folder / "settings.json").write_text(json.dumps({"hooks": {event: groups}}))
    agent = scene.run(f"--hooks={folder / 'settings.json'}")  # recognised by its folder
    await agent.initialize()
    return agent


async def test_a_guard_for_qwens_shell_denies_a_servers_command(scene: Scene) -> None:
    guard = """[[ $(jq -r .tool_input.command) == *"rm -rf"* ]] && { echo "not in $QWEN_PROJECT_DIR" >&2; exit 2; }
    exit 0"""
    agent = await begun(scene, "PreToolUse", guard, matcher="run_shell_command|edit")
    assert f"not in {scene.folder}" in refused(await agent.ask(call(1, "bash", command="rm -rf /")))
    assert text_of(await agent.ask(call(2, "bash", command="ls"))) == "ran bash"
    assert len(scene.calls_received()) == 1


@pytest.mark.parametrize("stream", ["&1", "&2"])
async def test_a_denial_with_exit_code_2_counts_on_whichever_stream(scene: Scene, stream: str) -> None:
    answer = {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "not today"}}
    agent = await begun(scene, "PreToolUse", f"{scene.prints(answer)} >{stream}; exit 2")
    assert refused(await agent.ask(call(1, "bash"))).endswith(": not today")
    assert scene.calls_received() == []


async def test_a_later_approval_does_not_overwrite_a_denial(scene: Scene) -> None:
    deny = scene.prints({"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}})
    allow = scene.prints({"hookSpecificOutput": {"permissionDecision": "allow"}})
    agent = await begun(scene, "PreToolUse", deny, allow)
    assert refused(await agent.ask(call(1, "bash"))).endswith(": no")


async def test_sequential_hooks_see_what_the_one_before_has_rewritten(scene: Scene) -> None:
    rewrite = """jq -c '{hookSpecificOutput: {updatedInput: {a: (.tool_input.a + 1)}}}'"""
    agent = await begun(scene, "PreToolUse", rewrite, f"{rewrite} # again", sequential=True)
    assert text_of(await agent.ask(call(1, "echo", a=1))) == '{"a": 3}'


@pytest.mark.parametrize("event", ["PostToolUse", "PostToolUseFailure"])
async def test_a_hook_after_a_call_comments(scene: Scene, event: str) -> None:
    agent = await begun(scene, event, scene.prints({"hookSpecificOutput": {"additionalContext": "seen"}}))
    failed = text_of(await agent.ask(call(1, "reply", result=FAILED)))
    passed = text_of(await agent.ask(call(2, "echo", a=1)))
    after_success = event == "PostToolUse"
    assert failed == ("it broke" if after_success else "it broke\nseen")
    assert passed == ('{"a": 1}\nseen' if after_success else '{"a": 1}')


async def test_a_hook_that_fails_lets_the_call_go_and_is_reported(scene: Scene) -> None:
    agent = await begun(scene, "PreToolUse", "echo broken >&2; exit 1")
    assert text_of(await agent.ask(call(1, "bash"))) == "ran bash"
    assert "exited with status 1: broken" in agent.standard_error()
