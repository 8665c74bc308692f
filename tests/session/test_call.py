"""The life of one call, from its bytes to its response and its record; hooks are real, the test is the server."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from hookproxy.dialects.dialect import Group
from hookproxy.model.hooks import Event
from hookproxy.model.limits import Limit, Per
from hookproxy.model.settings import Arguments, Delivery, OnAsk, OnFailure, Results, Settings
from tests.support.proxy_rig import DIRECT_LOOP, SESSION, Rig, group, hook, rig, stub, stub_group

pytestmark = pytest.mark.anyio

PRE, POST, FAILURE = Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE
CALL: Final = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"write","arguments":{"a":1.0}}}\n'
STATELESS: Final = CALL.replace(b'"name"', b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name"')
ANSWER: Final = b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"done"}]}}\n'


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


class HookInputs:
    """A file to which hooks write their input documents, a line each."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def hook(self, then: str = "") -> str:
        """A hook that records its document, and then runs a command."""
        return f"tr -d '\\n' >> {shlex.quote(str(self.path))}; echo >> {shlex.quote(str(self.path))}; {then or ':'}"

    @property
    def documents(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_bytes().splitlines()]

    @property
    def events(self) -> list[str]:
        return [one["hook_event_name"] for one in self.documents]


@pytest.fixture
def hook_inputs(tmp_path: Path) -> HookInputs:
    return HookInputs(tmp_path / "inputs")


def prints(answer: object) -> str:
    """A command that prints this as JSON."""
    return f"echo {shlex.quote(json.dumps(answer))}"


def prints_output(event: Event, **members: object) -> str:
    return prints({"hookSpecificOutput": {"hookEventName": event.value, **members}})


async def call_and_response(proxied: Rig, answer: bytes = ANSWER, call: bytes = CALL) -> tuple[bytes, bytes]:
    """One call and its response: what the server and the agent got."""
    await proxied.agent.send(call)
    received = await proxied.server.line()
    await proxied.server.send(answer)
    return received, await proxied.agent.line()


async def idle(proxied: Rig) -> None:
    with anyio.fail_after(30):
        await proxied.proxy.changes.until(lambda: not proxied.proxy.has_open_calls)


def text_of(line: bytes) -> str:
    result = json.loads(line)["result"]
    return "\n".join(block["text"] for block in result["content"])


async def test_each_side_of_a_call_is_seen_once(hook_inputs: HookInputs) -> None:
    async with rig(group(*(hook(hook_inputs.hook(), event) for event in (PRE, POST, FAILURE)))) as proxied:
        assert await call_and_response(proxied) == (CALL, ANSWER)
    assert hook_inputs.events == ["PreToolUse", "PostToolUse"]
    before, after = hook_inputs.documents
    assert before["tool_name"] == "write"
    assert before["tool_input"] == after["tool_input"] == {"a": 1.0}
    assert before["tool_use_id"] == after["tool_use_id"] == "call_7"
    assert after["tool_response"] == [{"type": "text", "text": "done"}]
    assert after["duration_ms"] >= 0


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (ANSWER.replace(b"]}}", b'],"isError":true}}'), "done"),
        (b'{"jsonrpc":"2.0","id":7,"result":{"content":[],"isError":true}}\n', "The tool reported an error without"),
        (b'{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Unknown"}}\n', "MCP error -32602: Unknown"),
        (b'{"jsonrpc":"2.0","id":7,"error":"odd"}\n', "MCP error"),
        (b'{"jsonrpc":"2.0","id":7}\n', "MCP error"),
    ],
)
async def test_a_failed_call_is_seen_as_a_failure_once(hook_inputs: HookInputs, answer: bytes, error: str) -> None:
    async with rig(group(*(hook(hook_inputs.hook(), event) for event in (PRE, POST, FAILURE)))) as proxied:
        assert await call_and_response(proxied, answer) == (CALL, answer)
    assert hook_inputs.events == ["PreToolUse", "PostToolUseFailure"]
    assert hook_inputs.documents[1]["error"].startswith(error)
    assert hook_inputs.documents[1]["is_interrupt"] is False


@pytest.mark.parametrize(
    "answer",
    [
        b'{"jsonrpc":"2.0","id":7,"result":{"resultType":"task","taskId":"x"}}\n',
    ],
)
async def test_a_response_after_which_the_call_goes_on_runs_no_post_hook(
    hook_inputs: HookInputs, tmp_path: Path, answer: bytes
) -> None:
    audit = tmp_path / "audit"
    settings = Settings(audit_file=str(audit))
    async with rig(
        group(hook(hook_inputs.hook(), POST), hook(hook_inputs.hook(), FAILURE)), settings=settings
    ) as proxied:
        assert await call_and_response(proxied, answer, STATELESS) == (STATELESS, answer)
        await idle(proxied)
    assert hook_inputs.events == []
    assert json.loads(audit.read_bytes())["result"] == "pending"


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (CALL, b'{"resultType":"input_required","inputRequests":{}}'),
        (CALL, b'{"resultType":"task","taskId":"x"}'),
        (STATELESS, b'{"resultType":"input_required","content":[]}'),
        (STATELESS, b'{"resultType":"task","structuredContent":{}}'),
        (STATELESS, b'{"resultType":"complete"}'),
    ],
)
async def test_post_hooks_run_on_any_response_that_an_agent_may_show_whatever_its_type(
    hook_inputs: HookInputs, call: bytes, result: bytes
) -> None:
    answer = b'{"jsonrpc":"2.0","id":7,"result":%b}\n' % result
    async with rig(group(hook(hook_inputs.hook(), POST), hook(hook_inputs.hook(), FAILURE))) as proxied:
        assert await call_and_response(proxied, answer, call) == (call, answer)
    assert hook_inputs.events == ["PostToolUse"]


@pytest.mark.parametrize(
    "result", [b"[]", b"null", b"7", b"{}", b'{"content":null}', b'{"content":"x"}', b'{"content":[7]}']
)
async def test_odd_results_pass_as_they_are(hook_inputs: HookInputs, result: bytes) -> None:
    answer = b'{"jsonrpc":"2.0","id":7,"result":%b}\n' % result
    async with rig(group(hook(hook_inputs.hook(), POST))) as proxied:
        assert await call_and_response(proxied, answer) == (CALL, answer)
    assert hook_inputs.events == ["PostToolUse"]


async def test_a_rewrite_replaces_the_arguments_and_nothing_else(hook_inputs: HookInputs) -> None:
    rewrite = prints_output(PRE, updatedInput={"a": 2, "b": "\u2028"})
    call = (
        b'{ "x":1e400, "method" : "tools\\/call", "id":"7", "params":{"_meta":{"t":1.0}, '
        b'"\\u0061rguments" : {"a":1}, "name":"write"} } \r\n'
    )
    async with rig(group(hook(rewrite), hook(hook_inputs.hook(), POST))) as proxied:
        answer = ANSWER.replace(b":7", b':"7"')
        received, got = await call_and_response(proxied, answer, call)
    start, end = call.index(b'{"a":1}'), call.index(b', "name"')
    assert received[:start] == call[:start]
    assert received.endswith(call[end:])
    assert json.loads(received[start : len(received) - len(call) + end]) == {"a": 2, "b": "\u2028"}
    assert len(received.decode().splitlines()) == 1
    assert got == answer
    assert hook_inputs.documents[0]["tool_input"] == {"a": 2, "b": "\u2028"}, "the arguments that ran"


async def test_arguments_are_added_where_the_call_has_none() -> None:
    call = CALL.replace(b',"arguments":{"a":1.0}', b"")
    async with rig(group(hook(prints_output(PRE, updatedInput={"n": 1})))) as proxied:
        received, _ = await call_and_response(proxied, call=call)
    assert received == call.replace(b'"write"', b'"write","arguments":{"n": 1}')


async def test_a_rewrite_that_does_not_fit_the_schema_is_a_failure_that_names_the_field() -> None:
    listing = (
        b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"write","inputSchema":'
        b'{"type":"object","properties":{"a":{"type":"number"}}}}]}}\n'
    )
    settings = Settings(on_failure=OnFailure.DENY)
    async with rig(group(hook(prints_output(PRE, updatedInput={"a": "two"}))), settings=settings) as proxied:
        await proxied.agent.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
        await proxied.server.line()
        await proxied.server.send(listing)
        assert await proxied.agent.line() == listing
        await proxied.agent.send(CALL)
        assert "a: 'two' is not of type 'number'" in text_of(await proxied.agent.line())


async def test_groups_run_in_order_and_each_sees_the_rewrite_so_far(hook_inputs: HookInputs) -> None:
    groups = [
        group(hook(prints_output(PRE, updatedInput={"n": 1}))),
        group(hook(hook_inputs.hook(prints_output(PRE, updatedInput={"n": 2})))),
        group(hook(hook_inputs.hook())),
    ]
    async with rig(*groups) as proxied:
        received, _ = await call_and_response(proxied)
    assert [one["tool_input"] for one in hook_inputs.documents] == [{"n": 1}, {"n": 2}]
    assert json.loads(received)["params"]["arguments"] == {"n": 2}


async def test_a_denial_beats_a_rewrite_and_no_further_group_runs(hook_inputs: HookInputs) -> None:
    groups = [
        group(hook(prints_output(PRE, updatedInput={"n": 1}))),
        group(hook("echo never >&2; exit 2")),
        group(hook(hook_inputs.hook())),
    ]
    async with rig(*groups) as proxied:
        await proxied.agent.send(CALL)
        assert "never" in text_of(await proxied.agent.line())
        received, _ = await proxied.finish()
    assert received == b""
    assert hook_inputs.documents == []


@pytest.mark.parametrize("on_ask", OnAsk)
async def test_an_approval_request_follows_the_configuration(on_ask: OnAsk) -> None:
    ask = prints_output(PRE, permissionDecision="ask", permissionDecisionReason="sure?")
    async with rig(group(hook(ask)), settings=Settings(on_ask=on_ask)) as proxied:
        if on_ask is OnAsk.ALLOW:
            assert await call_and_response(proxied) == (CALL, ANSWER)
        else:
            await proxied.agent.send(CALL)
            assert "sure?" in text_of(await proxied.agent.line())


async def test_a_comment_is_one_insertion_at_the_end_of_the_content() -> None:
    comment = prints({"decision": "block", "reason": "Please lint."})
    async with rig(group(hook(comment, POST))) as proxied:
        _, got = await call_and_response(proxied)
    cut = ANSWER.index(b"]}}")
    assert got.startswith(ANSWER[:cut])
    assert got.endswith(ANSWER[cut:])
    added = json.loads(b"[" + got[cut : len(got) - len(ANSWER[cut:])].lstrip(b",") + b"]")
    assert added == [{"type": "text", "text": "Please lint."}]


async def test_feedback_of_pre_hooks_comes_with_the_result() -> None:
    async with rig(group(hook(prints_output(PRE, additionalContext="Careful.")))) as proxied:
        _, got = await call_and_response(proxied)
    assert text_of(got) == "done\nCareful."


async def test_a_replacement_hides_the_output() -> None:
    replace = prints_output(POST, updatedMCPToolOutput=[{"type": "text", "text": "hidden"}])
    async with rig(group(hook(replace, POST))) as proxied:
        _, got = await call_and_response(proxied)
    assert text_of(got) == "hidden"
    assert b"done" not in got


async def test_errors_stay_errors_and_carry_comments() -> None:
    answer = b'{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"Gone"}}\n'
    async with rig(group(hook(prints_output(FAILURE, additionalContext="Try later."), FAILURE))) as proxied:
        _, got = await call_and_response(proxied, answer)
    error = json.loads(got)["error"]
    assert (error["code"], error["message"]) == (-1, "Gone. Try later.")
    assert error["data"] == {"hook_feedback": "Try later."}


@pytest.mark.parametrize(
    "answer",
    [
        ANSWER.replace(b'"result"', b'"error":{},"result"'),
        ANSWER.replace(b'"content"', b'"content":[],"content"'),
        ANSWER.replace(b'"result"', b'"result":{"content":[]},"result"'),
        ANSWER.replace(b'"text":"done"', b'"text":"do","text":"done"'),
        ANSWER.replace(b"done", b"d\xffne"),
        ANSWER.replace(b'"id":7', b'"id":7,"id":7'),
    ],
)
async def test_a_response_that_can_be_read_in_different_ways_is_withheld(
    hook_inputs: HookInputs, answer: bytes
) -> None:
    async with rig(group(hook(hook_inputs.hook(), POST))) as proxied:
        await proxied.agent.send(CALL)
        await proxied.server.line()
        await proxied.server.send(answer)
        got = await proxied.agent.message()
    assert got["id"] == 7
    assert "withheld" in got["error"]["message"]
    assert hook_inputs.documents == []


async def test_a_response_without_any_content_is_not_a_defect() -> None:
    async with rig(group(hook("exit 0", POST), hook("exit 0", FAILURE))) as proxied:
        await proxied.agent.send(CALL)
        await proxied.server.line()
        await proxied.server.send(b'{"jsonrpc":"2.0","id":7}\n')
        assert await proxied.agent.line() == b'{"jsonrpc":"2.0","id":7}\n'
    assert not any("Traceback" in text for text in proxied.reports)


@pytest.mark.parametrize("depth", [150, 300, 400, 450, 475, 500, 700, 900, 5000])
async def test_content_of_any_depth_gets_a_response_without_a_defect(depth: int) -> None:
    answer = ANSWER.replace(b'"done"', b'"done","x":%b' % (b'{"a":' * depth + b"1" + b"}" * depth))
    async with rig(group(hook("exit 0", POST))) as proxied:
        await proxied.agent.send(CALL)
        await proxied.server.line()
        await proxied.server.send(answer)
        with anyio.fail_after(30):
            got = await proxied.agent.line()
    assert b"defect" not in got
    assert not any("Traceback" in text for text in proxied.reports)


@pytest.mark.parametrize("depth", [*range(150, 1001, 25), 5000])
async def test_arguments_of_any_depth_reach_hooks_or_are_refused(depth: int) -> None:
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    async with rig(group(hook("exit 2"))) as proxied:
        await proxied.agent.send(CALL.replace(b'{"a":1.0}', deep))
        got = await proxied.agent.message()
    assert got["id"] in (7, None), "one so deep that it cannot be read has no id"
    assert not any("Traceback" in text for text in proxied.reports)


async def test_a_cancelled_call_runs_its_failure_hooks_and_is_audited(hook_inputs: HookInputs, tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    async with rig(
        group(hook("exit 0"), hook(hook_inputs.hook(), FAILURE)), settings=Settings(audit_file=str(audit))
    ) as proxied:
        await proxied.agent.send(CALL)
        await proxied.server.line()
        await proxied.agent.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}\n')
        await proxied.server.line()
        await idle(proxied)
    assert [one["is_interrupt"] for one in hook_inputs.documents] == [True]
    (record,) = [json.loads(line) for line in audit.read_bytes().splitlines()]
    assert (record["result"], record["decision"]) == ("cancelled", "allow")


async def test_the_record_contains_what_happened(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    groups = group(
        hook("echo no >&2; exit 2", matcher="danger"),
        hook(prints_output(PRE, updatedInput={"n": 1}), matcher="write"),
        hook(prints({"decision": "block", "reason": "Lint."}), POST, matcher="write"),
    )
    async with rig(groups, settings=Settings(audit_file=str(audit))) as proxied:
        await call_and_response(proxied)
        await proxied.agent.send(CALL.replace(b"write", b"danger"))
        await proxied.agent.line()
        await idle(proxied)
    ran, denied = [json.loads(line) for line in audit.read_bytes().splitlines()]
    assert (ran["tool"], ran["decision"], ran["result"], ran["changed"]) == (
        "write",
        "allow",
        "ok",
        ["arguments", "result"],
    )
    assert (ran["arguments"], ran["rewritten"]) == ({"a": 1.0}, {"n": 1})
    assert [one["event"] for one in ran["hooks"]] == ["PreToolUse", "PostToolUse"]
    assert (denied["decision"], denied["result"], denied["reason"]) == ("deny", "refused", "no")


@pytest.mark.parametrize("post", [True, False])
async def test_if_the_audit_is_required_nothing_runs_without_a_record(tmp_path: Path, post: bool) -> None:
    audit = tmp_path / "audit"
    settings = Settings(audit_file=str(audit), audit_required=True)
    async with rig(group(hook("exit 0"), *([hook("exit 0", POST)] if post else [])), settings=settings) as proxied:
        assert await call_and_response(proxied) == (CALL, ANSWER)
        proxied.proxy.policy.audit.close()
        audit.unlink()
        audit.mkdir()
        await proxied.agent.send(CALL)
        assert "not run" in text_of(await proxied.agent.line())
        received, _ = await proxied.finish()
    assert received == b""
    assert any("audit" in text for text in proxied.reports)


async def test_output_of_a_call_that_could_not_be_recorded_is_withheld(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    settings = Settings(audit_file=str(audit), audit_required=True)
    async with rig(group(hook("exit 0")), settings=settings) as proxied:
        await proxied.agent.send(CALL)
        await proxied.server.line()
        proxied.proxy.policy.audit.close()
        audit.unlink()
        audit.mkdir()
        await proxied.server.send(ANSWER)
        got = await proxied.agent.line()
    assert b"done" not in got
    assert "withheld" in text_of(got)


async def test_a_stateless_agent_gets_results_of_its_era() -> None:
    call = CALL.replace(b'"name"', b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name"')
    async with rig(group(hook("exit 2"))) as proxied:
        await proxied.agent.send(call)
        assert (await proxied.agent.message())["result"]["resultType"] == "complete"
        await proxied.agent.send(CALL)
        assert "resultType" not in (await proxied.agent.message())["result"]


async def test_a_refused_task_is_an_error() -> None:
    async with rig(group(hook("exit 2"))) as proxied:
        await proxied.agent.send(CALL.replace(b'"name"', b'"task":{},"name"'))
        assert (await proxied.agent.message())["error"]["code"] == -31403


async def test_hooks_get_the_agents_own_id_of_a_call(hook_inputs: HookInputs) -> None:
    meta = b'"_meta":{"claudecode/toolUseId":"toolu_1"},"name"'
    async with rig(group(hook(hook_inputs.hook()))) as proxied:
        await call_and_response(proxied, call=CALL.replace(b'"name"', meta))
    assert hook_inputs.documents[0]["tool_use_id"] == "toolu_1"


async def test_feedback_goes_into_structured_content_if_the_schema_is_open(hook_inputs: HookInputs) -> None:
    answer = ANSWER.replace(b"]}}", b'],"structuredContent":{"x":1}}}')
    listing = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"write","outputSchema":{"type":"object"}}]}}\n'
    settings = Settings(feedback=Delivery.AUTO)
    async with rig(group(hook(prints_output(POST, additionalContext="Hm."), POST)), settings=settings) as proxied:
        await proxied.agent.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
        await proxied.server.line()
        await proxied.server.send(listing)
        await proxied.agent.line()
        _, got = await call_and_response(proxied, answer)
    assert json.loads(got)["result"]["structuredContent"] == {"x": 1, "hook_feedback": "Hm."}


async def test_a_post_hook_does_not_see_what_hides_text(hook_inputs: HookInputs) -> None:
    answer = ANSWER.replace(b"done", b"s\\u0065cret \\/etc")
    async with rig(
        group(hook(f"grep -q 'secret /etc' && {prints({'reason': 'Leak!', 'decision': 'block'})}", POST))
    ) as proxied:
        _, got = await call_and_response(proxied, answer)
    assert "Leak!" in text_of(got)


RETRY: Final = {"retry": True}


def repeating(event: Event, times: int, **verdict: object) -> Group:
    return stub_group(replace(stub(event, "", **RETRY, **verdict), max_retries=times))


async def exchange(one: Rig, text: str, failed: bool = False) -> dict[str, Any]:
    """The server gets the call, under any id, and responds."""
    message: dict[str, Any] = json.loads(await one.server.line())
    content = [{"type": "text", "text": text}]
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": content, "isError": failed}}
    await one.server.send(json.dumps(answer).encode() + b"\n")
    return message


async def test_a_failed_call_is_repeated_as_often_as_its_hooks_may_want(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    settings = Settings(audit_file=str(audit))
    async with rig(repeating(FAILURE, 2, feedback=["Tried again."]), settings=settings) as one:
        await one.agent.send(CALL)
        sent = [await exchange(one, text, failed=True) for text in ("first", "second", "third")]
        response = await one.agent.message()
    assert [message["params"] for message in sent] == [json.loads(CALL)["params"]] * 3
    ids = [message["id"] for message in sent]
    assert ids[0] == 7
    assert all(str(each).startswith("hookproxy:") for each in ids[1:])
    assert len(set(map(str, ids))) == 3
    assert response["id"] == 7
    assert [block["text"] for block in response["result"]["content"]] == ["third", "Tried again."]
    line = json.loads(audit.read_text())
    assert (line["repeats"], line["result"], len(line["hooks"])) == (2, "error", 3)


async def test_each_repetition_counts_against_managed_limits() -> None:
    settings = Settings(managed=Settings(limits=(Limit("write", 2, Per.SESSION, "limits[0]"),)))
    async with rig(repeating(FAILURE, 9), settings=settings) as one:
        await one.agent.send(CALL)
        for text in ("first", "second"):
            await exchange(one, text, failed=True)
        response = await one.agent.message()
    assert [block["text"] for block in response["result"]["content"]] == ["second"]


async def test_a_repeated_call_that_succeeds_is_seen_by_the_hooks_of_success(hook_inputs: HookInputs) -> None:
    redacts = stub(POST, replacement="clean")
    async with rig(repeating(FAILURE, 1), stub_group(redacts)) as one:
        await one.agent.send(CALL)
        await exchange(one, "busy", failed=True)
        await exchange(one, "SECRET")
        response = await one.agent.message()
    assert [block["text"] for block in response["result"]["content"]] == ["clean"]


@pytest.mark.parametrize("verdict", [{"permission": "deny"}, {"stop": True}])
async def test_what_a_hook_denied_is_never_repeated(verdict: dict[str, object]) -> None:
    async with rig(repeating(POST, 3, **verdict)) as one:
        await one.agent.send(CALL)
        await exchange(one, "done")
        assert (await one.agent.message())["id"] == 7


async def test_a_hook_that_failed_repeats_nothing() -> None:
    crash = replace(stub(POST, f"{prints(RETRY)}; exit 1"), max_retries=3)
    async with rig(stub_group(crash)) as one:
        await one.agent.send(CALL)
        await exchange(one, "done")
        assert (await one.agent.message())["id"] == 7


async def test_a_repeated_call_can_be_cancelled_under_the_agents_id() -> None:
    async with rig(repeating(POST, 1)) as one:
        await one.agent.send(CALL)
        await exchange(one, "done")
        again = json.loads(await one.server.line())
        await one.agent.send(
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"x"}}\n'
        )
        cancelled = json.loads(await one.server.line())
        assert cancelled["params"] == {"requestId": again["id"], "reason": "x"}
        await one.server.send(
            json.dumps({"jsonrpc": "2.0", "id": again["id"], "result": {"content": []}}).encode() + b"\n"
        )
        received, answered = await one.finish()
        assert (received, answered) == (b"", b"")


async def test_a_denying_hook_after_a_call_marks_the_result_as_an_error() -> None:
    async with rig(stub_group(stub(POST, permission="deny", feedback=["Hook feedback (denied):\nno"]))) as one:
        await one.agent.send(CALL)
        await exchange(one, "done")
        result = (await one.agent.message())["result"]
    assert result["isError"] is True
    assert [block["text"] for block in result["content"]] == ["done", "Hook feedback (denied):\nno"]


async def test_hidden_output_does_not_reach_the_agent() -> None:
    async with rig(stub_group(stub(POST, hides=True))) as one:
        await one.agent.send(CALL)
        await exchange(one, "SECRET")
        line = await one.agent.line()
    assert b"SECRET" not in line
    assert b"the hook stub hides its output" in line


async def test_a_hook_that_stops_all_calls_refuses_the_waiting_ones_and_the_record_says_so(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    os.mkfifo(tmp_path / "go")
    go = shlex.quote(str(tmp_path / "go"))
    stop = prints({"stop": True, "permission": "deny", "reason": "enough"})
    held = stub(PRE, f"if grep -q wait; then echo up > {go}; sleep 60; else read x < {go}; {stop}; fi")
    async with rig(stub_group(held), settings=Settings(audit_file=str(audit))) as one:
        await one.agent.send(CALL.replace(b'"a":1.0', b'"a":"wait"'), CALL.replace(b":7", b":8"))
        answers = [await one.agent.message(), await one.agent.message()]
    assert {each["id"] for each in answers} == {7, 8}
    for each in answers:
        assert each["result"]["isError"] is True
        assert "The hook wants you to stop here" in each["result"]["content"][0]["text"]
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(line["decision"], line["result"]) for line in lines] == [("deny", "refused")] * 2
    assert "stub stopped all calls: enough" in {line["reason"] for line in lines}
    assert [hook["outcome"] for line in lines if line["id"] == 7 for hook in line["hooks"]] == ["cancelled"]


async def test_an_answer_that_is_neither_result_nor_error_cannot_carry_hidden_output() -> None:
    async with rig(stub_group(stub(FAILURE, hides=True))) as one:
        await one.agent.send(CALL)
        await one.server.line()
        await one.server.send(b'{"jsonrpc":"2.0","id":7,"other":"SECRET"}\n')
        line = await one.agent.line()
    assert b"SECRET" not in line
    assert b"neither a result nor an error" in line


@pytest.mark.parametrize("result", [b'"x"', b"null", b"[]"])
async def test_a_denied_result_of_any_shape_is_not_a_defect(result: bytes) -> None:
    async with rig(stub_group(stub(POST, permission="deny", feedback=["no"]))) as one:
        await one.agent.send(CALL)
        await one.server.line()
        await one.server.send(b'{"jsonrpc":"2.0","id":7,"result":%b}\n' % result)
        assert (await one.agent.message())["result"]["isError"] is True
    assert not any("Traceback" in text for text in one.reports)


async def test_a_server_that_exits_in_a_repeated_call_leaves_no_earlier_response() -> None:
    async with rig(repeating(FAILURE, 1)) as one:
        await one.agent.send(CALL)
        await exchange(one, "first failure", failed=True)
        await one.server.line()
        one.proxy.handle_server_exit("The server has ended")
        response = await one.agent.message()
    assert response["error"]["message"].startswith("The server has ended. The tool was run and the server has answered")


async def test_a_response_to_a_repeated_call_that_can_be_read_in_two_ways_is_withheld() -> None:
    async with rig(repeating(FAILURE, 1), stub_group(stub(POST))) as one:
        await one.agent.send(CALL)
        await exchange(one, "busy", failed=True)
        again = json.loads(await one.server.line())["id"].encode()
        await one.server.send(
            b'{"jsonrpc":"2.0","id":"%b","id":"%b","result":{"content":["SECRET"]}}\n' % (again, again)
        )
        deep = b"[" * 5000 + b"]" * 5000
        await one.server.send(b'{"jsonrpc":"2.0","id":"%b","result":{"content":%b}}\n' % (again, deep))
        line = await one.agent.line()
    assert json.loads(line)["id"] == 7
    assert b"SECRET" not in line
    assert not any("Traceback" in text for text in one.reports)


# --- what the audit says ---


def lines_of(audit: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in audit.read_bytes().splitlines()]


async def test_a_call_whose_response_nobody_needs_is_recorded_as_sent_before_it_comes(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    settings = Settings(audit_file=str(audit), audit_results=Results.NONE)
    async with rig(group(hook("exit 0")), settings=settings) as proxied:
        await proxied.agent.send(CALL)
        assert await proxied.server.line() == CALL
        await idle(proxied)
        (line,) = lines_of(audit)
        assert (line["decision"], line["result"]) == ("allow", "sent")
        await proxied.server.send(ANSWER)
        assert await proxied.agent.line() == ANSWER
    assert len(lines_of(audit)) == 1


async def test_the_audit_that_nobody_asked_for_is_written_while_nothing_waits_for_it(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    settings = Settings(audit_file=str(audit), audit_default=True)
    async with rig(group(hook("exit 0")), settings=settings) as proxied:
        await call_and_response(proxied)
        proxied.proxy.policy.audit.note(SESSION, "a later line")
        assert ["note" in line for line in lines_of(audit)] == [False, True]
        await call_and_response(proxied)
        with anyio.fail_after(30):
            while len(lines_of(audit)) < 3:
                await anyio.lowlevel.checkpoint()
        await call_and_response(proxied)
    assert [line.get("call", "")[-2:] for line in lines_of(audit)] == ["-1", "", "-2", "-3"]


async def test_a_call_whose_response_a_hook_needs_is_recorded_with_its_result(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    settings = Settings(audit_file=str(audit), audit_results=Results.NONE)
    async with rig(group(hook("exit 0", POST)), settings=settings) as proxied:
        await call_and_response(proxied)
    assert [line["result"] for line in lines_of(audit)] == ["ok"]


@pytest.mark.parametrize("results", list(Results))
async def test_a_required_audit_has_a_line_before_the_server_gets_the_call(tmp_path: Path, results: Results) -> None:
    audit = tmp_path / "audit"
    settings = Settings(audit_file=str(audit), audit_required=True, audit_results=results)
    async with rig(group(hook("exit 0")), settings=settings) as proxied:
        await proxied.agent.send(CALL)
        assert await proxied.server.line() == CALL
        begun = lines_of(audit)[0]
        assert (begun["decision"], begun["result"], begun["arguments"]) == ("allow", "begun", {"a": 1.0})
        await proxied.server.send(ANSWER)
        assert await proxied.agent.line() == ANSWER
        await idle(proxied)
    first, last = lines_of(audit)
    assert (first["call"], last["result"]) == (last["call"], "sent" if results is Results.NONE else "ok")


async def test_a_refused_call_of_a_required_audit_has_one_line(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    settings = Settings(audit_file=str(audit), audit_required=True, deny=("write",), rule_places={"deny write": "f:1"})
    async with rig(settings=settings) as proxied:
        await proxied.agent.send(CALL)
        await proxied.agent.line()
    (line,) = lines_of(audit)
    assert [line[name] for name in ("result", "cause", "by", "place")] == ["refused", "rule", "write", "f:1"]
    assert line["reason"] == "it is about every call of this tool"


async def test_a_record_says_why_hooks_did_not_run(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    hooks = [hook("exit 0"), hook("exit 0", matcher="Bash"), hook("exit 1", FAILURE), hook("true", POST)]
    async with rig(group(*hooks), settings=Settings(audit_file=str(audit))) as proxied:
        await call_and_response(proxied)
    (line,) = lines_of(audit)
    assert [(one["event"], one["why"]) for one in line["skipped"]] == [
        ("PostToolUseFailure", "the call succeeded"),
        ("PreToolUse", "its matcher 'Bash' does not match the tool"),
    ]


async def test_a_hook_that_is_ended_with_its_call_is_recorded_with_its_time(tmp_path: Path) -> None:
    audit, started = tmp_path / "audit", tmp_path / "started"
    os.mkfifo(started)
    hangs = hook(f"echo > {started}; sleep 60")
    async with rig(group(hangs), settings=Settings(audit_file=str(audit))) as proxied:
        await proxied.agent.send(CALL)
        await anyio.Path(started).read_text()
        cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}\n'
        await proxied.agent.deliver(cancel)
        await idle(proxied)
    ((run,),) = [line["hooks"] for line in lines_of(audit)]
    assert run["ended"] == "cancelled"
    assert run["ms"] > 0


async def test_what_hooks_got_and_printed_is_recorded_as_far_as_configured(tmp_path: Path) -> None:
    hooks = [hook("cat >&2; echo '{}'"), hook(f"{prints({'systemMessage': 'hi'})}", POST)]
    found = {}
    for name, settings in {
        "digests": Settings(audit_arguments=Arguments.DIGEST),
        "masked": Settings(),
        "arguments": Settings(audit_arguments=Arguments.FULL),
        "full": Settings(audit_results=Results.FULL),
    }.items():
        audit = tmp_path / name
        async with rig(group(*hooks), settings=replace(settings, audit_file=str(audit))) as proxied:
            await call_and_response(proxied)
        (line,) = lines_of(audit)
        before, after = line["hooks"]
        assert json.loads(before["stderr"])["tool_input"] == {"a": 1.0}
        found[name] = [{"input", "stdout", "stdout_sha256", "input_sha256"} & set(run) for run in (before, after)]
        if name == "full":
            assert json.loads(before["input"])["tool_input"] == {"a": 1.0}
            assert json.loads(after["stdout"]) == {"systemMessage": "hi"}
    assert found == {
        "digests": [{"stdout_sha256"}, {"stdout_sha256"}],
        "masked": [{"stdout"}, {"stdout_sha256"}],
        "arguments": [{"input", "stdout"}, {"stdout_sha256", "input_sha256"}],
        "full": [{"input", "stdout"}, {"input", "stdout"}],
    }


async def test_an_audit_that_cannot_be_written_is_reported_once(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    audit.mkdir()
    async with rig(group(hook("exit 0")), settings=Settings(audit_file=str(audit))) as proxied:
        for _ in range(3):
            await call_and_response(proxied)
        await idle(proxied)
        assert [text for text in proxied.reports if "audit" in text] == [
            f"the audit log cannot be written: {audit}: Is a directory"
        ]


# --- PreMcpToolCall hooks ---

WITH_META = CALL.replace(b'"params":{', b'"params":{"_meta": {"t":1, "progressToken":3},')
META = Event.PRE_MCP_TOOL_CALL


async def test_a_hook_replaces_the_meta_of_a_call_that_is_allowed(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    first = stub(META, f"cat >>'{seen}'; " + "printf %s " + shlex.quote('{"meta":{"a":1}}'))
    second = stub(META, f"cat >>'{seen}'; " + "printf %s " + shlex.quote('{"meta":{"b":2}}'))
    async with rig(stub_group(first), stub_group(second)) as proxied:
        sent, answer = await call_and_response(proxied, call=WITH_META)
    assert sent == WITH_META.replace(b'{"t":1, "progressToken":3}', b'{"b":2,"progressToken":3}')
    assert answer == ANSWER
    assert [json.loads(line)["meta"] for line in seen.read_text().splitlines()] == [
        {"t": 1, "progressToken": 3},
        {"a": 1, "progressToken": 3},
    ]


async def test_meta_hooks_do_not_run_for_a_call_that_is_refused(tmp_path: Path) -> None:
    denies, runs = stub(PRE, permission="deny", reason="no"), stub(META, f"touch '{tmp_path}/ran'")
    async with rig(stub_group(denies, runs)) as proxied:
        await proxied.agent.send(CALL)
        assert "no" in text_of(await proxied.agent.line())
    assert not (tmp_path / "ran").exists()


async def test_a_meta_hook_that_gives_nothing_leaves_every_byte_of_the_line() -> None:
    async with rig(stub_group(stub(META))) as proxied:
        assert await call_and_response(proxied, call=WITH_META) == (WITH_META, ANSWER)


async def test_a_meta_hook_that_fails_closed_refuses_the_call() -> None:
    crashes = replace(stub(META, "exit 3"), on_failure=OnFailure.DENY)
    async with rig(stub_group(crashes)) as proxied:
        await proxied.agent.send(CALL)
        assert "exited with status 3" in text_of(await proxied.agent.line())


async def test_a_meta_that_may_be_read_in_two_ways_is_refused_if_a_hook_judges_it() -> None:
    async with rig(stub_group(stub(META))) as proxied:
        await proxied.agent.send(WITH_META.replace(b'"t":1', b'"t":{"a":1,"a":2}'))
        assert "cannot be judged" in text_of(await proxied.agent.line())


async def test_managed_meta_hooks_run_last_and_have_the_last_word() -> None:
    managed = replace(stub_group(stub(META, meta={"m": 1})), managed=True)
    async with rig(managed, stub_group(stub(META, meta={"u": 1}))) as proxied:
        sent, _ = await call_and_response(proxied)
    assert json.loads(sent)["params"]["_meta"] == {"m": 1}
