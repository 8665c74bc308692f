"""The responses of hooks for the person, and the lines that contain them."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import methods
from mcp_types.jsonrpc import JSONRPCResponse, jsonrpc_message_adapter

from hookproxy.jsonrpc import raw_json
from hookproxy.model.hooks import Elicitation, Ended, Event, HookResult, HookRun, HookSpec, Verdict
from hookproxy.model.settings import OnFailure, Settings
from hookproxy.protocol import elicitation_messages, input_rounds
from hookproxy.protocol.elicitation_messages import (
    ElicitationResponse,
    changed_response,
    checked_verdict,
    decide,
    report,
    response_line,
    result_of,
    stricter,
)
from hookproxy.protocol.responses import Members

FORM = Elicitation("Who?", schema=b'{"type":"object"}')
VISIT = Elicitation("Log in", mode="url", url="https://x")
LINE = b'{"jsonrpc": "2.0", "id":"\\u0037", "result": {"x":1.0, "action":"accept", "content": {"n":1.10}} }\n'


def hook_run(label: str = "a", *, fails_closed: bool = False, background: bool = False, **verdict: object) -> HookRun:
    spec = HookSpec("any", "f", Event.ELICITATION, label, fails_closed=fails_closed, background=background)
    return HookRun(spec, HookResult(Ended.EXITED), Verdict(**verdict))  # type: ignore[arg-type]


ACCEPT, CANCEL = hook_run("yes", action="accept", content=b'{"a":1}'), hook_run("stop", action="cancel")
DECLINE, NOTHING = hook_run("no", action="decline"), hook_run("silent")


@pytest.mark.parametrize(
    ("hook_runs", "action", "by"),
    [
        ([], "", ""),
        ([NOTHING], "", ""),
        ([NOTHING, ACCEPT], "accept", "yes"),
        ([ACCEPT, hook_run("later", action="accept")], "accept", "later"),
        ([CANCEL, ACCEPT], "cancel", "stop"),
        ([DECLINE, CANCEL, ACCEPT], "decline", "no"),
        ([ACCEPT, hook_run("end", stop=True)], "decline", "end"),
        ([hook_run("half", action="accept", failure="invalid output")], "", ""),
        ([hook_run("half", action="decline", failure="invalid output")], "decline", "half"),
        ([hook_run("odd", action="perhaps")], "", ""),
        ([ACCEPT, hook_run("closed", failure="crashed", fails_closed=True)], "decline", "closed"),
        ([hook_run("late", action="decline", background=True), ACCEPT], "accept", "yes"),
    ],
)
def test_decline_beats_cancel_beats_accept_and_a_failure_is_no_approval(
    hook_runs: list[HookRun], action: str, by: str
) -> None:
    answer = decide(hook_runs, Settings(), None)
    assert ((answer.action, answer.by.partition(" ")[0]) if answer else ("", "")) == (action, by)


@pytest.mark.parametrize(("rule", "action"), [("deny", "decline"), ("allow", ""), ("dialect", "")])
def test_a_failure_has_the_configured_consequence(rule: str, action: str) -> None:
    failure = [hook_run(failure="crashed")]
    for answer in (
        decide(failure, Settings(on_failure=OnFailure(rule)), None),
        decide(failure, Settings(), OnFailure(rule)),
    ):
        assert (answer.action if answer else "") == action


def test_the_stricter_response_of_two_groups_counts_and_else_the_later() -> None:
    yes, later, no = (
        ElicitationResponse("accept", by="1"),
        ElicitationResponse("accept", by="2"),
        ElicitationResponse("decline"),
    )
    assert stricter(None, None) is None
    assert stricter(yes, None) is stricter(None, yes) is yes
    assert stricter(yes, later) is later
    assert stricter(no, yes) is stricter(yes, no) is no


@pytest.mark.parametrize(
    ("verdict", "elicitation", "content", "failure"),
    [
        (Verdict(action="accept", content=b'{"a":[ "x"]}'), FORM, b'{"a":[ "x"]}', ""),
        (Verdict(action="accept"), FORM, b"{}", ""),
        (Verdict(action="accept"), Elicitation("", action="accept", content=b'{"a":1}'), None, ""),
        (Verdict(action="accept"), Elicitation("", action="decline"), b"{}", ""),
        (Verdict(action="accept", content=b"{}"), VISIT, None, ""),
        (Verdict(action="decline", content=b"{}"), FORM, None, ""),
        (Verdict(action="accept", content=b'{"a":{}}'), FORM, None, "gave content that a form cannot have: Expected"),
        (
            Verdict(action="accept", content=b'{"a":1,"a":2}'),
            FORM,
            None,
            "gave content that a form cannot have: the key",
        ),
    ],
)
def test_only_content_that_a_form_can_have_is_sent(
    verdict: Verdict, elicitation: Elicitation, content: bytes | None, failure: str
) -> None:
    settled_verdict = checked_verdict(verdict, elicitation, task=False)
    assert settled_verdict.content == content
    assert settled_verdict.failure.startswith(failure)
    assert bool(settled_verdict.failure) == bool(failure)


def test_an_elicitation_that_requests_a_task_cannot_be_accepted_at_once() -> None:
    assert checked_verdict(Verdict(action="accept"), FORM, task=True).failure
    assert not checked_verdict(Verdict(action="decline"), FORM, task=True).failure


ANSWERS = [
    ElicitationResponse("accept", b'{"a":1,"b":"\xc3\xa4","c":[ "x"\n],"d":true,"e":1.50}'),
    ElicitationResponse("accept"),
    ElicitationResponse("decline"),
    ElicitationResponse("cancel"),
]


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_a_response_is_valid_in_the_protocol_and_keeps_the_spelling_of_the_id(
    answer: ElicitationResponse, version: str
) -> None:
    line = response_line(b'"\\u0037x"', answer)
    assert line.startswith(b'{"jsonrpc":"2.0","id":"\\u0037x","result":')
    assert line.count(b"\n") == 1
    message = jsonrpc_message_adapter.validate_json(line)
    assert isinstance(message, JSONRPCResponse)
    methods.validate_client_result("elicitation/create", version, message.result)


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (ElicitationResponse("accept"), LINE),
        (ElicitationResponse("accept", b'{"n":\n2}'), LINE.replace(b'{"n":1.10}', b'{"n": 2}')),
        (ElicitationResponse("decline"), LINE.replace(b'"accept", "content": {"n":1.10}', b'"decline"')),
        (ElicitationResponse("cancel"), LINE.replace(b'"accept", "content": {"n":1.10}', b'"cancel"')),
    ],
)
def test_only_the_action_and_the_content_of_a_response_change(answer: ElicitationResponse, line: bytes) -> None:
    assert changed_response(LINE, answer) == line
    assert (changed_response(LINE, answer) is LINE) == (line == LINE)


def test_an_error_of_the_agent_stays_an_error() -> None:
    error = b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}'
    assert changed_response(error, ElicitationResponse("accept", b"{}")) is error


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.booleans() | st.lists(st.text()), max_size=5))
def test_any_values_arrive_unchanged(values: dict[str, object]) -> None:
    content = json.dumps(values).encode()
    answer = ElicitationResponse("accept", content)
    for line in (response_line(b"1", answer), changed_response(LINE, answer)):
        assert json.loads(line)["result"]["content"] == values


CALL = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"n":1.10},'
    b'"_meta":{},"inputResponses":{"old":{"action":"accept"}},"requestState":"old"}}\n'
)


def next_round(line: bytes, result: Members, answers: Mapping[str, ElicitationResponse]) -> bytes:
    return input_rounds.next_round(line, result, {name: result_of(answer) for name, answer in answers.items()})


def test_the_next_round_has_the_responses_and_the_servers_state_and_nothing_else_new() -> None:
    answers = {"who": ElicitationResponse("accept", b'{"name":"Ada"}'), "sure": ElicitationResponse("decline")}
    line = next_round(CALL, raw_json.fields(b'{"resultType":"input_required","requestState":"s\\u0031"}'), answers)
    assert line == CALL.replace(
        b'{"old":{"action":"accept"}}',
        b'{"who":{"action":"accept","content":{"name":"Ada"}},"sure":{"action":"decline"}}',
    ).replace(b'"old"', b'"s\\u0031"')
    params = json.loads(next_round(CALL, {}, answers))["params"]
    assert "requestState" not in params
    first = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}\n'
    assert json.loads(next_round(first, {}, answers))["params"].keys() == {"name", "inputResponses"}


def test_the_next_round_is_valid_in_the_protocol() -> None:
    info = {"name": "a", "version": "1"}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": info,
    }
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": {}, "_meta": meta}}
    line = next_round(json.dumps(call).encode(), raw_json.fields(b'{"requestState":"s"}'), {"who": ANSWERS[0]})
    methods.validate_client_request("tools/call", "2026-07-28", json.loads(line)["params"])


def test_the_next_hooks_get_the_response_so_far() -> None:
    elicitation = Elicitation("Who?", action="accept", content=b'{"n":1}')
    assert elicitation_messages.with_response(elicitation, ElicitationResponse("accept")) == elicitation
    assert (
        elicitation_messages.with_response(elicitation, ElicitationResponse("accept", b'{"n": 2}')).content
        == b'{"n":2}'
    )
    assert elicitation_messages.with_response(elicitation, ElicitationResponse("decline")) == Elicitation(
        "Who?", action="decline"
    )


def test_a_report_names_the_action_and_never_the_values() -> None:
    answer = ElicitationResponse("accept", b'{"password":"x"}', "guard (f)")
    assert report(FORM, answer) == "guard (f) answered the server's request 'Who?' for the person: accept"
    assert report(Elicitation("Who?", action="accept"), ElicitationResponse("decline", by="guard (f)")) == (
        "guard (f) changed the response to the server's request 'Who?': accept, decline"
    )
