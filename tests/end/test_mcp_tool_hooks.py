"""Hooks of Claude Code's type `mcp_tool` in front of a real server: the server itself judges its calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.end.agent import SERVER, Scene, call, specific, stateless_call, text_of

NAME = "--name=lean"


def hook_that_calls(scene: Scene, event: str, text: str, server: str = "lean", **more: object) -> str:
    """`--hooks` with one that has the server's tool `reply` return this text."""
    given = {"result": {"content": [{"type": "text", "text": text}]}}
    entry = {"type": "mcp_tool", "server": server, "tool": "reply", "input": given, **more}
    return scene.hooks(**{event: [{"hooks": [entry]}]})


def denial(reason: str) -> str:
    return json.dumps(specific("PreToolUse", permissionDecision="deny", permissionDecisionReason=reason))


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


@pytest.mark.parametrize("calls", [call, stateless_call])
async def test_the_servers_own_tool_denies_a_call(scene: Scene, calls: Callable[..., Any]) -> None:
    audit = scene.folder / "audit.jsonl"
    agent = scene.run(NAME, f"--audit={audit}", hook_that_calls(scene, "PreToolUse", denial("not ${tool_input.path}")))
    if calls is call:
        await agent.initialize()
    answer = await agent.ask(calls(1, "echo", path="/etc"))
    assert text_of(answer) == "Blocked by the PreToolUse hook reply: not /etc"
    assert [one["params"]["name"] for one in scene.calls_received()] == ["reply"]
    assert agent.earlier_messages == []
    (record,) = [json.loads(line) for line in lines_of(audit)]
    (hook,) = record["hooks"]
    assert (hook["command"], hook["verdict"], record["tool"]) == ("lean/reply", "deny", "echo")


async def test_start_up_and_check_report_which_server_it_cannot_call(scene: Scene) -> None:
    hooks = hook_that_calls(scene, "PreToolUse", denial("no"), server="policy")
    agent = scene.run(NAME, hooks)
    await agent.initialize()
    assert text_of(await agent.ask(call(1, "echo"))) == "{}"
    assert (
        "calls a tool of the server 'policy', which cannot be called: the server of this session is 'lean' (--name)"
        in (agent.standard_error())
    )
    checked = scene.complete([*agent.process.args[:1], "check", hooks])  # type: ignore[index]  # a list, as started
    assert checked.returncode == 0
    assert b"policy/reply" in checked.stdout
    assert b"the tool is called only if its server 'policy' is behind hookproxy" in checked.stdout


async def test_at_the_end_of_the_session_the_server_still_reads(scene: Scene) -> None:
    agent = scene.run(NAME, hook_that_calls(scene, "SessionEnd", "bye"))
    await agent.initialize()
    agent.end_input()
    assert await agent.ended() == 0
    assert [one["params"]["name"] for one in scene.calls_received()] == ["reply"]


async def test_a_server_that_never_responds_delays_nothing_for_long(scene: Scene) -> None:
    entry = {"type": "mcp_tool", "server": "lean", "tool": "hold", "timeout": 0.2}
    hooks = scene.hooks(PreToolUse=[{"hooks": [entry]}], SessionEnd=[{"hooks": [entry]}])
    agent = scene.run(NAME, hooks, server=SERVER)
    await agent.initialize()
    assert text_of(await agent.ask(call(1, "echo"))) == "{}"
    assert "timed out" in agent.standard_error()
    agent.end_input()
    assert await agent.ended() == 0
    assert b'"notifications/cancelled"' in b"".join(scene.received())
