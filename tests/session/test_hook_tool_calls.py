"""Hooks that are tools of the server: what the server gets, and that nothing of it reaches the agent."""

from __future__ import annotations

import json
from typing import Any, Final

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.model.hooks import Event, HookSpec
from hookproxy.model.settings import OnFailure, Settings
from hookproxy.protocol.actions import Dropped
from hookproxy.protocol.calls import OWN_ID_PREFIX
from tests.session.test_approval import answer, call, handshake
from tests.support.proxy_rig import DIRECT_LOOP, TIMEOUT, Rig, group, hook, rig

pytestmark = pytest.mark.anyio

DENIES: Final = json.dumps(
    {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "not there",
        }
    }
)
MODERN: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "Lean", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def mcp_tool_hook(event: Event = Event.PRE_TOOL_USE, **more: Any) -> HookSpec:  # noqa: ANN401  # fields of a hook
    """A hook that calls `check` of the server, with the call's path."""
    kind: dict[str, Any] = {"type": "mcp_tool", "server": "files", "tool": "check"}
    spec = replace(hook("", event), shell="", input=b'{"it":"${tool_input.path}"}', **kind)
    return replace(spec, **more)


def tool_response(tool_call: dict[str, Any], text: str, **more: object) -> bytes:
    result = {"content": [{"type": "text", "text": text}], **more}
    return json.dumps({"jsonrpc": "2.0", "id": tool_call["id"], "result": result}).encode() + b"\n"


async def nothing_pending(one: Rig) -> None:
    """Neither side has anything left that is not its own."""
    assert one.proxy.hook_tool_calls._pending == {}
    assert one.proxy.router.requests.hook_tool_calls == set()
    assert await one.finish() == (b"", b"")


async def test_the_tool_is_called_and_its_output_decides() -> None:
    async with rig(group(mcp_tool_hook())) as one:
        await handshake(one)
        await one.agent.send(call(1, path='a"b'))
        tool_call = await one.server.message()
        assert tool_call["id"].encode().startswith(OWN_ID_PREFIX)
        assert (tool_call["method"], tool_call["params"]) == (
            "tools/call",
            {"name": "check", "arguments": {"it": 'a"b'}},
        )
        await one.server.send(tool_response(tool_call, DENIES))
        refused = await one.agent.message()
        assert refused["id"] == 1
        assert refused["result"]["content"][0]["text"].endswith("PreToolUse hook guard: not there")
        await nothing_pending(one)


async def test_plain_text_lets_the_call_pass_as_it_came_and_no_hook_runs_on_the_hooks_call() -> None:
    async with rig(group(mcp_tool_hook())) as one:
        await handshake(one)
        for number in range(1, 4):
            await one.agent.send(call(number, path="a"))
            await one.server.send(tool_response(await one.server.message(), "fine"))
            assert await one.server.line() == call(number, path="a")
            await one.server.send(answer(number))
            assert await one.agent.line() == answer(number)
        await nothing_pending(one)


async def test_in_the_stateless_era_a_hooks_call_has_the_agents_meta_without_capabilities() -> None:
    params = {"name": "write", "arguments": {"path": "a"}, "_meta": MODERN}
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode() + b"\n"
    async with rig(group(mcp_tool_hook())) as one:
        await one.agent.send(request)
        tool_call = await one.server.message()
        assert tool_call["params"]["_meta"] == {**MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
        await one.server.send(tool_response(tool_call, "fine", resultType="complete"))
        assert await one.server.line() == request


async def test_a_hooks_call_has_the_meta_of_its_own_call_and_not_of_one_that_came_meanwhile() -> None:
    def call_of_version(number: int, version: str) -> bytes:
        meta = {**MODERN, "io.modelcontextprotocol/protocolVersion": version}
        params = {"name": "write", "arguments": {}, "_meta": meta}
        return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode() + b"\n"

    async with rig(group(mcp_tool_hook())) as one:
        await one.agent.send(call_of_version(1, "2026-07-28") + call_of_version(2, "nonsense") + call(3))
        metas = [(await one.server.message())["params"].get("_meta", {}) for _ in range(3)]
    versions = [meta.get("io.modelcontextprotocol/protocolVersion", "") for meta in metas]
    assert sorted(versions) == ["", "2026-07-28", "nonsense"]


async def test_after_a_call_the_tool_may_comment_on_its_result() -> None:
    comment = {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "well done"}}
    async with rig(group(mcp_tool_hook(Event.POST_TOOL_USE, input=b'{"all":"${tool_response}"}'))) as one:
        await handshake(one)
        await one.agent.send(call(1))
        await one.server.line()
        await one.server.send(answer(1))
        tool_call = await one.server.message()
        assert json.loads(tool_call["params"]["arguments"]["all"]) == [{"type": "text", "text": "done"}]
        await one.server.send(tool_response(tool_call, json.dumps(comment)))
        response = await one.agent.message()
        assert [block["text"] for block in response["result"]["content"]] == ["done", "well done"]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ({"error": {"code": -32602, "message": "Unknown tool"}}, "could not be called: MCP error -32602: Unknown tool"),
        ({"error": None}, "could not be called: MCP error"),
        ({"result": {"content": [{"type": "text", "text": "broken\n..."}], "isError": True}}, "an error: broken"),
        ({"result": {"content": [], "isError": True}}, "reported an error without a text"),
        ({"result": {"content": [{"type": "text", "text": DENIES}], "isError": "yes"}}, "reported an error"),
        ({"result": {"resultType": "input_required", "inputRequests": {}}}, "answered with 'input_required'"),
        ({"result": {"resultType": "task", "taskId": "t"}}, "answered with 'task' instead of a result"),
        ({"result": {"task": {"taskId": "t"}}}, "answered with 'task' instead of a result"),
        ({"result": {"resultType": 7}}, "answered with None instead of a result"),
        ({"result": {"content": []}, "error": {}}, "gave a response that can be read in different ways"),
    ],
)
async def test_an_unusable_response_is_a_failure_and_blocks_nothing(reply: dict[str, object], why: str) -> None:
    async with rig(group(mcp_tool_hook())) as one:
        await handshake(one)
        await one.agent.send(call(1))
        tool_call = await one.server.message()
        await one.server.send(json.dumps({"jsonrpc": "2.0", "id": tool_call["id"], **reply}).encode() + b"\n")
        assert await one.server.line() == call(1)
        assert why in one.reports[-1]
        await one.server.send(answer(1))
        assert await one.agent.line() == answer(1)
        await nothing_pending(one)


async def test_a_text_that_is_too_long_blocks_because_what_it_decides_is_not_known() -> None:
    async with rig(group(mcp_tool_hook())) as one:
        await handshake(one)
        await one.agent.send(call(1))
        tool_call = await one.server.message()
        long = {"content": [{"type": "text", "text": "x" * 10_485_761}]}
        await one.server.send(json.dumps({"jsonrpc": "2.0", "id": tool_call["id"], "result": long}).encode() + b"\n")
        text = (await one.agent.message())["result"]["content"][0]["text"]
        assert "answered with more than 10485760 bytes, so what it decided is not known" in text


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", '{"decision": 7}', "\\ud800", "{\u2028}"])
async def test_invalid_output_blocks_nothing(text: str) -> None:
    async with rig(group(mcp_tool_hook())) as one:
        await handshake(one)
        await one.agent.send(call(1))
        tool_call = await one.server.message()
        line = tool_response(tool_call, "TEXT").replace(b"TEXT", text.replace('"', '\\"').encode())
        await one.server.send(line)
        assert await one.server.line() == call(1)


async def test_a_failure_blocks_if_the_configuration_says_so() -> None:
    async with rig(group(mcp_tool_hook()), settings=Settings(on_failure=OnFailure.DENY)) as one:
        await handshake(one)
        await one.agent.send(call(1))
        await one.server.send(tool_response(await one.server.message(), "no", isError=True))
        response = await one.agent.message()
        assert "failed: reported an error: no" in response["result"]["content"][0]["text"]
        await nothing_pending(one)


@pytest.mark.parametrize("completes_handshake", [False, True])
async def test_an_agent_that_calls_before_its_handshake_ends_does_not_bypass_its_guard(
    completes_handshake: bool,
) -> None:
    async with rig(group(mcp_tool_hook())) as one:
        if completes_handshake:
            await handshake(one, initialized=False)
        await one.agent.send(call(1))
        await one.server.send(tool_response(await one.server.message(), DENIES))
        assert (await one.agent.message())["result"]["isError"]
        await nothing_pending(one)


async def test_before_the_handshake_ends_and_without_a_call_the_tool_cannot_be_called() -> None:
    async with rig(group(mcp_tool_hook(Event.SESSION_START))) as one:
        await handshake(one)
        assert "the server is not connected yet" in one.reports[-1]
        assert await one.finish() == (b"", b"")


async def test_a_tool_of_another_server_cannot_be_called() -> None:
    async with rig(group(mcp_tool_hook(server="policy"))) as one:
        await handshake(one)
        await one.agent.send(call(1))
        assert await one.server.line() == call(1)
        assert "the server of this session is 'files', not 'policy'" in one.reports[-1]
    assert list(one.proxy.policy.hooks.groups.unreachable_server_notes("policy")) == []
    assert list(one.proxy.policy.hooks.groups.unreachable_server_notes("files")) == [
        "hooks.json: PreToolUse calls a tool of the server 'policy', which cannot be called: "
        "the server of this session is 'files' (--name)"
    ]


async def test_after_its_timeout_a_hooks_call_is_cancelled_and_its_late_response_dropped() -> None:
    async with rig(group(mcp_tool_hook(timeout=0.05))) as one:
        await handshake(one)
        await one.agent.send(call(1))
        tool_call = await one.server.message()
        cancelled = await one.server.message()
        assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", tool_call["id"])
        assert await one.server.line() == call(1)
        await one.server.send(tool_response(tool_call, DENIES), tool_response(tool_call, "x" * 200_000), answer(1))
        assert await one.agent.line() == answer(1)
        assert any("timed out" in text for text in one.reports)
        await nothing_pending(one)


async def test_a_call_that_is_cancelled_cancels_its_hooks_call() -> None:
    async with rig(group(mcp_tool_hook())) as one:
        await handshake(one)
        await one.agent.send(call(1))
        tool_call = await one.server.message()
        await one.agent.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n')
        assert (await one.server.message())["params"]["requestId"] == tool_call["id"]
        await one.server.send(tool_response(tool_call, DENIES))
        await nothing_pending(one)


async def test_a_server_that_exits_leaves_no_hooks_call_waiting() -> None:
    async with rig(group(mcp_tool_hook())) as one:
        await handshake(one)
        await one.agent.send(call(1))
        tool_call = await one.server.message()
        one.server.stop_writing()
        with anyio.fail_after(TIMEOUT):
            await one.server_ended.wait()
            one.proxy.handle_server_exit("The server has ended")
            response = await one.agent.message()
        assert response["error"]["message"].startswith("The server has ended. The call was not sent to the server.")
        assert isinstance(one.proxy.router.from_server(tool_response(tool_call, DENIES)), Dropped), (
            "of whom it left behind"
        )


async def test_a_response_of_many_bytes_is_read_whole_and_not_forwarded() -> None:
    async with rig(group(mcp_tool_hook())) as one:
        await handshake(one)
        await one.agent.send(b'{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{}}\n', call(1))
        await one.server.line()
        tool_call = await one.server.message()
        late = {
            "jsonrpc": "2.0",
            "result": {"content": [{"type": "text", "text": "x" * 300_000}]},
            "id": tool_call["id"],
        }
        line = json.dumps(late).encode() + b"\n"
        await one.server.send(line[:200_000])
        await one.server.send(line[200_000:])
        assert await one.server.line() == call(1)
        await one.server.send(answer(5), answer(1))
        assert await one.agent.line() == answer(5)
        assert await one.agent.line() == answer(1)
        await nothing_pending(one)


async def test_a_long_line_that_began_before_does_not_end_as_the_response() -> None:
    async with rig(group(mcp_tool_hook(timeout=0.3))) as one:
        await handshake(one)
        await one.agent.send(b'{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{}}\n')
        await one.server.line()
        began = b'{"jsonrpc":"2.0","result":{"text":"%b' % (b"x" * 200_000)
        await one.server.deliver(began)
        await one.agent.send(call(1))
        tool_call = await one.server.message()
        await one.server.send(b'"},"id":%b}\n' % json.dumps(tool_call["id"]).encode())
        assert (await one.agent.line()).endswith(b"x!\n")
        await one.server.line()  # the cancellation
        assert await one.server.line() == call(1)


async def test_the_agent_cannot_use_the_id_of_a_hooks_call_nor_a_batch_answer_it() -> None:
    async with rig(group(mcp_tool_hook())) as one:
        await handshake(one)
        await one.agent.send(call(1))
        tool_call = await one.server.message()
        await one.agent.send(json.dumps({"jsonrpc": "2.0", "id": tool_call["id"], "method": "ping"}).encode() + b"\n")
        assert "id" in await one.agent.message()
        await one.server.send(
            b"[" + tool_response(tool_call, DENIES).strip() + b"]\n", tool_response(tool_call, "fine")
        )
        assert await one.server.line() == call(1)


async def test_hooks_calls_at_the_same_time_get_their_own_responses() -> None:
    async with rig(group(mcp_tool_hook())) as one:
        await handshake(one)
        await one.agent.send(*(call(number, path=f"p{number}") for number in range(1, 5)))
        hook_tool_calls = {(each := await one.server.message())["params"]["arguments"]["it"]: each for _ in range(4)}
        for number in (3, 1, 4, 2):
            await one.server.send(tool_response(hook_tool_calls[f"p{number}"], DENIES if number == 4 else "fine"))
            if number != 4:
                assert await one.server.line() == call(number, path=f"p{number}")
        assert (await one.agent.message())["id"] == 4
