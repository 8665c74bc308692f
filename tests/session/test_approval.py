"""A person is asked about a call, in both eras, and only an explicit yes lets it pass."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.model.hooks import Document, Event, HookResult, HookSpec
from hookproxy.model.settings import OnAsk, OnFailure, Settings
from hookproxy.protocol.calls import OWN_ID_PREFIX, OWN_STATE_PREFIX, Call
from hookproxy.runners.registry import RUNNERS
from hookproxy.session.approval import _PendingApproval
from tests.support.proxy_rig import DIRECT_LOOP, TIMEOUT, Rig, rig, stub, stub_group

pytestmark = pytest.mark.anyio

PRE, POST = Event.PRE_TOOL_USE, Event.POST_TOOL_USE
ASKS: Final = stub(PRE, permission="ask", reason="sure?")
ALLOW, SESSION = "allow once", "allow this tool for this session"


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def call(number: int, tool: str = "write", **arguments: object) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode() + b"\n"


def answer(number: object, text: str = "done") -> bytes:
    result = {"content": [{"type": "text", "text": text}]}
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode() + b"\n"


async def handshake(
    one: Rig, elicitation: object = "{}", version: str = "2025-11-25", initialized: bool = True
) -> None:
    """The handshake, by an agent with this capability."""
    capabilities = {} if elicitation is None else {"elicitation": json.loads(str(elicitation))}
    params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "Lean"}}
    await one.agent.send(
        json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).encode() + b"\n"
    )
    await one.server.line()
    result = {"protocolVersion": version, "capabilities": {}}
    await one.server.send(json.dumps({"jsonrpc": "2.0", "id": 0, "result": result}).encode() + b"\n")
    await one.agent.line()
    if initialized:
        await one.agent.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        await one.server.line()


def answer_to(question: dict[str, Any], decision: str, action: str = "accept") -> bytes:
    result = {"action": action, "content": {"decision": decision}}
    return json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": result}).encode() + b"\n"


async def test_a_yes_lets_the_call_pass_as_it_came() -> None:
    async with rig(stub_group(ASKS)) as one:
        await handshake(one)
        await one.agent.send(call(1, path="a"))
        question = await one.agent.message()
        assert question["method"] == "elicitation/create"
        assert question["id"].startswith("hookproxy:")
        assert 'path: "a"' in question["params"]["message"]
        assert "the PreToolUse hook stub asks you to confirm: sure?" in question["params"]["message"]
        await one.agent.send(answer_to(question, ALLOW))
        assert await one.server.line() == call(1, path="a")
        await one.server.send(answer(1))
        assert await one.agent.line() == answer(1)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ({"result": {"action": "accept", "content": {"decision": "deny"}}}, "did not allow it"),
        ({"result": {"action": "decline"}}, "did not allow it"),
        ({"result": {"action": "accept", "content": {"decision": "not asked"}}}, "no answer came"),
        ({"result": {"action": "cancel"}}, "no answer came"),
        ({"error": {"code": -32603, "message": "no forms today"}}, "no answer came"),
        ({"result": "nonsense"}, "no answer came"),
    ],
)
async def test_any_answer_but_a_yes_is_a_refusal_and_reaches_no_server(reply: dict[str, object], says: str) -> None:
    async with rig(stub_group(ASKS)) as one:
        await handshake(one)
        await one.agent.send(call(1))
        question = await one.agent.message()
        await one.agent.send(json.dumps({"jsonrpc": "2.0", "id": question["id"], **reply}).encode() + b"\n")
        response = await one.agent.message()
        assert response["result"]["isError"] is True
        assert says in response["result"]["content"][0]["text"]
        assert await one.finish() == (b"", b"")


async def test_the_person_is_shown_the_final_arguments() -> None:
    rewrites = stub(PRE, arguments={"path": "b", "token": "t"})
    async with rig(stub_group(ASKS), stub_group(rewrites)) as one:
        await handshake(one)
        await one.agent.send(call(1, path="a"))
        question = await one.agent.message()
        assert 'path: "b"\ntoken: [hidden]' in question["params"]["message"]
        await one.agent.send(answer_to(question, ALLOW))
        assert json.loads(await one.server.line())["params"]["arguments"] == {"path": "b", "token": "t"}


async def test_a_tool_allowed_for_the_session_needs_one_approval() -> None:
    async with rig(stub_group(ASKS)) as one:
        await handshake(one)
        await one.agent.send(call(1, path="a"))
        await one.agent.send(answer_to(await one.agent.message(), SESSION))
        assert await one.server.line() == call(1, path="a")
        await one.agent.send(call(2, path="other"))
        assert await one.server.line() == call(2, path="other")
        await one.agent.send(call(3, tool="delete"))
        assert (await one.agent.message())["method"] == "elicitation/create"


async def test_while_a_person_thinks_all_other_lines_pass() -> None:
    ping, pong = b'{"jsonrpc":"2.0","id":9,"method":"ping"}\n', b'{"jsonrpc":"2.0","id":9,"result":{}}\n'
    asks = replace(ASKS, timeout=0.3)
    async with rig(stub_group(asks), settings=Settings(max_message_bytes=2000)) as one:
        await handshake(one)
        await one.agent.send(call(1, text="x" * 1500), call(2, text="y" * 1500))
        first, second = await one.agent.message(), await one.agent.message()
        await one.agent.send(ping)
        assert await one.server.line() == ping
        await one.server.send(pong)
        assert await one.agent.line() == pong
        await one.agent.send(answer_to(second, ALLOW), answer_to(first, "deny"))
        passed = json.loads(await one.server.line())
        refused = await one.agent.message()
        assert {passed["id"], refused["id"]} == {1, 2}


async def test_an_approval_request_is_withdrawn_with_its_call() -> None:
    async with rig(stub_group(ASKS)) as one:
        await handshake(one)
        await one.agent.send(call(1))
        question = await one.agent.message()
        await one.agent.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n')
        taken_back = await one.agent.message()
        assert taken_back["method"] == "notifications/cancelled"
        assert taken_back["params"]["requestId"] == question["id"]
        await one.agent.send(answer_to(question, ALLOW))
        assert await one.finish() == (b"", b""), "a late yes is nobody's"


@pytest.mark.parametrize(
    ("elicitation", "version", "initialized"),
    [
        (None, "2025-11-25", True),
        ('{"url": {}}', "2025-11-25", True),
        ("[]", "2025-11-25", True),
        ("{}", "2025-03-26", True),
        ("{}", "2025-11-25", False),
    ],
)
async def test_an_agent_that_cannot_ask_is_not_asked(elicitation: object, version: str, initialized: bool) -> None:
    async with rig(stub_group(ASKS)) as one:
        await handshake(one, elicitation, version, initialized)
        await one.agent.send(call(1))
        response = await one.agent.message()
        assert "This agent cannot ask the user, so the call is denied." in response["result"]["content"][0]["text"]


async def test_an_agent_with_forms_is_asked_and_its_answer_is_never_forwarded() -> None:
    async with rig(stub_group(ASKS)) as one:
        await handshake(one, '{"form": {}, "url": {}}')
        await one.agent.send(call(1))
        question = await one.agent.message()
        await one.agent.send(
            answer_to(question, "deny"),
            answer_to(question, ALLOW),
            answer_to({"id": OWN_ID_PREFIX.decode() + "0"}, ALLOW),
        )
        await one.agent.message()
        assert await one.finish() == (b"", b"")


async def test_hooks_run_when_a_person_is_asked(tmp_path: Path) -> None:
    stubs = [
        stub(event, f"cat > {shlex.quote(str(tmp_path / event))}") for event in (Event.NOTIFICATION, Event.USER_INPUT)
    ]
    async with rig(stub_group(ASKS, *stubs)) as one:
        await handshake(one)
        await one.agent.send(call(1))
        question = await one.agent.message()
        with anyio.fail_after(TIMEOUT):
            await one.proxy.changes.until(lambda: not one.proxy.has_background_hooks)
    for event, by in ((Event.NOTIFICATION, "permission_prompt"), (Event.USER_INPUT, "permission_prompt")):
        document = json.loads((tmp_path / event).read_bytes())
        assert (document["by"], document["message"]) == (by, question["params"]["message"])


@pytest.mark.parametrize(
    ("settings", "passes"),
    [
        (Settings(on_ask_fallback=OnFailure.ALLOW), True),
        (Settings(on_ask_fallback=OnFailure.DENY), False),
        (Settings(on_ask=OnAsk.ALLOW), True),
        (Settings(on_ask=OnAsk.DENY), False),
        (Settings(prompter=("sh", "-c", "exit 0")), True),
        (Settings(prompter=("sh", "-c", "exit 2")), False),
        (Settings(prompter=("sh", "-c", """echo '{"decision": "allow"}'""")), True),
        (Settings(prompter=("sh", "-c", "echo Gtk-WARNING: no theme")), True),
        (Settings(prompter=("sh", "-c", "exit 1")), False),
        (Settings(prompter=("/nowhere/prompter",)), False),
    ],
)
async def test_with_an_agent_that_cannot_ask_the_configuration_decides(settings: Settings, passes: bool) -> None:
    async with rig(stub_group(ASKS), settings=settings) as one:
        await handshake(one, None)
        await one.agent.send(call(1))
        if passes:
            assert await one.server.line() == call(1)
        else:
            assert (await one.agent.message())["result"]["isError"] is True
    failing = settings.prompter[-1:] in (("exit 1",), ("/nowhere/prompter",))
    assert any("the prompter" in text for text in one.reports) is failing


async def test_a_prompter_reads_the_approval_request_as_json(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    settings = Settings(prompter=("sh", "-c", f"cat > {shlex.quote(str(recorded))}; exit 2"))
    async with rig(stub_group(ASKS), settings=settings) as one:
        await handshake(one, None)
        await one.agent.send(call(1, path="a"))
        await one.agent.line()
    assert json.loads(recorded.read_bytes()) == {
        "server": "files",
        "tool": "write",
        "arguments": {"path": "a"},
        "reason": "sure?",
        "asked_by": "the PreToolUse hook stub",
    }


async def test_a_prompter_gives_a_reason_with_its_no() -> None:
    says = """echo '{"decision": "deny", "reason": "not on Fridays"}'; exit 2"""
    async with rig(stub_group(ASKS), settings=Settings(prompter=("sh", "-c", says))) as one:
        await handshake(one, None)
        await one.agent.send(call(1))
        assert "not on Fridays" in str((await one.agent.message())["result"])
    assert not any("the prompter" in text for text in one.reports)


async def test_a_prompter_allows_other_arguments() -> None:
    says = """echo '{"decision": "allow", "arguments": {"path": "b"}}'"""
    async with rig(stub_group(ASKS), settings=Settings(prompter=("sh", "-c", says))) as one:
        await handshake(one, None)
        await one.agent.send(call(1, path="a"))
        assert json.loads(await one.server.line())["params"]["arguments"] == {"path": "b"}


@pytest.mark.parametrize(
    ("printed", "status"),
    [
        ('{"decision": "deny"}', 0),
        ('{"decision": "allow"}', 2),
        ('{"decision": "allow", "decision": "deny"}', 0),
        ('{"decision": "allow", "argument": {}}', 0),
        ('{"decision": "allow", "arguments": []}', 0),
        ('{"decision": "allow", "arguments": {"a": 1, "a": 2}}', 0),
        ('{"decision": "deny", "arguments": {}}', 2),
        ('{"decision": "allow"', 0),
        ("{}", 0),
    ],
)
async def test_a_response_of_a_prompter_that_is_not_a_clear_one_is_a_failure(printed: str, status: int) -> None:
    says = f"echo {shlex.quote(printed)}; exit {status}"
    async with rig(stub_group(ASKS), settings=Settings(prompter=("sh", "-c", says))) as one:
        await handshake(one, None)
        await one.agent.send(call(1, path="a"))
        assert (await one.agent.message())["result"]["isError"] is True
    assert any(text.startswith("the prompter sh failed (") for text in one.reports)


async def test_the_record_says_that_a_person_was_asked(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    async with rig(stub_group(ASKS), settings=Settings(audit_file=str(audit))) as one:
        await handshake(one)
        for number, decision in ((1, ALLOW), (2, "deny")):
            await one.agent.send(call(number))
            await one.agent.send(answer_to(await one.agent.message(), decision))
            if decision == ALLOW:
                await one.server.line()
                await one.server.send(answer(number))
            await one.agent.line()
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(line["decision"], line["result"]) for line in lines] == [("asked-allow", "ok"), ("asked-deny", "refused")]


# --- 2026-07-28: the approval request is a round of the call ---

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}


def stateless(number: int, meta: Any = META, **params: Any) -> bytes:  # noqa: ANN401  # JSON
    full = {"_meta": meta, "name": "write", "arguments": {"a": 1.0}, **params}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": full}).encode() + b"\n"


def accepted(decision: str, action: str = "accept") -> dict[str, object]:
    return {"hookproxy.ask": {"action": action, "content": {"decision": decision}}}


def complete(number: object) -> bytes:
    result = {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode() + b"\n"


async def approval_request(one: Rig, number: int = 1) -> str:
    """Make a call that needs approval; return its request state."""
    await one.agent.send(stateless(number))
    result = (await one.agent.message())["result"]
    assert result["resultType"] == "input_required"
    assert result["inputRequests"]["hookproxy.ask"]["method"] == "elicitation/create"
    return str(result["requestState"])


async def test_a_yes_in_the_next_round_lets_the_call_pass_without_our_members(tmp_path: Path) -> None:
    count = f"echo x >> {shlex.quote(str(tmp_path / 'count'))}"
    asks = stub(PRE, f"{count}; printf %s {shlex.quote(json.dumps({'permission': 'ask', 'feedback': ['Mind.']}))}")
    async with rig(stub_group(asks)) as one:
        seal = await approval_request(one)
        await one.agent.send(stateless(2, inputResponses=accepted(ALLOW), requestState=seal))
        assert await one.server.line() == stateless(2)
        await one.server.send(complete(2))
        response = await one.agent.message()
    assert [block["text"] for block in response["result"]["content"]] == ["done", "Mind."]
    assert (tmp_path / "count").read_text() == "x\n", "hooks run once"


@pytest.mark.parametrize("reply", [accepted("deny"), accepted(ALLOW, "decline"), {}, {"hookproxy.ask": 5}])
async def test_any_answer_but_a_yes_in_the_next_round_is_a_refusal(reply: dict[str, object]) -> None:
    async with rig(stub_group(ASKS)) as one:
        seal = await approval_request(one)
        await one.agent.send(stateless(2, inputResponses=reply, requestState=seal))
        response = (await one.agent.message())["result"]
        assert (response["isError"], response["resultType"]) == (True, "complete")
        assert await one.finish() == (b"", b"")


async def test_a_request_state_is_valid_for_one_round_of_that_call_only() -> None:
    async with rig(stub_group(ASKS)) as one:
        seal = await approval_request(one)
        other = {"arguments": {"a": 2}, "inputResponses": accepted(ALLOW), "requestState": seal}
        await one.agent.send(stateless(2, **other))
        assert (await one.agent.message())["result"]["resultType"] == "input_required", "other arguments: a new call"
        await one.agent.send(stateless(3, inputResponses=accepted(ALLOW), requestState=seal))
        assert await one.server.line() == stateless(3)
        await one.agent.send(stateless(4, inputResponses=accepted(ALLOW), requestState=seal))
        assert (await one.agent.message())["result"]["resultType"] == "input_required", "used already"
        forged = {"inputResponses": accepted(ALLOW), "requestState": OWN_STATE_PREFIX + "e30.x"}
        await one.agent.send(stateless(5, **forged))
        assert (await one.agent.message())["result"]["resultType"] == "input_required"


async def test_a_tool_allowed_for_the_session_in_a_round_needs_one_approval() -> None:
    async with rig(stub_group(ASKS)) as one:
        seal = await approval_request(one)
        await one.agent.send(stateless(2, inputResponses=accepted(SESSION), requestState=seal))
        assert await one.server.line() == stateless(2)
        await one.agent.send(stateless(3))
        assert await one.server.line() == stateless(3)


async def test_a_stateless_agent_without_forms_is_not_asked() -> None:
    meta: dict[str, object] = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    async with rig(stub_group(ASKS)) as one:
        await one.agent.send(stateless(1, meta))
        response = (await one.agent.message())["result"]
        assert (response["isError"], response["resultType"]) == (True, "complete")


def needs_input(number: object, **more: object) -> bytes:
    requests = {"q": {"method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": {}}}}
    result = {"resultType": "input_required", "inputRequests": requests, **more}
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode() + b"\n"


@pytest.mark.parametrize("state", [{"requestState": "server's"}, {}])
async def test_the_hooks_of_a_call_of_several_rounds_run_once_and_it_is_rewritten_each_time(
    tmp_path: Path, state: dict[str, object]
) -> None:
    log = shlex.quote(str(tmp_path / "log"))
    rewrite = shlex.quote(json.dumps({"arguments": {"a": 2}, "feedback": ["pre"]}))
    pre = stub(PRE, f"echo pre >> {log}; printf %s {rewrite}")
    post = stub(POST, f"echo post >> {log}; printf %s {shlex.quote(json.dumps({'feedback': ['post']}))}")
    responses = {"q": {"action": "accept", "content": {"x": 1}}}
    async with rig(stub_group(pre, post)) as one:
        seal: object = None
        for number in (1, 2, 3):
            more = {"inputResponses": responses, "requestState": seal} if seal else {}
            await one.agent.send(stateless(number, **more))
            sent = json.loads(await one.server.line())["params"]
            assert sent["arguments"] == {"a": 2}
            assert sent.get("requestState") == (state.get("requestState") if seal else None)
            assert sent.get("inputResponses") == (responses if seal else None)
            if number < 3:
                await one.server.send(needs_input(number, **state))
                result = (await one.agent.message())["result"]
                seal = result.pop("requestState")
                assert result == json.loads(needs_input(number))["result"]
        await one.server.send(complete(3))
        response = await one.agent.message()
    assert [block["text"] for block in response["result"]["content"]] == ["done", "pre\n\npost"]
    assert (tmp_path / "log").read_text().split() == ["pre", "post"]


async def test_our_approval_request_and_then_the_servers_elicitation_are_rounds_of_one_call() -> None:
    async with rig(stub_group(ASKS)) as one:
        seal = await approval_request(one)
        await one.agent.send(stateless(2, inputResponses=accepted(ALLOW), requestState=seal))
        assert await one.server.line() == stateless(2)
        await one.server.send(needs_input(2, requestState="S"))
        seal = (await one.agent.message())["result"]["requestState"]
        responses = {"q": {"action": "decline"}}
        await one.agent.send(stateless(3, inputResponses=responses, requestState=seal))
        assert await one.server.line() == stateless(3, inputResponses=responses, requestState="S")
        await one.server.send(complete(3))
        assert await one.agent.line() == complete(3)


async def test_rounds_of_a_call_that_no_hook_concerns_pass_as_they_are() -> None:
    matching = replace(stub(PRE), matches=lambda name: name == "other")
    async with rig(stub_group(matching)) as one:
        await one.agent.send(stateless(1))
        await one.server.line()
        await one.server.send(needs_input(1, requestState="S"))
        assert await one.agent.line() == needs_input(1, requestState="S")
        again = stateless(2, inputResponses={"q": {}}, requestState="S")
        await one.agent.send(again)
        assert await one.server.line() == again
        sealed = stateless(3, requestState=OWN_STATE_PREFIX + "x.y")
        await one.agent.send(sealed)
        assert await one.server.line() == stateless(3), "what looks like ours reaches no server"


async def test_no_approval_request_is_left_when_the_agent_goes() -> None:
    async with rig(stub_group(ASKS)) as one:
        await handshake(one)
        await one.agent.send(call(1))
        await one.agent.line()
        one.agent.stop_writing()
        one.proxy.calls.end_all("The test is over")
        with anyio.fail_after(TIMEOUT):
            await one.proxy.changes.until(lambda: not one.proxy.has_open_calls)
        assert not one.proxy.calls.approvals._pending


async def test_hooks_that_answer_all_elicitations_go_on_with_the_call_in_the_agents_place(tmp_path: Path) -> None:
    answers = stub(Event.ELICITATION, action="accept", content={"branch": "main"})
    seen = shlex.quote(str(tmp_path / "seen"))
    async with rig(stub_group(stub(PRE, f"echo pre >> {seen}"), answers)) as one:
        await one.agent.send(stateless(1))
        await one.server.line()
        await one.server.send(needs_input(1, requestState="S"))
        again = json.loads(await one.server.line())
        assert again["id"].startswith("hookproxy:")
        assert again["params"]["requestState"] == "S"
        assert again["params"]["inputResponses"] == {"q": {"action": "accept", "content": {"branch": "main"}}}
        await one.server.send(complete(again["id"]))
        assert await one.agent.message() == json.loads(complete(1))
    assert (tmp_path / "seen").read_text() == "pre\n"


async def test_a_server_that_asks_for_ever_is_answered_by_hooks_a_limited_number_of_times() -> None:
    async with rig(stub_group(stub(PRE), stub(Event.ELICITATION, action="accept", content={}))) as one:
        await one.agent.send(stateless(1))
        for _ in range(11):
            sent = json.loads(await one.server.line())
            await one.server.send(needs_input(sent["id"]))
        assert (await one.agent.message())["result"]["requestState"].startswith("hookproxy1.")


async def test_a_yes_and_a_cancellation_at_once_run_no_post_hook_on_a_call_that_never_ran(tmp_path: Path) -> None:
    events = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
    hook_runs = [stub(event, f"touch {shlex.quote(str(tmp_path / event))}") for event in events]
    async with rig(stub_group(ASKS, *hook_runs)) as one:
        await handshake(one)
        for number in range(1, 6):
            await one.agent.send(call(number))
            question = await one.agent.message()
            cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
            await one.agent.send(answer_to(question, ALLOW) + json.dumps(cancel).encode() + b"\n")
        with anyio.fail_after(TIMEOUT):
            await one.proxy.changes.until(lambda: not one.proxy.has_open_calls)
        assert (await one.finish())[0] == b""
    assert os.listdir(tmp_path) == []


async def test_a_call_cancelled_while_hooks_answer_its_server_runs_its_failure_hooks(tmp_path: Path) -> None:
    for name in ("here", "go"):
        os.mkfifo(tmp_path / name)
    here, go = (shlex.quote(str(tmp_path / name)) for name in ("here", "go"))
    printed = shlex.quote(json.dumps({"action": "accept", "content": {}}))
    answers = stub(Event.ELICITATION, f"echo x > {here}; read y < {go}; printf %s {printed}")
    failure = stub(Event.POST_TOOL_USE_FAILURE, f"cat > {shlex.quote(str(tmp_path / 'failure'))}")
    async with rig(stub_group(stub(PRE), answers, failure)) as one:
        await one.agent.send(stateless(1))
        await one.server.line()
        await one.server.send(needs_input(1))
        await anyio.Path(tmp_path / "here").read_text()
        await one.agent.deliver(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n')
        await anyio.Path(tmp_path / "go").write_text("y\n")
        with anyio.fail_after(TIMEOUT):
            await one.proxy.changes.until(lambda: not one.proxy.has_open_calls)
    assert json.loads((tmp_path / "failure").read_bytes())["event"] == "PostToolUseFailure"


async def test_an_answer_with_an_error_beside_a_yes_is_not_a_yes() -> None:
    async with rig(stub_group(ASKS)) as one:
        await handshake(one)
        await one.agent.send(call(1))
        question = await one.agent.message()
        both = json.loads(answer_to(question, ALLOW)) | {"error": {"code": -1, "message": "closed"}}
        await one.agent.send(json.dumps(both).encode() + b"\n")
        assert "no answer came" in (await one.agent.message())["result"]["content"][0]["text"]


async def test_a_prompter_that_cannot_start_for_lack_of_descriptors_is_a_no() -> None:
    async def fails(*_: object) -> HookResult:
        raise OSError(24, "Too many open files")

    with pytest.MonkeyPatch.context() as patched:
        async with rig(stub_group(ASKS), settings=Settings(prompter=("sh",))) as one:
            await handshake(one, None)
            running = RUNNERS["command"]

            async def only_hooks(spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
                return await (running if spec.dialect == "stub" else fails)(spec, document, env)

            patched.setitem(RUNNERS, "command", only_hooks)
            await one.agent.send(call(1))
            assert (await one.agent.message())["result"]["isError"] is True
    assert one.reports == ["the prompter sh failed (Too many open files), so the call is denied"]


async def test_approval_requests_beyond_the_limit_are_denied() -> None:
    async with rig(stub_group(ASKS)) as one:
        await handshake(one)
        waiting = Call(b"7", b"7", b"", "write", b"{}", {}, stateless=False, task=False)
        one.proxy.calls.approvals._pending.update({b"%d" % number: _PendingApproval(waiting) for number in range(512)})
        await one.agent.send(call(1))
        assert (await one.agent.message())["result"]["isError"] is True
        one.proxy.calls.approvals._pending.clear()
    assert "a call is denied because 512 approval requests wait for the person" in one.reports


async def test_inputs_that_can_be_read_in_two_ways_are_refused() -> None:
    async with rig(stub_group(ASKS)) as one:
        line = stateless(1, inputResponses={}, requestState=OWN_STATE_PREFIX + "x.y")
        for inputs in (b'{"a":1,"a":2}', b"[]"):
            await one.agent.send(line.replace(b'"inputResponses": {}', b'"inputResponses": ' + inputs))
            assert (await one.agent.message())["error"]["code"] == -32600
    assert not any("Traceback" in text for text in one.reports)


@pytest.mark.parametrize(
    ("response", "cause"),
    [({"action": "decline"}, "declined"), ({"action": "cancel"}, "not answered"), (None, "cannot ask")],
)
async def test_a_no_no_answer_and_an_agent_that_cannot_ask_are_different_records(
    tmp_path: Path, response: dict[str, object] | None, cause: str
) -> None:
    audit = tmp_path / "audit"
    async with rig(stub_group(ASKS), settings=Settings(audit_file=str(audit))) as one:
        await handshake(one, None if response is None else "{}")
        await one.agent.send(call(1))
        if response is not None:
            question = await one.agent.message()
            reply = {"jsonrpc": "2.0", "id": question["id"], "result": response}
            await one.agent.send(json.dumps(reply).encode() + b"\n")
        assert (await one.agent.message())["result"]["isError"]
    line = json.loads(audit.read_bytes())
    assert (line["decision"], line["cause"]) == ("asked-deny", cause)
