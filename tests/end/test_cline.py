"""A folder of Cline's programs in front of a real process, for an agent that is not Cline."""

from __future__ import annotations

from tests.end.agent import Agent, Json, Scene, call, refused, text_of

FAILED: Json = {"content": [{"type": "text", "text": "it broke"}], "isError": True}


async def begun(scene: Scene, **programs: str) -> Agent:
    """An agent behind a folder with a shell script for each of these events."""
    folder = scene.folder / ".clinerules" / "hooks"
    folder.mkdir(parents=True)
    for name, text in programs.items():
        (folder / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (folder / name).chmod(0o700)
    agent = scene.run("--name=shell", f"--hooks={folder}")
    await agent.initialize()
    return agent


GUARD = """input=$(cat)
tool=$(echo "$input" | jq -r .preToolUse.toolName)
command=$(echo "$input" | jq -r '.preToolUse.parameters.command // ""')
if [[ "$tool" == execute_command && "$command" == *"rm -rf"* ]]; then
  echo '{"cancel": true, "errorMessage": "no rm -rf"}'
else
  echo '{"cancel": false}'
fi"""


async def test_a_guard_for_clines_own_tool_denies_a_servers_command(scene: Scene) -> None:
    agent = await begun(scene, PreToolUse=GUARD)
    text = refused(await agent.ask(call(1, "bash", command="rm -rf /")))
    assert "Blocked by the PreToolUse hook PreToolUse: no rm -rf" in text
    assert "Make no further calls" in text
    assert text_of(await agent.ask(call(2, "bash", command="ls"))) == "ran bash"
    assert text_of(await agent.ask(call(3, "echo", text="rm -rf"))) == '{"text": "rm -rf"}'
    assert len(scene.calls_received()) == 2


async def test_a_guard_that_cancels_and_then_fails_has_cancelled(scene: Scene) -> None:
    agent = await begun(scene, PreToolUse="""echo '{"cancel": true, "errorMessage": "no"}'; exit 1""")
    assert refused(await agent.ask(call(1, "bash", command="ls"))).count("no\n") == 1  # it runs for one name only
    assert scene.calls_received() == []


async def test_a_hook_rewrites_the_arguments(scene: Scene) -> None:
    agent = await begun(scene, PreToolUse="""echo '{"overrideInput": {"a": "1", "b": 2}}'""")
    await agent.ask(call(1, "echo", a=1))
    assert scene.calls_received()[0]["params"]["arguments"] == {"a": 1, "b": 2}


async def test_hooks_after_a_call_comment_on_results_and_errors(scene: Scene) -> None:
    agent = await begun(scene, PostToolUse="""jq '{contextModification: "success: \\(.postToolUse.success)"}'""")
    assert text_of(await agent.ask(call(1, "echo", a=1))) == '{"a": 1}\nsuccess: true'
    assert text_of(await agent.ask(call(2, "reply", result=FAILED))) == "it broke\nsuccess: false"


async def test_a_hook_that_fails_lets_the_call_go_and_is_reported(scene: Scene) -> None:
    agent = await begun(scene, PreToolUse="echo broken >&2; exit 1")
    assert text_of(await agent.ask(call(1, "echo", a=1))) == '{"a": 1}'
    assert "exited with status 1: broken" in agent.standard_error()
