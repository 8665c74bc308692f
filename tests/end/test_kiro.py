"""Kiro's hook files in front of a real process, for an agent that is not Kiro."""

from __future__ import annotations

import json
from pathlib import Path

from tests.end.agent import Agent, Json, Scene, call, refused, text_of

FAILED: Json = {"content": [{"type": "text", "text": "it broke"}], "isError": True}


def written(path: Path, content: Json) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return f"--hooks={path}"


async def begun(scene: Scene, *options: str) -> Agent:
    agent = scene.run("--name=shell", *options)
    await agent.initialize()
    return agent


def version_1(*hooks: tuple[str, str, str]) -> Json:
    return {
        "version": "v1",
        "hooks": [
            {
                "name": f"h{at}",
                "trigger": trigger,
                "matcher": matcher,
                "action": {"type": "command", "command": command},
            }
            for at, (trigger, matcher, command) in enumerate(hooks)
        ],
    }


async def test_a_guard_of_an_agent_file_denies_a_servers_command(scene: Scene) -> None:
    guard = """jq -r .tool_input.command | grep -q 'rm -rf' && { echo 'no rm -rf' >&2; exit 2; }; exit 0"""
    agent_file = {"name": "dev", "hooks": {"preToolUse": [{"matcher": "execute_bash", "command": guard}]}}
    agent = await begun(scene, written(scene.folder / ".kiro/agents/dev.json", agent_file))
    assert refused(await agent.ask(call(1, "bash", command="rm -rf /"))).endswith(": no rm -rf")
    assert text_of(await agent.ask(call(2, "bash", command="ls"))) == "ran bash"
    assert len(scene.calls_received()) == 1


async def test_hooks_of_version_1_deny_comment_and_see_failures(scene: Scene) -> None:
    hooks = version_1(
        ("SessionStart", "", "echo 'use pnpm'"),
        ("PreToolUse", "@mcp.*bash", "echo 'no shell' >&2; exit 2"),
        ("PostToolUse", "@shell/.*", "jq -r '.tool_name + \": \" + .tool_response'"),
    )
    agent = scene.run("--name=shell", written(scene.folder / ".kiro/hooks/all.json", hooks))
    assert (await agent.initialize())["result"]["instructions"] == "use pnpm"
    assert refused(await agent.ask(call(1, "bash"))) == "Blocked by the PreToolUse hook h1: no shell"
    assert text_of(await agent.ask(call(2, "echo", a=1))) == '{"a": 1}\n@shell/echo: {"a": 1}'
    assert text_of(await agent.ask(call(3, "reply", result=FAILED))) == "it broke\n@shell/reply: it broke"


async def test_every_hook_of_version_1_runs_even_after_one_that_denies(scene: Scene) -> None:
    first, second = scene.gate("first"), scene.gate("second")
    hooks = version_1(("PreToolUse", "", f"{first.report}; echo no >&2; exit 2"), ("PreToolUse", "*", second.report))
    agent = await begun(scene, written(scene.folder / ".kiro/hooks/all.json", hooks))
    assert "no" in refused(await agent.ask(call(1, "bash")))
    assert first.visited
    assert second.visited


async def test_a_hook_of_ide_0_reads_the_call_from_its_variable(scene: Scene) -> None:
    command = """printf %s "$USER_PROMPT" | jq -r .toolArgs.command >&2; exit 1"""
    hook = {
        "name": "git",
        "version": "1.0.0",
        "when": {"type": "preToolUse", "toolTypes": ["shell"]},
        "then": {"type": "runCommand", "command": command},
    }
    agent = await begun(scene, written(scene.folder / ".kiro/hooks/git.kiro.hook", hook))
    assert (
        refused(await agent.ask(call(1, "bash", command="git push"))) == "Blocked by the PreToolUse hook git: git push"
    )
    assert text_of(await agent.ask(call(2, "echo", a=1))) == '{"a": 1}'


async def test_a_hook_that_fails_lets_the_call_go_and_is_reported(scene: Scene) -> None:
    hooks = version_1(("PreToolUse", "", "echo broken >&2; exit 1"))
    agent = await begun(scene, written(scene.folder / ".kiro/hooks/all.json", hooks))
    assert text_of(await agent.ask(call(1, "bash"))) == "ran bash"
    assert "exited with status 1: broken" in agent.standard_error()
