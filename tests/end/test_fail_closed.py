"""Real guards that break on what a hostile agent sends: `--fail-closed` refuses the call, whatever runs the hook."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Final

import anyio
import pytest

from tests.end.agent import Scene, call, refused, specific, text_of
from tests.end.test_mcp_tool_hooks import denial, hook_that_calls
from tests.support.http_server import Request, serving

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

NAME: Final = "--name=lean"
CLOSED: Final = "--fail-closed"

# each denies what has `rm` in its command, and breaks if the command is not a text
JQ: Final = """#!/bin/sh
command=$(jq -r '.tool_input.target | ascii_downcase')
case $command in *rm*) echo 'no rm' >&2; exit 2;; esac
exit 0
"""
PYTHON: Final = """#!/usr/bin/env python3
import json, sys, traceback
try:
    command = json.load(sys.stdin)["tool_input"]["target"].lower()
    print(json.dumps({"decision": "block", "reason": "no rm"}) if "rm" in command else "{}")
except Exception:
    traceback.print_exc()
"""
HALF: Final = """#!/bin/sh
printf '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"'
if grep -q '"target":"' ; then printf 'allow"}}'; fi
"""
GUARDS: Final = {"guard.sh": JQ, "guard.py": PYTHON, "half.sh": HALF}


@pytest.mark.parametrize("name", GUARDS)
async def test_an_argument_of_another_type_gets_nothing_past_a_guard(scene: Scene, name: str) -> None:
    hooks = scene.hooks(PreToolUse=shlex.quote(scene.file(name, GUARDS[name], 0o700)))
    hostile = call(1, "echo", target={"line": "rm -rf /"})
    agent = scene.run(NAME, hooks)
    await agent.initialize()
    assert text_of(await agent.ask(hostile)) == '{"target": {"line": "rm -rf /"}}'  # as in Claude Code
    assert "1 of 1 hook lets a call pass if it fails" in agent.standard_error()
    closed = scene.run(NAME, CLOSED, hooks)
    await closed.initialize()
    assert "fail" in refused(await closed.ask(hostile))
    assert text_of(await closed.ask(call(2, "echo", target="ls"))) == '{"target": "ls"}'
    assert "a call pass" not in closed.standard_error()


BROKEN: Final = {
    "a fence": f"```json\n{denial('no')}\n```",
    "a log line": f"guard 1.0\n{denial('no')}",
    "an array": f"[{denial('no')}]",
    "another word": json.dumps(specific("PreToolUse", permissionDecision="Deny")),
    "the prompt's answer": '{"ok": false, "reason": "no"}',
}


@pytest.mark.parametrize("what", BROKEN)
async def test_the_answer_of_a_web_service_is_judged_the_same(scene: Scene, what: str) -> None:
    async def respond(http: Request) -> None:
        await http.json(BROKEN[what].encode())

    async with serving(respond) as server:
        entry = {"type": "http", "url": f"http://127.0.0.1:{server.port}/"}
        agent = scene.run(NAME, CLOSED, scene.hooks(PreToolUse=[{"hooks": [entry]}]))
        await agent.initialize()
        refused(await agent.ask(call(1, "echo")))
    assert scene.calls_received() == []


@pytest.mark.parametrize("what", BROKEN)
async def test_the_result_of_a_servers_tool_is_judged_the_same(scene: Scene, what: str) -> None:
    agent = scene.run(NAME, CLOSED, hook_that_calls(scene, "PreToolUse", BROKEN[what]))
    await agent.initialize()
    refused(await agent.ask(call(1, "echo")))
    assert [one["params"]["name"] for one in scene.calls_received()] == ["reply"]


@pytest.mark.parametrize("returned", ["{'permission': 'deny'}", "{'ok': False}", "{'decision': 'denied'}", "['deny']"])
async def test_what_a_python_function_returns_is_judged_the_same(scene: Scene, returned: str) -> None:
    config = scene.config('[[hooks.PreToolUse]]\ntype = "python"\ncall = "guards:judge"\n')
    module = await anyio.open_file(Path(config.removeprefix("--config=")).parent / "guards.py", "w")
    async with module:
        await module.write(f"def judge(document: dict):\n    return {returned}\n")
    agent = scene.run(NAME, config)
    await agent.initialize()
    refused(await agent.ask(call(1, "echo")))
    assert scene.calls_received() == []


async def test_a_permission_hook_that_fails_refuses_instead_of_leaving_it_to_the_person(scene: Scene) -> None:
    config = scene.config('on_ask = "allow"\n[permissions]\nask = ["echo"]\n')
    for command in ("exit 1", scene.prints("log\n{}"), scene.prints({"decision": {"behavior": "deny"}})):
        hooks = scene.hooks(PermissionRequest=command)
        agent = scene.run(NAME, config, hooks)
        await agent.initialize()
        assert text_of(await agent.ask(call(1, "echo", a=1))) == '{"a": 1}'
        closed = scene.run(NAME, CLOSED, config, hooks)
        await closed.initialize()
        refused(await closed.ask(call(1, "echo")))
