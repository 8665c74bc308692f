"""The action for each line, case by case; `random/test_router.py` has random schedules."""

from __future__ import annotations

from typing import Final

import pytest

from hookproxy.jsonrpc import raw_json
from hookproxy.model.aliases import Alias
from hookproxy.model.hooks import Elicitation, Tool
from hookproxy.protocol.actions import (
    PASS,
    CallAnswered,
    CancelCall,
    Dropped,
    ElicitationAnswered,
    ElicitationRequested,
    InitializeAnswered,
    NotJson,
    Refused,
    Send,
    StartCall,
    ToolsListed,
)
from hookproxy.protocol.calls import Call, Phase
from hookproxy.protocol.elicitations import Elicitations
from hookproxy.protocol.router import Router

CALL: Final = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"danger","arguments":{"a":1}}}\n'
SAFE: Final = b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"safe"}}\n'
PING: Final = b'{"jsonrpc":"2.0","id":9,"method":"ping"}\n'
CANCEL: Final = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}\n'
ANSWER: Final = b'{"jsonrpc":"2.0","id":7,"result":{"content":[]}}\n'


@pytest.fixture
def router() -> Router:
    return Router(lambda tool: tool == "danger")


def start(router: Router, line: bytes = CALL) -> Call:
    effect = router.from_agent(line)
    assert isinstance(effect, StartCall)
    return effect.call


def refusal(router: Router, line: bytes) -> Refused:
    effect = router.from_agent(line)
    assert isinstance(effect, Refused)
    return effect


def test_a_judged_call_is_one_line_for_every_reader_and_as_it_came_if_the_server_reads_no_lines() -> None:
    line = CALL.replace(b'"params":{', '"params":{"x":\r"\u2028",'.encode())
    for as_line, expected in (
        (raw_json.one_line, CALL.replace(b'"params":{', b'"params":{"x": "\\u2028",')),
        (bytes, line),
    ):
        router = Router(lambda _tool: True)
        router.as_line = as_line
        action = router.from_agent(line)
        assert isinstance(action, StartCall)
        assert action.call.line == expected


def test_a_judged_call_is_held_until_it_is_released(router: Router) -> None:
    call = start(router)
    assert (call.id, call.tool, call.arguments, call.line) == (b"7", "danger", b'{"a":1}', CALL)
    assert isinstance(router.from_server(ANSWER), Dropped), "an answer before the question"
    assert router.calls.release(call)
    assert router.from_server(ANSWER) == CallAnswered(call)
    assert call.response_line == ANSWER
    assert isinstance(router.from_server(ANSWER), Dropped), "a second answer"
    assert router.calls.finish(call)
    assert not router.calls.finish(call)
    assert isinstance(router.from_server(ANSWER), Dropped), "a third one"


def test_a_repeated_call_has_a_new_id_and_only_its_response_counts(router: Router) -> None:
    call = start(router)
    assert not router.calls.prepare_retry(call), "before there is an answer"
    router.calls.release(call)
    assert router.from_server(ANSWER) == CallAnswered(call)
    assert router.calls.prepare_retry(call)
    first = call.sent_id
    assert first.startswith(b'"hookproxy:')
    again = ANSWER.replace(b"7", first)
    assert isinstance(router.from_server(again), Dropped), "not forwarded yet"
    assert router.calls.release(call)
    assert isinstance(router.from_server(ANSWER), Dropped), "under the first id, a second time"
    assert router.from_server(again) == CallAnswered(call)
    assert router.calls.prepare_retry(call)
    assert call.sent_id != first
    assert isinstance(router.from_server(again), Dropped), "under the second id, a second time"
    assert router.calls.finish(call)
    assert not router.calls


def test_a_repeated_call_that_the_agent_cancels_gets_no_late_response(router: Router) -> None:
    call = start(router)
    router.calls.release(call)
    router.from_server(ANSWER)
    router.calls.prepare_retry(call)
    router.calls.release(call)
    assert router.from_agent(CANCEL) == CancelCall(call, True)
    assert not router.calls
    assert isinstance(router.from_server(ANSWER.replace(b"7", call.sent_id)), Dropped)
    assert not router.calls.prepare_retry(call)


def test_elicitations_are_reported_if_hooks_observe_them() -> None:
    elicitation = b'{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{"message":"Sure?"}}\n'
    answer = b'{"jsonrpc":"2.0","id":5,"result":{"action":"accept"}}\n'
    evaluation = Router(lambda tool: tool == "danger", Elicitations())
    assert not evaluation.scan_from_server(elicitation)
    assert not evaluation.may_pass_in_pieces(elicitation[:40]), "a long elicitation must be read in full"
    evaluation.from_agent(PING)
    assert evaluation.may_pass_in_pieces(b'{"jsonrpc":"2.0","id":9,"result":{"contents":['), "an answer is no question"
    asked, replied = evaluation.from_server(elicitation), evaluation.from_agent(answer)
    assert isinstance(asked, ElicitationRequested)
    assert isinstance(replied, ElicitationAnswered)
    assert replied.pending is asked.pending
    assert replied.elicitation == Elicitation("Sure?", action="accept")
    assert evaluation.from_agent(answer) is PASS
    unobserved = Router(lambda tool: tool == "danger")
    assert unobserved.from_server(elicitation) is PASS
    assert unobserved.from_agent(answer) is PASS


def test_no_elicitation_and_no_response_bypasses_its_hooks_in_a_batch() -> None:
    elicitation = b'{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{"message":"Sure?"}}'
    answer = b'{"jsonrpc":"2.0","id":5,"result":{"action":"accept"}}'
    guarded = Router(lambda tool: tool == "danger", Elicitations(guarded=True))
    assert isinstance(guarded.from_server(b"[%b]\n" % elicitation), Dropped)
    assert isinstance(guarded.from_server(elicitation + b"\n"), ElicitationRequested)
    assert isinstance(guarded.from_agent(b"[%b]\n" % answer), Refused)
    observing = Router(lambda tool: tool == "danger", Elicitations())
    assert observing.from_server(b"[%b]\n" % elicitation) is PASS
    observing.from_server(elicitation + b"\n")
    assert observing.from_agent(b"[%b]\n" % answer) is PASS


def test_a_line_that_concerns_no_hook_passes(router: Router) -> None:
    for line in (PING, SAFE, b'{"jsonrpc":"2.0","method":"notifications/x"}\n', b"\n", b" \r\n"):
        assert router.from_agent(line) is PASS
    for line in (
        PING.replace(b":9", b":8").replace(b'"method":"ping"', b'"result":{}'),
        PING.replace(b'"method":"ping"', b'"error":{"code":1,"message":""}'),
        b'{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage"}\n',
        b'{"jsonrpc":"2.0","method":"notifications/progress"}\n',
        b"\r\n",
        b'[{"jsonrpc":"2.0","method":"notifications/x"}]\n',
    ):
        assert router.from_server(line) is PASS


@pytest.mark.parametrize(
    "line",
    [
        PING.replace(b"9", b"7"),
        PING.replace(b"9", b'"7"'),
        CALL,
        SAFE.replace(b"8", b'"7"'),
        b"[%b]\n" % PING.replace(b"9", b'"\\u0037"').strip(),
    ],
)
def test_no_other_request_can_have_the_id_of_a_judged_call_in_flight(router: Router, line: bytes) -> None:
    call = start(router)
    assert "id" in refusal(router, line).why
    router.calls.release(call)
    assert "id" in refusal(router, line).why
    router.from_server(ANSWER)
    assert "id" in refusal(router, line).why
    router.calls.finish(call)
    assert not isinstance(router.from_agent(line), Refused)


def test_a_call_with_the_id_of_another_request_in_flight_is_refused(router: Router) -> None:
    router.from_agent(PING)
    assert refusal(router, CALL.replace(b":7", b":9")).id == b"9"
    assert refusal(router, SAFE.replace(b":8", b':"9"')).id == b'"9"'
    router.from_server(b'{"id":9,"result":{}}\n')
    start(router, CALL.replace(b":7", b":9"))


def test_requests_with_the_integer_id_1_and_the_string_id_1_both_get_their_responses(router: Router) -> None:
    """They are different ids to JSON-RPC, and no hook is concerned."""
    assert router.from_agent(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n') is PASS
    assert router.from_agent(b'{"jsonrpc":"2.0","id":"1","method":"ping"}\n') is PASS
    assert router.from_server(b'{"jsonrpc":"2.0","id":1,"result":{}}\n') is PASS
    assert router.from_server(b'{"jsonrpc":"2.0","id":"1","result":{}}\n') is PASS


@pytest.mark.parametrize("spelling", [b"7", b'"7"', b'"\\u0037"'])
def test_a_cancelled_call_gets_no_response(router: Router, spelling: bytes) -> None:
    call = start(router)
    effect = router.from_agent(CANCEL.replace(b":7", b":" + spelling))
    assert effect == CancelCall(call, forward=False)
    assert call.phase is Phase.CANCELLED
    assert not router.calls.release(call)
    assert not router.calls.finish(call)
    assert isinstance(router.from_server(ANSWER), Dropped)


def test_the_server_gets_the_cancellation_of_a_call_that_it_has(router: Router) -> None:
    call = start(router)
    router.calls.release(call)
    assert router.from_agent(CANCEL) == CancelCall(call, forward=True)
    assert isinstance(router.from_server(ANSWER), Dropped)
    assert not router.calls.finish(call)
    call = start(router, CALL.replace(b":7", b":70"))
    router.calls.release(call)
    router.from_server(ANSWER.replace(b":7", b":70"))
    assert router.from_agent(CANCEL.replace(b":7", b":70")) == CancelCall(call, forward=True)
    assert not router.calls.finish(call), "its answer is with the hooks, and stays there"


def test_a_response_without_hooks_passes_unchanged_and_only_once(router: Router) -> None:
    call = start(router)
    assert router.calls.release(call, unseen=True)
    assert router.pending
    assert not router.may_pass_in_pieces(b'{"jsonrpc":"2.0","id":7,"result":'), "its end must be seen"
    assert not router.may_pass_in_pieces(b'{"result":')
    assert isinstance(router.from_agent(CALL), Refused), "its id is taken until then"
    assert isinstance(router.from_agent(PING.replace(b"9", b'"7"')), Refused)
    assert isinstance(router.from_agent(b"[" + PING.strip().replace(b"9", b'"7"') + b"]\n"), Refused)
    assert isinstance(router.from_server(b"[" + ANSWER.strip() + b"]\n"), Dropped), "nobody asked for a batch"
    assert not router.scan_from_server(ANSWER + ANSWER), "a second one does not pass unseen"
    assert router.scan_from_server(ANSWER)
    assert (router.requests, router.requests.released) == ({}, {})
    assert isinstance(router.from_server(ANSWER), Dropped)
    assert not router.calls.finish(call), "the call has ended"
    assert isinstance(router.from_agent(CALL), StartCall)


def test_the_late_response_to_a_cancelled_judged_call_is_always_dropped(
    router: Router,
) -> None:
    call = start(router)
    assert router.calls.release(call, unseen=True)
    assert router.from_agent(CANCEL) is PASS, "the server gets it"
    assert not router.scan_from_server(ANSWER)
    assert isinstance(router.from_server(ANSWER), Dropped)


def test_the_cancellation_of_any_other_request_passes_and_so_does_its_late_response(router: Router) -> None:
    router.from_agent(PING)
    assert router.from_agent(CANCEL.replace(b":7", b":9")) is PASS
    assert not router.pending
    assert router.from_server(b'{"id":9,"result":{}}\n') is PASS
    assert isinstance(router.from_server(b'{"id":9,"result":{}}\n'), Dropped)
    assert router.from_agent(CANCEL.replace(b":7", b":99")) is PASS


def cancelled_while_the_server_has_it(router: Router) -> None:
    router.calls.release(start(router))
    assert isinstance(router.from_agent(CANCEL), CancelCall)


@pytest.mark.parametrize("line", [PING, SAFE, b"[%b]\n" % PING.strip()], ids=["ping", "call", "batch"])
def test_the_late_response_to_a_judged_call_is_not_taken_for_another(router: Router, line: bytes) -> None:
    cancelled_while_the_server_has_it(router)
    router.from_agent(line.replace(b":9", b":7").replace(b":8", b":7"))
    assert not router.scan_from_server(ANSWER)
    assert isinstance(router.from_server(ANSWER), Dropped)


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":7,"id":8,"result":{}}\n',
        b'{"jsonrpc":"2.0","id":8,"id":7,"result":{}}\n',
        b'{"jsonrpc":"2.0","ID":7,"result":{}}\n',
    ],
)
def test_the_late_response_is_dropped_although_some_readers_take_it_for_another(router: Router, line: bytes) -> None:
    cancelled_while_the_server_has_it(router)
    router.from_agent(SAFE)
    other = b'{"jsonrpc":"2.0","method":"notifications/x"}\n'
    assert not router.scan_from_server(line)
    assert not router.scan_from_server(other + line)
    assert isinstance(router.from_server(line), Dropped)
    assert router.from_server(other) is PASS


def test_the_late_response_is_dropped_after_another_request_with_this_id_was_cancelled(router: Router) -> None:
    cancelled_while_the_server_has_it(router)
    router.from_agent(PING.replace(b":9", b":7"))
    router.from_agent(CANCEL)
    assert isinstance(router.from_server(ANSWER), Dropped)


def test_no_new_call_can_have_the_id_of_a_cancelled_call_that_may_still_be_answered(router: Router) -> None:
    cancelled_while_the_server_has_it(router)
    for _ in range(2):
        assert "cancelled" in refusal(router, CALL).why
        assert "may still be answered" in refusal(router, PING.replace(b":9", b":7")).why
        assert not router.scan_from_agent(SAFE.replace(b":8", b":7") * 2)
        assert isinstance(router.from_server(ANSWER), Dropped), "a server may answer twice"


def test_a_call_whose_response_hooks_were_judging_when_it_was_cancelled_keeps_its_id(router: Router) -> None:
    call = start(router)
    router.calls.release(call)
    router.from_server(ANSWER)
    assert router.from_agent(CANCEL) == CancelCall(call, forward=True)
    assert "cancelled" in refusal(router, CALL).why
    assert isinstance(router.from_server(ANSWER), Dropped)


def test_after_very_many_cancelled_judged_calls_no_further_call_is_judged(router: Router) -> None:
    router.requests.bar(b"x" * 9_000_000)
    assert "new session" in refusal(router, CALL).why
    assert router.from_agent(SAFE) is PASS


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","jsonrpc":"2.0","ID":7,"result":{}}\n',
        b'{"jsonrpc":"2.0","id\\u0000":7,"result":{}}\n',
        b'{"jsonrpc":"2.0","id\\u0000x":7,"re\\u0073ult\\u0000":{}}\n',
        b'{"jsonrpc":"2.0","id\xff":7,"result":{}}\n',
        b'{"jsonrpc":"2.0","x":{"\xff":1},"method":"notifications/x"}\n',
        b'{"method":"notifications/x","params":{},"params":{}}\n',
        b'{"method":"notifications/x","id\\u0000":7,"result":{}}\n',
        b'{"jsonrpc":"2.0","x":' + b"[" * 5000 + b"]" * 5000 + b',"id":7,"result":{}}\n',
        b'{"jsonrpc":"2.0","id":8,"result":' + b"[" * 5000 + b"]" * 5000 + b',"id":7}\n',
        b'{"jsonrpc":"2.0","id":8,"result":' + b"[" * 5000 + b"]" * 5000 + b',"\\u0069d":7}\n',
    ],
)
def test_what_cannot_be_read_closely_does_not_pass_while_a_response_is_withheld(router: Router, line: bytes) -> None:
    router.from_agent(SAFE)
    start(router)
    for form in (line, b"[%b]\n" % line.strip()):
        assert not router.scan_from_server(form)
        assert isinstance(router.from_server(form), Dropped | NotJson)


def test_a_request_whose_response_is_unclear_while_another_is_withheld_gets_an_error(router: Router) -> None:
    router.from_agent(SAFE)
    start(router)
    dropped = router.from_server(b'{"jsonrpc":"2.0","jsonrpc":"2.0","id":8,"result":{}}\n')
    assert isinstance(dropped, Dropped)
    assert dropped.id == b"8"
    assert not router.pending
    again = router.from_server(b'{"jsonrpc":"2.0","jsonrpc":"2.0","id":8,"result":{}}\n')
    assert isinstance(again, Dropped)
    assert again.id == b"", "it has had one"


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","x":%b,"id":8,"result":{}}\n',
        b'{"jsonrpc":"2.0","id":8,"x":1,"result":%b}\n',
        b'{"jsonrpc": "2.0", "result": %b , "\\u0069d" : 8 , "x": {}}\n',
        b'{"jsonrpc":"2.0","id":5,"result":{"y":%b},"id":8}\n',
        b'{"jsonrpc":"2.0","result":{"id":5,"y":%b},"ID":8}\n',
    ],
)
def test_a_response_that_is_unclear_and_nested_too_deep_ends_its_request_or_its_call(line: bytes) -> None:
    router = Router(lambda tool: tool == "danger")
    router.from_agent(SAFE)
    call = start(router)
    router.calls.release(call)
    deep = line % (b"[" * 50_000 + b"]" * 50_000)
    dropped = router.from_server(deep)
    assert isinstance(dropped, Dropped)
    assert dropped.id == b"8"
    assert router.from_server(deep.replace(b"8", b"7")) == CallAnswered(call)


def test_a_deeply_nested_response_to_another_request_passes_while_a_response_is_withheld(router: Router) -> None:
    router.from_agent(SAFE)
    start(router)
    line = b'{"jsonrpc":"2.0","id":8,"result":{"x":"[\\"","y":%b}}\n' % (b"[" * 5000 + b"]" * 5000)
    assert router.from_server(line) is PASS


def test_a_late_response_in_a_batch_is_dropped_too(router: Router) -> None:
    cancelled_while_the_server_has_it(router)
    assert isinstance(router.from_server(b"[%b]\n" % ANSWER.strip()), Dropped)


def test_a_response_to_a_judged_call_in_a_batch_is_dropped(router: Router) -> None:
    call = start(router)
    router.calls.release(call)
    other = b'{"jsonrpc":"2.0","method":"x"}'
    assert isinstance(router.from_server(b"[%b,%b]\n" % (other, ANSWER.strip())), Dropped)
    assert router.from_server(ANSWER) == CallAnswered(call)


def test_a_cancellation_in_a_batch_cancels_the_call(router: Router) -> None:
    call = start(router)
    router.from_agent(b"[%b]\n" % CANCEL.strip())
    assert not router.calls.release(call), "the agent has cancelled the call: nothing is forwarded"


def test_late_responses_are_recognised_after_many_other_cancellations(router: Router) -> None:
    cancelled_while_the_server_has_it(router)
    for number in range(1000, 4000):
        router.from_agent(PING.replace(b":9", b":%d" % number))
        router.from_agent(CANCEL.replace(b":7", b":%d" % number))
    assert isinstance(router.from_server(ANSWER), Dropped)


def test_batches_without_calls_pass_and_their_requests_are_noted(router: Router) -> None:
    batch = b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"}]\n'
    assert router.from_agent(batch) is PASS
    assert router.pending
    assert router.from_server(b'[{"jsonrpc":"2.0","id":1,"result":{}}]\n') is PASS
    assert not router.pending


@pytest.mark.parametrize(
    ("line", "unreadable", "given_id"),
    [
        (b"hello\n", True, b"null"),
        (b'{"id":1\n', True, b"null"),
        (b'"text"\n', True, b"null"),
        (b'{"id":1,"x":"\xff"}\n', True, b"null"),
        (b"[1]\n", True, b"null"),
        (b'{"id":1,"id":2,"method":"ping"}\n', False, b"null"),
        (b'[{"id":1,"id":2,"method":"ping"}]\n', False, b"null"),
        (CALL.replace(b'"id":7,', b""), False, b"null"),
        (CALL.replace(b":7", b":null"), False, b"null"),
        (CALL.replace(b":7", b":1.0"), False, b"null"),
        (CALL.replace(b'"a":1', b'"a":1,"a":2'), False, b"7"),
        (CALL.replace(b'"danger"', b"7"), False, b"7"),
        (CALL.replace(b'"method"', b'"x":1,"METHOD"'), False, b"7"),
        (PING.replace(b'"ping"', b'"ping","Params":{}'), False, b"9"),
    ],
)
def test_a_refusal_has_the_id_of_the_message_if_it_can_be_read(
    router: Router, line: bytes, unreadable: bool, given_id: bytes
) -> None:
    effect = refusal(router, line)
    assert (effect.unreadable, effect.id) == (unreadable, given_id)
    assert effect.why.endswith(".")


def test_without_hooks_nothing_is_refused_or_dropped() -> None:
    router = Router(None)
    bare = b'{"id":1,"method":"tools/call"}\n'
    for line in (CALL, b"hello\n", b'{"id":1,"id":2}\n', b"\xff\n", CALL + CALL, b"[" * 9999 + b"\n", bare):
        assert router.from_agent(line) is PASS
    for line in (ANSWER, ANSWER, b'{"id":1000,"result":{}}\n', b"[1]\n", b'{"id":[],"error":{}}\n'):
        assert router.from_server(line) is PASS or isinstance(router.from_server(line), NotJson)


def test_every_line_that_passes_is_one_line_to_every_reader(router: Router) -> None:
    line = '{"jsonrpc":"2.0","method":"x","params":{"a":"\u2028"}}\n'.encode()
    assert router.from_agent(line) == Send(line.replace("\u2028".encode(), b"\\u2028"))
    assert router.from_agent(b'{"method":"x",\r"params":{}}\r\n') == Send(b'{"method":"x", "params":{}}\r\n')
    unchanged = '{"method":"x","params":"é"}\r\n'.encode()
    assert router.from_agent(unchanged) is PASS
    assert start(router, CALL.replace(b",", b",\r")).line == CALL.replace(b",", b", ")


def test_a_session_begins_with_initialize(router: Router) -> None:
    router.from_agent(PING)
    router.from_agent(b'{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{}}}\n')
    assert not router.handshake.opened
    router.from_agent(b'{"id":2,"method":"initialize","params":{"clientInfo":{"name":"Lean","version":"1.2"}}}\n')
    assert (router.handshake.opened, router.handshake.uses_initialize, router.handshake.agent_name) == (
        True,
        True,
        "Lean 1.2",
    )
    assert router.from_server(b'{"id":2,"result":{}}\n') == InitializeAnswered()


@pytest.mark.parametrize("method", ["tools/list", "tools/call"])
@pytest.mark.parametrize("name", ["safe", "danger"])
def test_a_stateless_session_begins_with_the_first_request_that_is_not_a_discovery(
    router: Router, method: str, name: str
) -> None:
    meta = '{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"L"}}'
    line = '{"jsonrpc":"2.0","id":%d,"method":"%s","params":{"name":"%s","_meta":%s}}\n'
    router.from_agent((line % (1, "server/discover", name, meta)).encode())
    assert not router.handshake.opened
    router.from_agent((line % (2, method, name, meta)).encode())
    assert (router.handshake.opened, router.handshake.uses_initialize, router.handshake.agent_name) == (
        True,
        False,
        "L",
    )


def test_the_table_of_tools_is_updated_by_lists_that_pass(router: Router) -> None:
    router.from_agent(b'{"id":1,"method":"tools/list"}\n')
    assert not router.may_pass_in_pieces(b'{"id":1,"result":')
    listing = b'{"id":1,"result":{"tools":[{"name":"danger","inputSchema":{"properties":{"path":{}}}}]}}\n'
    assert router.from_server(listing) == ToolsListed([router.tools["danger"]])
    assert router.tools["danger"].properties == {"path"}
    assert router.requests == {}
    spelled_otherwise = CALL.replace(b'"a":1', b'"Path":"/etc"')
    assert "schema" in refusal(router, spelled_otherwise).why


def test_output_of_the_server_that_is_no_message_is_not_json(router: Router) -> None:
    for line in (b"listening on 8080\n", b"{not json}\n", b"[x]\n", b'{"a":1}{"b":2}\n', b"\xff\xfe\n", b"5\n"):
        assert isinstance(router.from_server(line), NotJson)


@pytest.mark.parametrize("hooked", [True, False])
@pytest.mark.parametrize("depth", [100, 900, 1100, 50_000])
def test_responses_that_concern_no_hook_pass_at_any_depth_of_nesting(hooked: bool, depth: int) -> None:
    router = Router((lambda tool: tool == "danger") if hooked else None)
    router.from_agent(PING)
    line = b'{"jsonrpc":"2.0","id":9,"result":{"x":%b}}\n' % (b"[" * depth + b"]" * depth)
    assert router.from_server(line) is PASS


@pytest.mark.parametrize("depth", [900, 1100, 50_000])
def test_a_response_to_a_judged_call_ends_the_call_at_any_depth_of_nesting(router: Router, depth: int) -> None:
    call = start(router)
    router.calls.release(call)
    line = ANSWER.replace(b"[]", b"[" * depth + b"]" * depth)
    assert router.from_server(line) == CallAnswered(call)


def test_a_response_with_half_of_a_surrogate_pair_reaches_its_call(router: Router) -> None:
    call = start(router)
    router.calls.release(call)
    assert router.from_server(ANSWER.replace(b"[]", b'["\\ud83d"]')) == CallAnswered(call)


@pytest.mark.parametrize(
    "line",
    [
        ANSWER.replace(b'"id":7', b'"id":"7"'),
        ANSWER.replace(b'"id":7', b'"id":"\\u0037"'),
        ANSWER.replace(b'"id"', b'"\\u0069d"'),
        b" \t" + ANSWER,
        ANSWER.replace(b",", b" ,\r"),
        ANSWER.replace(b'"id":7', b'"id":7,"method":"ping"'),
        b'{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}\n',
        b'{"jsonrpc":"2.0","id":7,"error":{},"result":{}}\n',
        b'{"jsonrpc":"2.0","id":7}\n',
    ],
)
def test_a_response_is_recognised_in_any_spelling(router: Router, line: bytes) -> None:
    call = start(router)
    router.calls.release(call)
    assert not router.scan_from_server(line)
    assert router.from_server(line) == CallAnswered(call)


def test_a_response_with_two_ids_never_passes(router: Router) -> None:
    call = start(router)
    router.calls.release(call)
    for line in (b'{"id":7,"id":8,"result":{}}\n', b'{"id":8,"id":7,"result":{}}\n'):
        router.from_agent(SAFE)
        assert router.from_server(line) is not PASS


def test_a_request_that_ends_only_with_the_session_is_not_awaited(router: Router) -> None:
    router.from_agent(b'{"id":1,"method":"subscriptions/listen","params":{}}\n')
    assert not router.pending
    router.from_agent(PING)
    assert router.pending


def test_lists_of_tools_do_not_fill_memory(router: Router) -> None:
    router.tools._most = 20_000
    for page in range(50):
        router.from_agent(b'{"id":1,"method":"tools/list"}\n')
        tools = b",".join(b'{"name":"tool%d-%d"}' % (page, number) for number in range(10))
        assert isinstance(router.from_server(b'{"id":1,"result":{"tools":[%b]}}\n' % tools), ToolsListed)
    assert len(router.tools) < 20
    assert "tool49-9" in router.tools


def test_names_of_tools_do_not_fill_memory(router: Router) -> None:
    for number in range(20_000):
        router.from_agent(SAFE.replace(b"safe", b"safe%d" % number))
        router.from_server(b'{"id":8,"result":{}}\n')
    assert len(router.judged_tools) <= 4096
    assert router.requests == {}


def test_a_call_that_is_ambiguous_under_its_alias_is_refused() -> None:
    alias = Alias("danger", "Bash", {"command": "cmd"})
    router = Router(lambda tool: tool == "danger", None, lambda _tool, arguments: alias.for_call(arguments))
    template = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"danger","arguments":%b}}\n'
    refused = router.from_agent(template % b'{"cmd":"rm","command":"ls"}')
    assert isinstance(refused, Refused)
    assert "its arguments 'cmd' and 'command' are the same argument for its hooks" in refused.why
    assert not router.calls
    started = router.from_agent(template % b'{"cmd":"rm"}')
    assert isinstance(started, StartCall)
    assert started.call.arguments == b'{"cmd":"rm"}'


@pytest.mark.parametrize("blank", [b"\v", b"\f", b"\v\f \v"])
def test_blanks_that_are_not_json_before_the_response_to_a_call_are_left_out(router: Router, blank: bytes) -> None:
    started = router.from_agent(CALL)
    assert isinstance(started, StartCall)
    assert router.calls.release(started.call)
    assert router.from_server(blank + ANSWER) == CallAnswered(started.call)
    assert started.call.response_line == ANSWER


@pytest.mark.parametrize(
    ("pages", "asked", "may_judge"),
    [
        (["safe"], ["safe"], [False]),
        (["safe", "other", "danger", "more"], ["safe", "other", "danger"], [False, False, True, True]),
        (["danger", "safe", "!danger"], ["danger", "danger", "safe"], [True, True, False]),
    ],
)
def test_a_page_of_tools_decides_anew_about_its_own_tools(
    pages: list[str], asked: list[str], may_judge: list[bool]
) -> None:
    seen: list[str] = []
    judged = {"danger"}

    def is_judged(tool: str) -> bool:
        seen.append(tool)
        return tool in judged

    router = Router(is_judged)
    found: list[bool] = []
    for page in pages:
        name = page.removeprefix("!")
        if name != page:
            judged.clear()
        router.tools[name] = Tool(name)
        router.judged_tools.forget([name])
        found.append(router.judged_tools.may_judge)
    assert (seen, found) == (asked, may_judge)


def test_of_very_many_tools_some_may_be_judged() -> None:
    router = Router(lambda _tool: False)
    router.tools.update((name, Tool(name)) for name in map(str, range(1001)))
    router.judged_tools.forget(list(router.tools))
    assert router.judged_tools.may_judge
