"""Every agent's own documents get the decision that `try` gives the same act behind MCP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from hookproxy.config.load import Loaded
from hookproxy.dialects.agent_side import Can, HookOutput, agent_side, names
from hookproxy.guard.exchange import Request
from hookproxy.model.hooks import Permission, Session
from hookproxy.trial.report import try_call
from hookproxy.trial.run import TrialCall
from tests.guard.test_judge import AGENTS, configured, judging, permission

pytestmark = pytest.mark.anyio

POLICIES: Final = {
    "a rule that denies": '[permissions]\ndeny = ["Bash(rm *)"]',
    "a rule that asks": '[permissions]\nask = ["Bash(rm *)", "Bash(git push *)"]',
    "a default": '[permissions]\ndefault = "deny"\nallow = ["Bash(git *)"]',
    "a rule about a folder": '[permissions]\ndeny = ["Read(/etc/**)", "Write(/etc/**)"]',
    "a hook of Claude Code": '[[use]]\nfile = "settings.json"\ndialect = "claude"',
    "an own hook": '[[hooks.PreToolUse]]\nmatcher = "Bash"\ncommand = "./guard.sh"',
    "a hook that fails": '[[hooks.PreToolUse]]\nmatcher = "Bash"\ncommand = "exit 7"\non_failure = "deny"',
    "a rule about a method": '[permissions]\ndeny = ["resources/read"]',
}
COMMANDS: Final = (
    "rm x",
    "git status",
    "cd /; sudo rm -rf y",
    "git push origin",
    "cat /etc/passwd",
    "$(echo rm) x",
    "",
)


def policy(folder: Path, text: str) -> Loaded:
    handler = {"type": "command", "command": str(folder / "guard.sh")}
    groups = {"PreToolUse": [{"matcher": "Bash", "hooks": [handler]}]}
    (folder / "settings.json").write_text(json.dumps({"hooks": groups}))
    guard = folder / "guard.sh"
    guard.write_text('#!/bin/sh\ngrep -q \'"command":"rm \' || exit 0\necho no rm >&2\nexit 2\n')
    guard.chmod(0o755)
    return configured(folder, text)


def recorded(agent: str, command: str) -> Request:
    """The document that the agent gives to a hook before its own shell runs this command."""
    row = AGENTS[agent]
    document = json.dumps(row.before)
    before = next(text for text in ("rm x", "rm -rf x") if text in document)
    environ = {"PATH": "/usr/bin:/bin", **row.before_variables}
    return Request(agent, "/", environ, document.replace(before, command).encode())


async def tried(loaded: Loaded, request: Request, *, only_command: bool) -> str:
    """What `try` says of the same call of the tool `Bash` of a server, with all its arguments or only with its command.

    An allow rule covers every text for a server, and only the command of an agent's own tool.
    """
    side = agent_side(request.agent)
    assert side is not None
    context = side.read_document(request.document, {**request.environ, "PWD": "/"}).context
    renamed = {theirs: ours for ours, theirs in (context.alias.arguments if context.alias else {}).items()}
    arguments = {renamed.get(name, name): value for name, value in json.loads(context.arguments).items()}
    if only_command:
        arguments = {name: value for name, value in arguments.items() if name == "command"}
    call = TrialCall("Bash", json.dumps(arguments).encode())
    report = await try_call(loaded, call, None, Session("s", "server", "/", "/"), {"PATH": "/usr/bin:/bin"})
    return {"deny": "deny", "asked": "ask", "asked-deny": "deny"}.get(report.trial.decision, "allow")


@pytest.mark.parametrize("agent", names())
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if "hook" in name else ()) for name in POLICIES]
)
async def test_the_decision_about_a_recorded_document_is_that_of_try(agent: str, name: str, tmp_path: Path) -> None:
    side = agent_side(agent)
    assert side is not None
    loaded = policy(tmp_path, POLICIES[name])
    decisions = {"deny": Permission.DENY, "ask": Permission.ASK if Can.ASK in side.can else Permission.DENY}
    silent = HookOutput(AGENTS[agent].no_decision.encode())
    async with judging(loaded) as judge:
        for command in COMMANDS:
            request = recorded(agent, command)
            expected = await tried(loaded, request, only_command=name == "a default")
            output = await judge.judge(request)
            if expected == "allow":
                assert output.stdout == silent.stdout or permission(agent, output) is Permission.ALLOW, command
            else:
                assert permission(agent, output) is decisions[expected], command


NEW_TOOLS: Final = (
    ("Monitor", {"command": "rm x", "description": "wait"}),
    ("PowerShell", {"command": "rm x"}),
    ("run_command", {"command": "cd /; rm x"}),
    ("view_image", {"path": "/etc/x"}),
    ("create_file", {"path": "/etc/x", "file_text": ""}),
    ("Grep", {"pattern": "root", "path": "/etc/x"}),
    ("Glob", {"pattern": "x", "path": "/etc"}),
    ("list_directory", {"path": "/etc"}),
    ("TodoWrite", {"todos": [{"content": "rm x"}]}),
    ("Monitor", {"command": "git status"}),
)
"""Tools of an agent's own that hookproxy has not in its tables, such as those of a later version."""


@pytest.mark.parametrize(("tool", "arguments"), NEW_TOOLS)
@pytest.mark.parametrize("name", ["a rule that denies", "a rule that asks", "a rule about a folder", "an own hook"])
async def test_an_unknown_tool_of_an_agents_own_counts_as_it_would_behind_mcp(
    name: str, tool: str, arguments: dict[str, object], tmp_path: Path
) -> None:
    loaded = policy(tmp_path, POLICIES[name])
    document = {"session_id": "s", "cwd": "/", "hook_event_name": "PreToolUse", "tool_name": tool, "tool_use_id": "t1"}
    request = Request(
        "claude", "/", {"PATH": "/usr/bin:/bin"}, json.dumps({**document, "tool_input": arguments}).encode()
    )
    call = TrialCall(tool, json.dumps(arguments).encode())
    report = await try_call(loaded, call, None, Session("s", "server", "/", "/"), {"PATH": "/usr/bin:/bin"})
    expected = {"deny": Permission.DENY, "asked": Permission.ASK, "asked-deny": Permission.ASK}
    async with judging(loaded) as judge:
        output = await judge.judge(request)
    given = permission("claude", output) if output.stdout or output.status else None
    assert given is expected.get(report.trial.decision), report.trial.decision
