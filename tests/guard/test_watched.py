"""A policy that is only watched changes nothing for an agent's own tools; the audit has what it would have done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from hookproxy.guard.exchange import Request
from hookproxy.model.hooks import Permission
from tests.guard.test_judge import AGENTS, before, configured, judging, permission, records

pytestmark = pytest.mark.anyio


def after() -> Request:
    members: dict[str, Any] = {**AGENTS["claude"].before, "hook_event_name": "PostToolUse", "tool_response": {}}
    return Request("claude", "/", {"PATH": "/usr/bin:/bin"}, json.dumps(members).encode())


@pytest.mark.parametrize(
    ("text", "would"),
    [
        ('[permissions]\nmode = "monitor"\ndeny = ["Bash(rm *)"]', ["refused"]),
        ('[permissions]\nmode = "monitor"\nask = ["Bash(rm *)"]', ["asked about"]),
        ('[permissions]\nmode = "monitor"\ndeny = ["Bash(git *)"]', []),
        ('[[hooks.PreToolUse]]\nmode = "monitor"\nmatcher = "Bash"\ncommand = "exit 2"', ["refused"]),
        ('[[limits]]\nmode = "monitor"\ntool = "Bash"\ncalls = 1\nper = "hour"', []),
    ],
)
async def test_a_call_goes_on_and_its_record_has_what_would_have_been(
    text: str, would: list[str], tmp_path: Path
) -> None:
    async with judging(configured(tmp_path, text)) as judge:
        assert permission("claude", await judge.judge(before("claude"))) is None
        assert permission("claude", await judge.judge(after())) is None
        with anyio.fail_after(30):
            while not (ends := [record for record in records(tmp_path) if record["result"] != "begun"]):
                await anyio.lowlevel.checkpoint()  # what is only watched may take longer than the call
    [monitor] = [record["monitor"] for record in ends]
    assert isinstance(monitor, dict)
    assert monitor.get("would", []) == would


async def test_what_is_in_force_decides_beside_it(tmp_path: Path) -> None:
    text = '[permissions]\ndeny = ["Bash(rm *)"]\n[[hooks.PreToolUse]]\nmode = "monitor"\ncommand = "sleep 1000"'
    async with judging(configured(tmp_path, text)) as judge:
        assert permission("claude", await judge.judge(before("claude"))) is Permission.DENY
    assert [record["result"] for record in records(tmp_path)] == ["refused"]
