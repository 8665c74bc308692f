"""The other ways of content to the agent, and away from it: resources, prompts, notifications, tasks, requests."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from msgspec.structs import replace

from hookproxy.model.flow import FlowMatch, Sink, Source
from hookproxy.model.settings import Settings
from tests.support.proxy_rig import DIRECT_LOOP, Rig, rig

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
STATELESS: Final = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
SECRET: Final = "sk_live_4eC7aRm9Kx2bNw5pQj8sYd"
TEXT: Final = {"content": [{"type": "text", "text": SECRET}]}
SAMPLE: Final = {"messages": [], "maxTokens": 5}


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def policy(
    source: FlowMatch = FlowMatch(tools=("read",)),  # noqa: B008  # it is frozen
    sink: FlowMatch = FlowMatch(tools=("send",)),  # noqa: B008
    *,
    by_value: bool = False,
) -> Settings:
    sinks = Sink(sink, ("secret",), "flow.sinks[0]", "deny", "value" if by_value else "session")
    return Settings(flow_sources=(Source(source, ("secret",), "flow.sources[0]"),), flow_sinks=(sinks,))


def line(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}, separators=(",", ":")).encode() + b"\n"


async def ask(run: Rig, number: int, method: str, **params: object) -> None:
    await run.agent.send(line(id=number, method=method, params=params))


async def call(run: Rig, number: int, tool: str, **params: object) -> None:
    await ask(run, number, "tools/call", name=tool, arguments={}, **params)


async def reads(run: Rig) -> None:
    """The agent reads the secret by the tool `read`."""
    await call(run, 100, "read")
    await run.server.message()
    await run.server.send(line(id=100, result=TEXT))
    await run.agent.message()


async def is_blocked(run: Rig, number: int = 50) -> bool:
    await call(run, number, "send")
    message = await run.agent.message()
    return message["id"] == number and "Blocked" in json.dumps(message)


async def is_sent(run: Rig, number: int = 60) -> bool:
    await call(run, number, "send")
    request = await run.server.message()
    await run.server.send(line(id=request["id"], result={"content": []}))
    await run.agent.message()
    return bool(request["params"]["name"] == "send")


@pytest.mark.parametrize(
    ("source", "method", "params", "result"),
    [
        (
            FlowMatch(paths=("**/.ssh/**",)),
            "resources/read",
            {"uri": "file:///home/u/%2essh/config"},
            {"contents": [{"uri": "file:///a", "text": SECRET}]},
        ),
        (
            FlowMatch(resources=("secret://*",)),
            "resources/read",
            {"uri": "secret://token"},
            {"contents": [{"uri": "secret://token", "text": SECRET}]},
        ),
        (
            FlowMatch(methods=("prompts/*",)),
            "prompts/get",
            {"name": "p"},
            {"messages": [{"role": "user", "content": {"type": "text", "text": SECRET}}]},
        ),
        (FlowMatch(servers=("f*",)), "completion/complete", {"ref": {}}, {"completion": {"values": [SECRET]}}),
    ],
)
async def test_resources_prompts_and_completions_are_read(
    source: FlowMatch, method: str, params: Json, result: Json
) -> None:
    async with rig(settings=policy(source)) as run:
        await ask(run, 1, method, **params)
        await run.server.message()
        await run.server.send(line(id=1, result=result))
        await run.agent.message()
        assert await is_blocked(run)


async def test_another_resource_is_none() -> None:
    async with rig(settings=policy(FlowMatch(resources=("secret://*",)))) as run:
        await ask(run, 1, "resources/read", uri="open://token")
        await run.server.message()
        await run.server.send(line(id=1, result={"contents": []}))
        await run.agent.message()
        assert await is_sent(run)


async def test_a_uri_that_has_what_was_read_is_a_way_out() -> None:
    async with rig(settings=policy(sink=FlowMatch(methods=("resources/*",)), by_value=True)) as run:
        await reads(run)
        await ask(run, 2, "resources/read", uri=f"https://example.com/{SECRET}")
        assert "would send what `read` read" in (await run.agent.message())["error"]["message"]
        await ask(run, 3, "resources/read", uri="https://example.com/page")
        assert (await run.server.message())["id"] == 3


async def test_notifications_show_nothing_of_a_source_before_its_result() -> None:
    async with rig(settings=policy()) as run:
        await call(run, 1, "read", _meta={"progressToken": "token"})
        await run.server.message()
        progress = {"progressToken": "token", "progress": 1, "total": 2.5}
        await run.server.send(line(method="notifications/progress", params={**progress, "message": SECRET}))
        await run.server.send(line(method="notifications/message", params={"level": "info", "data": SECRET}))
        assert await run.agent.message() == {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": progress,
        }
        assert await is_sent(run)
        await run.server.send(line(id=1, result=TEXT))
        assert (await run.agent.message())["params"]["data"] == SECRET
        assert (await run.agent.message())["id"] == 1
        assert await is_blocked(run)


@pytest.mark.parametrize("number", ["12345678901234567890", '"a"', "null", "1e9", "[1]"])
async def test_progress_with_other_values_than_plain_numbers_waits(number: str) -> None:
    async with rig(settings=policy()) as run:
        await call(run, 1, "read", _meta={"progressToken": "token"})
        await run.server.message()
        written = line(method="notifications/progress", params={"progressToken": "token", "progress": 0})
        await run.server.send(written.replace(b'"progress":0', b'"progress":' + number.encode()))
        await run.server.send(line(id=1, result=TEXT))
        assert (await run.agent.message())["method"] == "notifications/progress"
        assert (await run.agent.message())["id"] == 1


async def test_a_source_whose_call_is_cancelled_is_not_read() -> None:
    async with rig(settings=policy()) as run:
        await call(run, 1, "read")
        await run.server.message()
        await run.server.send(line(method="notifications/message", params={"level": "info", "data": SECRET}))
        await run.agent.send(line(method="notifications/cancelled", params={"requestId": 1}))
        assert (await run.server.message())["method"] == "notifications/cancelled"
        await run.server.send(line(id=1, result=TEXT))
        assert await is_sent(run)
        _, rest = await run.finish()
        assert SECRET.encode() not in rest


async def test_the_result_of_a_task_is_read_when_it_is_fetched() -> None:
    async with rig(settings=policy()) as run:
        await call(run, 1, "read", task={"ttl": 1000})
        await run.server.message()
        handle = {"task": {"taskId": "T", "status": "working"}}
        await run.server.send(line(id=1, result=handle))
        await run.agent.message()
        assert await is_sent(run)
        await ask(run, 2, "tasks/result", taskId="T")
        await run.server.message()
        await run.server.send(line(id=2, result=TEXT))
        assert (await run.agent.message())["result"]["content"] == TEXT["content"]
        assert await is_blocked(run)


# --- what the server asks ---


async def test_a_server_asks_for_no_sample_after_a_secret_was_read() -> None:
    async with rig(settings=policy(sink=FlowMatch(methods=("sampling/*",)))) as run:
        await reads(run)
        await run.server.send(line(id=7, method="sampling/createMessage", params=SAMPLE))
        assert "error" in await run.server.message()


@pytest.mark.parametrize("by_value", [True, False])
async def test_a_sample_that_was_asked_for_before_does_not_carry_what_was_read_meanwhile(by_value: bool) -> None:
    async with rig(settings=policy(sink=FlowMatch(methods=("sampling/*",)), by_value=by_value)) as run:
        await run.server.send(line(id=7, method="sampling/createMessage", params=SAMPLE))
        assert (await run.agent.message())["method"] == "sampling/createMessage"
        await reads(run)
        answer = {"role": "assistant", "content": {"type": "text", "text": f"it is {SECRET}"}, "model": "m"}
        await run.agent.send(line(id=7, result=answer))
        got = await run.server.message()
        assert got["id"] == 7
        assert "error" in got


async def test_a_sample_without_what_was_read_passes_by_value() -> None:
    async with rig(settings=policy(sink=FlowMatch(methods=("sampling/*",)), by_value=True)) as run:
        await reads(run)
        await run.server.send(line(id=7, method="sampling/createMessage", params=SAMPLE))
        await run.agent.message()
        answer = {"role": "assistant", "content": {"type": "text", "text": "nothing"}, "model": "m"}
        await run.agent.send(line(id=7, result=answer))
        assert (await run.server.message())["result"] == answer


async def test_what_a_server_asks_is_read_by_the_agent() -> None:
    async with rig(settings=policy(FlowMatch(methods=("elicitation/create",)))) as run:
        await run.server.send(line(id=7, method="elicitation/create", params={"message": SECRET}))
        await run.agent.message()
        assert await is_blocked(run)


@pytest.mark.parametrize("by_value", [True, False])
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("elicitation/create", {"message": SECRET}),
        ("sampling/createMessage", {**SAMPLE, "systemPrompt": SECRET}),
    ],
)
async def test_what_a_source_asks_before_its_result_is_read(method: str, params: Json, by_value: bool) -> None:
    async with rig(settings=policy(FlowMatch(tools=("read",), paths=("**/.ssh/**",)), by_value=by_value)) as run:
        await ask(run, 1, "tools/call", name="read", arguments={"path": "/home/u/.ssh/id"})
        await run.server.message()
        assert await is_sent(run)
        await run.server.send(line(id=7, method=method, params=params))
        assert (await run.agent.message())["method"] == method
        await ask(run, 50, "tools/call", name="send", arguments={"text": SECRET})
        assert "would send what `read` read from `/home/u/.ssh/id`" in json.dumps(await run.agent.message())


async def test_what_a_source_asks_in_its_task_is_read() -> None:
    async with rig(settings=policy()) as run:
        await call(run, 1, "read", task={"ttl": 1000})
        await run.server.message()
        await run.server.send(line(id=1, result={"task": {"taskId": "T", "status": "working"}}))
        await run.agent.message()
        related = {"io.modelcontextprotocol/related-task": {"taskId": "T"}}
        await run.server.send(line(id=7, method="elicitation/create", params={"message": SECRET, "_meta": related}))
        await run.agent.message()
        assert await is_blocked(run)


async def test_what_a_server_asks_while_other_tools_work_has_no_label() -> None:
    async with rig(settings=policy()) as run:
        await call(run, 1, "other")
        await run.server.message()
        await run.server.send(line(id=7, method="elicitation/create", params={"message": "which one?"}))
        await run.agent.message()
        assert await is_sent(run)


async def test_a_further_round_of_a_call_carries_nothing_that_was_read_since_the_first_one() -> None:
    sink = FlowMatch(tools=("send",))
    async with rig(settings=policy(sink=sink, by_value=True)) as run:
        await call(run, 1, "send", _meta=STATELESS)
        await run.server.message()
        requests = {"name": {"method": "elicitation/create", "params": {"message": "Name?"}}}
        result = {"resultType": "input_required", "inputRequests": requests, "requestState": "s"}
        await run.server.send(line(id=1, result=result))
        state = (await run.agent.message())["result"]["requestState"]
        await call(run, 2, "read", _meta=STATELESS)
        await run.server.message()
        await run.server.send(line(id=2, result={"resultType": "complete", **TEXT}))
        await run.agent.message()
        inputs = {"name": {"action": "accept", "content": {"x": SECRET}}}
        await call(run, 3, "send", _meta=STATELESS, requestState=state, inputResponses=inputs)
        assert "would send what `read` read" in json.dumps(await run.agent.message())


async def test_what_a_source_asks_in_its_result_is_read() -> None:
    async with rig(settings=policy()) as run:
        await call(run, 1, "read", _meta=STATELESS)
        await run.server.message()
        requests = {"name": {"method": "elicitation/create", "params": {"message": SECRET}}}
        result = {"resultType": "input_required", "inputRequests": requests, "requestState": "s"}
        await run.server.send(line(id=1, result=result))
        await run.agent.message()
        await call(run, 2, "send", _meta=STATELESS)
        assert "Blocked" in json.dumps(await run.agent.message())


async def test_what_a_person_has_allowed_is_not_asked_again_in_a_further_round() -> None:
    meta = {**STATELESS, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    asking = policy()
    settings = replace(asking, flow_sinks=(replace(asking.flow_sinks[0], action="ask"),))
    async with rig(settings=settings) as run:
        await call(run, 1, "read", _meta=STATELESS)
        await run.server.message()
        await run.server.send(line(id=1, result={"resultType": "complete", **TEXT}))
        await run.agent.message()
        await call(run, 2, "send", _meta=meta)
        asked = (await run.agent.message())["result"]
        assert "would send what `read` read" in json.dumps(asked["inputRequests"])
        approval = {"hookproxy.ask": {"action": "accept", "content": {"decision": "allow once"}}}
        await call(run, 3, "send", _meta=meta, requestState=asked["requestState"], inputResponses=approval)
        await run.server.message()
        requests = {"name": {"method": "elicitation/create", "params": {"message": "Name?"}}}
        result = {"resultType": "input_required", "inputRequests": requests, "requestState": "s"}
        await run.server.send(line(id=3, result=result))
        state = (await run.agent.message())["result"]["requestState"]
        inputs = {"name": {"action": "accept", "content": {"x": "ada"}}}
        await call(run, 4, "send", _meta=meta, requestState=state, inputResponses=inputs)
        assert (await run.server.message())["params"]["inputResponses"] == inputs
