"""Docker Agent's files, and the examples of its hooks page with their scripts, in front of a real process."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import pytest

from tests.dialects.tables import sample
from tests.end.agent import PATIENCE, Agent, Json, Scene, call, refused, request, text_of
from tests.support.program import HOOKPROXY

PAGE: Final = sample("docker_agent.yaml")

VALIDATE: Final = r"""#!/bin/bash
# scripts/validate-command.sh
# Read JSON input from stdin
INPUT=$(cat)
TOOL_NAME=$(echo "$INPUT" | jq -r '.tool_name')
CMD=$(echo "$INPUT" | jq -r '.tool_input.cmd // empty')
# Block dangerous commands
if [[ "$TOOL_NAME" == "shell" ]]; then
if [[ "$CMD" =~ ^sudo ]] || [[ "$CMD" =~ rm.*-rf ]]; then
echo '{"decision": "block", "reason": "Dangerous command blocked by policy"}'
exit 2
fi
fi
# Allow everything else
echo '{"decision": "allow"}'
exit 0
"""
"""The page's validation script as the text has it: empty lines and indentation are lost, and change nothing."""

LOG: Final = r"""#!/bin/bash
# scripts/log-tool-call.sh
INPUT=$(cat)
TIMESTAMP=$(date -u +"%Y-%m-%dT%H:%M:%SZ")
TOOL_NAME=$(echo "$INPUT" | jq -r '.tool_name')
SESSION_ID=$(echo "$INPUT" | jq -r '.session_id')
# Append to audit log
echo "$TIMESTAMP | $SESSION_ID | $TOOL_NAME" >> ./audit.log
# Don't block execution
echo '{"continue": true}'
exit 0
"""
"""The page's script for audit logging, likewise."""

TIMEOUT: Final = """\
hooks:
  pre_tool_use:
    - matcher: "*"
      hooks:
        - type: command
          command: "./slow-validation.sh"
          timeout: 120 # 2 minutes
"""
"""The page's section on timeouts; its indentation is restored."""


def file(scene: Scene, name: str, text: str) -> Path:
    """A file of the project, executable if it is a script."""
    path = scene.folder / "project" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o700)
    return path


def project(scene: Scene, text: str = PAGE) -> Path:
    """The page's agent file with its scripts. Those that the page only names copy their input."""
    file(scene, "scripts/validate-command.sh", VALIDATE)
    file(scene, "scripts/log-tool-call.sh", LOG)
    for name in ("setup-env", "cleanup", "notify"):
        file(scene, f"scripts/{name}.sh", f"#!/bin/sh\ncat >./{name}.json\n")
    return file(scene, "agent.yaml", text)


def hooks(scene: Scene, dialect: str = "docker-agent", **events: list[Json]) -> str:
    """`--hooks` with a file of these events: the hooks of one group each."""
    groups = {name: [{"hooks": [{"type": "command", **one} for one in these]}] for name, these in events.items()}
    return f"--hooks={dialect}={file(scene, 'hooks.yaml', json.dumps({'hooks': groups}))}"


def in_project(scene: Scene) -> list[str]:
    """The option for the folder in which Docker Agent would have been started, if the test has one."""
    return ["--project=project"] if (scene.folder / "project").is_dir() else []


async def begun(scene: Scene, *options: str) -> Agent:
    agent = scene.run("--name=lean", *in_project(scene), *options)
    await agent.initialize()
    return agent


def answer(**specific: object) -> Json:
    return {"hook_specific_output": {"hook_event_name": "pre_tool_use", **specific}}


# --- the page's examples ---


@pytest.mark.parametrize("option", ["docker-agent=", ""])
async def test_the_pages_validation_script_blocks_what_it_says_and_its_reason_reaches_the_model(
    scene: Scene, option: str
) -> None:
    agent = await begun(scene, f"--hooks={option}{project(scene)}")
    for number, command in enumerate(("rm -rf /tmp/cache", "sudo ls")):
        text = refused(await agent.ask(call(number, "shell", cmd=command, cwd=".")))
        assert text.startswith("Blocked by the PreToolUse hook validate-command.sh")
        assert "Dangerous command blocked by policy" in text
    allowed = await agent.ask(call(7, "shell", cmd="ls -la", cwd="."))
    assert allowed["result"] == {"content": [{"type": "text", "text": "ran shell"}]}
    assert [one["params"]["arguments"]["cmd"] for one in scene.calls_received()] == ["ls -la"]
    assert agent.reports() == ""


async def test_the_pages_matcher_asks_about_the_named_tools_only(scene: Scene) -> None:
    hooks = f"--hooks=docker-agent={project(scene)}"
    by_name = await begun(scene, scene.config('aliases = "off"\n'), hooks)
    for number, tool in enumerate(("seashells", "shellac", "edit_files", "read_file")):
        assert text_of(await by_name.ask(call(number, tool, cmd="rm -rf /"))) == f"ran {tool}"
    agent = await begun(scene, hooks)
    assert "Dangerous command blocked by policy" in refused(await agent.ask(call(1, "seashells", cmd="rm -rf /")))
    for tool in ("shell2", "my_shell", "Shell"):  # they do what Docker Agent's own `shell` does
        assert "Dangerous command blocked by policy" in refused(await agent.ask(call(tool, tool, cmd="rm -rf /")))


async def test_the_validation_script_sees_through_spellings_of_a_command(scene: Scene) -> None:
    agent = await begun(scene, f"--hooks=docker-agent={project(scene)}")
    line = rb'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sh\u0065ll","arguments":%b}}'
    await agent.send(line % rb'{"cmd":"rm\u0020-rf x"}' + b"\n")
    assert "Dangerous command blocked by policy" in refused(await agent.answer(1))
    assert scene.calls_received() == []


async def test_the_pages_audit_script_logs_every_call_that_succeeded(scene: Scene) -> None:
    path = project(scene)
    agent = await begun(scene, f"--hooks=docker-agent={path}")
    await agent.ask(call(1, "shell", cmd="ls"))
    await agent.ask(call(2, "shell", cmd="sudo ls"))
    failed = {"content": [{"type": "text", "text": "no"}], "isError": True}
    assert (await agent.ask(call(3, "reply", result=failed)))["result"] == failed
    await agent.ask(call(4, "read_file"))
    lines = (path.parent / "audit.log").read_text().splitlines()
    matched = [re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \| (\S+) \| (\S+)", line) for line in lines]
    assert [one and one[2] for one in matched] == ["shell", "read_file"]
    assert len({one and one[1] for one in matched}) == 1


async def test_the_pages_session_hooks_run_at_the_start_and_the_end(scene: Scene) -> None:
    path = project(scene)
    agent = await begun(scene, f"--hooks=docker-agent={path}")
    await agent.ask(call(1, "read_file"))
    began = json.loads((path.parent / "setup-env.json").read_text())
    assert began == {
        "session_id": began["session_id"],
        "cwd": str(path.parent),
        "hook_event_name": "session_start",
        "source": "startup",
    }
    agent.end_input()
    await agent.ended()
    ended = json.loads((path.parent / "cleanup.json").read_text())
    recorded = {key: began[key] for key in ("session_id", "cwd")}
    assert ended == {**recorded, "hook_event_name": "session_end", "reason": "other"}


async def test_the_pages_on_user_input_hook_runs_when_the_server_waits_for_a_person(scene: Scene) -> None:
    gate = scene.gate("notified")
    path = project(scene)
    file(scene, "scripts/notify.sh", f"#!/bin/sh\ncat >./notify.json\n{gate.report}\n")
    agent = await begun(scene, f"--hooks=docker-agent={path}")
    params = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {}}}
    asked = {"jsonrpc": "2.0", "id": 77, "method": "elicitation/create", "params": params}
    await agent.send(request("ask", "raw", text=json.dumps(asked) + "\n"))
    await agent.notified("elicitation/create")
    await gate.reached()
    recorded = json.loads((path.parent / "notify.json").read_text())
    assert (recorded.keys(), recorded["hook_event_name"]) == ({"session_id", "cwd", "hook_event_name"}, "on_user_input")


async def test_the_pages_example_of_a_timeout_runs(scene: Scene) -> None:
    path = file(scene, "agent.yaml", TIMEOUT)
    file(scene, "slow-validation.sh", "#!/bin/sh\ngrep -q secret && { echo 'no secrets' >&2; exit 2; }\nexit 0\n")
    agent = await begun(scene, f"--hooks=docker-agent={path}")
    assert "no secrets" in refused(await agent.ask(call(1, "echo", text="secret")))
    assert text_of(await agent.ask(call(2, "echo", text="open"))) == '{"text": "open"}'


async def test_the_pages_example_of_an_answer_rewrites_the_input_and_warns_the_person(scene: Scene) -> None:
    page = {
        "continue": True,
        "stop_reason": "Optional message when continue=false",
        "suppress_output": False,
        "system_message": "Warning message to show user",
        "decision": "allow",
        "reason": "Explanation for the decision",
        "hook_specific_output": {
            "hook_event_name": "pre_tool_use",
            "permission_decision": "allow",
            "permission_decision_reason": "Command is safe",
            "updated_input": {"cmd": "modified command"},
        },
    }
    agent = await begun(scene, hooks(scene, pre_tool_use=[{"command": scene.prints(page)}]))
    result = (await agent.ask(call(1, "echo", cmd="x", cwd=".")))["result"]
    assert result == {"content": [{"type": "text", "text": '{"cmd": "modified command"}'}]}
    assert "Warning message to show user" in agent.standard_error()


# --- what the page says elsewhere ---


async def test_the_matcher_for_all_mcp_tools_asks_about_every_tool(scene: Scene) -> None:
    text = PAGE.replace('"shell|edit_file"', '"mcp:.*"').replace("./scripts/validate-command.sh", "exit 2")
    agent = await begun(scene, f"--hooks=docker-agent={project(scene, text)}")
    refused(await agent.ask(call(1, "read_file")))
    assert scene.calls_received() == []


@pytest.mark.parametrize("command", ["exit 1", "no-such-command", "echo '{'; true", "kill -9 $$"])
async def test_other_failures_are_logged_and_execution_continues(scene: Scene, command: str) -> None:
    agent = await begun(scene, hooks(scene, pre_tool_use=[{"command": command}]))
    assert text_of(await agent.ask(call(1, "echo", a=1))) == '{"a": 1}'
    assert "hooks.yaml" in agent.standard_error()


async def test_hooks_run_at_once_and_the_last_of_the_file_wins(scene: Scene) -> None:
    gate, beside = scene.gate("first"), scene.gate("second")
    first = f"{gate.script}; {scene.prints(answer(updated_input={'by': 'first'}))}"
    second = f"{scene.prints(answer(updated_input={'by': 'second'}))}; {beside.report}"
    agent = await begun(scene, hooks(scene, pre_tool_use=[{"command": first}, {"command": second}]))
    await agent.send(call(1, "echo"))
    await gate.reached()
    await beside.reached()  # while the first still runs
    gate.open()
    assert text_of(await agent.answer(1)) == '{"by": "second"}'


async def test_continue_false_denies_and_stops_the_other_pending_calls(scene: Scene) -> None:
    gate = scene.gate("held")
    stop = scene.prints({"continue": False, "stop_reason": "enough"})
    text = json.dumps({"hooks": {"pre_tool_use": [
        {"matcher": "echo", "hooks": [{"type": "command", "command": gate.script}]},
        {"matcher": "other", "hooks": [{"type": "command", "command": stop}]},
    ]}})  # fmt: skip
    agent = await begun(scene, f"--hooks=docker-agent={file(scene, 'hooks.json', text)}")
    await agent.send(call(1, "echo"))
    await gate.reached()
    await agent.send(call(2, "other"))
    assert "enough" in refused(await agent.answer(1))
    assert "enough" in refused(await agent.answer(2))
    assert scene.calls_received() == []


async def test_a_hook_gets_the_output_as_text(scene: Scene) -> None:
    recorded = scene.folder / "recorded"
    agent = await begun(scene, hooks(scene, post_tool_use=[{"command": f"cat >'{recorded}'"}]))
    blocks = [{"type": "text", "text": "a\nb"}, {"type": "text", "text": "é"}]
    result = {"content": blocks, "structuredContent": {"n": 1}}
    assert (await agent.ask(call(1, "reply", result=result)))["result"] == result
    assert json.loads(recorded.read_text())["tool_response"] == 'a\nb\né\n{"n": 1}'


# --- files and agents ---

TWO: Final = """\
x-guard: &guard {type: command, command: "echo no >&2; exit 2"}
agents:
  root:
    hooks:
      pre_tool_use:
        - matcher: echo
          hooks: [*guard]
  helper:
    hooks:
      pre_tool_use:
        - matcher: other
          hooks: [*guard]
"""


@pytest.mark.parametrize(("agent_line", "blocked"), [("", "echo"), ('agent = "helper"', "other")])
async def test_the_hooks_of_one_agent_run(scene: Scene, agent_line: str, blocked: str) -> None:
    use = f'[[use]]\nfile = "{file(scene, "agent.yml", TWO)}"\ndialect = "docker-agent"\n{agent_line}\n'
    agent = await begun(scene, scene.config(use))
    for number, tool in enumerate(("echo", "other")):
        result = (await agent.ask(call(number, tool)))["result"]
        assert result.get("isError", False) is (tool == blocked)


async def test_an_agent_that_is_not_there_stops_start_up(scene: Scene) -> None:
    use = f'[[use]]\nfile = "{file(scene, "agent.yml", TWO)}"\ndialect = "docker-agent"\nagent = "helpr"\n'
    ended = scene.complete([HOOKPROXY, "run", scene.config(use), "--", "true"], within=PATIENCE)
    assert ended.returncode == 2
    assert b"agent.yml: there is no agent 'helpr' in it" in ended.stderr
    assert b"did you mean 'helper'?" in ended.stderr


# --- docker-agent@current ---


async def test_today_the_pages_old_script_blocks_everything_and_gives_the_reason(scene: Scene) -> None:
    agent = await begun(scene, f"--hooks=docker-agent@current={project(scene)}")
    text = refused(await agent.ask(call(1, "shell", cmd="ls")))
    assert "gave the decision 'allow', which is not block" in text
    assert "Dangerous command blocked by policy" in refused(await agent.ask(call(2, "shell", cmd="rm -rf /")))
    assert scene.calls_received() == []


async def test_today_the_newer_script_lets_other_commands_pass(scene: Scene) -> None:
    path = project(scene)
    file(scene, "scripts/validate-command.sh", VALIDATE.replace('{"decision": "allow"}', "{}"))
    agent = await begun(scene, f"--hooks=docker-agent@current={path}")
    assert text_of(await agent.ask(call(1, "shell", cmd="ls"))) == "ran shell"
    assert "Dangerous command blocked by policy" in refused(await agent.ask(call(2, "shell", cmd="rm -rf /")))


@pytest.mark.parametrize("command", ["exit 1", "no-such-command", "echo '{'; true", "kill -9 $$"])
async def test_today_a_hook_that_fails_blocks(scene: Scene, command: str) -> None:
    agent = await begun(scene, hooks(scene, "docker-agent@current", pre_tool_use=[{"command": command}]))
    refused(await agent.ask(call(1, "echo")))
    assert scene.calls_received() == []


async def test_today_hooks_see_what_those_before_them_patched_and_all_patches_arrive(scene: Scene) -> None:
    recorded = scene.folder / "recorded"
    first = scene.prints(answer(updated_input={"a": 2, "b": 2}))
    second = f"cat >'{recorded}'; {scene.prints(answer(updated_input={'b': 3}))}"
    option = hooks(scene, "docker-agent@current", pre_tool_use=[{"command": first}, {"command": second}])
    agent = await begun(scene, option)
    await agent.ask(call(1, "echo", a=1, z=0))
    assert scene.calls_received()[0]["params"]["arguments"] == {"a": 2, "z": 0, "b": 3}
    text = json.loads(recorded.read_text())
    assert (text["tool_input"], text["agent_name"]) == ({"a": 2, "z": 0, "b": 2}, "root")


async def test_today_a_guard_judges_what_other_hooks_have_made_of_the_input(scene: Scene) -> None:
    rewrite = scene.prints(answer(updated_input={"cmd": "rm -rf x"}))
    guard = "grep -q 'rm -rf' && { echo guarded >&2; exit 2; }; exit 0"
    option = hooks(scene, "docker-agent@current", tool_guard=[{"command": guard}], pre_tool_use=[{"command": rewrite}])
    agent = await begun(scene, option)
    assert "guarded" in refused(await agent.ask(call(1, "shell", cmd="ls")))
    assert scene.calls_received() == []


async def test_today_hooks_get_a_failed_call_with_its_error(scene: Scene) -> None:
    recorded = scene.folder / "recorded"
    agent = await begun(scene, hooks(scene, "docker-agent@current", post_tool_use=[{"command": f"cat >'{recorded}'"}]))
    failed = {"content": [{"type": "text", "text": "rate limited"}], "isError": True}
    assert (await agent.ask(call(1, "reply", result=failed)))["result"] == failed
    text = json.loads(recorded.read_text())
    assert (text["hook_event_name"], text["tool_response"], text["tool_error"]) == (
        "post_tool_use",
        "rate limited",
        True,
    )


async def test_today_a_response_can_be_rewritten(scene: Scene) -> None:
    rewrite = scene.prints({"hook_specific_output": {"updated_tool_response": "[redacted]"}})
    agent = await begun(scene, hooks(scene, "docker-agent@current", tool_response_transform=[{"command": rewrite}]))
    assert text_of(await agent.ask(call(1, "echo", secret="x"))) == "[redacted]"
    failed = {"content": [{"type": "text", "text": "secret"}], "isError": True}
    result = (await agent.ask(call(2, "reply", result=failed)))["result"]
    assert result == {"content": [{"type": "text", "text": "[redacted]"}], "isError": True}


async def test_today_what_a_session_start_hook_prints_is_in_the_instructions(scene: Scene) -> None:
    text = "session_start: {type: command, command: echo On branch main.}\nstop: {type: command, command: x}\n"
    agent = scene.run("--name=lean", f"--hooks=docker-agent@current={file(scene, '50-mine.yaml', text)}")
    assert (await agent.initialize())["result"]["instructions"] == "On branch main."
    assert "stop cannot fire behind MCP" in agent.standard_error()
