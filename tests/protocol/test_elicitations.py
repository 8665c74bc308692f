"""Elicitations of the server are recognised as they pass, in both eras, and no other message is."""

import json

import pytest

from hookproxy.jsonrpc import raw_json
from hookproxy.model.hooks import Elicitation
from hookproxy.protocol.actions import (
    Dropped,
    ElicitationAnswered,
    ElicitationRequested,
    ElicitationSeen,
    ElicitationWithdrawn,
    Refused,
    SendBack,
)
from hookproxy.protocol.elicitation_messages import ElicitationStage, PendingElicitation
from hookproxy.protocol.elicitations import MAX_PENDING, Elicitations, all_in_result, in_responses, in_result

ASK = b'{"jsonrpc":"2.0","id":%b,"method":"elicitation/create","params":{"message":"Which branch?"}}\n'
ANSWER = raw_json.fields(b'{"jsonrpc":"2.0","id":7,"result":{"action":"accept"}}')
CANCEL = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}\n'


def asked(seen: Elicitations, line: bytes = ASK % b"7") -> PendingElicitation:
    effect = seen.read_from_server(line)
    assert isinstance(effect, ElicitationRequested)
    return effect.pending


@pytest.mark.parametrize(
    ("result", "action", "content"),
    [
        (b'"result":{"action":"accept","content":{"branch":"main"}}', "accept", b'{"branch":"main"}'),
        (b'"result":{"action":"decline"}', "decline", None),
        (b'"result":{"action":"cancel"}', "cancel", None),
        (b'"error":{"code":-1,"message":"no"}', "error", None),
        (b'"result":[]', "", None),
    ],
)
def test_an_elicitation_and_its_response_belong_together(result: bytes, action: str, content: bytes | None) -> None:
    seen = Elicitations()
    question = asked(seen)
    assert (question.id, question.elicitation) == (b"7", Elicitation("Which branch?"))
    response = raw_json.fields(b'{"jsonrpc":"2.0","id":7,%b}' % result)
    assert seen.read_response(response) == ElicitationAnswered(
        question, Elicitation("Which branch?", action=action, content=content)
    )
    assert seen.read_response(response) is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"elicitation/create","params":{"message":"no id"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"message":"x"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":[]}',
        b'{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"a","message":"b"}}',
        b"[]",
        b"nonsense",
    ],
)
def test_an_ambiguous_elicitation_is_not_noted(line: bytes) -> None:
    assert Elicitations().read_from_server(line) is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":[]}',
        b'{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"a","message":"b"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"elicitation/create"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"elicit\\u0061tion/create"}',
        b'{"id":1,"method":"elicitation/create","params":{"requestedSchema":{"a":1,"a":2}}}',
    ],
)
def test_if_hooks_may_answer_an_ambiguous_message_does_not_pass_and_the_server_gets_an_error(line: bytes) -> None:
    action = Elicitations(guarded=True).read_from_server(line)
    assert isinstance(action, SendBack)
    answer = json.loads(action.line)
    assert (answer["id"], answer["error"]["code"], action.reported) == (1, -32602, True)


def test_an_ambiguous_message_without_an_id_that_is_clear_is_dropped() -> None:
    for line in (
        b'{"jsonrpc":"2.0","id":1,"Method":"elicitation/create"}',
        b'{"id":1,"id":2,"method":"elicitation/create"}',
        b'{"method":"elicitation/create","method":"x"}',
    ):
        assert isinstance(Elicitations(guarded=True).read_from_server(line), Dropped)


def test_if_hooks_may_answer_other_messages_pass_in_any_spelling() -> None:
    seen = Elicitations(guarded=True)
    assert (
        seen.read_from_server(b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"a\\nb"}}') is None
    )
    assert seen.read_from_server(b'{"method":"x","method":"y"}') is None


def test_an_escaped_method_and_an_id_in_another_spelling_are_recognised() -> None:
    seen = Elicitations()
    question = asked(seen, b'{"jsonrpc":"2.0","id":"7","method":"elicitation\\/create","params":{}}')
    assert seen.read_response(ANSWER) == ElicitationAnswered(question, Elicitation("", action="accept"))


def test_an_elicitation_of_each_mode_is_read_in_full() -> None:
    form = asked(Elicitations(), ASK.replace(b'"message"', b'"requestedSchema":{"\\u0061":1 },"message"') % b"1")
    assert form.elicitation == Elicitation("Which branch?", schema=b'{"a":1}')
    visit = asked(
        Elicitations(), ASK.replace(b'"message"', b'"mode":"url","url":"u","elicitationId":"e","message"') % b"1"
    )
    assert visit.elicitation == Elicitation("Which branch?", mode="url", url="u", elicitation_id="e")
    assert asked(Elicitations(), ASK.replace(b'"message"', b'"task":{},"message"') % b"1").task


def test_endless_elicitations_do_not_fill_memory() -> None:
    seen = Elicitations()
    for number in range(1000):
        seen.read_from_server(ASK % str(number).encode())
    assert seen.read_response(raw_json.fields(b'{"id":0,"result":{}}')) is None
    assert seen.read_response(raw_json.fields(b'{"id":999,"result":{}}')) is not None


def test_if_hooks_may_answer_only_cancelled_elicitations_are_forgotten() -> None:
    seen = Elicitations(guarded=True)
    questions = [asked(seen, ASK % b"%d" % number) for number in range(MAX_PENDING)]
    assert asked(seen, ASK % b"1000").stage is ElicitationStage.REFUSED
    assert seen.read_response(raw_json.fields(b'{"id":1000,"result":{}}')) is None
    assert seen.read_from_server(CANCEL) is None
    assert questions[7].stage is ElicitationStage.WITHDRAWN
    assert asked(seen, ASK % b"1001").stage is ElicitationStage.ASKED
    assert seen.read_response(ANSWER) is None


def test_a_held_elicitation_can_be_withdrawn_and_not_be_answered_by_others() -> None:
    seen = Elicitations(guarded=True)
    question = asked(seen)
    question.stage = ElicitationStage.HELD
    assert isinstance(seen.read_response(ANSWER), Refused)
    assert isinstance(seen.read_from_server(ASK % b"7"), Dropped), "its id is taken"
    assert seen.read_from_server(CANCEL) == ElicitationWithdrawn(question)
    assert seen.read_from_server(CANCEL) is None
    assert seen.read_response(ANSWER) is None


def test_a_second_response_is_refused_while_the_first_is_held() -> None:
    seen = Elicitations(guarded=True)
    question = asked(seen)
    assert seen.is_awaited(ANSWER)
    assert isinstance(seen.read_response(ANSWER), ElicitationAnswered)
    assert isinstance(seen.read_response(ANSWER), Refused)
    assert seen.read_from_server(CANCEL) is None, "the agent gets it"
    assert question.stage is ElicitationStage.ANSWERED
    seen.close(question)
    assert not seen.is_awaited(ANSWER)


def test_an_ambiguous_response_is_refused_if_hooks_judge_it() -> None:
    duplicates = raw_json.fields(b'{"jsonrpc":"2.0","id":7,"result":{"action":"accept","action":"decline"}}')
    for guarded, effect in ((True, Refused), (False, ElicitationAnswered)):
        seen = Elicitations(guarded)
        seen.read_from_server(ASK % b"7")
        assert isinstance(seen.read_response(duplicates), effect)


def test_a_batch_that_contains_an_elicitation_is_recognised() -> None:
    seen = Elicitations(guarded=True)
    assert seen.may_be_in_batch(b"[%b]" % ASK % b"7")
    assert seen.may_be_in_batch(b'[{"method":"a","method":"b"}]')
    assert not seen.may_be_in_batch(b'[{"method":"notifications/x"}]')
    assert not Elicitations().may_be_in_batch(b"[%b]" % ASK % b"7")


def test_stateless_elicitations_are_in_a_result_and_their_responses_in_the_next_round() -> None:
    result = raw_json.fields(
        b'{"resultType":"input_required","inputRequests":{'
        b'"a":{"method":"elicitation/create","params":{"message":"Which?"}},'
        b'"b":{"method":"sampling/createMessage","params":{}},"c":5}}'
    )
    assert in_result(result) == [ElicitationSeen("Which?", elicitation=Elicitation("Which?"))]
    assert all_in_result(result) is None
    responses = in_responses(b'{"a":{"action":"accept","content":{}},"b":{"role":"assistant"},"c":{"action":"cancel"}}')
    assert [(one.message, one.action) for one in responses] == [("", "accept"), ("", "cancel")]
    assert in_result({}) == in_responses(b"") == in_responses(b"[1]") == []


def test_a_result_that_requests_only_elicitations_is_recognised() -> None:
    one = b'{"inputRequests":{"a":{"method":"elicitation/create","params":{"message":"Which?"}}}}'
    assert all_in_result(raw_json.fields(one)) == {"a": Elicitation("Which?")}
    assert all_in_result({}) is None
