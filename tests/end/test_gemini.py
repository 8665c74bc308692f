"""A settings file of Gemini CLI in front of a real process, for an agent that is not Gemini CLI."""

from __future__ import annotations

import json
import shlex

from tests.end.agent import Agent, Json, Scene, call, refused, text_of

FAILED: Json = {"content": [{"type": "text", "text": "it broke"}], "isError": True}


def prints(value: object) -> str:
    return f"printf %s {shlex.quote(json.dumps(value))}"


async def begun(scene: Scene, *options: str, **events: tuple[str, str]) -> Agent:
    """An agent behind a project's settings with a matcher and a command for each of these events."""
    folder = scene.folder / ".gemini"
    folder.mkdir()
    hooks = {
        name: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]
        for name, (matcher, command) in events.items()
    }
    (folder / "settings.json").write_text(json.dumps({"hooks": hooks}))
    agent = scene.run(f"--hooks={folder / 'settings.json'}", *options)  # recognised by its events
    await agent.initialize()
    return agent


async def test_a_guard_for_the_agents_shell_denies_a_servers_command(scene: Scene) -> None:
    guard = "jq -r .tool_input.command | grep -q 'rm -rf' && { echo 'no rm -rf' >&2; exit 2; }; exit 0"
    agent = await begun(scene, BeforeTool=("run_shell_command", guard))
    assert "no rm -rf" in refused(await agent.ask(call(1, "bash", command="rm -rf .")))
    assert text_of(await agent.ask(call(2, "bash", command="ls"))) == "ran bash"
    assert len(scene.calls_received()) == 1


async def test_a_hook_for_mcp_tools_rewrites_the_arguments(scene: Scene) -> None:
    changed = prints({"hookSpecificOutput": {"tool_input": {"a": 2}}})
    agent = await begun(scene, BeforeTool=("mcp_.*_echo", changed))
    assert json.loads(text_of(await agent.ask(call(1, "echo", a=1)))) == {"a": 2}


async def test_a_hook_after_a_call_comments_and_sees_failures(scene: Scene) -> None:
    says = """jq '{hookSpecificOutput:{additionalContext:(.tool_response.error.type // "fine")}}'"""
    agent = await begun(scene, AfterTool=("", says))
    result = (await agent.ask(call(1, "echo", a=1)))["result"]
    assert [block["text"] for block in result["content"]] == ['{"a": 1}', "fine"]
    failed = (await agent.ask(call(2, "reply", result=FAILED)))["result"]
    assert [block["text"] for block in failed["content"]] == ["it broke", "mcp_tool_error"]


async def test_a_denial_after_a_call_hides_the_result(scene: Scene) -> None:
    agent = await begun(scene, AfterTool=("", "echo 'it has a secret' >&2; exit 2"))
    result = (await agent.ask(call(1, "echo", password="hunter2")))["result"]
    assert result["isError"] is True
    assert "it has a secret" in str(result)
    assert "hunter2" not in str(result)


async def test_a_hook_that_fails_lets_the_call_go_and_is_reported(scene: Scene) -> None:
    agent = await begun(scene, BeforeTool=("", "echo broken >&2; exit 1"))
    assert text_of(await agent.ask(call(1, "bash"))) == "ran bash"
    assert "exited with status 1: broken" in agent.standard_error()
