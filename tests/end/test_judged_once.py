"""A call to a server is judged once, although it comes twice: as the agent's own event, and through `run`."""

from __future__ import annotations

import json
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.guard_desk import Desk
from tests.support.guarded_agent import GuardedAgent, guarded_agent

LOUD = """#!/usr/bin/env python3
import json, sys
document = json.load(sys.stdin)
with open(HERE + "/seen", "a") as seen:
    seen.write(json.dumps(document) + "\\n")
if document.get("agent_type") == "Explore" or document.get("agent_id") == "a7":
    print("not by this subagent", file=sys.stderr)
    sys.exit(2)
if document["tool_input"].get("n") == "rewrite":
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"n": "rewritten"}}}))
if document["hook_event_name"] == "PostToolUse":
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "commented"}}))
"""


@pytest.fixture
def tmp_path(short_path: Path) -> Path:
    """Home folders are in it, and the guard's socket is in these."""
    return short_path


class JoinedDesk(Desk):
    """Hooks write what they get to a file."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.hook = home / "hook.py"
        self.hook.write_text(LOUD.replace("HERE", repr(str(home))))
        self.hook.chmod(0o755)
        self.hooks = "".join(f"[[hooks.{event}]]\ncommand = '{self.hook}'\n" for event in ("PreToolUse", "PostToolUse"))

    def seen(self) -> list[dict[str, Any]]:
        """The documents that hooks have got since the last time."""
        file = self.home / "seen"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return [json.loads(line) for line in lines]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[JoinedDesk]:
    desk = JoinedDesk(tmp_path)
    desk.configure(desk.hooks + '[audit]\ncalls = "all"\n')
    yield desk
    desk.end(signal.SIGKILL)


@pytest.fixture
def agent(desk: JoinedDesk) -> Iterator[GuardedAgent]:
    with guarded_agent(desk) as agent:
        agent.event("SessionStart", "", {})
        agent.start("files")
        agent.list_tools("files")
        desk.seen()
        yield agent


def test_hooks_run_once_and_there_is_one_record(desk: JoinedDesk, agent: GuardedAgent) -> None:
    members = {"agent_id": "a1", "agent_type": "Plan", "permission_mode": "plan", "transcript_path": "/t.jsonl"}
    assert agent.event("PreToolUse", "mcp__files__echo", {"n": 1}, "toolu_1", cwd="/tmp", **members) == ("", "")
    assert agent.call("files", "echo", {"n": 1}, "toolu_1").endswith("commented")
    assert agent.event("PostToolUse", "mcp__files__echo", {"n": 1}, "toolu_1", tool_response=[]) == ("", "")
    agent.order(end="files")
    before, after = desk.seen()
    assert [document["hook_event_name"] for document in (before, after)] == ["PreToolUse", "PostToolUse"]
    for document in (before, after):
        assert members.items() <= document.items()
        assert (document["session_id"], document["cwd"], document["tool_use_id"]) == ("s", "/tmp", "toolu_1")
        assert document["annotations"] == {"readOnlyHint": True}
    begun, ended = (record for record in desk.records() if record["tool"] == "echo")
    assert (begun["result"], ended["result"], begun["call"]) == ("begun", "ok", ended["call"])
    assert [hook["event"] for hook in ended["hooks"]] == ["PreToolUse", "PostToolUse"]
    assert (ended["session"], ended["decision"]) == ("s", "allow")


def test_arguments_that_a_hook_has_rewritten_are_not_judged_again(desk: JoinedDesk, agent: GuardedAgent) -> None:
    agent.event("PreToolUse", "mcp__files__echo", {"n": "rewrite"}, "toolu_1")
    agent.call("files", "echo", {"n": "rewritten"}, "toolu_1")
    assert [document["hook_event_name"] for document in desk.seen()] == ["PreToolUse", "PostToolUse"]
    agent.order(end="files")
    *_, ended = desk.records()
    assert (ended["arguments"], ended["rewritten"]) == ({"n": "rewrite"}, {"n": "rewritten"})


@pytest.mark.parametrize(
    ("server", "tool", "arguments", "use"),
    [
        ("files", "echo", {"n": 1, "m": 2}, "toolu_1"),
        ("files", "echo", {"n": 1.0}, "toolu_1"),
        ("files", "echo", {"n": 1}, "toolu_2"),
        ("files", "typed", {"path": "x"}, "toolu_1"),
        ("other", "echo", {"n": 1}, ""),
    ],
)
def test_a_call_that_differs_in_anything_is_judged_itself(
    desk: JoinedDesk, agent: GuardedAgent, server: str, tool: str, arguments: dict[str, object], use: str
) -> None:
    if server == "other":
        agent.start("other")
    agent.event("PreToolUse", "mcp__files__echo", {"n": 1}, "toolu_1", agent_type="Plan")
    agent.call(server, tool, arguments, use)
    events = [(document["hook_event_name"], document.get("agent_type")) for document in desk.seen()]
    assert events == [("PreToolUse", "Plan"), ("PreToolUse", None), ("PostToolUse", None)]


def test_what_a_person_has_allowed_in_the_agent_is_not_asked_again(desk: JoinedDesk, agent: GuardedAgent) -> None:
    desk.configure('[permissions]\nask = ["echo"]\n')
    agent.start("later")
    agent.approves = "nobody was asked"
    assert agent.event("PreToolUse", "mcp__later__echo", {"n": 1}, "toolu_1")[0] == "ask"
    assert agent.call("later", "echo", {"n": 1}, "toolu_1") == '{"n": 1}'
    assert "no answer" in agent.call("later", "echo", {"n": 1}, "toolu_2")
    agent.order(end="later")
    decisions = {(record["decision"], record["result"]) for record in desk.records() if record["tool"] == "echo"}
    assert decisions == {("asked", "begun"), ("asked-allow", "sent"), ("asked-deny", "refused")}


def test_a_run_with_another_configuration_judges_in_addition_and_knows_the_subagent(
    desk: JoinedDesk, agent: GuardedAgent
) -> None:
    own, hook = desk.home / "own.toml", desk.home / "own.sh"
    hook.write_text(f"#!/bin/sh\ncat >> {desk.home}/own\n")
    hook.chmod(0o755)
    own.write_text(f"[[hooks.PreToolUse]]\ncommand = '{desk.hook}'\n[[hooks.PreToolUse]]\ncommand = '{hook}'\n")
    agent.start("own", "--config", str(own))
    desk.configure('[audit]\ncalls = "all"\n')
    assert agent.event("PreToolUse", "mcp__own__echo", {"n": 1}, "toolu_1", agent_type="Explore")[0] == ""
    assert "not by this subagent" in agent.call("own", "echo", {"n": 1}, "toolu_1")
    assert agent.event("PreToolUse", "mcp__own__echo", {"n": 2}, "toolu_2", agent_type="Plan")[0] == ""
    assert agent.call("own", "echo", {"n": 2}, "toolu_2") == '{"n": 2}'
    agent.event("PostToolUse", "mcp__own__echo", {"n": 2}, "toolu_2", tool_response=[])
    agent.order(end="own")
    assert [document["agent_type"] for document in desk.seen()] == ["Explore", "Plan"]
    records = [record for record in desk.records() if record["result"] != "begun"]
    of_run = [record for record in records if "native" in record]
    assert [record["result"] for record in of_run] == ["refused", "sent"]
    assert of_run[1]["native"] in [record["call"] for record in records]


def test_a_joined_call_counts_once(desk: JoinedDesk, agent: GuardedAgent) -> None:
    limits = [f'[[limits]]\ntool = "{tool}"\ncalls = 2\nper = "hour"\n' for tool in ("echo", "typed")]
    desk.configure("".join(limits))
    agent.start("later")
    agent.list_tools("later")
    for n in range(2):
        assert agent.event("PreToolUse", "mcp__later__echo", {"n": n}, f"toolu_{n}")[0] == ""
        assert "limit" not in agent.call("later", "echo", {"n": n}, f"toolu_{n}")
    assert agent.event("PreToolUse", "mcp__later__echo", {"n": 3}, "toolu_3")[0] == "deny"


def test_without_the_guard_that_has_judged_the_event_the_run_judges(desk: JoinedDesk, agent: GuardedAgent) -> None:
    agent.event("PreToolUse", "mcp__files__echo", {"n": 1}, "toolu_1")
    desk.end(signal.SIGKILL)
    agent.call("files", "echo", {"n": 1}, "toolu_1")
    assert [document["hook_event_name"] for document in desk.seen()] == ["PreToolUse", "PreToolUse", "PostToolUse"]


def test_whoever_pretends_to_be_the_guard_lets_nothing_pass_that_a_rule_denies(desk: JoinedDesk) -> None:
    desk.configure('[permissions]\ndeny = ["echo"]\nask = ["typed"]\n')
    told = {"session": "x", "cwd": "/", "project_dir": "/", "tool_use_id": "t", "state": {}, "decided": True}
    answer = json.dumps({"session": "x", "reported": {**told, "asked": True}}).encode() + b"\n"

    def pretend(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as lines:
            for line in lines:
                if b"hookproxy-guard" not in line:
                    connection.sendall(answer)

    with socket.socket(socket.AF_UNIX) as listener, guarded_agent(desk) as agent:
        listener.bind(str(desk.socket))
        listener.listen()
        pretending = threading.Thread(target=pretend, args=(listener,))
        pretending.start()
        agent.start("files")
        assert "Blocked by the permission rule echo" in agent.call("files", "echo", {"n": 1}, "t")
        agent.order(end="files")
        pretending.join(30)


def test_an_event_is_claimed_once(desk: JoinedDesk, agent: GuardedAgent) -> None:
    agent.event("PreToolUse", "mcp__files__echo", {"n": 1}, "toolu_1")
    agent.call("files", "echo", {"n": 1}, "toolu_1")
    agent.call("files", "echo", {"n": 1}, "toolu_1")
    assert [document["hook_event_name"] for document in desk.seen()] == ["PreToolUse", "PostToolUse"] * 2


@pytest.mark.parametrize("denied", [{"agent_type": "Explore"}, {"agent_id": "a7"}])
def test_one_subagent_alone_is_refused_by_type_and_by_id(
    desk: JoinedDesk, agent: GuardedAgent, denied: dict[str, str]
) -> None:
    for tool in ("Bash", "mcp__files__echo"):
        assert agent.event("PreToolUse", tool, {"command": "ls"}, f"{tool}1", **denied)[0] == "deny"
        assert agent.event("PreToolUse", tool, {"command": "ls"}, f"{tool}2", agent_id="a8", agent_type="Plan")[0] == ""
        assert agent.event("PreToolUse", tool, {"command": "ls"}, f"{tool}3")[0] == ""
