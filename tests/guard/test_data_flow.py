"""Labels of what an agent has read by its own tools or by servers hold for all it does in the session."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest

from hookproxy.guard.exchange import Request
from hookproxy.guard.judge import Judge
from tests.guard.test_judge import configured, judging

pytestmark = pytest.mark.anyio

POLICY = """
[[flow.sources]]
tool = "Read"
path = "**/.ssh/**"
labels = ["secret"]

[[flow.sinks]]
tool = ["WebFetch", "mcp__web__*"]
labels = ["secret"]
action = "deny"
"""
CALLS = count()
READ = {"file_path": "/home/u/.ssh/config"}


def event(name: str, tool: str, arguments: dict[str, str], session: str, call: str, **more: object) -> Request:
    document = {"session_id": session, "hook_event_name": name, "tool_name": tool, "tool_input": arguments, **more}
    document |= {"cwd": "/", "transcript_path": "", "tool_use_id": call}
    return Request("claude", "/", {"PATH": "/usr/bin:/bin"}, json.dumps(document).encode())


async def read(judge: Judge, session: str = "s") -> None:
    call = f"call-{next(CALLS)}"
    await judge.judge(event("PreToolUse", "Read", READ, session, call))
    await judge.judge(event("PostToolUse", "Read", READ, session, call, tool_response={"text": "Host a"}))


async def refuses(judge: Judge, tool: str = "WebFetch", session: str = "s") -> bool:
    output = await judge.judge(
        event("PreToolUse", tool, {"url": "https://example.com"}, session, f"call-{next(CALLS)}")
    )
    return b'"deny"' in output.stdout and b"would send what `Read` read from" in output.stdout


async def test_what_was_read_by_an_own_tool_does_not_leave_by_one_or_by_a_server(tmp_path: Path) -> None:
    async with judging(configured(tmp_path, POLICY)) as judge:
        assert not await refuses(judge)
        await read(judge)
        assert await refuses(judge)
        assert await refuses(judge, "mcp__web__get")


async def test_labels_are_of_one_session(tmp_path: Path) -> None:
    async with judging(configured(tmp_path, POLICY)) as judge:
        await read(judge)
        assert not await refuses(judge, session="other")


async def test_labels_outlast_a_changed_configuration(tmp_path: Path) -> None:
    async with judging(configured(tmp_path, POLICY)) as former:
        await read(former)
        async with judging(configured(tmp_path, POLICY + "\n")) as judge:
            judge.take_over(former)
            assert await refuses(judge)


def of_droid(name: str, tool: str, arguments: dict[str, str], call: str, **more: object) -> Request:
    document = {"session_id": "s", "hook_event_name": name, "tool_name": tool, "tool_input": arguments, **more}
    document |= {"cwd": "/", "transcript_path": "", "permission_mode": "default", "tool_use_id": call}
    return Request("droid", "/", {"PATH": "/usr/bin:/bin"}, json.dumps(document).encode())


async def test_an_agent_that_tells_nothing_of_failed_calls_has_read_what_may_have_failed(tmp_path: Path) -> None:
    async with judging(configured(tmp_path, POLICY)) as judge:
        await judge.judge(of_droid("PreToolUse", "Read", READ, "call-a"))
        output = await judge.judge(of_droid("PreToolUse", "FetchUrl", {"url": "https://example.com"}, "call-b"))
        assert "would send what `Read` read" in output.stderr + output.stdout.decode()


async def test_what_was_read_is_not_known_where_the_agent_does_not_tell_it(tmp_path: Path) -> None:
    by_value = POLICY.replace('action = "deny"', 'action = "deny"\nby = "value"')
    async with judging(configured(tmp_path, by_value)) as judge:
        call = f"call-{next(CALLS)}"
        await judge.judge(event("PreToolUse", "Read", READ, "s", call))
        await judge.judge(event("PostToolUse", "Read", READ, "s", call, tool_response=""))
        assert await refuses(judge)
