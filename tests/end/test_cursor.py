"""A hooks.json of Cursor in front of a real process, for an agent that is not Cursor."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.dialects.cursor.test_hook_file import PUBLISHED
from tests.end.agent import Agent, Json, Scene, call, refused, text_of

FAILED: Json = {"content": [{"type": "text", "text": "it broke"}], "isError": True}


def prints(value: object) -> str:
    return f"printf %s {shlex.quote(json.dumps(value))}"


def logs(scene: Scene) -> str:
    """A hook that adds its document to a log."""
    return f"jq -c . >> {shlex.quote(str(scene.folder / 'log'))}"


def logged(scene: Scene) -> list[Json]:
    return [json.loads(line) for line in (scene.folder / "log").read_text().splitlines()]


async def begun(scene: Scene, *options: str, **events: str | Json) -> Agent:
    """An agent behind a project's hooks.json with a command or an entry for each of these events."""
    folder = scene.folder / ".cursor"
    folder.mkdir()
    hooks = {name: [{"command": each} if isinstance(each, str) else each] for name, each in events.items()}
    (folder / "hooks.json").write_text(json.dumps({"version": 1, "hooks": hooks}))
    agent = scene.run(f"--hooks={folder / 'hooks.json'}", *options)  # recognised by its folder
    await agent.initialize()
    return agent


async def test_two_events_come_before_a_call_and_two_after_it_in_cursors_order(scene: Scene) -> None:
    names = ("postToolUse", "afterMCPExecution", "beforeMCPExecution", "preToolUse", "postToolUseFailure")
    agent = await begun(scene, **dict.fromkeys(names, logs(scene)))
    assert text_of(await agent.ask(call(1, "echo", a=1))) == '{"a": 1}'
    documents = logged(scene)
    assert [one["hook_event_name"] for one in documents] == [
        "preToolUse",
        "beforeMCPExecution",
        "afterMCPExecution",
        "postToolUse",
    ]
    assert [one["tool_name"] for one in documents] == ["MCP:echo", "echo", "echo", "MCP:echo"]
    assert [one["tool_input"] for one in documents] == [{"a": 1}, '{"a":1}', '{"a":1}', {"a": 1}]
    assert "tool_server.py" in documents[1]["command"]
    results = [documents[2]["result_json"], documents[3]["tool_output"]]
    assert [json.loads(one)["content"][0]["text"] for one in results] == ['{"a": 1}'] * 2


async def test_after_a_failed_call_comes_the_event_for_failures(scene: Scene) -> None:
    names = ("postToolUse", "afterMCPExecution", "postToolUseFailure")
    agent = await begun(scene, **dict.fromkeys(names, logs(scene)))
    assert (await agent.ask(call(1, "reply", result=FAILED)))["result"] == FAILED
    documents = logged(scene)
    assert [one["hook_event_name"] for one in documents] == ["afterMCPExecution", "postToolUseFailure"]
    assert (documents[1]["error_message"], documents[1]["failure_type"]) == ("it broke", "error")


async def test_a_denial_ends_the_call_before_the_next_event_and_is_reported_as_a_failure(scene: Scene) -> None:
    denial = {"permission": "deny", "agent_message": "Use staging.", "user_message": "Not here."}
    agent = await begun(
        scene, preToolUse=prints(denial), beforeMCPExecution=logs(scene), postToolUseFailure=logs(scene)
    )
    assert "Use staging." in refused(await agent.ask(call(1, "echo", a=1)))
    agent.end_input()
    await agent.ended()
    assert "Not here." in agent.standard_error()
    assert [(one["hook_event_name"], one["failure_type"]) for one in logged(scene)] == [
        ("postToolUseFailure", "permission_denied")
    ]
    assert scene.calls_received() == []


async def test_the_second_event_and_the_server_get_rewritten_arguments(scene: Scene) -> None:
    agent = await begun(scene, preToolUse=prints({"updated_input": {"a": 2}}), beforeMCPExecution=logs(scene))
    # the log prints nothing, so it decides nothing
    assert json.loads(text_of(await agent.ask(call(1, "echo", a=1, b=1)))) == {"a": 2}
    assert [one["tool_input"] for one in logged(scene)] == ['{"a":2}']


async def test_a_hook_after_a_call_replaces_the_output_and_comments(scene: Scene) -> None:
    output = {"updated_mcp_tool_output": {"rows": 1}, "additional_context": "redacted"}
    agent = await begun(scene, postToolUse=prints(output))
    result = (await agent.ask(call(1, "echo", secret="hunter2")))["result"]
    assert "hunter2" not in str(result)
    texts = [block["text"] for block in result["content"]]
    assert json.loads(texts[0]) == {"rows": 1}
    assert texts[1:] == ["redacted"]


async def test_a_guard_for_commands_denies_a_servers_command_by_its_matcher(scene: Scene) -> None:
    deny = prints({"permission": "deny", "agent_message": "No network."})
    agent = await begun(scene, beforeShellExecution={"command": deny, "matcher": "curl|wget"})
    assert "No network." in refused(await agent.ask(call(1, "bash", command="true; curl x")))
    assert text_of(await agent.ask(call(2, "bash", command="ls"))) == "ran bash"
    assert text_of(await agent.ask(call(3, "echo", text="curl"))) == '{"text": "curl"}'
    assert len(scene.calls_received()) == 2


async def test_a_rewrite_of_cursors_own_shell_reaches_the_server_under_its_own_names(scene: Scene) -> None:
    changed = prints({"updated_input": {"command": "npm ci"}})
    agent = await begun(scene, preToolUse={"command": changed, "matcher": "^Shell$"})
    assert text_of(await agent.ask(call(1, "bash", cmd="npm install"))) == "ran bash"
    assert [one["params"]["arguments"] for one in scene.calls_received()] == [{"cmd": "npm ci"}]


async def test_output_that_is_not_json_refuses_the_call(scene: Scene) -> None:
    agent = await begun(scene, beforeMCPExecution="echo checked")
    assert "printed text that is not JSON" in refused(await agent.ask(call(1, "bash")))
    assert scene.calls_received() == []


async def test_a_hook_that_fails_lets_the_call_go_and_is_reported(scene: Scene) -> None:
    agent = await begun(scene, beforeMCPExecution="echo broken >&2; exit 1")
    assert text_of(await agent.ask(call(1, "bash"))) == "ran bash"
    assert "exited with status 1: broken" in agent.standard_error()


async def test_a_hook_that_fails_closed_refuses_the_call(scene: Scene) -> None:
    agent = await begun(scene, beforeMCPExecution={"command": "exit 1", "failClosed": True})
    assert "exited with status 1" in refused(await agent.ask(call(1, "bash")))
    assert scene.calls_received() == []


async def test_hooks_get_cursors_variables_and_no_others(scene: Scene) -> None:
    agent = await begun(scene, preToolUse=f"env > {shlex.quote(str(scene.folder / 'env'))}; pwd >> {scene.folder}/env")
    await agent.ask(call(1, "echo"))
    lines = (scene.folder / "env").read_text().splitlines()
    variables = dict(line.split("=", 1) for line in lines if "=" in line)
    assert {name for name in variables if name.startswith("CURSOR_")} == {"CURSOR_PROJECT_DIR", "CURSOR_VERSION"}
    assert variables["CLAUDE_PROJECT_DIR"] == variables["CURSOR_PROJECT_DIR"]
    assert lines[-1] == str(scene.folder)


RUNS: dict[str, list[str]] = {
    "collection": [
        "sessionStart",
        *("beforeShellExecution", "beforeMCPExecution", "afterMCPExecution"),
        *("beforeMCPExecution", "afterMCPExecution"),
    ],
    "secrets": ["beforeShellExecution"],
    "memory": ["afterFileEdit"],
    "wrong event": ["preToolUse", "preToolUse"],
    "the page's network guard": ["beforeShellExecution"],
}
"""The events at which the hooks of each published shape run, for a command and a write."""


def write_files(project: Path, content: Json) -> None:
    """The hooks.json, and the program that its hooks run, which logs its event."""
    (project / ".cursor").mkdir()
    (project / ".cursor/hooks.json").write_text(json.dumps(content))
    program = project / "guard.sh"
    program.write_text("#!/bin/sh\njq -r .hook_event_name >> log\n")
    program.chmod(0o755)


@pytest.mark.parametrize("name", PUBLISHED)
async def test_the_shapes_of_published_files_run(scene: Scene, name: str) -> None:
    write_files(scene.folder, PUBLISHED[name][0])
    agent = scene.run(f"--hooks={scene.folder / '.cursor/hooks.json'}")
    await agent.initialize()
    assert text_of(await agent.ask(call(1, "bash", command="curl x"))) == "ran bash"
    assert "result" in await agent.ask(call(2, "write_file", path="a", content="b"))
    assert sorted((scene.folder / "log").read_text().split()) == sorted(RUNS[name])


async def test_a_condition_of_a_later_event_is_about_rewritten_arguments(scene: Scene) -> None:
    folder = scene.folder / ".cursor"
    folder.mkdir()
    rewrite = f"printf %s {shlex.quote(json.dumps({'updated_input': {'command': 'rm -rf /'}}))}"
    guard = {"command": "echo 'no rm' >&2; exit 2", "matcher": "rm"}
    hooks = {"preToolUse": [{"command": rewrite}], "beforeShellExecution": [guard]}
    (folder / "hooks.json").write_text(json.dumps({"version": 1, "hooks": hooks}))
    agent = scene.run(f"--hooks={folder / 'hooks.json'}")
    await agent.initialize()
    assert "no rm" in refused(await agent.ask(call(1, "bash", command="ls")))
    assert not scene.calls_received()
