"""What is posted about an approval, and what an answer may say."""

from __future__ import annotations

import hashlib
import hmac
import json

import pytest
from msgspec import Raw

from hookproxy.approvals import webhook
from hookproxy.live.messages import LONGEST_EDIT, LONGEST_REASON, WaitingApproval


def approval(**members: object) -> WaitingApproval:
    known = {"id": "1-00000000-1", "call": "c", "session": "s", "server": "mail", "tool": "send", "reason": "sure?"}
    more = {"arguments": Raw(b'{"to":"ann"}'), "asked_by": "a rule", "at": 0.0, "until": 60.5, "agent": "Lean 1.0"}
    return WaitingApproval(**{**known, **more, **members})  # type: ignore[arg-type]  # of any type


def test_a_message_has_what_a_person_must_know_and_where_to_answer() -> None:
    assert json.loads(webhook.body(approval(), "https://x/y")) == {
        "id": "1-00000000-1",
        "server": "mail",
        "tool": "send",
        "arguments": {"to": "ann"},
        "reason": "sure?",
        "agent": "Lean 1.0",
        "answer_url": "https://x/y",
        "expires": "1970-01-01T00:01:00Z",
    }
    assert json.loads(webhook.body(approval(reason=""), ""))["reason"] == "a rule"


def test_the_signature_is_over_timestamp_and_body() -> None:
    headers = webhook.headers(b"key", b'{"a":1}', 1234.9)
    expected = hmac.new(b"key", b'1234.{"a":1}', hashlib.sha256).hexdigest()
    assert (headers["Hookproxy-Timestamp"], headers["Hookproxy-Signature"]) == ("1234", f"v1={expected}")


def test_an_answer_is_read() -> None:
    answer = webhook.read_answer(b'{"decision":"allow","arguments":{"to":"bob"}}', "q", "t")
    assert (answer.approval, answer.action, answer.arguments, answer.token) == ("q", "allow", '{"to":"bob"}', "t")
    answer = webhook.read_answer(b'{"decision":"deny","reason":"no"}', "q", "t")
    assert (answer.action, answer.reason, answer.arguments) == ("deny", "no", "")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b"allow",
        b'{"decision":"yes"}',
        b'{"decision":"allow_session"}',
        b'{"decision":true}',
        b'{"decision":"allow","argument":{}}',
        b'{"decision":"deny","arguments":{}}',
        b'{"decision":"allow","reason":1}',
        b'{"decision":"allow"} {"decision":"allow"}',
        b'{"decision":"deny","decision":"allow"}',
        b'{"decision":"allow","arguments":{"a":1,"a":2}}',
        b'\xff{"decision":"allow"}',
        b'{"decision":"deny","reason":"' + b"x" * (LONGEST_REASON + 1) + b'"}',
        b'{"decision":"allow","arguments":{"x":"' + b"x" * LONGEST_EDIT + b'"}}',
        b'{"decision":"allow","arguments":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_nothing_else_is_an_answer(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"^its? "):
        webhook.read_answer(body, "q", "t")
