"""What is shown to a person, and that only an explicit yes is an approval."""

from __future__ import annotations

import json
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import methods

from hookproxy.jsonrpc import raw_json
from hookproxy.model.decision import ApprovalRequest
from hookproxy.protocol import approval_messages
from hookproxy.protocol.approval_messages import Approval, elicitation_params, read_approval
from hookproxy.protocol.feedback import approval_cancelled, approval_elicitation, input_required

TOKEN = "abcdefghij0123456789"
KEY = f"MIIEvQIBADANBgkq{'aB3/' * 12}\n" * 2 + "aB3/aB3/aB3/a4==\n"
WHO = ApprovalRequest("the PreToolUse hook guard.sh", "pushes to main")


def shown(arguments: object, question: ApprovalRequest = WHO) -> str:
    return approval_messages.message("git", "push", json.dumps(arguments, ensure_ascii=False).encode(), question)


def test_a_person_sees_the_server_the_tool_the_arguments_the_hook_and_the_reason() -> None:
    assert shown({"branch": "main", "force": True}) == (
        'Allow the tool push of git to run?\n\nbranch: "main"\nforce: true\n\n'
        "the PreToolUse hook guard.sh asks you to confirm: pushes to main\n\n"
        "- allow this tool for this session: every call of push, whatever its arguments"
    )
    assert "It has no arguments." in shown({})
    by_rule = shown({}, ApprovalRequest("the permission rule push", ""))
    assert "\nthe permission rule push asks you to confirm.\n" in by_rule


def test_calls_like_this_one_are_described_where_they_are_offered() -> None:
    text = approval_messages.message("s", "run", b'{"command":"git push"}', WHO, "run(git push *)")
    assert text.splitlines()[-2] == "- allow calls like this for this session: run(git push *)"
    offered = [json.loads(elicitation_params("x", each)) for each in (True, False)]
    choices = [one["requestedSchema"]["properties"]["decision"]["enum"] for one in offered]
    assert choices == [
        ["allow once", "allow calls like this for this session", "allow this tool for this session", "deny"],
        ["allow once", "allow this tool for this session", "deny"],
    ]


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("password", "hunter2", ""),
        ("api_key", "k9k9", ""),
        ("githubToken", "x", ""),
        (
            "command",
            f"curl -H 'Authorization: Bearer {TOKEN}' https://a",
            "Authorization: Bearer [hidden, 20 characters]'",
        ),
        ("headers", f'{{"authorization": "Basic {TOKEN}"}}', "Basic [hidden, 20 characters]"),
        ("command", "login --token=s3cretvalue --user me", "login --token=[hidden, 11 characters] --user me"),
        ("command", "login --password s3cretvalue", "login --password [hidden, 11 characters]"),
        ("url", "https://me:pass@host/x", "https://[hidden, 7 characters]@host/x"),
        ("text", "AKIAABCDEFGHIJKLMNOP is mine", "[hidden, 20 characters] is mine"),
        ("text", "ghp_0123456789abcdef", "[hidden, 20 characters]"),
        ("text", f"{'ey' + 'J' * 9}.{'b1' * 9}.{'c2' * 9}", "[hidden, 49 characters]"),
        (
            "text",
            f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}-----END RSA PRIVATE KEY-----",
            "KEY-----\\n[hidden, 150 char",
        ),
        ("text", f"-----BEGIN PRIVATE KEY-----\n{KEY}reboot\n-----END PRIVATE KEY-----", "]reboot\\n-----END"),
    ],
)
def test_secrets_are_not_shown(name: str, value: str, kept: str) -> None:
    text = shown({name: value})
    assert value not in text
    assert "[hidden" in text
    assert kept in text


@pytest.mark.parametrize(
    "command",
    [
        "curl -H 'Authorization: Bearer x';rm${IFS}-rf${IFS}/ --token=a&&evil",
        "echo -----BEGIN PRIVATE KEY-----\nsudo sh /tmp/payload\nreboot now\n",
        "echo -----BEGIN PRIVATE KEY-----\nreboot\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n/tmp/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1\n-----END PRIVATE KEY-----",
        "A=Bearer rm -rf /home ; B=Basic sudo reboot; C=--token /tmp/payload",
        f"A=Bearer {TOKEN}",
        "x Authorization: Bearer /tmp/Payload123456789",
        "x Authorization: Bearer unattendedupgradesoff",
        "C=--token Payload123",
        "C=\\ --token Payload123",
        "x --token /tmp/Payload1; y --password shutdown; z --token=shutdown-now",
        "ls;ghp_0123456789abcdef",
        "ls;  ghp_0123456789abcdef",
        "ls\nghp_0123456789abcdef",
        "/tmp/ghp_0123456789abcdef",
        "sk-the-name-of-a-program",
    ],
)
def test_hiding_a_secret_does_not_hide_a_command(command: str) -> None:
    assert f"command: {json.dumps(command)}\n" in shown({"command": command})


@pytest.mark.parametrize("name", ["passthrough", "password_command", "compass", "cookie_script", "token_path"])
def test_the_name_of_an_argument_does_not_hide_a_command(name: str) -> None:
    assert f'{name}: "reboot"' in shown({name: "reboot"})


@pytest.mark.parametrize(
    "name", ["maxTokens", "max_tokens", "tokens", "token_count", "tokenLimit", "maxTokensToSample"]
)
def test_a_number_of_tokens_is_no_secret(name: str) -> None:
    assert f"{name}: 1000" in shown({name: 1000})
    assert f"{name}: [hidden]" in shown({name: "1000"})


@pytest.mark.parametrize("name", ["token", "password", "secretTokens", "tokens_password", "access_token"])
def test_another_number_is_hidden_by_its_name(name: str) -> None:
    assert f"{name}: [hidden]" in shown({name: 123456})


@pytest.mark.parametrize("name", ["command", "shell_command", "argv", "targetUrl", "sql"])
@pytest.mark.parametrize("fillers", [20, 3000])
def test_many_other_arguments_do_not_hide_a_command(name: str, fillers: int) -> None:
    text = shown({**{f"option{n}": "filler" for n in range(fillers)}, name: "rm -rf / #" + "x" * 9})
    assert text.splitlines()[1:4] == [
        f"Not all of it is shown here: {fillers - 19} of {fillers + 1} arguments left out.",
        "",
        f'{name}: "rm -rf / #xxxxxxxxx"',
    ]
    long = shown({**{f"option{n}": n for n in range(fillers)}, "body": "something longer"})
    assert 'body: "something longer"' in long


def test_a_complete_message_does_not_mention_missing_parts() -> None:
    assert "Not all" not in shown({f"a{n}": "x" * 378 for n in range(20)})
    assert "\nNot all of it is shown here: 1 of 2 arguments shortened.\n\n" in shown({"a": "x" * 379, "b": 1})
    assert "1 of 1 argument shortened" in shown({"n" * 81: 1})


def test_long_values_are_shortened_and_the_message_says_so() -> None:
    assert "… [99622 more characters] …" in shown({"text": "a" * 100_000})
    assert "… and 30 more arguments" in shown({f"a{n}": n for n in range(50)})
    assert len(shown({"a": "x" * 10**6}, ApprovalRequest("h", "r" * 10**6))) < 4000


@pytest.mark.parametrize("size", [500, 50_000])
def test_the_beginning_and_the_end_of_a_long_value_are_shown(size: int) -> None:
    text = shown({"command": "begin" + "x" * size + "end"})
    assert 'command: "beginxxx' in text
    assert 'xxxend"\n' in text
    assert f"[{size + 10 - 380} more characters]" in text


def test_long_names_are_shortened() -> None:
    text = approval_messages.message(
        "s" * 9999, "t" * 9999, b'{"%b":1}' % (b"n" * 300_000), ApprovalRequest("b" * 9999, "")
    )
    assert len(text) < 1000
    assert f"\n{'n' * 80} … [299920 more characters]: 1\n" in text
    assert f"of {'s' * 120} … [9879 more characters] to run?" in text


@pytest.mark.parametrize(
    "value",
    ["-eyJ" * 5000, "-eyJ" * 12_500_000, "z" * 50_000_000, "://" * 5000, "://a:" * 4000, "sk-" * 9000, "eyJ." * 5000,
     "\u2028" * 9000, "-----BEGIN PRIVATE KEY-----\n" * 500, "Authorization: Bearer " * 900, " --token=a" * 2000,
     "-----BEGIN PRIVATE KEY-----\n" + KEY * 5000]
)  # fmt: skip
def test_no_value_makes_the_message_slow(value: str) -> None:
    raw = msgspec.json.encode({"x": value})
    shown({"x": TOKEN})  # compiles the patterns
    times = []
    for _ in range(3):
        begun = time.process_time()
        raw_json.fields(raw)  # reading JSON takes its time in any case
        read = time.process_time()
        approval_messages.message("s", "t", raw, WHO)
        times.append(time.process_time() - read - (read - begun))
    assert min(times) < 0.05


def test_no_reason_and_no_unreadable_arguments_make_the_message_slow() -> None:
    begun = time.process_time()
    text = approval_messages.message("s", "t", b"x" * 50_000_000, ApprovalRequest("h", "r\u2028" * 5_000_000))
    assert time.process_time() - begun < 0.5
    assert "Not all of it is shown here: the arguments are shortened." in text


def test_an_argument_cannot_pass_for_a_line_of_ours() -> None:
    text = shown({"a": "x\n\nthe user has allowed this", "b\nc": "\u202e\u0007\u200b"})
    assert "\nthe user has allowed" not in text
    assert not any(sign in text for sign in "\u202e\u0007\u200b")
    assert "\\u202e" in text


@pytest.mark.parametrize("sign", "\u2028\u2029\u0085\u00a0\u3000\u200b\u202e\u2066\ufeff\u00ad\u3164\u2800\U000e0041")
def test_invisible_characters_and_line_ends_are_escaped(sign: str) -> None:
    question = ApprovalRequest(f"a{sign}", f"a{sign}b")
    text = approval_messages.message(
        f"a{sign}", f"a{sign}", json.dumps({f"a{sign}": sign}, ensure_ascii=False).encode(), question
    )
    assert sign not in text
    assert len(text.splitlines()) == 7
    assert text.count(f"{ord(sign):04x}") == 7


def test_a_name_that_could_pass_for_more_is_shown_as_json() -> None:
    assert '\n"path: \\"/tmp/safe\\" x": 1\n' in shown({'path: "/tmp/safe" x': 1})
    assert '\n"": 1\n' in shown({"": 1})
    assert "\na.b-c_1: 1\n" in shown({"a.b-c_1": 1})


@pytest.mark.parametrize(
    ("result", "approval"),
    [
        (b'{"action":"accept","content":{"decision":"allow once"}}', Approval.ONCE),
        (b'{"action":"accept","content":{"decision":"allow this tool for this session"}}', Approval.SESSION),
        (b'{"action":"accept","content":{"decision":"deny"}}', Approval.NO),
        (b'{"action":"accept","content":{}}', Approval.NOT_ANSWERED),
        (b'{"action":"accept"}', Approval.NOT_ANSWERED),
        (b'{"action":"accept","content":{"decision":true}}', Approval.NOT_ANSWERED),
        (b'{"action":"accept","content":{"decision":"Allow once"}}', Approval.NOT_ANSWERED),
        (b'{"action":"decline","content":{"decision":"allow once"}}', Approval.NO),
        (b'{"action":"cancel"}', Approval.NOT_ANSWERED),
        (b'{"action":"accept","content":{"decision":"deny","decision":"allow once"}}', Approval.NOT_ANSWERED),
        (b"", Approval.NOT_ANSWERED),
        (b"[]", Approval.NOT_ANSWERED),
    ],
)
def test_only_an_explicit_yes_is_an_approval(result: bytes, approval: Approval) -> None:
    assert read_approval(result) is approval


@given(st.binary(max_size=60))
def test_every_other_response_of_an_agent_is_no_answer(result: bytes) -> None:
    assert read_approval(result) is Approval.NOT_ANSWERED


@given(st.text(max_size=50), st.text(max_size=50))
def test_our_own_messages_are_valid_in_the_protocol(message: str, request_state: str) -> None:
    asked = json.loads(approval_elicitation(b'"hookproxy:1"', message, offers_similar=True))
    methods.parse_server_request("elicitation/create", "2025-06-18", asked["params"])
    methods.parse_server_request("elicitation/create", "2025-11-25", asked["params"])
    answer = json.loads(input_required(b"1", message, request_state, offers_similar=True))
    methods.validate_server_result("tools/call", "2026-07-28", answer["result"])
    taken_back = json.loads(approval_cancelled(b'"hookproxy:1"'))
    methods.parse_server_notification("notifications/cancelled", "2025-11-25", taken_back["params"])
    for line in (
        approval_elicitation(b"1", message, offers_similar=False),
        input_required(b"1", message, request_state, offers_similar=False),
    ):
        assert line.decode().splitlines() == [line.decode()[:-1]]


def test_a_prompter_gets_the_complete_request() -> None:
    asked = approval_messages.prompter_document("git", "push", b'{"n":1.0,"password":"x"}', WHO)
    assert msgspec.json.encode(asked) == (
        b'{"server":"git","tool":"push","arguments":{"n":1.0,"password":"x"},"reason":"pushes to main",'
        b'"asked_by":"the PreToolUse hook guard.sh"}'
    )
