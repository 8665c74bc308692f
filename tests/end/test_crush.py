"""A crush.json in front of a real process, for an agent that is not Crush."""

from __future__ import annotations

import json

from tests.end.agent import Agent, Json, Scene, call, refused, text_of


async def begun(scene: Scene, *entries: Json) -> Agent:
    path = scene.file("crush.json", json.dumps({"hooks": {"pre_tool_use": list(entries)}}))
    agent = scene.run("--name=shell", f"--hooks=crush={path}")
    await agent.initialize()
    return agent


async def test_a_guard_for_crushs_bash_denies_a_servers_command(scene: Scene) -> None:
    guard = 'echo "$CRUSH_TOOL_INPUT_COMMAND" | grep -q ghc && { echo "No Haskell" >&2; exit 2; }; exit 0'
    agent = await begun(scene, {"name": "no-haskell", "matcher": "^bash$", "command": guard})
    assert refused(await agent.ask(call(1, "bash", command="ghc a.hs"))) == (
        "Blocked by the PreToolUse hook no-haskell: No Haskell"
    )
    assert text_of(await agent.ask(call(2, "bash", command="ls"))) == "ran bash"


async def test_the_rewrites_of_several_hooks_add_up_and_keep_the_rest(scene: Scene) -> None:
    first = {"command": """echo '{"updated_input":{"a":"one"},"context":"first"}'"""}
    second = {"command": """echo '{"updated_input":{"b":"two"},"context":["second"]}'"""}
    agent = await begun(scene, first, second)
    text = text_of(await agent.ask(call(1, "echo", a="x", b="y", c="z")))
    assert scene.calls_received()[0]["params"]["arguments"] == {"a": "one", "b": "two", "c": "z"}
    assert text.split("\n", 1)[1].split() == ["first", "second"]


async def test_a_hook_that_halts_ends_the_turn(scene: Scene) -> None:
    agent = await begun(scene, {"matcher": "^mcp_shell_echo$", "command": "echo enough >&2; exit 49"})
    text = refused(await agent.ask(call(1, "echo")))
    assert "enough" in text
    assert "Make no further calls" in text


async def test_a_hook_that_fails_lets_the_call_go_and_is_reported(scene: Scene) -> None:
    agent = await begun(scene, {"command": "echo broken >&2; exit 1"})
    assert text_of(await agent.ask(call(1, "echo", a=1))) == '{"a": 1}'
    assert "exited with status 1: broken" in agent.standard_error()
