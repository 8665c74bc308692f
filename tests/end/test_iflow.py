"""A settings file of iFlow CLI in front of a real process, for an agent that is not iFlow CLI."""

from __future__ import annotations

import json

from tests.end.agent import Agent, Json, Scene, call, refused, text_of

FAILED: Json = {"content": [{"type": "text", "text": "it broke"}], "isError": True}


async def begun(scene: Scene, event: str, matcher: str, command: str, **members: object) -> Agent:
    folder = scene.folder / ".iflow"
    folder.mkdir()
    hooks = {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command, **members}]}]}
    (folder / "settings.json").write_text(json.dumps({"hooks": hooks}))
    agent = scene.run("--name=shell", f"--hooks={folder / 'settings.json'}")
    await agent.initialize()
    return agent


async def test_a_guard_for_an_alias_of_iflows_shell_denies_with_any_exit_status(scene: Scene) -> None:
    allowed = 'test "$IFLOW_TOOL_NAME" = run_shell_command && echo "$IFLOW_TOOL_ARGS" | grep -qv sudo'
    guard = allowed + " || { echo no >&2; exit 7; }"
    agent = await begun(scene, "PreToolUse", "Shell", guard)
    assert refused(await agent.ask(call(1, "bash", command="sudo ls"))).endswith(": no")
    assert text_of(await agent.ask(call(2, "bash", command="ls"))) == "ran bash"


async def test_a_hook_after_a_failed_call_observes_it_and_people_see_what_it_prints(scene: Scene) -> None:
    agent = await begun(scene, "PostToolUse", "mcp__shell__.*", 'echo "seen $IFLOW_TOOL_NAME"')
    assert (await agent.ask(call(1, "reply", result=FAILED)))["result"] == FAILED
    assert "seen mcp__shell__reply" in agent.standard_error()


async def test_a_hook_that_is_killed_refuses_the_call(scene: Scene) -> None:
    agent = await begun(scene, "PreToolUse", "*", "kill -KILL $$")
    assert "was ended by signal SIGKILL" in refused(await agent.ask(call(1, "echo", a=1)))


async def test_a_hook_that_takes_too_long_refuses_the_call(scene: Scene) -> None:
    agent = await begun(scene, "PreToolUse", "*", "exec sleep 60", timeout=0.1)
    refused(await agent.ask(call(1, "echo", a=1)))
    assert scene.calls_received() == []
