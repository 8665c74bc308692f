"""The ways past the full reading of a line: what may take them, and what they leave in the tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

import pytest
from msgspec import Raw

from hookproxy.model.aliases import Alias
from hookproxy.protocol import calls, inflight
from hookproxy.protocol.actions import (
    PASS,
    ApprovalAnswered,
    CallAnswered,
    CancelCall,
    Dropped,
    Edited,
    HookToolCallAnswered,
    NotificationHeld,
    Refused,
    Send,
    StartCall,
    ToolsListed,
)
from hookproxy.protocol.elicitations import Elicitations
from hookproxy.protocol.inflight import RequestKind
from hookproxy.protocol.roots import Roots
from hookproxy.protocol.router import Router


def line(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}, separators=(",", ":")).encode() + b"\n"


def tool_call(tool: str = "safe", number: object = 8) -> bytes:
    return line(id=number, method="tools/call", params={"name": tool, "arguments": {}})


def pong(number: object = 8) -> bytes:
    return line(id=number, result={})


def opened(judged: Callable[[str], bool] | None = lambda tool: tool == "danger") -> Router:
    """A router of a session that has been opened."""
    router = Router(judged)
    router.from_agent(line(id=0, method="initialize", params={"protocolVersion": "2025-11-25"}))
    router.from_server(pong(0))
    router.from_agent(line(method="notifications/initialized"))
    assert router.handshake.opened
    return router


def judged_call(router: Router, number: object = 7) -> calls.Call:
    action = router.from_agent(tool_call("danger", number))
    assert isinstance(action, StartCall)
    assert router.calls.release(action.call)
    return action.call


# --- calls ---


def test_a_call_of_a_tool_without_hooks_is_noted_without_being_read() -> None:
    router = opened()
    assert not router.scan_call(tool_call()), "nobody has found out yet whether it is judged"
    assert router.from_agent(tool_call()) is PASS
    assert router.from_server(pong()) is PASS
    assert router.scan_call(tool_call())
    assert router.requests == {b"8": RequestKind.OTHER}
    assert not router.scan_call(tool_call()), "its id is in flight"
    assert not router.scan_call(tool_call("danger", 9))
    assert not router.scan_call(tool_call(number="9")), "an id with two spellings"
    assert not router.scan_call(line(id=9, method="ping"))
    assert router.requests == {b"8": RequestKind.OTHER}


def test_a_new_policy_decides_with_its_own_aliases_elicitations_and_depth() -> None:
    router = opened()
    alias = Alias("danger", "Bash")
    observed = Elicitations()
    router.change_policy(lambda _tool, _arguments: alias, observed, 3)
    assert router.elicitations is observed
    assert judged_call(router).alias == alias
    deep = line(id=9, method="tools/call", params={"name": "danger", "arguments": {"a": [[[[]]]]}})
    assert isinstance(router.from_agent(deep), Refused)


# --- responses ---


@pytest.mark.parametrize(
    "response",
    [line(id=8, method="ping"), line(method="ping"), pong("8"), pong(9), pong(None)],
)
def test_only_a_response_with_the_plain_id_of_a_request_is_noted_without_being_read(response: bytes) -> None:
    router = opened()
    router.from_agent(tool_call())
    assert router.scan_response(response) == b""
    assert b"8" in router.requests
    assert router.scan_response(pong()) == b"8"
    assert router.requests == {}
    assert router.scan_response(pong()) == b""


def test_no_response_is_noted_without_being_read_while_one_is_judged() -> None:
    router = opened()
    router.from_agent(tool_call())
    judged_call(router)
    assert router.scan_response(pong()) == b""
    assert not router.pass_response(b"8")
    assert not router.may_pass_early(b"8")


def test_which_responses_may_pass_before_their_end() -> None:
    router = opened()
    router.from_agent(line(id=8, method="resources/read", params={"uri": "x"}))
    router.from_agent(line(id=9, method="tools/list"))
    assert router.may_pass_early(b"8")
    assert not router.may_pass_early(b"9"), "it is read"
    assert not router.may_pass_early(b"10"), "nobody has asked"
    call = router.from_agent(tool_call("danger", 11))
    assert isinstance(call, StartCall)
    assert router.calls.release(call.call, unseen=True)
    assert not router.may_pass_early(b"11"), "it belongs to a judged call"
    assert router.may_pass_early(b"8")
    router.from_agent(line(id="8", method="ping"))
    assert not router.may_pass_early(b"8"), "two requests may mean this id"


def test_a_response_may_pass_in_pieces_only_to_a_request_that_waits_for_it() -> None:
    router = opened()
    router.from_agent(line(id=8, method="resources/read", params={"uri": "x"}))
    router.from_agent(line(id=9, method="resources/read", params={"uri": "x"}))
    assert router.may_pass_in_pieces(b'{"jsonrpc":"2.0","id":8,"result":{')
    assert not router.may_pass_in_pieces(b'{"jsonrpc":"2.0","id":10,"result":{')
    assert router.may_pass_in_pieces(b'{"jsonrpc":"2.0","result":{"contents":['), "the id may come last"
    router.requests.released[b"9"] = b"9"
    assert router.may_pass_in_pieces(b'{"jsonrpc":"2.0","id":8,"result":{')
    assert not router.may_pass_in_pieces(b'{"jsonrpc":"2.0","id":9,"result":{')
    assert not router.may_pass_in_pieces(b'{"jsonrpc":"2.0","result":{"contents":[')


def test_only_the_notification_that_the_handshake_is_over_allows_requests_of_our_own() -> None:
    router = Router(lambda _tool: True)
    router.from_agent(line(id=0, method="initialize", params={"protocolVersion": "2025-11-25"}))
    router.handshake.note_result({"protocolVersion": Raw(b'"2025-11-25"')})
    router.from_agent(line(method="notifications/roots/list_changed"))
    assert router.handshake.meta_for_own_request(None) is None
    router.from_agent(line(method="notifications/initialized"))
    assert router.handshake.meta_for_own_request(None) == {}


def test_notifications_wait_while_a_call_is_judged_or_its_task_runs() -> None:
    router = opened()
    log = line(method="notifications/message", params={"level": "info", "data": "secret"})
    assert router.from_server(log) is PASS
    call = judged_call(router)
    call.holds_notifications = True
    assert isinstance(router.from_server(log), NotificationHeld)
    call.output_passes = True
    assert router.calls.finish(call)
    assert router.held.release(call, router.tasks).lines == (log,)


# --- requests of our own ---


@pytest.mark.parametrize(
    ("members", "answer"),
    [
        ({"result": {"action": "accept"}}, b'{"action":"accept"}'),
        ({"error": {"code": 1, "message": "m"}}, b""),
        ({}, b""),
    ],
)
def test_the_answer_to_our_approval_request_is_ours(members: dict[str, object], answer: bytes) -> None:
    own = calls.new_id()
    action = opened().from_agent(line(id=json.loads(own), **members))
    assert action == ApprovalAnswered(calls.id_key(own), answer)


def test_a_response_of_the_agent_without_an_id_is_nobodys() -> None:
    assert opened().from_agent(line(result={})) is PASS


def test_the_response_to_a_hooks_tool_call_is_the_hooks_and_a_second_one_is_dropped() -> None:
    router = opened()
    key = calls.id_key(own := calls.new_id())
    router.requests.hook_tool_calls.add(key)
    action = router.from_server(line(id=json.loads(own), result={"content": []}))
    assert isinstance(action, HookToolCallAnswered)
    assert action.key == key
    assert action.response is not None
    assert action.response.result is not None
    assert bytes(action.response.result["content"]) == b"[]"
    assert isinstance(router.from_server(line(id=json.loads(own), result={})), Dropped)


# --- cancelled calls ---


def test_the_late_response_to_a_cancelled_judged_call_is_dropped_with_its_id_in_the_sentence() -> None:
    router = opened()
    judged_call(router)
    assert isinstance(router.from_agent(line(method="notifications/cancelled", params={"requestId": 7})), CancelCall)
    assert router.from_server(pong(7)) == Dropped("the late response to a cancelled judged call: 7")


def test_a_judged_call_with_an_id_that_is_not_utf_8_can_still_be_named() -> None:
    router = opened()
    router.requests.bar(b'"\xff"')
    assert router._blocked_response(b'"\xff"', None) == Dropped(
        'the late response to a cancelled judged call: "\N{REPLACEMENT CHARACTER}"'
    )


@pytest.mark.parametrize("params", [{}, {"params": {}}, {"params": {"requestId": None}}])
def test_a_cancellation_that_names_no_request_passes(params: dict[str, object]) -> None:
    router = opened()
    router.from_agent(tool_call())
    assert router.from_agent(line(method="notifications/cancelled", **params)) is PASS
    assert router.requests == {b"8": RequestKind.OTHER}


def test_a_cancellation_that_cannot_be_read_is_refused_with_the_reason() -> None:
    action = opened().from_agent(line(method="notifications/cancelled", params=[7]))
    assert isinstance(action, Refused)
    assert action.why.startswith("The cancellation cannot be read: ")


def test_an_unclear_response_names_the_reason_and_the_request_that_gets_an_error() -> None:
    router = opened()
    router.from_agent(tool_call())
    why = "a message that readers may take for different responses while a response is withheld"
    assert router.dropped_as_unclear(b"8") == Dropped(why, b"8")
    assert router.dropped_as_unclear(b"8") == Dropped(why, b"")
    assert router.dropped_as_unclear(b"") == Dropped(why, b"")


# --- without hooks ---


def test_without_hooks_the_requests_are_noted_and_nothing_else() -> None:
    router = Router(None)
    assert router.from_agent(line(id="a", method="tools/list")) is PASS
    assert router.requests == {b"a": RequestKind.TOOLS_LIST}
    router.from_agent(pong(5))
    router.from_agent(line(method="notifications/initialized"))
    router.from_agent(b"not JSON\n")
    router.from_agent(line(id=4, method=["ping"]))
    assert b"5" not in router.requests
    assert router.requests.unanswered()[0] == b'"a"'


def test_without_hooks_the_names_of_called_tools_are_noted() -> None:
    router = Router(None)
    router.read_from_agent(tool_call("write"))
    router.read_from_agent(line(id=2, method="ping", params={"name": "not a tool"}))
    router.read_from_agent(line(id=3, method="tools/call"))
    router.read_from_agent(line(id=4, method="tools/call", params={"name": 5}))
    router.read_from_agent(line(id=5, method="tools/call", params={}))
    assert [*router.judged_tools] == ["write", ""]


# --- batches ---


def batch(*lines: bytes) -> bytes:
    return b"[%b]\n" % b",".join(each.strip() for each in lines)


def refusal(router: Router, text: bytes) -> str:
    action = router.from_agent(text)
    assert isinstance(action, Refused)
    return action.why


def dropping(router: Router, text: bytes) -> str:
    action = router.from_server(text)
    assert isinstance(action, Dropped)
    return action.why


def test_why_a_batch_of_the_agent_is_refused() -> None:
    router = opened()
    judged_call(router)
    ping, unnamed = line(id=7, method="ping"), line(result={})
    assert refusal(router, batch(ping)) == "A request in a batch has the id of a tool call that may still be answered."
    own = line(id=json.loads(calls.new_id()), result={})
    assert refusal(router, batch(unnamed, own)) == (
        "A batch contains a response to hookproxy's approval request: send it as a separate message."
    )
    assert router.from_agent(batch(unnamed)) is PASS
    assert router.from_agent(b" \t" + batch(unnamed)) is PASS


def test_a_cancellation_in_a_batch_cancels_and_all_others_are_noted() -> None:
    router = opened()
    cancelled = line(method="notifications/cancelled", params={"requestId": 99})
    assert router.from_agent(batch(cancelled)) is PASS
    assert router.from_agent(batch(line(id="b", method="tools/list"), line(id=3, method="ping"))) is PASS
    assert router.requests == {b"b": RequestKind.TOOLS_LIST, b"3": RequestKind.OTHER}
    assert router.requests.unanswered() == [b'"b"', b"3"]
    call = judged_call(router)
    assert router.from_agent(batch(line(method="notifications/cancelled", params={"requestId": 7}))) == CancelCall(
        call, forward=True
    )


def test_why_a_batch_of_the_server_is_dropped() -> None:
    router = opened()
    router.from_agent(tool_call())
    call = judged_call(router)
    call.holds_notifications = True
    log = line(method="notifications/message", params={"level": "info", "data": "x"})
    assert dropping(router, batch(log)) == "a batch with a notification that may be about a judged call"
    assert dropping(router, batch(pong(7))) == (
        "a batch with the response to a judged call, or a request that hooks judge"
    )
    assert dropping(router, batch(pong(55))) == "a batch with a response to no request in flight"
    assert router.from_server(batch(pong(8))) is PASS
    assert router.from_server(pong(7)) == CallAnswered(call)


def test_the_late_response_to_another_cancelled_request_passes_in_a_batch() -> None:
    router = opened()
    router.from_agent(tool_call())
    router.from_agent(line(method="notifications/cancelled", params={"requestId": 8}))
    assert router.from_server(batch(pong(8))) is PASS
    assert dropping(router, batch(pong(8))) == "a batch with a response to no request in flight"


def test_a_list_of_tools_is_read_only_where_calls_are_judged() -> None:
    for router in (opened(), Router(None)):
        router.from_agent(line(id=8, method="tools/list"))
        action = router.from_server(line(id=8, result={"tools": [{"name": "t"}]}))
        assert isinstance(action, ToolsListed) == router._judges_calls


# --- why a message goes no further ---


def test_a_refusal_names_the_reason_and_has_the_id_of_the_message() -> None:
    router = opened()
    judged_call(router)
    assert router.from_agent(line(id=7, method="ping")) == Refused(
        "Its id is the id of a tool call that may still be answered.", b"7"
    )
    action = router.from_agent(tool_call("danger", 7))
    assert action == Refused("Its id is the id of a request that is in flight or cancelled.", b"7")


def test_a_judged_call_cannot_have_the_id_of_a_cancelled_request_that_may_still_be_answered() -> None:
    router = opened()
    router.from_agent(line(id=8, method="ping"))
    router.from_agent(line(method="notifications/cancelled", params={"requestId": 8}))
    assert router.from_agent(tool_call("danger", 8)) == Refused(
        "A cancelled request with its id may still be answered.", b"8"
    )
    assert router.from_server(pong(8)) is PASS
    assert isinstance(router.from_agent(tool_call("danger", 8)), StartCall)


def test_after_too_many_cancelled_calls_a_new_session_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    router = opened()
    monkeypatch.setattr(inflight, "_MAX_BARRED_BYTES", 0)
    assert router.from_agent(tool_call("danger", 8)) == Refused(
        "Too many calls of this session were cancelled. Start a new session.", b"8"
    )


def test_a_message_with_very_many_values_is_refused_with_the_limit() -> None:
    many = b'{"jsonrpc":"2.0","id":1,"method":"x","params":[' + b"0," * calls.MAX_VALUES + b"0]}\n"
    action = opened().from_agent(many)
    assert action == Refused(f"It has more than {calls.MAX_VALUES} JSON values: more than hooks can judge.")


def test_a_line_that_is_not_json_is_refused_with_what_is_wrong_with_it() -> None:
    action = opened().from_agent(b"hello\n")
    assert isinstance(action, Refused)
    assert action.unreadable
    assert action.why.startswith("The line is ")
    assert "None" not in action.why


def test_responses_that_nobody_may_have_are_named() -> None:
    router = opened()
    assert router.from_server(pong(55)) == Dropped("a response to no request in flight: 55")
    assert isinstance(router.from_agent(tool_call("danger", 7)), StartCall)
    assert router.from_server(pong(7)) == Dropped("a second or early response to the judged call 7")


@pytest.mark.parametrize("judged", [True, False])
def test_the_id_of_a_call_comes_back_as_it_was_spelled(judged: bool) -> None:
    router = opened()
    action = router.from_agent(tool_call("danger" if judged else "safe", "8"))
    if judged:
        assert isinstance(action, StartCall)
        assert action.call.id == b'"8"'
    else:
        assert action is PASS
        assert router.requests.unanswered() == [b'"8"']


def test_a_session_that_has_not_begun_takes_no_way_past_the_reading() -> None:
    router = Router(lambda tool: tool == "danger")
    router.judged_tools.find_out("safe")
    assert router.from_agent(tool_call()) is PASS
    assert router.handshake.opened, "its first request has been noted"
    unhooked = Router(None)
    unhooked.judged_tools.find_out("safe")
    assert unhooked.from_agent(tool_call()) is PASS
    assert not unhooked.handshake.opened


def test_a_call_with_a_state_of_ours_is_judged_whatever_its_tool() -> None:
    router = opened()
    router.is_own_state = "ours".__eq__
    for state, judged in (("theirs", False), ("ours", True)):
        text = line(id=8, method="tools/call", params={"name": "safe", "inputResponses": {}, "requestState": state})
        action = router.from_agent(text)
        assert isinstance(action, StartCall) is judged
        router.from_server(pong(8))
    assert isinstance(action, StartCall)
    assert action.call.has_own_state
    plain = Router(lambda _tool: True)
    assert plain.is_own_state("anything") is False


def test_a_response_is_a_line_as_it_came_unless_it_begins_with_blanks_that_json_has_not() -> None:
    for blank, left in ((b" ", b" "), (b"\v", b""), (b"\f", b"")):
        router = opened()
        call = judged_call(router)
        assert router.from_server(blank + pong(7)) == CallAnswered(call)
        assert call.response_line == left + pong(7)


# --- roots ---


def with_roots(router: Router) -> Router:
    router.roots = Roots([("file:///srv/data", "data")])
    return router


def test_what_an_agent_says_of_its_roots_goes_nowhere() -> None:
    router = with_roots(opened())
    changed = line(method="notifications/roots/list_changed")
    assert router.from_agent(changed) == Dropped(
        "the agent's notifications about its roots: the configuration says what they are"
    )
    assert refusal(router, batch(changed)) == (
        "A message in a batch may be about roots: send it as a separate message."
    )


def test_what_cannot_be_read_of_roots_is_refused_with_the_id() -> None:
    twin = b'{"jsonrpc":"2.0","id":5,"result":{"roots":[]},"method":"ping"}\n'
    action = with_roots(opened()).from_agent(twin)
    assert action == Refused(
        "What it says of roots cannot be read: some readers take it for a request, and others for a response.", b"5"
    )


META: Final[dict[str, object]] = {"io.modelcontextprotocol/clientCapabilities": {"roots": {}}}


def test_a_message_with_edited_roots_is_sent_or_judged_as_the_server_gets_it() -> None:
    router = with_roots(opened())
    router.roots = Roots([])
    ping = line(id=5, method="ping", params={"_meta": META})
    sent = router.from_agent(ping)
    assert isinstance(sent, Send)
    assert b'"roots"' not in sent.line
    call = line(id=6, method="tools/call", params={"name": "danger", "arguments": {}, "_meta": META})
    edited = router.from_agent(call)
    assert isinstance(edited, Edited)
    assert isinstance(edited.action, StartCall)
    assert b'"roots"' not in edited.line


def test_a_call_whose_meta_may_name_roots_takes_no_way_past_the_reading() -> None:
    router = opened()
    router.judged_tools.find_out("safe")
    named = line(id=6, method="tools/call", params={"name": "safe", "arguments": {}, "_meta": META})
    other = line(id=7, method="tools/call", params={"name": "safe", "arguments": {}, "_meta": {"a": 1}})
    roots_in_arguments = line(id=8, method="tools/call", params={"name": "safe", "arguments": {"roots": 1}})
    assert router.scan_call(named), "nobody replaces the roots"
    with_roots(router)
    router.requests.clear()
    assert not router.scan_call(named)
    assert router.scan_call(other)
    assert router.scan_call(roots_in_arguments)


# --- sentences of batches, and readers that differ ---


def test_a_batch_with_the_answer_to_an_elicitation_is_refused_with_the_reason() -> None:
    router = Router(lambda _tool: True, Elicitations(guarded=True))
    asked = line(id=5, method="elicitation/create", params={"message": "Sure?"})
    router.from_server(asked)
    assert refusal(router, batch(line(id=5, result={"action": "accept"}))) == (
        "A batch contains a response to an elicitation that hooks judge: send it as a separate message."
    )


def test_a_batch_with_the_end_of_a_judged_calls_task_is_dropped_with_the_reason() -> None:
    router = opened()
    action = router.from_agent(
        line(id=7, method="tools/call", params={"name": "danger", "arguments": {}, "task": {"ttl": 1}})
    )
    assert isinstance(action, StartCall)
    assert router.calls.release(action.call)
    ended = line(method="notifications/tasks", params={"taskId": "t", "result": {}})
    assert dropping(router, batch(ended)) == "a batch with a notification about a judged call's task"


def test_an_uncertain_response_in_a_batch_is_dropped_while_a_response_is_withheld() -> None:
    router = opened()
    judged_call(router)
    router.from_agent(line(id=8, method="ping"))
    uncertain = b'{"jsonrpc":"2.0","id":8,"result":{},"ID":7}'
    assert dropping(router, batch(uncertain)) == (
        "a batch with the response to a judged call, or a request that hooks judge"
    )


def test_an_uncertain_response_to_the_judged_call_itself_ends_the_call() -> None:
    router = opened()
    call = judged_call(router)
    router.from_agent(line(id=8, method="ping"))
    assert router.from_server(b'{"jsonrpc":"2.0","id":7,"result":{},"result":{}}\n') == CallAnswered(call)
    assert isinstance(router.from_server(b'{"jsonrpc":"2.0","id":8,"result":{},"result":{}}\n'), Dropped)


def test_an_approval_that_has_a_result_and_an_error_is_no_approval() -> None:
    own = calls.new_id()
    both = line(id=json.loads(own), result={"action": "accept"}, error={"code": 1, "message": "m"})
    assert opened().from_agent(both) == ApprovalAnswered(calls.id_key(own), b"")


def test_calls_that_nobody_judges_are_counted() -> None:
    router = opened()
    for number in range(3):
        assert router.from_agent(tool_call(number=f"n{number}")) is PASS
    assert router.requests.unjudged_calls == 3
    judged_call(router)
    assert router.requests.unjudged_calls == 3
