"""The server's requests in `input_required` results, and the agent's answers in the next round, are judged likewise."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.model.hooks import Event, HookSpec
from hookproxy.model.limits import Limit, Per
from hookproxy.model.settings import OnFailure, Settings
from tests.support.proxy_rig import DIRECT_LOOP, Rig, group, hook, rig

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
META: Final = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
SAMPLE: Final[Json] = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}}
ELICIT: Final[Json] = {"method": "elicitation/create", "params": {"message": "Name?"}}
ROOTS: Final[Json] = {"method": "roots/list"}
SAMPLED: Final[Json] = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
ACCEPTED: Final[Json] = {"action": "accept", "content": {"x": "1"}}
DECLINED: Final[Json] = {"action": "decline"}
GIVEN: Final[Json] = {"roots": [{"uri": "file:///a"}]}
DONE: Final[Json] = {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def prints(output: Json, event: Event, matcher: str) -> HookSpec:
    name = {"hookEventName": str(event), **output}
    return hook(f"echo {shlex.quote(json.dumps({'hookSpecificOutput': name}))}", event, matcher)


async def calls(run: Rig, number: int = 1, **params: object) -> None:
    sent = {"name": "t", "arguments": {}, "_meta": META, **params}
    await run.agent.send(
        json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": sent}).encode() + b"\n"
    )


async def asks(run: Rig, number: object = 1, state: str = "s", **requests: Json) -> None:
    result = {"resultType": "input_required", "inputRequests": requests, "requestState": state}
    await answers(run, number, result)


async def answers(run: Rig, number: object, result: Mapping[str, object]) -> None:
    await run.server.send(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode() + b"\n")


async def got_by_server(run: Rig) -> Json:
    params: Json = (await run.server.message())["params"]
    return params


async def asked_of_agent(run: Rig) -> tuple[Json, str]:
    result = (await run.agent.message())["result"]
    return result["inputRequests"], result["requestState"]


async def finishes(run: Rig, number: object) -> None:
    await answers(run, number, DONE)
    assert (await run.agent.message())["result"]["content"] == DONE["content"]


async def test_if_all_is_refused_the_agent_is_not_asked_and_we_send_the_next_round(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    async with rig(settings=Settings(deny=("*/*",), audit_file=str(audit))) as run:
        await calls(run)
        await run.server.message()
        await asks(run, a=ELICIT, b=ROOTS, c=SAMPLE)
        message = await run.server.message()
        params = message["params"]
        refused = params["inputResponses"]
        assert (refused["a"], refused["b"], params["requestState"]) == (DECLINED, {"roots": []}, "s")
        assert refused["c"]["stopReason"] == "refusal"
        await finishes(run, message["id"])
        await run.finish()
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    denied = [line["tool"] for line in lines if line["decision"] == "deny"]
    assert denied == ["elicitation/create", "roots/list", "sampling/createMessage"]


async def test_what_is_allowed_is_asked_and_our_refusals_go_with_the_agents_answers() -> None:
    async with rig(settings=Settings(deny=("sampling/*",))) as run:
        await calls(run)
        await run.server.message()
        await asks(run, a=ELICIT, c=SAMPLE)
        requested, state = await asked_of_agent(run)
        assert requested == {"a": ELICIT}
        await calls(run, 2, inputResponses={"a": ACCEPTED, "c": SAMPLED, "z": GIVEN}, requestState=state)
        params = await got_by_server(run)
        assert params["inputResponses"].keys() == {"a", "c"}
        assert params["inputResponses"]["a"] == ACCEPTED
        assert params["inputResponses"]["c"]["stopReason"] == "refusal"
        assert params["requestState"] == "s"
        await finishes(run, 2)


async def test_what_nothing_names_is_asked_and_answered_byte_for_byte() -> None:
    async with rig(settings=Settings(deny=("sampling/*",))) as run:
        await calls(run)
        await run.server.message()
        await asks(run, a=ELICIT)
        requested, state = await asked_of_agent(run)
        assert requested == {"a": ELICIT}
        await calls(run, 2, inputResponses={"a": ACCEPTED}, requestState=state)
        assert (await got_by_server(run))["inputResponses"] == {"a": ACCEPTED}


async def test_an_answer_that_nobody_asked_for_reaches_no_server() -> None:
    async with rig(settings=Settings(ask=("sampling/*",))) as run:
        await calls(run, inputResponses={"c": SAMPLED}, requestState="invented")
        params = await got_by_server(run)
        assert "inputResponses" not in params
        assert params["requestState"] == "invented"


async def test_hooks_rewrite_a_request_and_replace_its_answer(tmp_path: Path) -> None:
    rewrite = prints({"updatedInput": {"messages": [], "maxTokens": 1}}, Event.PRE_TOOL_USE, "sampling/*")
    replace = prints({"updatedMCPToolOutput": "bye"}, Event.POST_TOOL_USE, "sampling/*")
    async with rig(group(rewrite, replace)) as run:
        await calls(run)
        await run.server.message()
        await asks(run, a=ELICIT, c=SAMPLE)
        requested, state = await asked_of_agent(run)
        assert requested == {"a": ELICIT, "c": {**SAMPLE, "params": {"messages": [], "maxTokens": 1}}}
        await calls(run, 2, inputResponses={"a": ACCEPTED, "c": SAMPLED}, requestState=state)
        given = (await got_by_server(run))["inputResponses"]
        assert given["a"] == ACCEPTED
        assert given["c"] == {**SAMPLED, "content": {"type": "text", "text": "bye"}}
        await finishes(run, 2)


async def test_an_answer_that_no_hook_has_judged_is_refused_in_its_own_form() -> None:
    fails = hook("exit 3", Event.POST_TOOL_USE, "*/*")
    async with rig(group(fails), settings=Settings(on_failure=OnFailure.DENY)) as run:
        await calls(run)
        await run.server.message()
        await asks(run, a=ELICIT, b=ROOTS)
        _requested, state = await asked_of_agent(run)
        await calls(run, 2, inputResponses={"a": ACCEPTED, "b": GIVEN}, requestState=state)
        assert (await got_by_server(run))["inputResponses"] == {"a": DECLINED, "b": {"roots": []}}


async def test_hooks_of_elicitations_answer_what_the_rules_have_left() -> None:
    accept = prints({"action": "accept", "content": {"x": "2"}}, Event.ELICITATION, "")
    async with rig(group(accept), settings=Settings(deny=("roots/list",))) as run:
        await calls(run)
        await run.server.message()
        await asks(run, a=ELICIT, b=ROOTS)
        message = await run.server.message()
        given = message["params"]["inputResponses"]
        assert given == {"a": {"action": "accept", "content": {"x": "2"}}, "b": {"roots": []}}
        await finishes(run, message["id"])


async def test_a_server_that_goes_on_asking_for_what_is_refused_ends_its_call() -> None:
    async with rig(settings=Settings(deny=("*/*",))) as run:
        await calls(run)
        number = (await run.server.message())["id"]
        for _ in range(10):
            await asks(run, number, c=SAMPLE)
            number = (await run.server.message())["id"]
        await asks(run, number, c=SAMPLE)
        assert "asked too often" in (await run.agent.message())["error"]["message"]


async def test_a_limit_counts_requests_in_results() -> None:
    limit = Limit("elicitation/*", 1, Per.HOUR, "limits[0]")
    async with rig(settings=Settings(limits=(limit,))) as run:
        await calls(run)
        await run.server.message()
        await asks(run, a=ELICIT, b=ELICIT)
        requested, _state = await asked_of_agent(run)
        assert requested == {"a": ELICIT}


@pytest.mark.parametrize(
    "result",
    [
        '{"resultType":"input_required","inputRequests":{"a":{"method":"x","method":"sampling/createMessage"}}}',
        '{"resultType":"input_required","inputRequests":{"a":{"method":"x","Method":"sampling/createMessage"}}}',
        '{"resultType":"input_required","inputRequests":{"a":{"method":"x"},"a":{"method":"sampling/createMessage"}}}',
        '{"resultType":"input_required","InputRequests":{"a":{"method":"sampling/createMessage"}}}',
        '{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage","params":[]}}}',
        '{"resultType":"input_required","content":[],"inputRequests":{"a":{"method":"sampling/createMessage"}}}',
        '{"content":[],"inputRequests":{"a":{"method":"sampling\\/createMessage"}}}',
        '{"resultType":"other","inputRequests":{"a":{"method":"sampling/createMessage"}}}',
    ],
)
async def test_what_some_reader_takes_for_a_request_is_withheld(result: str) -> None:
    async with rig(settings=Settings(deny=("sampling/*",))) as run:
        await calls(run)
        await run.server.message()
        await run.server.send(f'{{"jsonrpc":"2.0","id":1,"result":{result}}}\n'.encode())
        assert b"sampling" not in await run.agent.line()


async def test_a_request_in_the_result_of_another_method_is_withheld() -> None:
    async with rig(settings=Settings(deny=("sampling/*",))) as run:
        sent = {"jsonrpc": "2.0", "id": 1, "method": "x/y", "params": {"_meta": META}}
        await run.agent.send(json.dumps(sent).encode() + b"\n")
        await run.server.message()
        await asks(run, c=SAMPLE)
        assert "error" in await run.agent.message()
        await run.agent.send(json.dumps({**sent, "id": 2}).encode() + b"\n")
        await run.server.message()
        await asks(run, 2, a=ELICIT)
        assert (await run.agent.message())["result"]["inputRequests"] == {"a": ELICIT}


URLS: Final[Json] = {
    "code": -32042,
    "message": "x",
    "data": {"elicitations": [{"mode": "url", "url": "https://evil/"}]},
}


@pytest.mark.parametrize("audit_all", [False, True])
@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "tools/list"])
@pytest.mark.parametrize("error", [URLS, {**URLS, "data": {"Elicitations": []}}, {**URLS, "Data": {}}])
async def test_an_error_asks_for_no_elicitation_that_is_judged(method: str, audit_all: bool, error: Json) -> None:
    async with rig(settings=Settings(deny=("elicitation/*",), audit_all_calls=audit_all)) as run:
        await run.agent.send(
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "t"}}).encode() + b"\n"
        )
        await run.server.message()
        await run.server.send(json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode() + b"\n")
        message = await run.agent.message()
        assert "licitations" not in json.dumps(message)
        assert "withheld" in message["error"]["message"]


@pytest.mark.parametrize(
    "error", [{"code": 1, "message": "no elicitations"}, {"code": 1, "message": "\u00e9", "data": 5}]
)
async def test_other_errors_pass_where_elicitations_are_judged(error: Json) -> None:
    async with rig(settings=Settings(deny=("elicitation/*",))) as run:
        for method in ("tools/call", "prompts/get"):
            await run.agent.send(
                json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": {"name": "t"}}).encode() + b"\n"
            )
            await run.server.message()
            await run.server.send(json.dumps({"jsonrpc": "2.0", "id": method, "error": error}).encode() + b"\n")
            assert (await run.agent.message())["error"] == error


@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "tools/list"])
@pytest.mark.parametrize("name", ["InputRequests", "input_requests", "INPUT_REQUESTS", "inputReque\\u0073ts"])
async def test_another_spelling_of_requests_in_a_result_does_not_pass(method: str, name: str) -> None:
    async with rig(settings=Settings(deny=("sampling/*",))) as run:
        params = {"name": "t", "_meta": META}
        await run.agent.send(
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n"
        )
        await run.server.message()
        result = f'{{"resultType":"input_required","requestState":"s","{name}":{{"a":{json.dumps(SAMPLE)}}}}}'
        await run.server.send(b'{"jsonrpc":"2.0","id":1,"result":%b}\n' % result.encode())
        if "\\" in name and method == "tools/call":
            assert (await got_by_server(run))["inputResponses"]["a"]["stopReason"] == "refusal"
        else:
            assert "withheld" in (await run.agent.message())["error"]["message"]
