"""Hook files of several systems in one session: each hook sees its own system's spelling, and one denial wins."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.end.agent import Agent, Json, Scene, call, group, text_of

pytestmark = pytest.mark.anyio

DIALECTS = ("claude", "claw", "code-assist", "copilot", "docker-agent", "lime")


def hook_file(scene: Scene, dialect: str, command: str) -> str:
    """`--hooks` with a file in which this command runs before each call."""
    shapes: dict[str, Json] = {
        "claude": {"hooks": {"PreToolUse": [group(command)]}},
        "claw": {"hooks": {"PreToolUse": [command]}},
        "code-assist": {"hooks": {"PreToolUse": [{"command": command, "timeout": 9000, "name": "one"}]}},
        "copilot": {"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": command}]}},
        "docker-agent": {"agents": {"root": {"hooks": {"pre_tool_use": [group(command)]}}}},
        "lime": {"hooks": {"PreToolUse": [command]}},
    }
    return f"--hooks={dialect}=" + scene.file(f"{dialect}.json", json.dumps(shapes[dialect]))


DENIALS = {
    "claude": "echo no >&2; exit 2",
    "claw": "echo no; exit 2",
    "code-assist": """printf '{"decision": "deny", "reason": "no"}'""",
    "copilot": """printf '{"permissionDecision": "deny", "permissionDecisionReason": "no"}'""",
    "docker-agent": "echo no >&2; exit 2",
    "lime": """printf '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}}'""",
}


async def begun(scene: Scene, *options: str) -> Agent:
    agent = scene.run("--name=files", *options)
    await agent.initialize()
    return agent


async def test_each_hook_sees_its_own_systems_spelling(scene: Scene) -> None:
    files = []
    for dialect in DIALECTS:
        text = "; echo '{}'" if dialect == "code-assist" else ""
        files.append(
            hook_file(
                scene, dialect, f"cat > '{scene.folder / dialect}.input'; env > '{scene.folder / dialect}.env'{text}"
            )
        )
    agent = await begun(scene, *files)
    answer = await agent.ask(call(1, "echo", path="a"))
    assert json.loads(text_of(answer)) == {"path": "a"}

    def hook_input(dialect: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((scene.folder / f"{dialect}.input").read_text())
        return document

    names = {dialect: hook_input(dialect).get("tool_name", hook_input(dialect).get("toolName")) for dialect in DIALECTS}
    assert names == {"claude": "mcp__files__echo", **dict.fromkeys(DIALECTS[1:], "echo")}
    assert hook_input("claude")["tool_input"] == hook_input("lime")["tool_input"] == {"path": "a"}
    assert (
        json.loads(hook_input("claw")["tool_input_json"])
        == json.loads(hook_input("copilot")["toolArgs"])
        == {"path": "a"}
    )
    assert hook_input("docker-agent")["hook_event_name"] == "pre_tool_use"
    assert hook_input("code-assist")["hook_event"] == "PreToolUse"
    marks = {"CLAUDE_PROJECT_DIR": {"claude"}, "HOOK_TOOL_NAME": {"claw", "lime"}, "COPILOT_CLI": {"copilot"}}
    for mark, owners in marks.items():
        seen = {dialect for dialect in DIALECTS if f"{mark}=" in (scene.folder / f"{dialect}.env").read_text()}
        assert seen == owners, mark


@pytest.mark.parametrize("denying", DIALECTS)
async def test_one_denial_wins_whichever_hook_gives_it(scene: Scene, denying: str) -> None:
    allow = {"code-assist": """printf '{"decision": "approve"}'"""}
    files = [
        hook_file(scene, dialect, DENIALS[dialect] if dialect == denying else allow.get(dialect, "true"))
        for dialect in DIALECTS
    ]
    agent = await begun(scene, *files)
    answer = await agent.ask(call(1, "echo"))
    assert answer["result"]["isError"] is True
    assert ": no" in text_of(answer)
    assert scene.calls_received() == []


async def test_a_rewrite_of_one_system_is_what_the_next_one_judges(scene: Scene) -> None:
    rewrite = json.dumps({"hookSpecificOutput": {"updatedInput": {"command": "rm -rf /"}}})
    first = hook_file(scene, "lime", f"printf %s '{rewrite}'")
    guard = hook_file(
        scene, "claw", """if echo "$HOOK_TOOL_INPUT" | grep -q 'rm -rf'; then echo 'destructive'; exit 2; fi"""
    )
    agent = await begun(scene, first, guard)
    answer = await agent.ask(call(1, "echo", command="ls"))
    assert "destructive" in text_of(answer)
    assert scene.calls_received() == []


async def test_a_denial_runs_the_hooks_of_the_system_that_has_an_event_for_it(scene: Scene) -> None:
    gate = scene.gate("ran")
    recorded = scene.folder / "recorded"
    lime = {"hooks": {"PermissionDenied": [f"cat > '{recorded}'; {gate.report}"]}}
    listening = "--hooks=lime=" + scene.file("lime.json", json.dumps(lime))
    agent = await begun(scene, hook_file(scene, "docker-agent", DENIALS["docker-agent"]), listening)
    await agent.ask(call(1, "echo"))
    await gate.reached()
    with open(recorded, "rb") as file:  # noqa: ASYNC230  # it is there
        document = json.load(file)
    assert (document["event"], document["tool_name"], document["reason"]) == ("PermissionDenied", "echo", "no")
