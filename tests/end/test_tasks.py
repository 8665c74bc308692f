"""Calls that become tasks, end to end: the real program, real hooks of a settings file, a hand-written server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.end.agent import STATELESS, Agent, Json, Scene, call, notification, request, specific

pytestmark = pytest.mark.anyio

SERVER: Final = (sys.executable, "-S", "-E", str(Path(__file__).with_name("task_server.py")))
OUTPUT: Final = {"content": [{"type": "text", "text": "SECRET"}], "isError": False}


class Stage:
    """One agent that has called a tool, which has become a task; hooks record their input."""

    def __init__(self, scene: Scene, stateless: bool, **says: Json) -> None:
        self.scene = scene
        self.stateless = stateless
        self.recorded = scene.folder / "recorded"
        self.audit = scene.folder / "audit.jsonl"
        events = {}
        for event in ("PreToolUse", "PostToolUse", "PostToolUseFailure"):
            note = f"cat >> '{self.recorded}'; echo >> '{self.recorded}'"
            events[event] = note + (f"; {scene.prints(says[event])}" if event in says else "")
        options = (scene.hooks(**events), f"--audit={self.audit}", "--name=files")
        self.agent: Agent = scene.run(*options, server=SERVER)
        self.ids = 100

    async def begin(self) -> str:
        """Call the tool, and return the task's id."""
        if self.stateless:
            handle = (await self.agent.ask(self.augmented(1, _meta=STATELESS)))["result"]
        else:
            await self.agent.initialize()
            handle = (await self.agent.ask(self.augmented(1, task={"ttl": 60000})))["result"]["task"]
        assert handle["status"] == "working"
        return str(handle["taskId"])

    def augmented(self, number: int, **more: object) -> Json:
        message = call(number, "slow", path="a")
        message["params"] |= more
        return message

    async def task_request(self, method: str, task_id: str) -> Json:
        self.ids += 1
        meta = {"_meta": STATELESS} if self.stateless else {}
        return await self.agent.ask(request(self.ids, method, taskId=task_id, **meta))

    async def end(self, task_id: str, **outcome: object) -> None:
        await self.agent.send(notification("end", task=task_id, **outcome))

    async def output(self, task_id: str) -> Json:
        """The outcome of the task, as a poll returns it."""
        if self.stateless:
            polled: Json = (await self.task_request("tasks/get", task_id))["result"]
            return polled
        return await self.task_request("tasks/result", task_id)

    @property
    def events(self) -> list[str]:
        return [json.loads(line)["hook_event_name"] for line in self.recorded.read_bytes().splitlines() if line]

    @property
    def results(self) -> list[str]:
        return [json.loads(line)["result"] for line in self.audit.read_bytes().splitlines()]


both = pytest.mark.parametrize("stateless", [False, True], ids=["2025-11-25", "2026-07-28"])
COMMENT: Final = specific("PostToolUse", additionalContext="noted")


@both
async def test_the_output_of_a_task_is_commented_once_and_alike_in_each_poll(scene: Scene, stateless: bool) -> None:
    stage = Stage(scene, stateless, PostToolUse=COMMENT)
    task_id = await stage.begin()
    assert (await stage.task_request("tasks/get", task_id))["result"]["status"] == "working"
    assert stage.events == ["PreToolUse"]
    await stage.end(task_id, result=OUTPUT)
    outputs = [(await stage.output(task_id))["result"]["content"] for _ in range(3)]
    assert outputs[0] == outputs[1] == outputs[2]
    assert outputs[0][0]["text"] == "SECRET"
    assert "noted" in outputs[0][1]["text"]
    assert stage.events == ["PreToolUse", "PostToolUse"]
    assert stage.results == ["pending", "ok"]


@both
async def test_blocked_output_of_a_task_never_reaches_the_agent(scene: Scene, stateless: bool) -> None:
    clean = specific("PostToolUse", updatedMCPToolOutput=[{"type": "text", "text": "clean"}])
    stage = Stage(scene, stateless, PostToolUse=clean)
    task_id = await stage.begin()
    await stage.end(task_id, result=OUTPUT, notify=True)
    for method in ("tasks/get", "tasks/result", "tasks/list", "tasks/get", "tasks/cancel"):
        assert "SECRET" not in json.dumps(await stage.task_request(method, task_id)), method
    assert "clean" in json.dumps(await stage.output(task_id))
    stage.agent.end_input()
    rest = await stage.agent.rest()
    assert b"SECRET" not in rest + json.dumps(stage.agent.earlier_messages).encode()
    assert stage.events == ["PreToolUse", "PostToolUse"]


@both
async def test_a_task_that_fails_is_a_failure_once(scene: Scene, stateless: bool) -> None:
    stage = Stage(scene, stateless)
    task_id = await stage.begin()
    await stage.end(task_id, error={"code": -32000, "message": "no"}, notify=True)
    assert (await stage.output(task_id))["error"]["message"] == "no"
    assert (await stage.output(task_id))["error"]["message"] == "no"
    assert stage.events == ["PreToolUse", "PostToolUseFailure"]
    assert stage.results == ["pending", "error"]


@both
async def test_a_cancelled_task_is_an_interrupt_once(scene: Scene, stateless: bool) -> None:
    stage = Stage(scene, stateless)
    task_id = await stage.begin()
    await stage.task_request("tasks/cancel", task_id)
    assert (await stage.task_request("tasks/get", task_id))["result"]["status"] == "cancelled"
    assert stage.events == ["PreToolUse", "PostToolUseFailure"]
    assert json.loads(stage.recorded.read_bytes().splitlines()[-1] or b"{}").get("is_interrupt", True) is True
    assert stage.results == ["pending", "cancelled"]


@both
async def test_a_task_ends_with_its_server(scene: Scene, stateless: bool) -> None:
    stage = Stage(scene, stateless)
    await stage.begin()
    await stage.agent.send(notification("quit", status=3))
    assert await stage.agent.ended() == 3
    assert stage.events == ["PreToolUse", "PostToolUseFailure"]
    assert stage.results == ["pending", "lost"]


@both
async def test_a_task_that_the_agent_leaves_behind_is_a_failure(scene: Scene, stateless: bool) -> None:
    stage = Stage(scene, stateless)
    await stage.begin()
    stage.agent.end_input()
    assert await stage.agent.ended() == 0
    assert stage.events == ["PreToolUse", "PostToolUseFailure"]


async def test_a_refused_call_for_a_task_is_an_error(scene: Scene) -> None:
    stage = Stage(scene, False, PreToolUse=specific("PreToolUse", permissionDecision="deny"))
    await stage.agent.initialize()
    answer = await stage.agent.ask(stage.augmented(1, task={}))
    assert answer["error"]["code"] == -31403
    assert stage.events == ["PreToolUse"]
    assert scene.calls_received() == []


@both
async def test_tools_that_hooks_do_not_concern_have_their_tasks_untouched(scene: Scene, stateless: bool) -> None:
    events = {"PostToolUse": [{"matcher": "mcp__files__other", "hooks": [{"type": "command", "command": "exit 2"}]}]}
    agent = scene.run(scene.hooks(**events), "--name=files", server=SERVER)
    more: Json = {"_meta": STATELESS} if stateless else {"task": {}}
    await agent.initialize()
    first = call(1, "slow")
    first["params"] |= more
    result = (await agent.ask(first))["result"]
    task_id = result["taskId"] if stateless else result["task"]["taskId"]
    await agent.send(notification("end", task=task_id, result=OUTPUT, notify=True))
    polled = await agent.ask(request(2, "tasks/get" if stateless else "tasks/result", taskId=task_id))
    assert "SECRET" in json.dumps(polled)
    await agent.notified("notifications/tasks" if stateless else "notifications/tasks/status")
