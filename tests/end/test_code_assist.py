"""code-assist's hooks page, example by example and sentence by sentence, in front of a real server."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.end.agent import Agent, Json, Scene, call, line_of, text_of

# The examples are unchanged, except for the indentation of the Python scripts, which the page's text had lost.

BLOCK_DANGEROUS: Final = '''#!/usr/bin/env python3
"""hooks/block_dangerous.py - PreToolUse hook to block dangerous commands."""
import json
import sys

BLOCKED_PATTERNS = ["rm -rf /", "sudo", "chmod 777", "> /dev/"]

data = json.load(sys.stdin)
if data.get("tool_name") == "BashTool":
    cmd = data.get("tool_input", {}).get("command", "")
    for pattern in BLOCKED_PATTERNS:
        if pattern in cmd:
            json.dump({
                "decision": "deny",
                "reason": f"Blocked: command contains '{pattern}'"
            }, sys.stdout)
            sys.exit(0)

json.dump({"decision": "approve"}, sys.stdout)
'''

DANGER_GUARD: Final = """{
  "hooks": {
    "PreToolUse": [
      {
        "command": "python hooks/block_dangerous.py",
        "timeout": 3000,
        "name": "danger-guard"
      }
    ]
  }
}
"""

AUTO_LINT: Final = r"""{
  "hooks": {
    "PostToolUse": [
      {
        "command": "python -c \"import sys, json; d=json.load(sys.stdin); path=d.get('tool_input',{}).get('file_path',''); import subprocess; r=subprocess.run(['ruff','check',path],capture_output=True,text=True) if path.endswith('.py') and d.get('tool_name')=='FileWriteTool' else None; json.dump({'additional_context': f'Lint results: {r.stdout}' if r else {}}, sys.stdout)\"",
        "timeout": 10000,
        "name": "auto-lint"
      }
    ]
  }
}
"""  # noqa: E501  # a line of the page

LOG_TOOLS: Final = r'''#!/usr/bin/env python3
"""hooks/log_tools.py - PostToolUse hook that logs tool usage."""
import json
import sys
from datetime import datetime, timezone

data = json.load(sys.stdin)
log_entry = {
    "timestamp": datetime.now(timezone.utc).isoformat(),
    "event": data["hook_event"],
    "tool": data.get("tool_name"),
    "session": data.get("session_id"),
}

with open("tool_usage.jsonl", "a") as f:
    f.write(json.dumps(log_entry) + "\n")

json.dump({}, sys.stdout)
'''

LOGGER: Final = '{"hooks": {"PostToolUse": [{"command": "python hooks/log_tools.py"}]}}'
"""The page shows the script alone."""

PATH: Final = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
"""Where the examples find `python` and `ruff`."""


class Project:
    """A project of code-assist's: `.claude/settings.json`, and scripts in `hooks`."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.folder = scene.folder / "project"
        (self.folder / ".claude").mkdir(parents=True)
        (self.folder / "hooks").mkdir()
        self.settings = self.folder / ".claude" / "settings.json"

    async def begun(self, settings: str | Json, *options: str) -> Agent:
        """An agent in front of a server with these settings, after the handshake."""
        self.settings.write_text(settings if isinstance(settings, str) else json.dumps({"hooks": settings}))
        agent = self.scene.run(f"--hooks=code-assist={self.settings}", *options, env=PATH)
        await agent.initialize()
        return agent

    def script(self, name: str, text: str) -> None:
        (self.folder / "hooks" / name).write_text(text)

    def prints(self, **answer: object) -> Json:
        """A hook that prints this."""
        return {"command": self.scene.prints(answer)}

    def recorded_input(self, name: str) -> Json:
        """The input that a hook with `cat >NAME` recorded."""
        document: Json = json.loads((self.folder / name).read_text())
        return document


@pytest.fixture
def project(scene: Scene) -> Project:
    return Project(scene)


def texts(answer: Json) -> list[str]:
    return [block["text"] for block in answer["result"]["content"]]


# --- the page's examples ---


@pytest.mark.parametrize(
    ("command", "pattern"),
    [("sudo reboot", "sudo"), ("rm -rf / --no-preserve-root", "rm -rf /"), ("echo x > /dev/sda", "> /dev/")],
)
async def test_the_danger_guard_blocks_dangerous_commands(project: Project, command: str, pattern: str) -> None:
    project.script("block_dangerous.py", BLOCK_DANGEROUS)
    agent = await project.begun(DANGER_GUARD)
    answer = await agent.ask(call(1, "BashTool", command=command))
    assert answer["result"]["isError"] is True
    assert texts(answer) == [f"Blocked by the PreToolUse hook danger-guard: Blocked: command contains '{pattern}'"]
    assert project.scene.calls_received() == []


@pytest.mark.parametrize(("tool", "argument", "text"), [("BashTool", "command", "ls -la"), ("Search", "query", "sudo")])
async def test_the_danger_guard_lets_other_calls_pass_as_they_are(
    project: Project, tool: str, argument: str, text: str
) -> None:
    project.script("block_dangerous.py", BLOCK_DANGEROUS)
    agent = await project.begun(DANGER_GUARD)
    line = line_of(call(1, tool, **{argument: text}))
    await agent.send(line)
    assert texts(await agent.answer(1)) == [f"ran {tool}"]
    assert project.scene.received()[-1] + b"\n" == line
    assert agent.reports() == ""


async def test_auto_lint_shows_the_model_what_is_wrong_with_the_file(project: Project) -> None:
    path = project.folder / "written.py"
    path.write_text("import os\n")
    agent = await project.begun(AUTO_LINT)
    output, lint = texts(await agent.ask(call(1, "FileWriteTool", file_path=str(path), content="import os\n")))
    assert output == "ran FileWriteTool"
    assert lint.startswith("Lint results: F401")
    assert str(path.name) in lint


@pytest.mark.parametrize(("tool", "name"), [("FileWriteTool", "notes.txt"), ("FileReadTool", "written.py")])
async def test_auto_lint_does_not_comment_on_other_files_and_other_tools(
    project: Project, tool: str, name: str
) -> None:
    agent = await project.begun(AUTO_LINT)
    assert texts(await agent.ask(call(1, tool, file_path=str(project.folder / name)))) == [f"ran {tool}"]
    assert agent.reports() == ""  # {} for a text that is not there is not a failure


async def test_the_logger_logs_calls_that_succeeded(project: Project) -> None:
    project.script("log_tools.py", LOG_TOOLS)
    agent = await project.begun(LOGGER)
    failed = {"content": [{"type": "text", "text": "no"}], "isError": True}
    assert texts(await agent.ask(call(1, "BashTool"))) == ["ran BashTool"]
    assert texts(await agent.ask(call(2, "reply", result=failed))) == ["no"]
    assert texts(await agent.ask(call(3, "GrepTool"))) == ["ran GrepTool"]
    entries = [json.loads(line) for line in (project.folder / "tool_usage.jsonl").read_text().splitlines()]
    assert [(entry["event"], entry["tool"]) for entry in entries] == [
        ("PostToolUse", "BashTool"),
        ("PostToolUse", "GrepTool"),
    ]
    assert len({entry["session"] for entry in entries}) == 1
    assert all(entry["timestamp"].endswith("+00:00") and entry["session"] for entry in entries)
    assert agent.reports() == ""


# --- in order, all of them ---


@pytest.mark.parametrize("word", ["deny", "block"])
async def test_hooks_after_a_denial_still_run_and_the_call_is_denied(project: Project, word: str) -> None:
    order = "echo %s >>order; "
    entries: list[Json] = [
        {"command": order % "first" + project.prints(decision=word, reason="R", updated_input={"a": 2})["command"]},
        {"command": order % "second" + project.prints(decision="approve", updated_input={"a": 3})["command"]},
        {"command": order % "third" + "exit 1"},
    ]
    agent = await project.begun({"PreToolUse": entries})
    answer = await agent.ask(call(1, "BashTool", a=1))
    assert answer["result"]["isError"] is True
    assert text_of(answer).endswith(": R")
    assert project.scene.calls_received() == []
    assert (project.folder / "order").read_text().split() == ["first", "second", "third"]


async def test_each_hook_sees_the_original_and_the_last_rewrite_wins(project: Project) -> None:
    entries = [
        project.prints(updated_input={"a": 2}),
        {"command": "cat >seen"},
        project.prints(decision="approve", updated_input={"a": 3, "b": 1.50}),
        project.prints(status_message="done"),
    ]
    agent = await project.begun({"PreToolUse": entries, "PostToolUse": [{"command": "cat >recorded"}]})
    await agent.ask(call(1, "BashTool", a=1))
    assert project.recorded_input("seen")["tool_input"] == {"a": 1}
    assert b'"arguments": {"a": 3, "b": 1.5}' in project.scene.received()[-1]
    assert project.recorded_input("recorded")["tool_input"] == {"a": 3, "b": 1.5}
    assert "done" in agent.standard_error()


# --- exit codes and timeouts ---


async def test_exit_2_denies_with_standard_error_as_the_reason(project: Project) -> None:
    agent = await project.begun({"PreToolUse": [{"command": "echo 'not now' >&2; exit 2", "name": "clock"}]})
    answer = await agent.ask(call(1, "BashTool"))
    assert texts(answer) == ["Blocked by the PreToolUse hook clock: not now"]
    assert project.scene.calls_received() == []


@pytest.mark.parametrize("command", ["echo oops >&2; exit 1", "./hooks/missing.py", "echo plain text"])
async def test_any_other_failure_is_reported_to_the_person_and_the_call_goes_on(project: Project, command: str) -> None:
    agent = await project.begun({"PreToolUse": [{"command": command, "name": "flaky"}]})
    assert texts(await agent.ask(call(1, "BashTool"))) == ["ran BashTool"]
    assert "flaky" in agent.standard_error()


async def test_a_timeout_counts_milliseconds_and_the_call_goes_on(project: Project) -> None:
    gate = project.scene.gate("hang")
    agent = await project.begun({"PreToolUse": [{"command": gate.script, "timeout": 250, "name": "slow"}]})
    assert texts(await agent.ask(call(1, "BashTool"))) == ["ran BashTool"]
    assert "timed out after 0.25 s" in agent.standard_error()


async def test_the_configuration_can_make_a_failure_deny(project: Project) -> None:
    config = project.scene.config('on_failure = "deny"\n')
    agent = await project.begun({"PreToolUse": [{"command": "exit 1"}]}, config)
    assert (await agent.ask(call(1, "BashTool")))["result"]["isError"] is True
    assert project.scene.calls_received() == []


# --- after the call ---


async def test_updated_output_replaces_the_output_and_context_follows_it(project: Project) -> None:
    filtered = project.prints(
        suppress_output=False,
        updated_output="Filtered output here...",
        additional_context="Note: 3 files were modified",
    )
    agent = await project.begun({"PostToolUse": [{"command": "cat >recorded"}, filtered]})
    answer = await agent.ask(call(1, "echo", secret="s3cret"))
    assert texts(answer) == ["Filtered output here...", "Note: 3 files were modified"]
    assert project.recorded_input("recorded")["tool_output"] == '{"secret": "s3cret"}'


async def test_suppress_output_hides_the_output_from_the_model(project: Project) -> None:
    agent = await project.begun({"PostToolUse": [{**project.prints(suppress_output=True), "name": "veil"}]})
    answer = await agent.ask(call(1, "echo", secret="s3cret"))
    assert "s3cret" not in json.dumps(answer)
    assert "veil" in text_of(answer)


async def test_a_failed_call_is_for_failure_hooks_alone(project: Project) -> None:
    hooks = {
        "PostToolUse": [{"command": "touch wrong"}],
        "PostToolUseFailure": [{"command": "cat >recorded"}, project.prints(additional_context="try again later")],
    }
    agent = await project.begun(hooks)
    failed = {"content": [{"type": "text", "text": "it broke"}], "isError": True}
    assert texts(await agent.ask(call(1, "reply", result=failed))) == ["it broke", "try again later"]
    document = project.recorded_input("recorded")
    assert (document["tool_name"], document["tool_input"], document["tool_output"]) == ("reply", None, "it broke")
    assert not (project.folder / "wrong").exists()


# --- sessions, files ---


async def test_additional_context_at_the_start_of_a_session_is_among_the_instructions(project: Project) -> None:
    hook = project.prints(additional_context="Read the conventions.")
    project.settings.write_text(json.dumps({"hooks": {"SessionStart": [{"command": "cat >recorded"}, hook]}}))
    agent = project.scene.run(f"--hooks={project.settings}", env=PATH)  # seen from the file's shape
    assert (await agent.initialize())["result"]["instructions"] == "Read the conventions."
    document = project.recorded_input("recorded")
    assert (document["hook_event"], document["tool_name"], document["tool_input"]) == ("SessionStart", None, None)
    assert document["session_id"]


async def test_what_cannot_fire_is_reported_at_start_up(project: Project) -> None:
    agent = await project.begun({"Stop": [{"command": "x"}], "PreToolUse": [{"command": "true"}]})
    reason = "an MCP server does not see when the agent's loop completes"
    assert f"hooks.Stop cannot fire behind MCP: {reason}" in agent.standard_error()


async def test_hooks_see_no_identity_of_another_system(project: Project) -> None:
    project.settings.write_text(json.dumps({"hooks": {"PreToolUse": [{"command": "env >seen"}]}}))
    foreign = {"CLAUDE_PROJECT_DIR": "/elsewhere", "HOOK_EVENT": "PreToolUse", "CURSOR_VERSION": "1"}
    agent = project.scene.run(f"--hooks=code-assist={project.settings}", env={**PATH, **foreign})
    await agent.initialize()
    await agent.ask(call(1, "BashTool"))
    seen = (project.folder / "seen").read_text()
    assert f"PWD={project.folder}" in seen
    assert not any(name in seen for name in foreign)


async def test_a_failed_call_is_repeated_when_a_hook_says_so(scene: Scene) -> None:
    """`retry`: "Retry the operation after hook completes", once where nothing else is configured."""
    audit = scene.folder / "audit.jsonl"
    hooks = {"hooks": {"PostToolUseFailure": [{"command": scene.prints({"retry": True}), "name": "again"}]}}
    agent = scene.run("--hooks=code-assist=" + scene.file("settings.json", json.dumps(hooks)), f"--audit={audit}")
    await agent.initialize()
    failing = {"content": [{"type": "text", "text": "busy"}], "isError": True}
    answer = await agent.ask(call(1, "reply", result=failing))
    assert answer["result"] == failing
    sent = scene.calls_received()
    assert [message["params"] for message in sent] == [sent[0]["params"]] * 2
    assert sent[0]["id"] == 1
    assert sent[1]["id"].startswith("hookproxy:")
    line = json.loads(audit.read_text())
    assert line["repeats"] == 1
    assert [hook["outcome"] for hook in line["hooks"]] == ["success", "success"]


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("echo '{}'", "success"),
        ("""echo '{"decision": "block", "reason": "no"}'""", "blocking"),
        ("echo '{}'; exit 1", "non_blocking_error"),
        ("sleep 60", "cancelled"),
    ],
)
async def test_the_four_outcomes_are_in_the_audit(scene: Scene, command: str, outcome: str) -> None:
    """The table of hook outcomes."""
    audit = scene.folder / "audit.jsonl"
    timeout = 200 if outcome == "cancelled" else 30_000  # milliseconds, in which the others end on a busy machine, too
    hooks = {"hooks": {"PreToolUse": [{"command": command, "timeout": timeout, "name": "one"}]}}
    agent = scene.run("--hooks=code-assist=" + scene.file("settings.json", json.dumps(hooks)), f"--audit={audit}")
    await agent.initialize()
    await agent.ask(call(1, "echo"))
    assert [hook["outcome"] for hook in json.loads(audit.read_text())["hooks"]] == [outcome]


async def test_hooks_run_for_an_elicitation_of_the_server_and_its_answer(scene: Scene) -> None:
    """Elicitation: "When the model asks the user a question"; ElicitationResult: "When the user answers"."""
    asked, answered = scene.gate("asked"), scene.gate("answered")
    recorded = scene.folder / "recorded"
    hooks = {
        event: [{"command": f"cat > '{recorded}.{event}'; echo '{{}}'; {gate.report}", "timeout": 9000, "name": event}]
        for event, gate in (("Elicitation", asked), ("ElicitationResult", answered))
    }
    agent = scene.run("--hooks=code-assist=" + scene.file("settings.json", json.dumps({"hooks": hooks})))
    await agent.initialize()
    await agent.send({"jsonrpc": "2.0", "id": 9, "method": "ask", "params": {"method": "elicitation/create"}})
    question = await agent.notified("elicitation/create")
    await asked.reached()
    await agent.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
    await answered.reached()
    for event in ("Elicitation", "ElicitationResult"):
        document = json.loads((scene.folder / f"recorded.{event}").read_text())
        assert document["hook_event"] == event
        assert len(document) == 9
