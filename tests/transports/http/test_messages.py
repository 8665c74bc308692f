"""What is read of a message for its HTTP request, however the message is spelled."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.transports.http import messages

VERSION = "io.modelcontextprotocol/protocolVersion"


@pytest.mark.parametrize(
    ("line", "ids", "method", "is_response"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"ping"}\n', (b"7",), "ping", False),
        (b'{"jsonrpc":"2.0","id":"a","method":"ping","params":[1]}\n', (b'"a"',), "ping", False),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"_meta":7}}\n', (b"7",), "ping", False),
        (b'{"jsonrpc":"2.0","method":"n"}\r\n', (), "n", False),
        (b'{"jsonrpc":"2.0","id":7,"result":{}}\n', (), "", True),
        (b'{"jsonrpc":"2.0","id":7,"error":{}}\n', (), "", True),
        (
            b' [{"id":1,"method":"a"},{"method":"b"},{"id":2,"result":{}},{"id":3,"method":"c"}]\n',
            (b"1", b"3"),
            "",
            False,
        ),
        (b"no json\n", (), "", True),
        (b"7\n", (), "", True),
        (b"\xff\n", (), "", True),
    ],
)
def test_the_requests_in_a_line_are_found(line: bytes, ids: tuple[bytes, ...], method: str, is_response: bool) -> None:
    message = messages.read(line)
    assert (message.ids, message.method, message.is_response) == (ids, method, is_response)
    assert message.body == line.rstrip(b"\r\n")


@pytest.mark.parametrize("spelled", [VERSION, VERSION.replace("/", "\\/")])
def test_the_era_is_that_of_the_message_however_the_key_is_spelled(spelled: str) -> None:
    line = '{"id":1,"method":"x","params":{"_meta":{"KEY":"2026-07-28"}}}'.replace("KEY", spelled)
    assert messages.read(line.encode()).version == "2026-07-28"


IDS = st.integers(-(10**30), 10**30) | st.text(max_size=5) | st.none()
RESPONSES = st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": IDS, "result": st.just({"id": 5})})
OTHERS = st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "method": st.just("m")}, optional={"id": IDS})


@given(st.lists(RESPONSES | OTHERS, min_size=1, max_size=3), st.booleans(), st.booleans())
def test_the_answered_requests_are_found_in_any_spelling(
    found: list[dict[str, object]], batch: bool, wide: bool
) -> None:
    document = found if batch else found[0]
    line = json.dumps(document, indent=1 if wide else None).encode()
    answered = messages.answered_ids(line.replace(b"\n", b" "))
    expected = [one["id"] for one in (found if batch else found[:1]) if "method" not in one]
    assert answered is not None
    assert [json.loads(raw) for raw in answered] == expected


@given(IDS)
def test_an_id_that_is_spelled_in_another_way_is_the_same_id(request_id: object) -> None:
    one, other = json.dumps(request_id).encode(), json.dumps(request_id, ensure_ascii=False).encode("utf-8", "replace")
    if isinstance(request_id, str) and not request_id.isprintable():
        return
    assert messages.key_of(one) == messages.key_of(other)


@pytest.mark.parametrize("line", [b"", b"x", b"{}", b"7", b'{"id":7}', b'{"jsonrpc":"2.0","id":7,"result":', b"\xff"])
def test_what_is_no_message_is_seen_as_none(line: bytes) -> None:
    assert messages.answered_ids(line) is None


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_response_that_is_cut_off_is_none(size: int) -> None:
    line = b'{"jsonrpc":"2.0","id":7,"result":{"x":"' + b"x" * size + b'"}}'
    assert messages.answered_ids(line) == [b"7"]
    assert messages.answered_ids(line[:-3]) is None


def test_the_text_of_an_error_and_the_version_are_read_or_empty() -> None:
    assert messages.error_message(b'{"error":{"code":1,"message":"m"}}') == "m"
    assert messages.error_message(b'{"error":{"code":1}}') == messages.error_message(b"x") == ""
    assert messages.negotiated_version(b'{"result":{"protocolVersion":"2025-11-25"}}') == "2025-11-25"
    assert messages.negotiated_version(b'{"result":{}}') == messages.negotiated_version(b"x") == ""


PARAMS = {"name": "t é", "arguments": {"a": [1, " "]}}
CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}


@given(st.booleans(), st.booleans(), st.sampled_from(["\n", "", " ", "\r\n", " \n"]), st.booleans())
def test_a_tool_call_is_read_alike_in_every_spelling(wide: bool, reversed_: bool, end: str, with_meta: bool) -> None:
    document = CALL | {"params": PARAMS | ({"_meta": {"a": 1}} if with_meta else {})}
    document = dict(reversed(document.items())) if reversed_ else document
    text = json.dumps(document, separators=None if wide else (",", ":")) + end
    message = messages.read(text.encode())
    assert message.body == text.rstrip("\r\n").encode()
    assert (message.ids, message.method, message.version) == ((b"7",), "tools/call", "")
    assert message.params.name == PARAMS["name"]
    assert json.loads(bytes(message.params.arguments)) == PARAMS["arguments"]


def test_a_blank_in_place_of_the_line_end_costs_no_bracket() -> None:
    line = b'{"jsonrpc": "2.0","id":7,"method":"tools/call","params":{"name":"t"}}'
    assert messages.read(line).body == line


def test_a_message_with_half_of_a_surrogate_pair_is_read_like_any_other() -> None:
    half = rb'"\ud83d"'
    for content in (b'"result":{"a":%b}' % half, b'"error":{"code":1,"message":%b}' % half):
        assert messages.answered_ids(b'{"jsonrpc":"2.0","id":7,%b}' % content) == [b"7"]
    assert messages.answered_ids(b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":%b}}' % half) == []
    meta = b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
    params = b'"name":"\xc3\xa9","uri":"u","taskId":"t","requestId":5,"arguments":{"x":%b},%b' % (b"%b", meta)
    line = b'{"jsonrpc":"2.0","id":"\\u0037","method":"m","params":{%b}}'
    cut, whole = (messages.read(line % (params % value)) for value in (half, b'"x"'))
    assert (
        (cut.ids, cut.method, cut.version)
        == (whole.ids, whole.method, whole.version)
        == ((rb'"\u0037"',), "m", "2026-07-28")
    )
    for name in ("name", "uri", "task"):
        assert getattr(cut.params, name) == getattr(whole.params, name) is not None
    assert bytes(cut.params.arguments) == b'{"x":%b}' % half
    assert bytes(cut.params.request) == b"5"
    assert messages.read(b'{"id":1,"method":"m","params":[%b]}' % half).ids == (b"1",)
    assert messages.read(b'{"id":1,"method":"m","params":{"a":%b}' % half).ids == ()


def test_a_response_that_is_nested_too_deep_to_be_read_is_one() -> None:
    line = b'{"jsonrpc":"2.0","id":7,"result":%b%b}' % (b"[" * 5000, b"]" * 5000)
    assert messages.answered_ids(line) == [b"7"]
