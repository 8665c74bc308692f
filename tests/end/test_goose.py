"""A plugin's hooks.json of Goose in front of a real process, for an agent that is not Goose."""

from __future__ import annotations

import json

from tests.end.agent import Agent, Json, Scene, call, refused, text_of

FAILED: Json = {"content": [{"type": "text", "text": "it broke"}], "isError": True}


async def begun(scene: Scene, event: str, matcher: str, command: str, **members: object) -> Agent:
    folder = scene.folder / ".agents" / "plugins" / "one" / "hooks"
    folder.mkdir(parents=True)
    hooks = {event: [{"matcher": matcher, "hooks": [{"command": command, **members}]}]}
    (folder / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    agent = scene.run("--name=shell", f"--hooks={folder / 'hooks.json'}")
    await agent.initialize()
    return agent


async def test_a_guard_for_gooses_shell_denies_a_servers_command(scene: Scene) -> None:
    guard = """jq -r .tool_input.command | grep -q sudo && echo '{"decision":"block","reason":"no sudo"}'; exit 1"""
    agent = await begun(scene, "PreToolUse", "developer__shell", guard)
    assert refused(await agent.ask(call(1, "bash", command="sudo rm"))).endswith(": no sudo")
    assert text_of(await agent.ask(call(2, "echo", a=1))) == '{"a": 1}'


async def test_a_hook_that_makes_no_decision_blocks_if_it_says_so(scene: Scene) -> None:
    agent = await begun(scene, "PreToolUse", "shell__echo", "echo checked", on_failure="block")
    assert "printed something other than a decision" in refused(await agent.ask(call(1, "echo", a=1)))
    assert scene.calls_received() == []


async def test_a_hook_that_makes_no_decision_lets_the_call_go_otherwise(scene: Scene) -> None:
    agent = await begun(scene, "PreToolUse", "shell__echo", "echo checked")
    assert text_of(await agent.ask(call(1, "echo", a=1))) == '{"a": 1}'
    assert "printed something other than a decision" in agent.standard_error()


async def test_a_hook_after_a_failed_call_observes_it(scene: Scene) -> None:
    agent = await begun(scene, "PostToolUseFailure", "", 'cat >"$PLUGIN_ROOT/seen"')
    assert (await agent.ask(call(1, "reply", result=FAILED)))["result"] == FAILED
    seen = json.loads((scene.folder / ".agents/plugins/one/seen").read_text())
    assert (seen["event"], seen["tool_name"]) == ("PostToolUseFailure", "shell__reply")
