"""Edits of responses: every other byte stays as it was."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import methods
from mcp_types.jsonrpc import jsonrpc_message_adapter

from hookproxy.jsonrpc import raw_json
from hookproxy.model.hooks import Tool
from hookproxy.model.settings import Delivery
from hookproxy.protocol import response_edits
from hookproxy.protocol.response_edits import (
    INTERNAL_ERROR,
    MAX_LINE_BYTES,
    DeliveredResponse,
    DeliveryNote,
    error_response,
    failed_result,
    json_string,
    open_schema,
    with_error_withheld,
    with_feedback,
    with_feedback_on_error,
    with_replacement,
    with_result_withheld,
)

AUTO, TEXT, STRIP = Delivery.AUTO, Delivery.TEXT, Delivery.STRIP_OUTPUT_SCHEMA
OPEN = Tool("t", output_schema=b'{"type":"object","properties":{"result":{"type":"string"}}}')
CLOSED = Tool("t", output_schema=b'{"type":"object","additionalProperties":false}')
UNLISTED = None
PLAIN = Tool("t")
FEEDBACK = "lint: 2 warnings"
BLOCK = b'{"type":"text","text":"lint: 2 warnings"}'


def answer(result: bytes) -> bytes:
    return b'{"jsonrpc": "2.0", "id": 7, "result": %b, "x-trace":1.0}\n' % result


def replaced(result: bytes) -> bytes:
    """The answer with its result replaced: nothing beside it remains."""
    return b'{"jsonrpc": "2.0", "id": 7, "result": %b}\n' % result


def failed(error: bytes) -> bytes:
    return b'{"error":%b,"id":"a","jsonrpc":"2.0"}\n' % error


def check_valid(line: bytes, versions: Sequence[str] = ("2024-11-05", "2025-11-25")) -> None:
    for version in versions:
        methods.validate_server_result("tools/call", version, json.loads(line)["result"])


# Feedback in results: what came in, the delivery, what is known about the tool; what goes out, what is reported

COMMENTED = [
    (b'{"content":[]}', AUTO, UNLISTED, b'{"content":[%b]}', None),
    (b'{"content":[ \n]}', AUTO, UNLISTED, b'{"content":[ \n%b]}', None),
    (b'{"content": [ {"type":"text","text":"a"} ] }', AUTO, OPEN, None, None),
    (b'{"_meta":{"n":1e400},"content":[1 ],"x":"\\/"}', TEXT, OPEN, None, None),
    # an open schema, or a tool listed without one: a member of structuredContent, too
    (
        b'{"content":[],"structuredContent":{"result":"a"}}',
        AUTO,
        OPEN,
        b'{"content":[%b],"structuredContent":{"result":"a","hook_feedback":"lint: 2 warnings"}}',
        None,
    ),
    (
        b'{"structuredContent":{ },"content":[]}',
        AUTO,
        PLAIN,
        b'{"structuredContent":{"hook_feedback":"lint: 2 warnings" },"content":[%b]}',
        None,
    ),
    # closed, unknown, taken, no object, unclear, not wanted: the text block only
    (b'{"content":[],"structuredContent":{"result":"a"}}', AUTO, CLOSED, None, DeliveryNote.MAY_BE_INVISIBLE),
    (b'{"content":[],"structuredContent":{"result":"a"}}', AUTO, UNLISTED, None, DeliveryNote.MAY_BE_INVISIBLE),
    (b'{"content":[],"structuredContent":{"hook_feedback":"a"}}', AUTO, PLAIN, None, DeliveryNote.MAY_BE_INVISIBLE),
    (b'{"content":[],"structuredContent":null}', AUTO, PLAIN, None, DeliveryNote.MAY_BE_INVISIBLE),
    (b'{"content":[],"structuredContent":[{}]}', AUTO, PLAIN, None, DeliveryNote.MAY_BE_INVISIBLE),
    (b'{"content":[],"structuredContent":{"a":1,"a":2}}', AUTO, PLAIN, None, DeliveryNote.MAY_BE_INVISIBLE),
    (b'{"content":[],"structuredContent":{"result":"a"}}', TEXT, OPEN, None, None),
    (b'{"content":[],"structuredContent":{},"isError":true}', TEXT, OPEN, None, None),
    # a failed call, or a schema that is not shown: structuredContent goes, and what only it contained becomes text
    (
        b'{"content":[{"type":"text","text":"{\\"a\\": [1]}"}],"structuredContent":{"a":[1]},"isError":true}',
        AUTO,
        CLOSED,
        b'{"content":[{"type":"text","text":"{\\"a\\": [1]}"},%b],"isError":true}',
        None,
    ),
    (
        b'{"structuredContent":{"result":"x y"},"content":[{"type":"text","text":"x y"}]}',
        STRIP,
        OPEN,
        b'{"content":[{"type":"text","text":"x y"},%b]}',
        None,
    ),
    (
        b'{"structuredContent":{"result":5},"content":[{"type":"text","text":"5"}]}',
        STRIP,
        UNLISTED,
        b'{"content":[{"type":"text","text":"5"},%b]}',
        None,
    ),
    (
        b'{"content":[{"type":"text","text":"3"}],"isError":false,"structuredContent":{"n":[1.0]}}',
        STRIP,
        CLOSED,
        b'{"content":[{"type":"text","text":"3"},{"type":"text","text":"{\\"n\\":[1.0]}"},%b],"isError":false}',
        None,
    ),
    (
        b'{"content":["\\ud800"],"structuredContent":{},"isError":true}',
        AUTO,
        CLOSED,
        b'{"content":["\\ud800",{"type":"text","text":"{}"},%b],"isError":true}',
        None,
    ),
    (
        b'{"content":[],"structuredContent":[1],"isError":true}',
        AUTO,
        CLOSED,
        b'{"content":[{"type":"text","text":"[1]"},%b],"isError":true}',
        None,
    ),
]


@pytest.mark.parametrize(("result", "delivery", "tool", "expected", "note"), COMMENTED)
def test_feedback_follows_the_tools_output_and_is_wherever_else_the_model_may_look(
    result: bytes, delivery: Delivery, tool: Tool | None, expected: bytes | None, note: DeliveryNote | None
) -> None:
    """Where no result is given it is the one that came in, with the block before the end of `content`."""
    if expected is None:
        start, end = raw_json.members(result)["content"]
        comma = b"" if json.loads(result)["content"] == [] else b","
        expected = result[: end - 1] + comma + b"%b" + result[end - 1 :]
        assert result[start : start + 1] == b"["
    went = with_feedback(answer(result), FEEDBACK, delivery, tool)
    assert went == DeliveredResponse(answer(expected.replace(b"%b", BLOCK)), note)


UNTOUCHED = [
    (b'{"x":1}', DeliveryNote.NO_PLACE),
    (b'{"content":null}', DeliveryNote.NO_PLACE),
    (b'{"content":{"a":[]}}', DeliveryNote.NO_PLACE),
    (b"[1]", DeliveryNote.NO_PLACE),
    (b"null", DeliveryNote.NO_PLACE),
    (b'{"content":[],"content":[1]}', DeliveryNote.AMBIGUOUS),
]


@pytest.mark.parametrize(("result", "note"), UNTOUCHED)
def test_a_response_without_a_place_for_feedback_passes_unchanged(result: bytes, note: DeliveryNote) -> None:
    line = answer(result)
    went = with_feedback(line, FEEDBACK, AUTO, PLAIN)
    assert went.line is line
    assert went.note is note


@pytest.mark.parametrize(
    ("missing", "reached"), [(len(BLOCK), True), (len(BLOCK) + 1, False), (1, True), (0, True), (-1, True)]
)
def test_feedback_never_makes_a_line_so_long_that_agents_close_the_connection(missing: int, reached: bool) -> None:
    frame = answer(b'{"content":[],"x":"%b"}')
    line = frame.replace(b"%b", b"a" * (MAX_LINE_BYTES - missing - len(frame) + 2))
    assert len(line) == MAX_LINE_BYTES - missing
    went = with_feedback(line, FEEDBACK, AUTO, PLAIN)
    assert went.note is (DeliveryNote.TOO_LONG if reached else None)
    assert (went.line is line) is reached
    assert reached or len(went.line) == MAX_LINE_BYTES - 1


def test_a_line_of_that_length_gets_no_feedback_even_without_structured_content() -> None:
    half = b"a" * (MAX_LINE_BYTES // 3)
    frame = answer(
        b'{"content":[{"type":"text","text":"%b"}],"isError":true,"structuredContent":"%b"' % (half, half)
        + b',"x":"%b"}'
    )
    line = frame.replace(b"%b", b"a" * (MAX_LINE_BYTES - len(frame) + 2))
    assert len(line) == MAX_LINE_BYTES
    assert with_feedback(line, FEEDBACK, AUTO, PLAIN) == DeliveredResponse(line, DeliveryNote.TOO_LONG)


def test_an_error_that_feedback_would_make_too_long_passes_unchanged() -> None:
    line = failed(b'{"code":1,"message":"%b"}' % (b"a" * (MAX_LINE_BYTES - 100)))
    went = with_feedback_on_error(line, FEEDBACK)
    assert went.line is line
    assert went.note is DeliveryNote.TOO_LONG


BLANKS = st.sampled_from([b"", b"", b" ", b"\t ", b"\r"])
LEAVES = st.one_of(
    st.sampled_from([b"null", b"true", b"1.0", b"-0", b"1e400", b"123456789012345678901", b'"\\ud800"', b'"\\/"']),
    st.text(max_size=8).filter(lambda text: "⟪" not in text).map(lambda text: json.dumps(text).encode()),
)
KEYS = st.sampled_from([b"a", b"isError", b"type", b"text", b"content", b"\\u0061\\/", "é".encode(), b"_meta"])


def spelled_array(items: list[bytes], blank: bytes) -> bytes:
    return b"[" + blank + (blank + b"," + blank).join(items) + blank + b"]"


def spelled_object(members: Sequence[tuple[bytes, bytes]], blank: bytes) -> bytes:
    pairs = [b'"' + key + b'"' + blank + b":" + blank + value for key, value in members]
    return b"{" + blank + (blank + b"," + blank).join(pairs) + blank + b"}"


def objects(values: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.builds(spelled_object, st.lists(st.tuples(KEYS, values), max_size=3, unique_by=lambda m: m[0]), BLANKS)


def arrays(values: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.builds(spelled_array, st.lists(values, max_size=3), BLANKS)


VALUES = st.recursive(LEAVES, lambda values: objects(values) | arrays(values), max_leaves=8)


@st.composite
def results(draw: st.DrawFn, structured: st.SearchStrategy[bytes] | None = None) -> bytes:
    members = [(b"content", draw(arrays(VALUES))), (b"resultType", b'"complete"'), (b"_meta", draw(VALUES))]
    if structured is not None:
        members.append((b"structuredContent", draw(structured)))
    return spelled_object(draw(st.permutations(members)), draw(BLANKS))


def marked(text: str = "⟪text⟫") -> bytes:
    return b'{"type":"text","text":"%b"}' % text.encode()


@given(results(), st.sampled_from(Delivery), st.sampled_from([UNLISTED, PLAIN, OPEN, CLOSED]))
def test_every_byte_except_the_added_block_is_unchanged(result: bytes, delivery: Delivery, tool: Tool | None) -> None:
    line = answer(result)
    before, added, after = with_feedback(line, "⟪text⟫", delivery, tool).line.partition(marked())
    assert added
    assert line in (before + after, before.removesuffix(b",") + after)
    assert after.startswith(b"]")


@given(results(structured=VALUES), st.sampled_from([PLAIN, OPEN]))
def test_every_byte_except_the_block_and_the_member_is_unchanged(result: bytes, tool: Tool) -> None:
    went = with_feedback(answer(result), "⟪text⟫", AUTO, tool)
    member = '"hook_feedback":"⟪text⟫"'.encode()
    rest = went.line
    for added in (marked(), member):
        rest = rest.replace(b"," + added, b"").replace(added, b"")
    assert rest == answer(result)
    assert went.line.count(member) == (1 if went.note is None else 0)


@given(VALUES, st.sampled_from(Delivery), st.sampled_from([UNLISTED, PLAIN, OPEN, CLOSED]))
def test_any_result_gets_feedback_once_or_passes_unchanged(
    result: bytes, delivery: Delivery, tool: Tool | None
) -> None:
    line = answer(result)
    went = with_feedback(line, "⟪text⟫", delivery, tool)
    assert (went.line is line) is (went.note in {DeliveryNote.NO_PLACE, DeliveryNote.AMBIGUOUS})
    assert went.line.count(marked()) == (0 if went.line is line else 1)
    raw_json.members(went.line)


# Errors

ERRORS = [
    (
        b'{"code":1,"message":"no such file"}',
        b'{"code":1,"message":"no such file. lint: 2 warnings","data":{"hook_feedback":"lint: 2 warnings"}}',
    ),
    (
        b'{"code": 1.0, "message": "caf\\u00e9!", "data": {"a": 1e400}}',
        b'{"code": 1.0, "message": "caf\\u00e9! lint: 2 warnings", '
        b'"data": {"a": 1e400,"hook_feedback":"lint: 2 warnings"}}',
    ),
    (b'{"data":"x","code":1,"message":""}', b'{"data":"x","code":1,"message":"lint: 2 warnings"}'),
    (b'{"data":null,"message":"a."}', b'{"data":null,"message":"a. lint: 2 warnings"}'),
    (
        b'{"data":{"hook_feedback":1},"message":"a."}',
        b'{"data":{"hook_feedback":1},"message":"a. lint: 2 warnings"}',
    ),
    (b'{"data":{"a":1,"a":2},"message":"a."}', b'{"data":{"a":1,"a":2},"message":"a. lint: 2 warnings"}'),
    (b'{"message":5}', b'{"message":5,"data":{"hook_feedback":"lint: 2 warnings"}}'),
]


@pytest.mark.parametrize(("given_error", "expected"), ERRORS)
def test_feedback_on_an_error_is_a_sentence_of_its_message_and_a_member_of_its_data(
    given_error: bytes, expected: bytes
) -> None:
    assert with_feedback_on_error(failed(given_error), FEEDBACK) == DeliveredResponse(failed(expected))


def test_an_error_without_a_place_for_feedback_passes_unchanged() -> None:
    for raw, note in ((b'{"message":5,"data":[]}', DeliveryNote.NO_PLACE), (b'"gone"', DeliveryNote.AMBIGUOUS)):
        assert with_feedback_on_error(failed(raw), FEEDBACK) == DeliveredResponse(failed(raw), note)


@pytest.mark.parametrize("code", [b'"SECRET"', b"1" + b"0" * 5000, b"1.5", b"[1]"])
def test_only_a_plain_code_of_a_withheld_error_remains(code: bytes) -> None:
    line = b'{"error":{"code":%b,"message":"SECRET","data":"SECRET"},"id":"a","x":"SECRET"}\n' % code
    assert with_error_withheld(line, FEEDBACK) == error_response(b'"a"', INTERNAL_ERROR, FEEDBACK)
    assert with_error_withheld(line.replace(code, b"-32002"), FEEDBACK) == error_response(b'"a"', -32002, FEEDBACK)


# Replaced and withheld output

BLOCKS = b'[{"type":"text","text":"clean"}]'
REPLACED = [
    # the replacement as the hook spelled it, and what stands in the place of `content`
    (BLOCKS, BLOCKS),
    (b"[]", b"[]"),
    (b'"clean"', BLOCKS),
    (b'{"content":%b}' % BLOCKS, BLOCKS),
    (b' {\n "content": %b}\n' % BLOCKS, BLOCKS),
    (b"[1,\n2]", b'[{"type":"text","text":"[1,2]"}]'),
    (b'[{"type":"text"}]', b'[{"type":"text","text":"[{\\"type\\":\\"text\\"}]"}]'),
    (b'{"content":"clean","n":1.0}', b'[{"type":"text","text":"{\\"content\\":\\"clean\\",\\"n\\":1.0}"}]'),
    (b"null", b'[{"type":"text","text":"null"}]'),
    (b'"half \\ud800"', '[{"type":"text","text":"half \ufffd"}]'.encode()),
    (b"not\nJSON \xff", '[{"type":"text","text":"not\\nJSON \ufffd"}]'.encode()),
    ('"a\u2028b"'.encode(), b'[{"type":"text","text":"a\\u2028b"}]'),
    ('[{"type":"text","text":"\u2028"}]'.encode(), b'[{"type":"text","text":"\\u2028"}]'),
]


@pytest.mark.parametrize(("replacement", "content"), REPLACED)
def test_a_replacement_replaces_the_whole_result(replacement: bytes, content: bytes) -> None:
    secret = b'{"type":"text","text":"SECRET"}'
    line = answer(
        b'{"_meta": {"raw":"SECRET"}, "content": [%b], "Content": [%b], "toolResult": "SECRET"}' % (secret, secret)
    )
    went = with_replacement(line, replacement, AUTO, PLAIN).line
    assert went == replaced(b'{"content":%b}' % content)
    check_valid(went, ("2025-11-25",))


STRUCTURED = [
    # tool, delivery, replacement, the rest of the result after the new content
    (PLAIN, AUTO, b'"clean"', b""),
    (OPEN, AUTO, b'"clean"', b',"structuredContent":{"result":"clean"}'),
    (CLOSED, TEXT, b'"clean"', b',"isError":true'),
    (UNLISTED, AUTO, b'"clean"', b',"structuredContent":{"result":"clean"}'),
    (UNLISTED, AUTO, b"[%b,%b]" % (BLOCKS[1:-1], BLOCKS[1:-1]), None),
    (OPEN, STRIP, b'"clean"', b""),
    (OPEN, AUTO, b'{"content":%b,"structuredContent":{"a":1}}' % BLOCKS, b',"structuredContent":{"a":1}'),
    (PLAIN, AUTO, b'{"content":%b,"isError":true}' % BLOCKS, b',"isError":true'),
]


@pytest.mark.parametrize(("tool", "delivery", "replacement", "rest"), STRUCTURED)
def test_replaced_output_does_not_remain_in_structured_content(
    tool: Tool | None, delivery: Delivery, replacement: bytes, rest: bytes | None
) -> None:
    line = answer(b'{"content":[],"structuredContent":{"result":"SECRET"}}')
    went = with_replacement(line, replacement, delivery, tool)
    if rest is None:
        assert json.loads(went.line)["result"]["structuredContent"] == {"result": "clean\nclean"}
        return
    assert went.line == replaced(b'{"content":%b%b}' % (BLOCKS, rest))
    is_error = b"isError" in rest and b"isError" not in replacement
    assert went.note is (DeliveryNote.REPLACEMENT_IS_ERROR if is_error else None)


def tool_with(schema: object) -> Tool:
    return Tool("t", output_schema=json.dumps(schema).encode())


NAMED = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "n": {"type": "integer"}, "at": {"format": "date"}},
    "required": ["name"],
    "additionalProperties": False,
}
WRAPPED = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}
ROWS = {"type": "object", "properties": {"result": {"type": "array", "items": {"type": "integer"}}}}


@pytest.mark.parametrize(
    ("schema", "old", "replacement", "structured"),
    [
        (NAMED, {"name": "SECRET", "n": 1}, {"name": "x", "n": 2}, {"name": "x", "n": 2}),
        (NAMED, {"name": "SECRET", "n": 1}, '{"name": "x"}', {"name": "x"}),
        (NAMED, {"name": "SECRET", "at": "2024-01-01"}, {"name": "x", "at": "2024-01-01"}, ...),
        (NAMED, {"name": "SECRET", "at": "2024-01-01"}, {"name": "x", "at": "gone"}, None),
        (NAMED, {"name": "SECRET"}, {"name": 5}, None),
        (NAMED, {"name": "SECRET"}, {"other": "x"}, None),
        (NAMED, {"name": "SECRET"}, "clean", None),
        (NAMED, {"name": "SECRET"}, ["clean"], None),
        (WRAPPED, {"result": "SECRET"}, "clean", {"result": "clean"}),
        (WRAPPED, {"result": "SECRET"}, "", {"result": ""}),
        ({**WRAPPED, "additionalProperties": False}, {"result": "SECRET"}, "clean", {"result": "clean"}),
        (WRAPPED, {"result": "SECRET"}, {"result": "clean"}, {"result": "clean"}),
        (ROWS, {"result": [1, 2]}, "[3]", {"result": [3]}),
        (ROWS, {"result": [1, 2]}, [3], {"result": [3]}),
        (ROWS, {"result": [1, 2]}, "clean", None),
    ],
)
def test_replaced_output_is_a_success_wherever_it_can_fit_the_tools_output_schema(
    schema: object, old: object, replacement: object, structured: object
) -> None:
    text = old["result"] if isinstance(old, dict) and "result" in old else json.dumps(old)
    result = {"content": [{"type": "text", "text": str(text)}], "structuredContent": old, "_meta": {"x": "SECRET"}}
    went = with_replacement(
        answer(json.dumps(result).encode()), json.dumps(replacement).encode(), AUTO, tool_with(schema)
    )
    shown = json.loads(went.line)["result"]
    if structured is None:
        assert shown["isError"] is True
        assert went.note is DeliveryNote.REPLACEMENT_IS_ERROR
        assert "structuredContent" not in shown
    else:
        assert shown["structuredContent"] == (replacement if structured is ... else structured)
        assert "isError" not in shown
        assert went.note is None
    assert "SECRET" not in went.line.decode()
    check_valid(went.line, ("2025-11-25",))


@pytest.mark.parametrize(
    ("old", "replacement", "expected"),
    [
        (
            b'{"structuredContent":{"a":"SECRET"}}',
            b'{"structuredContent":{"a":"x"}}',
            {"structuredContent": {"a": "x"}},
        ),
        (b'{"toolResult":"SECRET"}', b'{"toolResult":"x"}', {"toolResult": "x"}),
        (b'{"toolResult":"SECRET","b":1}', b'{"toolResult":"x","c":1}', None),
        (b'{"content":[],"b":"SECRET"}', b'{"content":[],"b":"x","c":1}', {"content": [], "b": "x"}),
    ],
)
def test_a_hook_that_got_a_whole_result_may_return_one(old: bytes, replacement: bytes, expected: object) -> None:
    shown = json.loads(with_replacement(answer(old), replacement, AUTO, PLAIN).line)["result"]
    if expected is None:
        assert shown.keys() == {"content"}
    else:
        assert {name: value for name, value in shown.items() if name in json.loads(replacement)} == expected
    assert "SECRET" not in json.dumps(shown)


CLOSED_TEXT = {**WRAPPED, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "structured", "expected"),
    [
        (CLOSED_TEXT, {"result": "abc"}, {"result": f"abc\n\n{FEEDBACK}"}),
        ({"properties": {"content": {"type": "string"}}, "additionalProperties": False}, {"content": "abc"}, ...),
        ({"allOf": [WRAPPED]}, {"result": "abc"}, {"result": "abc", "hook_feedback": FEEDBACK}),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": WRAPPED}},
            {"result": "abc"},
            {"result": "abc", "hook_feedback": FEEDBACK},
        ),
        (
            {"properties": {"hook_feedback": {"type": "string"}}, "additionalProperties": False},
            {},
            {"hook_feedback": FEEDBACK},
        ),
        (CLOSED_TEXT, {"result": "other"}, None),
        ({"properties": {"x": {"type": "string"}}, "additionalProperties": False}, {"x": "abc"}, None),
        ({"properties": {"result": {"maxLength": 5}}, "additionalProperties": False}, {"result": "abc"}, None),
        ({"properties": {"result": {"pattern": "a"}}, "additionalProperties": False}, {"result": "abc"}, None),
        ({"properties": {"result": {"enum": ["abc"]}}, "additionalProperties": False}, {"result": "abc"}, None),
        ({"additionalProperties": False, "unknownKeyword": 1}, {"result": "abc"}, None),
    ],
)
def test_a_comment_is_in_structured_content_wherever_its_schema_allows_any_way(
    schema: object, structured: dict[str, str], expected: object
) -> None:
    result = {"content": [{"type": "text", "text": "abc"}], "structuredContent": structured}
    went = with_feedback(answer(json.dumps(result).encode()), FEEDBACK, AUTO, tool_with(schema))
    shown = json.loads(went.line)["result"]
    assert shown["content"][-1]["text"] == FEEDBACK
    if expected is None:
        assert shown["structuredContent"] == structured
        assert went.note is DeliveryNote.MAY_BE_INVISIBLE
    else:
        wanted = {"content": f"abc\n\n{FEEDBACK}"} if expected is ... else expected
        assert shown["structuredContent"] == wanted
        assert went.note is None


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (b'{"structuredContent":["SECRET"]}', b'{"content":%b}'),
        (b'{"content":"SECRET"}', b'{"content":%b}'),
        (b'["SECRET"]', b'{"resultType":"complete","content":%b}'),
        (b'{"content":[],"content":["SECRET"]}', b'{"resultType":"complete","content":%b}'),
    ],
)
def test_invalid_output_is_replaced_too(result: bytes, expected: bytes) -> None:
    assert with_replacement(answer(result), b'"clean"', AUTO, PLAIN).line == replaced(expected % BLOCKS)


@pytest.mark.parametrize("result", [b'"x"', b"null", b"[]", b"true", b"5"])
def test_a_result_that_is_not_an_object_can_be_marked_as_failed_too(result: bytes) -> None:
    marked = json.loads(response_edits.marked_as_failed(answer(result)))["result"]
    assert marked["isError"] is True
    assert marked["content"][0]["text"] == result.decode()


def test_a_replaced_result_keeps_its_result_type_and_its_error_mark() -> None:
    line = answer(b'{"resultType":"complete","content":[],"isError":true}')
    assert json.loads(with_replacement(line, b'"clean"', AUTO, PLAIN).line)["result"] == {
        "resultType": "complete",
        "content": [{"type": "text", "text": "clean"}],
        "isError": True,
    }


def test_an_ambiguous_response_is_never_delivered_if_its_output_must_not_pass() -> None:
    duplicates = b'{"id":1,"result":{},"result":{"content":["SECRET"]}}\n'
    with pytest.raises(raw_json.DuplicateKeys):
        with_result_withheld(duplicates, FEEDBACK)
    with pytest.raises(raw_json.DuplicateKeys):
        with_replacement(duplicates, b'"clean"', AUTO, PLAIN)


@pytest.mark.parametrize("kind", [b"", b'"resultType":"complete",'])
def test_nothing_of_a_withheld_result_remains(kind: bytes) -> None:
    secrets = b'{%b"content":["SECRET"],"_meta":{"a":"SECRET"},"structuredContent":"SECRET","b":"SECRET"}' % kind
    line = b'{"id":"\\u0061","result":%b,"SECRET":1}\n' % secrets
    expected = b'{"jsonrpc":"2.0","id":"\\u0061","result":{%b"content":[%b],"isError":true}}\n' % (
        kind,
        BLOCK,
    )
    assert with_result_withheld(line, FEEDBACK) == expected


@given(results(structured=VALUES), VALUES, st.sampled_from(Delivery))
def test_any_replacement_of_any_result_is_one_unambiguous_line(
    result: bytes, replacement: bytes, delivery: Delivery
) -> None:
    went = with_replacement(answer(result), replacement, delivery, OPEN).line
    assert went.count(b"\n") == 1
    assert raw_json.items(raw_json.fields(bytes(raw_json.fields(went)["result"]))["content"]) is not None
    check_valid(went, ("2025-11-25",)) if b'"_meta"' not in result else None


# Schemas


@pytest.mark.parametrize(
    ("schema", "is_open"),
    [
        (b"{}", True),
        (b'{"type":"object","properties":{"a":{"additionalProperties":false}},"required":["a"]}', True),
        (b'{"additionalProperties":true,"unevaluatedProperties": true,"title":"x"}', True),
        (b'{"additionalProperties":false}', False),
        (b'{"additionalProperties":{"type":"string"}}', False),
        (b'{"unevaluatedProperties":false}', False),
        (b'{"properties":{"hook_feedback":{}}}', False),
        *((b'{"%b":1}' % word.encode(), False) for word in ("anyOf", "allOf", "oneOf", "not", "if", "$ref")),
        *((b'{"%b":1}' % word.encode(), False) for word in ("propertyNames", "patternProperties", "enum")),
        *((b'{"%b":1}' % word.encode(), False) for word in ("maxProperties", "$dynamicRef", "dependentSchemas")),
        (b"true", False),
        (b'{"properties":1}', False),
        (b'{"a":1,"a":2}', False),
        (b"", False),
    ],
)
def test_a_schema_is_open_only_if_it_certainly_allows_one_more_member(schema: bytes, is_open: bool) -> None:
    assert open_schema(schema) is is_open


# Our own lines


@given(st.text())
def test_any_text_is_one_line_that_agents_can_read(text: str) -> None:
    for line in (failed_result(b"1", text, stateless=True), error_response(b"1", INTERNAL_ERROR, text)):
        assert line.decode().splitlines() == [line.decode()[:-1]]
        jsonrpc_message_adapter.validate_json(line)
    assert json.loads(json_string(text)) == text.encode(errors="replace").decode()


@pytest.mark.parametrize(
    ("stateless", "versions"),
    [(False, ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")), (True, ("2026-07-28",))],
)
def test_a_failure_is_a_valid_result_in_its_era(stateless: bool, versions: Sequence[str]) -> None:
    line = failed_result(b'"7"', FEEDBACK, stateless)
    check_valid(line, versions)
    assert json.loads(line)["id"] == "7"
    assert ("resultType" in json.loads(line)["result"]) is stateless


def test_half_of_a_surrogate_pair_from_a_hook_does_not_break_the_response() -> None:
    assert json_string("a\ud800") == b'"a?"'


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":7,"result":{"content":[]},"log":"SECRET"}\n',
        b'{"SECRET":1,"jsonrpc":"2.0","result":{"content":[]},"id":7}\n',
        b'{ "params" : {"x":"SECRET"} , "id" : 7 , "result" : {} , "jsonrpc" : "2.0" , "_meta" : ["SECRET"] }',
        b'{"jsonrpc":"SECRET","id":7,"result":{"content":["SECRET"]}}\n',
    ],
)
def test_nothing_beside_a_replaced_result_remains(line: bytes) -> None:
    changed = with_replacement(line, b'"clean"', AUTO, PLAIN).line
    assert b"SECRET" not in changed
    message = json.loads(changed)
    assert message.keys() == {"jsonrpc", "id", "result"}
    assert (message["jsonrpc"], message["id"]) == ("2.0", 7)
    assert message["result"]["content"] == [{"type": "text", "text": "clean"}]
    assert changed.endswith(b"\n") is line.endswith(b"\n")
