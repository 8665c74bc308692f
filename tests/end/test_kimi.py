"""Kimi Code's config.toml in front of a real process, for an agent that is not Kimi Code."""

from __future__ import annotations

from tests.end.agent import Agent, Json, Scene, call, refused, text_of

FAILED: Json = {"content": [{"type": "text", "text": "it broke"}], "isError": True}


async def begun(scene: Scene, event: str, command: str) -> Agent:
    """An agent behind a configuration with a hook for this event."""
    path = scene.file("config.toml", f"[[hooks]]\nevent = '{event}'\ncommand = '''{command}'''\n")
    agent = scene.run(f"--hooks={path}")  # recognised by its shape
    await agent.initialize()
    return agent


async def test_a_hook_before_a_call_denies(scene: Scene) -> None:
    agent = await begun(scene, "PreToolUse", 'test "$(jq -r .tool_input.a)" != 1 || { echo no >&2; exit 2; }')
    assert refused(await agent.ask(call(1, "echo", a=1))).endswith(": no")
    assert text_of(await agent.ask(call(2, "echo", a=2))) == '{"a": 2}'


async def test_hooks_after_calls_only_observe(scene: Scene) -> None:
    gate = scene.gate("failed")
    agent = await begun(scene, "PostToolUseFailure", f"{gate.report}; echo seen >&2; exit 2")
    assert (await agent.ask(call(1, "reply", result=FAILED)))["result"] == FAILED
    await gate.reached()


async def test_a_hook_that_fails_lets_the_call_go_and_is_reported(scene: Scene) -> None:
    agent = await begun(scene, "PreToolUse", "echo broken >&2; exit 1")
    assert text_of(await agent.ask(call(1, "bash"))) == "ran bash"
    assert "exited with status 1: broken" in agent.standard_error()
