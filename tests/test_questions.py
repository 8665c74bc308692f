"""What a person is shown, and that nothing but an explicit yes is consent."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import methods

from hookproxy import questions
from hookproxy.decision import Question
from hookproxy.feedback import elicitation, input_required, question_cancelled
from hookproxy.questions import Consent, consent

WHO = Question("the PreToolUse hook guard.sh", "pushes to main")


def shown(arguments: object, question: Question = WHO) -> str:
    return questions.text("git", "push", json.dumps(arguments, ensure_ascii=False).encode(), question)


def test_a_person_sees_server_tool_arguments_who_asks_and_why() -> None:
    assert shown({"branch": "main", "force": True}) == (
        'Allow the tool push of git to run?\n\nbranch: "main"\nforce: true\n\n'
        "the PreToolUse hook guard.sh asks you to confirm: pushes to main"
    )
    assert "It has no arguments." in shown({})
    assert shown({}, Question("the permission rule push", "")).endswith("the permission rule push asks you to confirm.")


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("password", "hunter2", ""),
        ("api_key", "k9k9", ""),
        ("githubToken", "x", ""),
        ("command", "curl -H 'Authorization: Bearer abc.def' https://a", "curl -H 'Authorization: Bearer [hidden]'"),
        ("url", "https://me:pass@host/x", "https://[hidden]@host/x"),
        ("text", "AKIAABCDEFGHIJKLMNOP is mine", "[hidden] is mine"),
        ("text", "ghp_0123456789abcdef", "[hidden]"),
        ("text", "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END", "PRIVATE KEY-----[hidden]-----END"),
    ],
)
def test_secrets_are_not_shown(name: str, value: str, kept: str) -> None:
    told = shown({name: value})
    assert value not in told
    assert "[hidden]" in told
    assert kept in told


def test_what_hides_a_secret_hides_no_command() -> None:
    told = shown({"command": "curl -H 'Authorization: Bearer x';rm${IFS}-rf${IFS}/ --token=a&&evil"})
    assert "rm${IFS}-rf${IFS}/" in told
    assert "&&evil" in told


def test_long_things_are_shortened_and_say_so() -> None:
    assert "… [99602 more characters]" in shown({"text": "a" * 100_000})
    assert "… and 30 more arguments" in shown({f"a{n}": n for n in range(50)})
    assert len(shown({"a": "x" * 10**6}, Question("h", "r" * 10**6))) < 4000


def test_an_argument_cannot_pass_for_a_line_of_ours() -> None:
    told = shown({"a": "x\n\nthe user has allowed this", "b\nc": "\u202e\u0007\u200b"})
    assert "\nthe user has allowed" not in told
    assert not any(sign in told for sign in "\u202e\u0007\u200b")
    assert "\\u202e" in told


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (b'{"action":"accept","content":{"decision":"allow once"}}', Consent.ONCE),
        (b'{"action":"accept","content":{"decision":"allow for this session"}}', Consent.SESSION),
        (b'{"action":"accept","content":{"decision":"deny"}}', Consent.NO),
        (b'{"action":"accept","content":{}}', Consent.NO),
        (b'{"action":"accept"}', Consent.NO),
        (b'{"action":"accept","content":{"decision":true}}', Consent.NO),
        (b'{"action":"accept","content":{"decision":"Allow once"}}', Consent.NO),
        (b'{"action":"decline","content":{"decision":"allow once"}}', Consent.NO),
        (b'{"action":"cancel"}', Consent.NO),
        (b'{"action":"accept","content":{"decision":"deny","decision":"allow once"}}', Consent.NO),
        (b"", Consent.NO),
        (b"[]", Consent.NO),
    ],
)
def test_only_an_explicit_yes_is_consent(result: bytes, said: Consent) -> None:
    assert consent(result) is said


@given(st.binary(max_size=60))
def test_whatever_else_an_agent_says_is_no(result: bytes) -> None:
    assert consent(result) is Consent.NO


@given(st.text(max_size=50), st.text(max_size=50))
def test_our_own_messages_are_those_of_the_protocol(message: str, seal: str) -> None:
    asked = json.loads(elicitation(b'"hookproxy:1"', message))
    methods.parse_server_request("elicitation/create", "2025-06-18", asked["params"])
    methods.parse_server_request("elicitation/create", "2025-11-25", asked["params"])
    answer = json.loads(input_required(b"1", message, seal))
    methods.validate_server_result("tools/call", "2026-07-28", answer["result"])
    taken_back = json.loads(question_cancelled(b'"hookproxy:1"'))
    methods.parse_server_notification("notifications/cancelled", "2025-11-25", taken_back["params"])
    for line in (elicitation(b"1", message), input_required(b"1", message, seal)):
        assert line.decode().splitlines() == [line.decode()[:-1]]


def test_a_prompter_reads_the_question_whole() -> None:
    asked = questions.document("git", "push", b'{"n":1.0,"password":"x"}', WHO)
    assert msgspec.json.encode(asked) == (
        b'{"server":"git","tool":"push","arguments":{"n":1.0,"password":"x"},"reason":"pushes to main",'
        b'"asked_by":"the PreToolUse hook guard.sh"}'
    )
