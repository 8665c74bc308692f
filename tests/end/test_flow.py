"""A run with `[flow]`: what was read does not leave, and the person is asked about the chain, and may clear it."""

from __future__ import annotations

import json

import pytest

from tests.end.agent import Agent, Json, Scene, call, text_of
from tests.end.test_approval import NO, ONCE, answers, lean

pytestmark = pytest.mark.anyio

SESSION = "allow this tool for this session"
FLOW = """
[[flow.sources]]
tool = "echo"
path = "**/.ssh/**"
labels = ["secret"]
[[flow.sinks]]
tool = "free"
labels = ["secret"]
{}
[audit]
file = "audit.jsonl"
"""


def lines(scene: Scene) -> list[Json]:
    return [json.loads(line) for line in (scene.folder / "file1" / "audit.jsonl").read_text().splitlines()]


async def reads(agent: Agent, number: int) -> None:
    assert not (await agent.ask(call(number, "echo", file="/home/u/.ssh/id")))["result"].get("isError")


async def test_a_call_after_a_source_is_refused_and_recorded_with_the_chain(scene: Scene) -> None:
    agent = scene.run("--name=lean", scene.config(FLOW.format('action = "deny"')))
    await agent.initialize()
    assert not (await agent.ask(call(1, "free", a="1")))["result"].get("isError")
    await reads(agent, 2)
    text = text_of(await agent.ask(call(3, "free", url="https://example.com/x")))
    assert text.startswith(
        "Blocked by flow.sinks[0] of hookproxy.toml: this call would send what `echo` read from `/home"
    )
    assert " to `free` at example.com. The tool was not run. The same call will be refused again." in text
    assert len(scene.calls_received()) == 2
    recorded = lines(scene)
    assert [line.get("labels") for line in recorded] == [None, ["secret"], None]
    assert recorded[2]["chains"][0]["readings"][0]["call"] == recorded[1]["call"]


async def test_a_person_is_asked_about_the_chain_and_allows_it_once_or_until_more_is_read(scene: Scene) -> None:
    agent = await lean(scene, scene.config(FLOW.format("")))
    await reads(agent, 1)
    for number, answer in ((2, NO), (3, ONCE), (4, SESSION)):
        await agent.send(call(number, "free", a="1"))
        question = await agent.notified("elicitation/create")
        message = question["params"]["message"]
        assert "this call would send what `echo` read from `/home/u/.ssh/id` (label secret, " in message
        assert "every call of free with what was read until now" in message
        await agent.send(answers(question, answer))
        assert bool((await agent.answer(number))["result"].get("isError")) is (answer == NO)
    assert not (await agent.ask(call(5, "free", a="2")))["result"].get("isError")
    await reads(agent, 6)
    await agent.send(call(7, "free", a="2"))
    await agent.send(answers(await agent.notified("elicitation/create"), NO))
    assert (await agent.answer(7))["result"]["isError"]
    of_sink = [line for line in lines(scene) if line["tool"] == "free"]
    assert [line["decision"] for line in of_sink] == ["asked-deny", *["asked-allow"] * 2, "allow", "asked-deny"]
    assert [bool(line.get("chains")) for line in of_sink] == [True, True, True, False, True]


async def test_where_nobody_can_be_asked_the_call_is_refused(scene: Scene) -> None:
    agent = scene.run("--name=lean", scene.config('on_ask_fallback = "allow"\n' + FLOW.format("")))
    await agent.initialize()
    await reads(agent, 1)
    assert "requires the user's approval: this call would send" in text_of(await agent.ask(call(2, "free", a="1")))
