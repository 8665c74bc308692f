import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import LoggingMessageNotification, methods
from mcp_types.jsonrpc import JSONRPCError, jsonrpc_message_adapter

from hookproxy import feedback
from hookproxy.answers import LIMIT, Note
from hookproxy.feedback import deliver, deliver_error, refusal
from hookproxy.model import Comments, Delivery, Event, Ground, Refuse, Tool, Trouble

AUTO = Delivery.AUTO
RESULT = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"SECRET"}]}}\n'
ERROR = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"SECRET","data":{"a":"SECRET"}}}\n'
HUNG = Trouble("redact.sh", Event.POST_TOOL_USE, "it ran longer than 5 s")


def text_of(line: bytes) -> str:
    """All text of a result's blocks; only if all blocks are text."""
    return "".join(block["text"] for block in json.loads(line)["result"]["content"])


# Refusals

REFUSALS = [
    (Refuse("guard.sh", "no rm"), "Blocked by the PreToolUse hook guard.sh: no rm"),
    (
        Refuse("guard.sh", ""),
        "Blocked by the PreToolUse hook guard.sh, which gave no reason. The tool was not run.",
    ),
    (
        Refuse("guard.sh", "enough", stop=True),
        "Blocked by the PreToolUse hook guard.sh: enough\n"
        "The hook wants you to stop here: make no further calls, and report to the user.",
    ),
    (
        Refuse("guard.sh", "it exited with status 3", ground=Ground.TROUBLE),
        "Blocked: the PreToolUse hook guard.sh failed: it exited with status 3; blocking because the "
        'configuration says on_trouble = "deny". The tool was not run.',
    ),
    (
        Refuse("guard.sh", "it timed out", ground=Ground.FAILED_CLOSED),
        "Blocked: the PreToolUse hook guard.sh failed: it timed out; blocking because this hook is set to "
        "block when it fails. The tool was not run.",
    ),
    (
        Refuse("guard.sh", "writes to /etc", asked=True, ground=Ground.ASK_DENIED),
        "Blocked: the PreToolUse hook guard.sh requires confirmation by the user: writes to /etc. "
        'The configuration says on_ask = "deny", so the call is denied.',
    ),
    (
        Refuse("guard.sh", "", asked=True, ground=Ground.ASK_UNAVAILABLE),
        "Blocked: the PreToolUse hook guard.sh requires confirmation by the user. "
        "This version of hookproxy cannot ask the user yet (elicitation), so the call is denied.",
    ),
    (
        Refuse("guard.sh", "no rm", feedback=("Use trash instead.", "", "Ask Kim.")),
        "Blocked by the PreToolUse hook guard.sh: no rm\n\nUse trash instead.\n\nAsk Kim.",
    ),
]


@pytest.mark.parametrize(("refuse", "text"), REFUSALS)
def test_a_refusal_names_the_hook_and_says_why(refuse: Refuse, text: str) -> None:
    assert text_of(refusal(b"1", refuse, Event.PRE_TOOL_USE)) == text


@pytest.mark.parametrize(
    ("stateless", "versions"),
    [(False, ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")), (True, ("2026-07-28",))],
)
def test_a_refusal_is_a_failed_result_that_is_valid_in_its_era(
    stateless: bool, versions: Sequence[str]
) -> None:
    line = refusal(b'"\\u0037"', Refuse("guard.sh", "no rm"), Event.PRE_TOOL_USE, stateless=stateless)
    assert line.startswith(b'{"jsonrpc":"2.0","id":"\\u0037","result":{')
    assert line.endswith(b"}\n")
    result = json.loads(line)["result"]
    assert result["isError"] is True
    for version in versions:
        methods.validate_server_result("tools/call", version, result)


def test_the_refusal_of_a_task_is_an_error_for_a_result_would_have_to_be_a_task() -> None:
    line = refusal(b"7", Refuse("guard.sh", "no rm"), Event.PRE_TOOL_USE, task=True)
    message = jsonrpc_message_adapter.validate_json(line)
    assert isinstance(message, JSONRPCError)
    assert message.error.code == -31403
    assert message.error.message == "Blocked by the PreToolUse hook guard.sh: no rm"


@pytest.mark.parametrize("task", [False, True])
@pytest.mark.parametrize("letter", ["a", "\0", "\u2028", "\U0001f600"])
def test_the_longest_reason_stays_below_what_agents_can_read(letter: str, task: bool) -> None:
    line = refusal(b"7", Refuse("guard.sh", letter * 2_000_000), Event.PRE_TOOL_USE, task=task)
    assert len(line) < LIMIT
    jsonrpc_message_adapter.validate_json(line)


# Comments on results


@pytest.mark.parametrize("line", [RESULT, ERROR, b"anything at all"])
@pytest.mark.parametrize("texts", [[], [""]])
def test_an_answer_that_no_hook_comments_on_is_the_same_object(line: bytes, texts: Sequence[str]) -> None:
    silent = Comments(feedback=tuple(texts))
    assert deliver(line, silent, texts, AUTO, None).line is line
    assert deliver_error(line, silent, texts).line is line


def test_feedback_stands_after_the_output_first_of_pre_hooks_then_of_post_hooks_then_of_trouble() -> None:
    comments = Comments(feedback=("post 1", "post 2"), noted=(HUNG,))
    went = deliver(RESULT, comments, ["pre 1", "pre 2"], AUTO, None)
    output, said = json.loads(went.line)["result"]["content"]
    assert output["text"] == "SECRET"
    *texts, trouble = said["text"].split("\n\n")
    assert texts == ["pre 1", "pre 2", "post 1", "post 2"]
    assert trouble == (
        "The PostToolUse hook redact.sh failed: it ran longer than 5 s; it is set to block when it fails, "
        "but the tool had run already: its output stands as it is, not judged by this hook."
    )


def test_withheld_output_is_gone_with_all_that_may_quote_it() -> None:
    comments = Comments(("lint: SECRET",), b'"SECRET"', (HUNG,), (HUNG,))
    went = deliver(
        RESULT.replace(b'"result":{', b'"result":{"_meta":{"a":"SECRET"},'), comments, ["pre"], AUTO, None
    )
    assert text_of(went.line) == (
        "The tool was run, but its output is withheld: the PostToolUse hook redact.sh had to judge it and "
        "failed: it ran longer than 5 s. Calling the tool again would run it again.\n\npre"
    )
    assert json.loads(went.line)["result"]["isError"] is True
    assert b"SECRET" not in went.line


def test_a_withheld_error_keeps_only_its_code() -> None:
    went = deliver_error(ERROR, Comments(("lint: SECRET",), b'"SECRET"', (HUNG,)), ["pre"])
    error = json.loads(went.line)["error"]
    assert error.keys() == {"code", "message"}
    assert error["code"] == -32002
    assert error["message"].startswith(
        "The tool was run, but its output is withheld: the PostToolUse hook redact.sh"
    )
    assert error["message"].endswith("\n\npre")
    assert b"SECRET" not in went.line


def test_replaced_output_is_commented_like_the_tools_own() -> None:
    went = deliver(RESULT, Comments(("post",), b'"clean"'), ["pre"], AUTO, Tool("t"))
    assert went.line == (
        b'{"jsonrpc":"2.0","id":1,"result":{"content":'
        b'[{"type":"text","text":"clean"},{"type":"text","text":"pre\\n\\npost"}]}}\n'
    )


@pytest.mark.parametrize(("replacement", "message"), [(b'"clean"', "clean"), (b"[1.0]", "[1.0]")])
def test_a_replaced_error_has_the_replacement_as_its_message(replacement: bytes, message: str) -> None:
    assert json.loads(deliver_error(ERROR, Comments((), replacement), []).line) == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32002, "message": message},
    }
    commented = json.loads(deliver_error(ERROR, Comments(("post",), replacement), []).line)["error"]
    assert commented["message"] == f"{message}. post"
    assert commented["data"] == {"hook_feedback": "post"}


def test_feedback_that_is_too_long_is_left_out_but_a_replacement_never_is() -> None:
    went = deliver(RESULT, Comments(("a" * LIMIT,), b'"clean"'), [], AUTO, None)
    assert went.note is Note.TOO_LONG
    assert text_of(went.line) == "clean"
    assert deliver(RESULT, Comments(("a" * LIMIT,)), [], AUTO, None).line is RESULT
    assert deliver_error(ERROR, Comments(("a" * LIMIT,)), []).line is ERROR


TEXTS = st.lists(st.text(max_size=20), max_size=3)
REPLACEMENTS = (
    st.none() | st.text(max_size=9).map(lambda text: json.dumps(text).encode()) | st.binary(max_size=9)
)


@given(TEXTS, TEXTS, REPLACEMENTS, st.booleans(), st.sampled_from(Delivery))
def test_every_delivery_is_one_line_that_agents_accept(
    pre: list[str], post: list[str], replacement: bytes | None, withheld: bool, delivery: Delivery
) -> None:
    comments = Comments(tuple(post), replacement, (HUNG,) if withheld else ())
    structured = RESULT.replace(b'"content"', b'"structuredContent":{"a":1},"content"')
    for line in (
        deliver(RESULT, comments, pre, delivery, None).line,
        deliver(structured, comments, pre, delivery, Tool("t", output_schema=b"{}")).line,
    ):
        assert line.decode().splitlines() == [line.decode()[:-1]]
        methods.validate_server_result("tools/call", "2025-11-25", json.loads(line)["result"])
    failed = deliver_error(ERROR, comments, pre).line
    assert failed.decode().splitlines() == [failed.decode()[:-1]]
    jsonrpc_message_adapter.validate_json(failed)


# Lines of our own


@pytest.mark.parametrize(
    ("line", "id_value", "code", "words"),
    [
        (
            feedback.server_lost(b"7", "exit status 1"),
            7,
            -32603,
            "ended before it answered this call (exit status 1)",
        ),
        (
            feedback.unreadable("The line is not UTF-8."),
            None,
            -32700,
            "refused this message. The line is not UTF-8.",
        ),
        (feedback.malformed(b'"7"', "Twins."), "7", -32600, "refused this message. Twins."),
        (feedback.malformed(None, "Twins."), None, -32600, "refused this message. Twins."),
        (feedback.too_long(99), None, -32600, "longer than 99 bytes (max_message_bytes)"),
        (feedback.answer_too_long(b"7", 99), 7, -32603, "longer than 99 bytes (max_message_bytes)"),
    ],
)
def test_an_error_of_our_own_says_what_happened(
    line: bytes, id_value: int | str | None, code: int, words: str
) -> None:
    assert line.endswith(b"}\n")
    message = jsonrpc_message_adapter.validate_json(line)
    assert isinstance(message, JSONRPCError)
    assert (message.id, message.error.code) == (id_value, code)
    assert words in message.error.message


def test_a_log_entry_is_a_valid_notification_of_ours() -> None:
    entry = LoggingMessageNotification.model_validate_json(feedback.log_entry("guard.sh: caf\u00e9\n"))
    assert (entry.params.level, entry.params.logger) == ("info", "hookproxy")
    assert entry.params.data == "guard.sh: caf\u00e9\n"
