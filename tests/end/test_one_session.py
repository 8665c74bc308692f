"""The runs of one agent and its own events share a session: limits, approvals, and the id that hooks get."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.guard_desk import Desk
from tests.support.guarded_agent import guarded_agent
from tests.support.program import HOOKPROXY

LIMIT = """
[[limits]]
tool = "*"
calls = 3
per = "hour"
"""


@pytest.fixture
def tmp_path(short_path: Path) -> Path:
    """Home folders are in it, and the guard's socket is in these."""
    return short_path


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    desk.configure(LIMIT)
    yield desk
    desk.end(signal.SIGKILL)


def test_a_limit_counts_the_calls_of_two_servers_and_the_agents_own(desk: Desk) -> None:
    with guarded_agent(desk) as agent:
        agent.start("one")
        agent.start("two")
        assert agent.event("PreToolUse", "Bash", {"command": "ls"}, "t1")[0] == ""
        assert "limit" not in agent.call("one", "echo", {"text": "a"})
        assert "limit" not in agent.call("two", "echo", {"text": "b"})
        assert "limit" in agent.call("one", "echo", {"text": "c"})
        assert agent.event("PreToolUse", "Bash", {"command": "ls"}, "t2")[0] == "deny"


def test_two_servers_of_an_agent_without_hooks_share_a_session_if_a_guard_runs(desk: Desk) -> None:
    with guarded_agent(desk) as other, guarded_agent(desk) as agent:
        other.event("PreToolUse", "Bash", {"command": "ls"}, "t1")  # starts the guard
        agent.start("one")
        agent.start("two")
        outputs = [agent.call(name, "echo", {"n": n}) for n in range(2) for name in ("one", "two")]
        assert ["limit" in output for output in outputs] == [False, False, False, True]


PRETENDS = """
import json, socket, sys
from hookproxy import __version__
guard = socket.socket(socket.AF_UNIX)
guard.connect(sys.argv[1])
join = {"type": "Join", "version": __version__, "server": "one", "session": "x"}
lines = [join, {"type": "SecretKey"}, {"type": "Allow", "calls": {"tool": "echo"}}][: int(sys.argv[3])]
guard.sendall(b"hookproxy-guard 1 run\\n" + b"".join(json.dumps(line).encode() + b"\\n" for line in lines))
with open(sys.argv[2], "wb") as heard:
    while piece := guard.recv(4096):
        heard.write(piece)
"""


@pytest.mark.parametrize("lines", [0, 3])
def test_a_server_that_pretends_to_be_a_run_before_its_own_run_has_joined_is_turned_away(
    desk: Desk, lines: int
) -> None:
    """Also if it says nothing: what it could begin to say would only keep the guard busy."""
    heard = desk.home / "heard"
    with guarded_agent(desk) as agent:
        agent.event("PreToolUse", "Bash", {"command": "ls"}, "t1")
        command = [HOOKPROXY, "run", "--", sys.executable, "-c", PRETENDS, str(desk.socket), str(heard), str(lines)]
        agent.order(server="one", command=command, errors=str(desk.home / "errors"))
        assert agent.order(end="one") == 0, (desk.home / "errors").read_text()
    assert heard.read_bytes() == b""


def test_agents_do_not_share_a_session_with_each_other(desk: Desk) -> None:
    with guarded_agent(desk, "a") as first, guarded_agent(desk, "b", ("sh", "-c", '"$@"', "sh")) as second:
        for agent in (first, second):
            agent.event("PreToolUse", "Bash", {"command": "ls"}, "t1")
            agent.start("one")
        for agent in (first, second):
            assert ["limit" in agent.call("one", "echo", {"n": n}) for n in range(3)] == [False, False, True]


def test_a_guard_that_is_killed_and_started_again_is_found_and_own_calls_count_on(desk: Desk) -> None:
    with guarded_agent(desk) as agent:
        agent.event("PreToolUse", "Bash", {"command": "ls"}, "t1")
        agent.start("one")
        assert "limit" not in agent.call("one", "echo", {"n": 1})
        desk.end(signal.SIGKILL)
        assert "limit" not in agent.call("one", "echo", {"n": 2})
        agent.event("PreToolUse", "Bash", {"command": "ls"}, "t2")  # starts another
        agent.start("two")
        assert "limit" not in agent.call("two", "echo", {"n": 3})
        assert "limit" not in agent.call("one", "echo", {"n": 4})
        assert "limit" in agent.call("one", "echo", {"n": 5})
        assert "limit" in agent.call("two", "echo", {"n": 5})


def test_hooks_of_all_servers_and_of_the_agent_get_its_session_id(desk: Desk) -> None:
    seen = desk.home / "seen"
    hook = desk.home / "hook.sh"
    hook.write_text(f"#!/bin/sh\ncat >> {seen}\n")
    hook.chmod(0o755)
    desk.configure(f"[[hooks.PreToolUse]]\ncommand = '{hook}'\n[[hooks.SessionStart]]\ncommand = '{hook}'\n")
    with guarded_agent(desk, "the-id") as agent:
        agent.event("PreToolUse", "Bash", {"command": "ls"}, "t1")
        agent.start("one")
        agent.start("two")
        agent.call("one", "echo", {"n": 1})
        agent.call("two", "echo", {"n": 2})
    documents = [json.loads(line) for line in seen.read_text().splitlines()]
    assert len(documents) == 5
    assert {document["session_id"] for document in documents} == {"the-id"}
    assert {record["session"] for record in desk.records() if record["tool"] == "echo"} == {"the-id"}


def test_what_was_allowed_for_the_session_at_a_server_holds_for_the_agents_own_event_too(desk: Desk) -> None:
    desk.configure('[permissions]\nask = ["echo", "reply", "Bash"]\n')
    with guarded_agent(desk) as agent:
        assert agent.event("PreToolUse", "mcp__one__echo", {"n": 0}, "t0")[0] == "ask"
        agent.start("one")
        agent.start("two")
        agent.approves = "allow this tool for this session"
        assert "user" not in agent.call("one", "echo", {"n": 1})
        agent.approves = "deny"
        assert agent.event("PreToolUse", "mcp__one__echo", {"n": 2}, "t2")[0] == ""
        assert "user" not in agent.call("one", "echo", {"n": 3})
        assert agent.event("PreToolUse", "mcp__two__echo", {"n": 4}, "t4")[0] == "ask", "of that server alone"
        assert "user" in agent.call("two", "echo", {"n": 5})
        assert agent.event("PreToolUse", "Bash", {"command": "ls"}, "t6")[0] == "ask"
        assert "user" in agent.call("one", "reply", {})


def test_what_one_server_gave_is_restored_at_another_one_of_the_agent_and_at_no_others(desk: Desk) -> None:
    token = "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
    desk.configure('[secrets]\n[[secrets.restore]]\ntool = "echo"\nserver = "two"\n')
    logs = {name: desk.home / name for name in ("two", "strangers")}
    with guarded_agent(desk) as agent, guarded_agent(desk, "b", ("sh", "-c", '"$@"', "sh")) as stranger:
        for other in (agent, stranger):
            other.event("PreToolUse", "Bash", {"command": "ls"}, "t1")
        agent.start("one")
        agent.start("two", E2E_LOG=str(logs["two"]))
        stranger.start("two", E2E_LOG=str(logs["strangers"]))
        shown = agent.call("one", "echo", {"text": token})
        placeholder = re.findall(r"\{\{secret:github-pat:[0-9a-f]+\}\}", shown)[0]
        echoed = [other.call("two", "echo", {"text": placeholder}) for other in (agent, stranger)]
    assert token not in shown
    assert all(placeholder in output and token not in output for output in echoed)
    assert token in logs["two"].read_text()
    assert token not in logs["strangers"].read_text()
    assert placeholder in logs["strangers"].read_text()


FLOW = """
[[flow.sources]]
tool = "Read"
labels = ["secret"]
[[flow.sinks]]
tool = "send"
labels = ["secret"]
action = "deny"
"""


def test_what_an_own_tool_read_does_not_leave_by_a_server(desk: Desk) -> None:
    desk.configure(FLOW)
    with guarded_agent(desk) as agent:
        agent.start("one")
        reads = {"file_path": "/home/u/notes"}
        agent.event("PreToolUse", "Read", reads, "t1")
        assert "ran send" in agent.call("one", "send", {})
        agent.event("PostToolUse", "Read", reads, "t1", tool_response={"text": "a"})
        assert "would send what `Read` read from `/home/u/notes`" in agent.call("one", "send", {})


def test_what_one_server_has_returned_reaches_no_sink_of_another_or_of_the_agent(desk: Desk) -> None:
    desk.configure(
        '[[flow.sources]]\nserver = "private"\nlabels = ["private"]\n'
        '[[flow.sinks]]\ntool = ["reply", "WebFetch"]\nlabels = ["private"]\naction = "deny"\n'
    )
    with guarded_agent(desk) as agent:
        for name in ("private", "public"):
            agent.start(name)
        assert agent.event("PreToolUse", "WebFetch", {"url": "https://example.com"}, "t1")[0] == ""
        agent.call("private", "echo", {"text": "a name"})
        assert agent.event("PreToolUse", "WebFetch", {"url": "https://example.com"}, "t2")[0] == "deny"
        assert "private" in agent.call("public", "reply", {})
        desk.end(signal.SIGKILL)
        assert "Blocked" in agent.call("public", "reply", {})
        assert agent.event("PreToolUse", "WebFetch", {"url": "https://example.com"}, "t3")[0] == "deny"
        assert "private" in agent.call("public", "reply", {})


PAST = """
from hookproxy.hooks.api import HookInput, deny

def check(hook_input: HookInput):
    done = [(call.server, call.tool_name, call.result) for call in hook_input.session.calls]
    return deny(f"after {done}") if hook_input.tool_input.get("n") == "tell" else None
"""


def test_python_hooks_know_what_was_done_before_in_the_session(desk: Desk) -> None:
    folder = desk.home / ".config" / "hookproxy"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "past.py").write_text(PAST)
    desk.configure('[[hooks.PreToolUse]]\ntype = "python"\ncall = "past:check"\n[audit]\ncalls = "all"\n')
    with guarded_agent(desk) as agent:
        agent.event("SessionStart", "", {})
        agent.start("one")
        agent.list_tools("one")
        agent.event("PreToolUse", "Bash", {"command": "ls"}, "t1")
        agent.event("PostToolUse", "Bash", {"command": "ls"}, "t1", tool_response={"stdout": ""})
        agent.event("PreToolUse", "mcp__one__echo", {"n": 1}, "t2")
        agent.call("one", "echo", {"n": 1}, "t2")
        agent.event("PostToolUse", "mcp__one__echo", {"n": 1}, "t2", tool_response=[])
        _, reason = agent.event("PreToolUse", "Bash", {"n": "tell"}, "t3")
        assert reason == "after [('', 'Bash', 'ok'), ('one', 'echo', 'sent')]"
        _, reason = agent.event("PreToolUse", "mcp__one__echo", {"n": "tell"}, "t4")
        assert reason.endswith("('', 'Bash', 'refused')]")
