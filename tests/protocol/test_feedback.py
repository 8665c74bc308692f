"""The sentences that the model reads, and the responses that contain them."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import LoggingMessageNotification, methods
from mcp_types.jsonrpc import JSONRPCError, jsonrpc_message_adapter

from hookproxy.model.decision import Comments, RefusalCause, Refuse
from hookproxy.model.hooks import Ended, Event, HookResult, HookRun, HookSpec, Tool, Verdict
from hookproxy.model.settings import Delivery
from hookproxy.protocol import feedback
from hookproxy.protocol.calls import Progress
from hookproxy.protocol.feedback import (
    deliver,
    deliver_error,
    refusal,
    with_instructions,
    without_output_schemas,
    without_tools,
)
from hookproxy.protocol.response_edits import MAX_LINE_BYTES, DeliveryNote

AUTO = Delivery.AUTO
RESULT = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"SECRET"}]}}\n'
ERROR = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"SECRET","data":{"a":"SECRET"}}}\n'
HUNG = HookRun(
    HookSpec("any", "hooks.json: 0", Event.POST_TOOL_USE, "redact.sh"),
    HookResult(Ended.TIMED_OUT),
    Verdict(failure="it ran longer than 5 s"),
)


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
        "The hook wants you to stop here. Make no further calls and report to the user.",
    ),
    (
        Refuse("guard.sh", "it exited with status 3", cause=RefusalCause.FAILURE),
        "Blocked: the PreToolUse hook guard.sh failed: it exited with status 3; blocking because failing "
        'hooks refuse calls here (on_failure = "deny" or --fail-closed). The tool was not run.',
    ),
    (
        Refuse("guard.sh", "it timed out", cause=RefusalCause.FAILED_CLOSED),
        "Blocked: the PreToolUse hook guard.sh failed: it timed out; blocking because this hook is set to "
        "block when it fails. The tool was not run.",
    ),
    (
        Refuse("the PreToolUse hook guard.sh", "writes to /etc", asked=True, cause=RefusalCause.ASK_DENIED),
        "Blocked: the PreToolUse hook guard.sh requires the user's approval: writes to /etc. "
        'The configuration says on_ask = "deny", so the call is denied.',
    ),
    (
        Refuse("the PreToolUse hook guard.sh", "", asked=True, cause=RefusalCause.ASK_UNAVAILABLE),
        "Blocked: the PreToolUse hook guard.sh requires the user's approval. "
        "This agent cannot ask the user, so the call is denied. Tell the user what you want to do, and why.",
    ),
    (
        Refuse("the permission rule write_*", "", asked=True, cause=RefusalCause.NOT_ANSWERED),
        "Blocked: the permission rule write_* requires the user's approval. "
        "The user was asked, but no answer came: the dialog was closed, or the time ran out. So the call is denied. "
        "Ask the user whether they want it before you try again.",
    ),
    (
        Refuse("the permission rule write_*", "", asked=True, cause=RefusalCause.DECLINED),
        "Blocked: the permission rule write_* requires the user's approval. "
        "The user was asked and did not allow it. Do not try it again unless the user says so.",
    ),
    (
        Refuse("approve.sh", "never", event=Event.PERMISSION_REQUEST),
        "Blocked by the PermissionRequest hook approve.sh: never",
    ),
    (
        Refuse("limits[0]", "no more than 30 calls of search_* per minute", cause=RefusalCause.LIMIT, retry_after=42),
        "Blocked by limits[0] of hookproxy.toml: no more than 30 calls of search_* per minute. The tool was not run. "
        "Try again in 42 seconds.",
    ),
    (
        Refuse("limits[1]", "no more than 1 call of x per second", cause=RefusalCause.LIMIT, retry_after=1),
        "Blocked by limits[1] of hookproxy.toml: no more than 1 call of x per second. The tool was not run. "
        "Try again in 1 second.",
    ),
    (
        Refuse("limits[0]", "no more than 1 call of x per session", cause=RefusalCause.LIMIT),
        "Blocked by limits[0] of hookproxy.toml: no more than 1 call of x per session. The tool was not run. "
        "Do not try again in this session.",
    ),
    (
        Refuse("Bash(git push:*)", "", cause=RefusalCause.RULE),
        "Blocked by the permission rule Bash(git push:*) of hookproxy.toml. The tool was not run. "
        "The same call will be refused again. If it is needed, tell the user.",
    ),
    (
        Refuse("delete_*", "nothing is deleted", cause=RefusalCause.RULE, feedback=("Noted.",)),
        "Blocked by the permission rule delete_* of hookproxy.toml: nothing is deleted. The tool was not run. "
        "The same call will be refused again. If it is needed, tell the user."
        "\n\nNoted.",
    ),
    (
        Refuse("guard.sh", "no rm", feedback=("Use trash instead.", "", "Ask Kim.")),
        "Blocked by the PreToolUse hook guard.sh: no rm\n\nUse trash instead.\n\nAsk Kim.",
    ),
]


@pytest.mark.parametrize(("refuse", "text"), REFUSALS)
def test_a_refusal_names_the_hook_and_the_reason(refuse: Refuse, text: str) -> None:
    assert text_of(refusal(b"1", refuse)) == text


@pytest.mark.parametrize(
    ("stateless", "versions"),
    [(False, ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")), (True, ("2026-07-28",))],
)
def test_a_refusal_is_a_failed_result_that_is_valid_in_its_era(stateless: bool, versions: Sequence[str]) -> None:
    line = refusal(b'"\\u0037"', Refuse("guard.sh", "no rm"), stateless=stateless)
    assert line.startswith(b'{"jsonrpc":"2.0","id":"\\u0037","result":{')
    assert line.endswith(b"}\n")
    result = json.loads(line)["result"]
    assert result["isError"] is True
    for version in versions:
        methods.validate_server_result("tools/call", version, result)


def test_the_refusal_of_a_task_is_an_error_because_a_result_would_have_to_be_a_task() -> None:
    line = refusal(b"7", Refuse("guard.sh", "no rm"), task=True)
    message = jsonrpc_message_adapter.validate_json(line)
    assert isinstance(message, JSONRPCError)
    assert message.error.code == -31403
    assert message.error.message == "Blocked by the PreToolUse hook guard.sh: no rm"


@pytest.mark.parametrize("task", [False, True])
@pytest.mark.parametrize("letter", ["a", "\0", "\u2028", "\U0001f600"])
def test_the_longest_reason_stays_below_what_agents_can_read(letter: str, task: bool) -> None:
    line = refusal(b"7", Refuse("guard.sh", letter * 2_000_000), task=task)
    assert len(line) < MAX_LINE_BYTES
    jsonrpc_message_adapter.validate_json(line)


# Comments on results


@pytest.mark.parametrize("line", [RESULT, ERROR, b"anything at all"])
@pytest.mark.parametrize("texts", [[], [""]])
def test_a_response_without_comments_is_the_same_object(line: bytes, texts: Sequence[str]) -> None:
    silent = Comments(feedback=tuple(texts))
    assert deliver(line, silent, texts, AUTO, None).line is line
    assert deliver_error(line, silent, texts).line is line


def test_feedback_follows_the_output_in_the_order_pre_hooks_post_hooks_failures() -> None:
    comments = Comments(feedback=("post 1", "post 2"), noted=(HUNG,))
    went = deliver(RESULT, comments, ["pre 1", "pre 2"], AUTO, None)
    output, added = json.loads(went.line)["result"]["content"]
    assert output["text"] == "SECRET"
    *texts, failure = added["text"].split("\n\n")
    assert texts == ["pre 1", "pre 2", "post 1", "post 2"]
    assert failure == (
        "Note: the PostToolUse hook redact.sh failed: it ran longer than 5 s. This hook is set to block when it fails, "
        "but the tool had already run. The output is unchanged, and this hook has not judged it."
    )


def test_withheld_output_is_removed_with_everything_that_may_quote_it() -> None:
    comments = Comments(("lint: SECRET",), b'"SECRET"', (HUNG,), (HUNG,))
    went = deliver(RESULT.replace(b'"result":{', b'"result":{"_meta":{"a":"SECRET"},'), comments, ["pre"], AUTO, None)
    assert text_of(went.line) == (
        "The tool was run, but its output is withheld, because the PostToolUse hook redact.sh failed: "
        "it ran longer than 5 s. Calling the tool again would run it again.\n\npre"
    )
    assert json.loads(went.line)["result"]["isError"] is True
    assert b"SECRET" not in went.line


def test_a_withheld_error_keeps_only_its_code() -> None:
    went = deliver_error(ERROR, Comments(("lint: SECRET",), b'"SECRET"', (HUNG,)), ["pre"])
    error = json.loads(went.line)["error"]
    assert error.keys() == {"code", "message"}
    assert error["code"] == -32002
    assert error["message"].startswith("The tool was run, but its output is withheld, because the PostToolUse")
    assert error["message"].endswith("\n\npre")
    assert b"SECRET" not in went.line


def test_replaced_output_gets_feedback_like_the_tools_own() -> None:
    went = deliver(RESULT, Comments(("post",), b'"clean"'), ["pre"], AUTO, Tool("t"))
    assert went.line == (
        b'{"jsonrpc":"2.0","id":1,"result":{"content":'
        b'[{"type":"text","text":"clean"},{"type":"text","text":"pre\\n\\npost"}]}}\n'
    )


def test_hidden_output_is_removed_and_the_model_learns_which_hook_hides_it() -> None:
    structured = RESULT.replace(b'"content"', b'"structuredContent":{"a":"SECRET"},"content"')
    comments = Comments(("post",), b'"SECRET"', hidden_by="hide.sh")
    for line in (deliver(structured, comments, ["pre"], AUTO, None).line, deliver_error(ERROR, comments, ["pre"]).line):
        assert b"SECRET" not in line
        assert b"the hook hide.sh hides its output" in line
        assert b"pre" in line
        assert b"post" in line


def test_a_denied_result_stays_and_is_marked_as_an_error() -> None:
    went = deliver(RESULT, Comments(("Hook feedback (denied):\nno",), failed=True), [], AUTO, None)
    result = json.loads(went.line)["result"]
    assert result["isError"] is True
    assert [block["text"] for block in result["content"]] == ["SECRET", "Hook feedback (denied):\nno"]
    assert deliver_error(ERROR, Comments(failed=True), []).line is ERROR


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
    went = deliver(RESULT, Comments(("a" * MAX_LINE_BYTES,), b'"clean"'), [], AUTO, None)
    assert went.note is DeliveryNote.TOO_LONG
    assert text_of(went.line) == "clean"
    assert deliver(RESULT, Comments(("a" * MAX_LINE_BYTES,)), [], AUTO, None).line is RESULT
    assert deliver_error(ERROR, Comments(("a" * MAX_LINE_BYTES,)), []).line is ERROR


TEXTS = st.lists(st.text(max_size=20), max_size=3)
REPLACEMENTS = st.none() | st.text(max_size=9).map(lambda text: json.dumps(text).encode()) | st.binary(max_size=9)


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


# What a server announces

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("\ud800"),
    lambda values: st.lists(values) | st.dictionaries(st.sampled_from(["name", "a", "\ud800"]), values),
    max_leaves=8,
)


def answer(result: bytes) -> bytes:
    return b'{"jsonrpc": "2.0", "id": 7, "result": %b, "x-trace":1.0}\n' % result


TOOLS = (
    b'{"tools": [ {"name":"a", "outputSchema":{"x":1}, "n":1.0} ,'
    b'{"outputSchema":{},"name":"b"},{"name":"c"}], "cacheScope":"public","ttlMs":1}'
)


DUPLICATES = b'{"tools":[{"name":"a","outputSchema":1},{"name":"a","outputSchema":1}]}'


def test_only_hooked_tools_lose_their_output_schema_and_the_list_becomes_private() -> None:
    went = without_output_schemas(answer(TOOLS), lambda name: name in {"a", "c"})
    assert went == answer(
        b'{"tools": [ {"name":"a", "n":1.0} ,{"outputSchema":{},"name":"b"},{"name":"c"}], '
        b'"cacheScope":"private","ttlMs":1}'
    )
    duplicates = without_output_schemas(answer(DUPLICATES), lambda _name: True)
    assert duplicates == answer(b'{"tools":[{"name":"a"},{"name":"a"}]}')
    both = without_output_schemas(answer(TOOLS.replace(b'"cacheScope":"public",', b"")), lambda _name: True)
    assert both == answer(b'{"tools": [ {"name":"a", "n":1.0} ,{"name":"b"},{"name":"c"}], "ttlMs":1}')


@pytest.mark.parametrize(
    "result",
    [TOOLS.replace(b"outputSchema", b"inputSchema"), b'{"tools":{}}', b"{}", b"[]", b'{"tools":[1,[]]}'],
)
def test_a_tools_list_without_a_hooked_output_schema_is_the_same_object(result: bytes) -> None:
    line = answer(result)
    assert without_output_schemas(line, lambda _name: True) is line
    assert without_output_schemas(answer(TOOLS), lambda _name: False) == answer(TOOLS)


@given(JSON)
def test_any_tools_list_without_output_schemas_survives(tools: object) -> None:
    line = answer(json.dumps({"tools": tools}).encode())
    assert without_output_schemas(line, lambda _name: True) is line


@pytest.mark.parametrize(
    ("hidden", "tools"),
    [
        ("", None),
        ("x", None),
        ("a", b'[ {"outputSchema":{},"name":"b"},{"name":"c"}]'),
        ("b", b'[ {"name":"a", "outputSchema":{"x":1}, "n":1.0},{"name":"c"}]'),
        ("c", b'[ {"name":"a", "outputSchema":{"x":1}, "n":1.0} ,{"outputSchema":{},"name":"b"}]'),
        ("ab", b'[ {"name":"c"}]'),
        ("bc", b'[ {"name":"a", "outputSchema":{"x":1}, "n":1.0}]'),
        ("ac", b'[ {"outputSchema":{},"name":"b"}]'),
        ("abc", b"[ ]"),
    ],
)
def test_hidden_tools_are_removed_and_the_list_becomes_private(hidden: str, tools: bytes | None) -> None:
    line = answer(TOOLS.replace(b"}]", b'}],"nextCursor":"c2"'))
    went = without_tools(line, lambda name: name in hidden)
    if tools is None:
        assert went is line
    else:
        assert went == answer(b'{"tools": %b,"nextCursor":"c2", "cacheScope":"private","ttlMs":1}' % tools)


def test_hidden_tools_and_output_schemas_can_be_removed_together() -> None:
    expected = answer(b'{"tools": [ {"name":"b"}], "cacheScope":"private","ttlMs":1}')
    line = answer(TOOLS)
    assert without_tools(without_output_schemas(line, lambda _name: True), lambda name: name != "b") == expected
    assert without_output_schemas(without_tools(line, lambda name: name != "b"), lambda _name: True) == expected


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b'{"id":1,"error":{}}',
        answer(b"[]"),
        answer(b'{"tools":{}}'),
        answer(b'{"tools":[{"name":"a","name":"b"}]}'),
    ],
)
def test_a_listing_that_cannot_be_read_stays_as_it_is(line: bytes) -> None:
    """A call of what should have been hidden is refused anyway."""
    assert without_tools(line, lambda _name: True) is line


BLANKS = st.sampled_from([b"", b" ", b" \t"])
LISTED = st.tuples(BLANKS, st.sampled_from("abc"), BLANKS)


@given(st.lists(LISTED, max_size=6), st.sets(st.sampled_from("abc")), BLANKS)
def test_the_tools_that_stay_keep_each_byte_and_their_order(
    listed: list[tuple[bytes, str, bytes]], hidden: set[str], blanks: bytes
) -> None:
    items = [
        b'%b{"name":%b"%b","n":%d.0,"tools":[{"name":"a"}]}%b' % (before, after, name.encode(), number, after)
        for number, (before, name, after) in enumerate(listed)
    ]
    line = answer(b'{"tools":[%b%b],"nextCursor":"\\u0063","x":[{"name":"a"}]}' % (b",".join(items), blanks))
    went = without_tools(line, lambda name: name in hidden)
    before, after = json.loads(line)["result"], json.loads(went)["result"]
    assert after.pop("tools") == [tool for tool in before.pop("tools") if tool["name"] not in hidden]
    assert after == before
    assert all((item.strip() in went) is (name not in hidden) for item, (_, name, _) in zip(items, listed, strict=True))
    if hidden.isdisjoint(name for _, name, _ in listed):
        assert went is line


@given(JSON)
@pytest.mark.slow
def test_tools_can_be_hidden_in_any_tools_list(tools: object) -> None:
    without_tools(answer(json.dumps({"tools": tools}).encode()), lambda _name: True)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (b'{"capabilities":{}}', b'{"capabilities":{},"instructions":"one\\n\\ntwo"}'),
        (b'{"instructions": "a\\/b", "x":1}', b'{"instructions": "a\\/b\\n\\none\\n\\ntwo", "x":1}'),
        (b'{"instructions":""}', b'{"instructions":"one\\n\\ntwo"}'),
        (b'{"instructions":null}', b'{"instructions":null}'),
        (b'{"instructions":"a","instructions":"b"}', b'{"instructions":"a","instructions":"b"}'),
        (b"[]", b"[]"),
    ],
)
def test_session_texts_are_at_the_end_of_the_instructions(result: bytes, expected: bytes) -> None:
    assert with_instructions(answer(result), ["one", "", "two"]) == answer(expected)


def test_a_response_without_texts_or_without_a_result_is_the_same_object() -> None:
    for line, texts in (
        (answer(b"{}"), [""]),
        (answer(b"{}"), []),
        (b'{"id":1,"error":{}}', ["one"]),
        (b"{", ["one"]),
    ):
        assert with_instructions(line, texts) is line


# Lines of our own


@pytest.mark.parametrize(
    ("line", "id_value", "code", "words"),
    [
        (feedback.ambiguous(b"7", "it is not UTF-8"), 7, -32603, "hooks cannot judge it: it is not UTF-8."),
        (feedback.response_too_long(b"7", 99, 9), 7, -32603, "99 bytes are more than 9 (max_message_bytes)"),
        (feedback.failed_call(b'"7"', "It is over."), "7", -32603, "It is over."),
        (
            feedback.refused_message(b"null", "It is no JSON.", unreadable=True),
            None,
            -32700,
            "message. It is no JSON.",
        ),
        (
            feedback.refused_message(b'"7"', "It has duplicate keys.", unreadable=False),
            "7",
            -32600,
            "message. It has duplicate keys.",
        ),
        (feedback.unaudited(b"7", stateless=False, task=True, ran=False), 7, -31403, "requires an audit"),
    ],
)
def test_our_own_errors_say_what_happened(line: bytes, id_value: int | str | None, code: int, words: str) -> None:
    assert line.endswith(b"}\n")
    message = jsonrpc_message_adapter.validate_json(line)
    assert isinstance(message, JSONRPCError)
    assert (message.id, message.error.code) == (id_value, code)
    assert words in message.error.message


@pytest.mark.parametrize("ran", [False, True])
def test_a_call_that_cannot_be_audited_fails_and_says_whether_the_tool_was_run(ran: bool) -> None:
    line = feedback.unaudited(b"7", stateless=True, task=False, ran=ran)
    methods.validate_server_result("tools/call", "2026-07-28", json.loads(line)["result"])
    assert ("The tool was run" in text_of(line)) is ran
    assert ("the tool was not run" in text_of(line)) is not ran


def test_the_refusal_of_a_long_message_has_its_size_and_the_limit() -> None:
    expected = "It has 99 bytes, which is more than hooks can judge: 9 (max_message_bytes)."
    assert feedback.message_too_long(99, 9) == expected


def test_a_log_entry_is_a_valid_notification_of_ours() -> None:
    entry = LoggingMessageNotification.model_validate_json(feedback.log_entry("guard.sh: caf\u00e9\n"))
    assert (entry.params.level, entry.params.logger) == ("info", "hookproxy")
    assert entry.params.data == "guard.sh: caf\u00e9\n"


@pytest.mark.parametrize("progress", Progress)
@pytest.mark.parametrize("task_request", [False, True])
def test_what_is_said_of_a_call_that_ends_early_is_what_is_known(progress: Progress, task_request: bool) -> None:
    text = feedback.ended_early(progress, "The server has ended", task_request=task_request)
    assert text.startswith("The server has ended. ")
    assert ("not sent to the server" in text) == (progress is Progress.NOT_SENT)
    assert ("there is no response" in text) == (progress is Progress.NO_RESPONSE)
    assert ("has answered" in text and "withheld" in text) == (progress is Progress.ANSWERED)
    assert ("The tool was not run" in text) == (progress is Progress.NOT_SENT and not task_request)
    assert ("would run it again" in text) == (progress is Progress.ANSWERED and not task_request)
