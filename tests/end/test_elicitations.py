"""Elicitations of real servers, answered by hooks or by the person, through the proxy as a process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.end.agent import Agent, Json, Scene, group, notification, request, specific
from tests.end.test_real_servers import Person, connected, through
from tests.support import serve_mcp
from tests.support.preloaded_servers import preloaded

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("preloaded_servers")]

EVERYTHING = preloaded(serve_mcp.__file__, str(Path(__file__).with_name("all_features_server.py")))
ASK: Json = {"jsonrpc": "2.0", "id": 9, "method": "ask", "params": {"method": "elicitation/create"}}


async def begun(scene: Scene, *options: str) -> Agent:
    agent = scene.run("--name=files", *options)
    await agent.initialize()
    return agent


def answers_received(scene: Scene) -> list[Json]:
    """The answers that the server got to its elicitations."""
    return [one for one in map(json.loads, scene.received()) if one.get("id") == "from-server"]


async def test_a_hook_answers_and_the_agent_is_not_asked(scene: Scene) -> None:
    audit = scene.folder / "audit.jsonl"
    accept = scene.prints(specific("Elicitation", action="accept", content={"name": "Ada"}))
    agent = await begun(scene, scene.hooks(Elicitation=[group(accept, "files")]), f"--audit={audit}")
    await agent.send(ASK)
    await agent.ask(request(10, "ping"))
    agent.end_input()
    assert await agent.ended() == 0
    assert await agent.rest() == b""
    assert agent.earlier_messages == []
    assert [one["result"] for one in answers_received(scene)] == [{"action": "accept", "content": {"name": "Ada"}}]
    (note,) = [json.loads(line)["note"] for line in audit.read_text().splitlines()]
    assert note.endswith("answered the server's request '' for the person: accept")
    assert note in agent.standard_error()


async def test_a_blocked_hook_blocks_nothing_else_and_ends_with_the_servers_cancellation(scene: Scene) -> None:
    gate = scene.gate("asked")
    agent = await begun(scene, scene.hooks(Elicitation=gate.script))
    await agent.send(ASK)
    await gate.reached()
    await agent.ask(request(10, "ping"))
    cancelled = json.dumps(notification("notifications/cancelled", requestId="from-server")) + "\n"
    await agent.send(notification("raw", text=cancelled))
    await scene.empty(word=str(scene.folder / "asked"))
    await agent.ask(request(11, "ping"))
    assert agent.earlier_messages == []
    assert answers_received(scene) == []


async def test_nothing_is_left_of_a_hook_when_the_agent_goes(scene: Scene) -> None:
    gate = scene.gate("asked")
    agent = await begun(scene, scene.hooks(Elicitation=gate.script))
    await agent.send(ASK)
    await gate.reached()
    agent.go()
    await agent.ended()
    await scene.empty()


async def test_our_own_hooks_decline_when_they_fail(scene: Scene) -> None:
    agent = await begun(scene, scene.config('[[hooks.Elicitation]]\nmatcher = "files"\ncommand = "exit 3"\n'))
    await agent.send(ASK)
    await agent.ask(request(10, "ping"))
    agent.end_input()
    await agent.ended()
    assert [one["result"] for one in answers_received(scene)] == [{"action": "decline"}]


async def test_a_real_agent_is_asked_nothing_that_a_hook_answers(scene: Scene) -> None:
    accept = scene.prints(specific("Elicitation", action="accept", content={"name": "Grace"}))
    person = Person()
    argv = through([scene.hooks(Elicitation=accept)], EVERYTHING)
    async with connected(scene, argv, "legacy", person) as agent:
        assert text(await agent.call_tool("elicits", {})) == "accept name='Grace'"
    assert person.requests == []


async def test_the_answer_of_a_real_agents_person_is_changed(scene: Scene) -> None:
    masked = json.dumps(specific("ElicitationResult", action="accept", content={"name": "A."}))
    mask = f"""grep -q '"content":{{"name":"Ada"}}' && echo '{masked}'"""
    person = Person()
    argv = through([scene.hooks(ElicitationResult=mask)], EVERYTHING)
    async with connected(scene, argv, "legacy", person) as agent:
        assert text(await agent.call_tool("elicits", {})) == "accept name='A.'"
    assert len(person.requests) == 1


async def test_what_does_not_fit_the_form_is_left_to_the_person(scene: Scene) -> None:
    accept = scene.prints(specific("Elicitation", action="accept", content={"name": 7}))
    person = Person()
    argv = through([scene.hooks(Elicitation=accept)], EVERYTHING)
    async with connected(scene, argv, "legacy", person) as agent:
        assert text(await agent.call_tool("elicits", {})) == "accept name='Ada'"
    assert len(person.requests) == 1


def text(result: Any) -> str:  # noqa: ANN401  # the package's own type
    text: str = result.content[0].text
    return text
