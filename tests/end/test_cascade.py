"""A hooks.json of Cascade in front of a real process, for an agent that is not Cascade."""

from __future__ import annotations

import json

from tests.end.agent import Agent, Json, Scene, call, refused, text_of

FAILED: Json = {"content": [{"type": "text", "text": "it broke"}], "isError": True}


async def begun(scene: Scene, **events: str) -> Agent:
    """An agent behind a workspace's hooks.json with a command for each of these events."""
    folder = scene.folder / ".windsurf"
    folder.mkdir()
    hooks = {name: [{"command": command}] for name, command in events.items()}
    (folder / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    agent = scene.run(f"--hooks={folder / 'hooks.json'}")  # recognised by its folder and its events
    await agent.initialize()
    return agent


async def test_a_guard_for_commands_denies_a_servers_command_and_nothing_else(scene: Scene) -> None:
    guard = """jq -r .tool_info.command_line | grep -q 'rm -rf' && { echo 'no rm -rf' >&2; exit 2; }; exit 0"""
    agent = await begun(scene, pre_run_command=guard)
    assert refused(await agent.ask(call(1, "bash", command="cd /; rm -rf ."))) == (
        "Blocked by the PreToolUse hook grep -q rm -rf: no rm -rf"
    )
    assert text_of(await agent.ask(call(2, "bash", command="ls"))) == "ran bash"
    assert text_of(await agent.ask(call(3, "echo", text="rm -rf"))) == '{"text": "rm -rf"}'
    assert len(scene.calls_received()) == 2


async def test_a_hook_for_mcp_tools_denies_and_one_after_the_call_comments(scene: Scene) -> None:
    agent = await begun(
        scene,
        pre_mcp_tool_use="""test "$(jq -r .tool_info.mcp_tool_name)" != bash || { echo 'no shell' >&2; exit 2; }""",
        post_mcp_tool_use="jq -r .tool_info.mcp_result >&2; exit 2",
    )
    assert "no shell" in refused(await agent.ask(call(1, "bash")))
    result = (await agent.ask(call(2, "echo", a=1)))["result"]
    assert [block["text"] for block in result["content"]] == ['{"a": 1}', '{"a": 1}']
    assert len(scene.calls_received()) == 1


async def test_no_hook_runs_after_a_failed_call(scene: Scene) -> None:
    agent = await begun(scene, post_mcp_tool_use="echo seen >&2; exit 2")
    assert (await agent.ask(call(1, "reply", result=FAILED)))["result"] == FAILED


async def test_a_hook_that_fails_lets_the_call_go_and_is_reported(scene: Scene) -> None:
    agent = await begun(scene, pre_mcp_tool_use="echo broken >&2; exit 1")
    assert text_of(await agent.ask(call(1, "bash"))) == "ran bash"
    assert "exited with status 1: broken" in agent.standard_error()
