"""Questions of the server to the person are seen as they pass, in both eras, and nothing else is taken for one."""

import pytest

from hookproxy import wire
from hookproxy.effects import Elicited
from hookproxy.elicitations import Elicitations, in_responses, in_result

ASK = b'{"jsonrpc":"2.0","id":%b,"method":"elicitation/create","params":{"message":"Which branch?"}}\n'


@pytest.mark.parametrize(
    ("result", "action"),
    [
        (b'"result":{"action":"accept","content":{"branch":"main"}}', "accept"),
        (b'"result":{"action":"decline"}', "decline"),
        (b'"result":{"action":"cancel"}', "cancel"),
        (b'"error":{"code":-1,"message":"no"}', "error"),
        (b'"result":[]', ""),
    ],
)
def test_a_question_and_its_answer_belong_together(result: bytes, action: str) -> None:
    seen = Elicitations()
    assert seen.asked(ASK % b"7") == Elicited("Which branch?")
    assert seen.answered(wire.fields(b'{"jsonrpc":"2.0","id":7,%b}' % result)) == Elicited("Which branch?", action)
    assert seen.answered(wire.fields(b'{"jsonrpc":"2.0","id":7,%b}' % result)) is None


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
def test_what_is_no_clear_question_is_none(line: bytes) -> None:
    assert Elicitations().asked(line) is None


def test_an_escaped_method_and_an_id_in_another_spelling_are_seen() -> None:
    seen = Elicitations()
    line = b'{"jsonrpc":"2.0","id":"7","method":"elicitation\\/create","params":{}}'
    assert seen.asked(line) == Elicited("")
    assert seen.answered(wire.fields(b'{"id":7,"result":{"action":"accept"}}')) == Elicited("", "accept")


def test_a_server_that_asks_for_ever_fills_no_memory() -> None:
    seen = Elicitations()
    for number in range(1000):
        seen.asked(ASK % str(number).encode())
    assert seen.answered(wire.fields(b'{"id":0,"result":{}}')) is None
    assert seen.answered(wire.fields(b'{"id":999,"result":{}}')) is not None


def test_questions_of_the_stateless_era_stand_in_a_result_and_answers_in_the_next_round() -> None:
    result = wire.fields(
        b'{"resultType":"input_required","inputRequests":{'
        b'"a":{"method":"elicitation/create","params":{"message":"Which?"}},'
        b'"b":{"method":"sampling/createMessage","params":{}},"c":5}}'
    )
    assert in_result(result) == [Elicited("Which?")]
    assert in_responses(b'{"a":{"action":"accept","content":{}},"b":{"role":"assistant"},"c":{"action":"cancel"}}') == [
        Elicited("", "accept"),
        Elicited("", "cancel"),
    ]
    assert in_result({}) == in_responses(b"") == in_responses(b"[1]") == []
