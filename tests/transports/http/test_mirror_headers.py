"""Headers that repeat a message's parts: compared with the SDK's own functions, and safe whatever the values are."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound

from hookproxy.transports.http import messages, mirror_headers
from hookproxy.transports.http.mirror_headers import InvalidAnnotation, ParameterHeaders, ParameterTable

VALUES = st.text() | st.sampled_from(["", " a", "a ", "a\r\nX: y", "=?base64?YQ==?=", "plain", "\x7f", "a b", "\x00"])


@given(VALUES)
def test_a_value_is_encoded_as_the_sdk_encodes_it_and_never_ends_the_header(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        return
    encoded = mirror_headers.encode_value(value)
    assert encoded.decode() == inbound.encode_header_value(value)
    assert inbound.decode_header_value(encoded.decode()) == value
    assert not {0, 10, 13} & set(encoded)


def test_half_of_a_surrogate_pair_is_encoded_and_not_an_error() -> None:
    assert mirror_headers.encode_value("\ud800").startswith(b"=?base64?")


PROPERTY = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer", "boolean", "number", "object", ["string"]])},
    optional={"x-mcp-header": st.sampled_from(["Region", "region", "Zone", "a b", "", 7, None])},
)
SCHEMAS = st.recursive(
    PROPERTY,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
            "items": inner,
            "anyOf": st.lists(inner, max_size=2),
            "$defs": st.dictionaries(st.just("d"), inner, max_size=1),
            "default": inner,
        },
    ),
    max_leaves=6,
)


@given(SCHEMAS)
def test_an_annotation_is_valid_when_the_sdk_says_so_and_names_the_same_argument(schema: object) -> None:
    raw = json.dumps(schema).encode()
    try:
        found = mirror_headers.parameter_headers(raw)
    except InvalidAnnotation:
        assert inbound.find_invalid_x_mcp_header(schema) is not None
    else:
        assert inbound.find_invalid_x_mcp_header(schema) is None
        assert found == inbound.x_mcp_header_map(schema)


ARGUMENTS = st.dictionaries(
    st.sampled_from(["a", "b"]),
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(max_size=5).filter(lambda one: one == "" or one.isascii())
    | st.dictionaries(st.just("c"), st.text("xy", max_size=3)),
)


@given(ARGUMENTS)
def test_an_argument_becomes_the_header_that_the_sdk_makes(arguments: dict[str, object]) -> None:
    table: ParameterHeaders = {("a",): "A", ("b", "c"): "C"}
    ours = {
        f"Mcp-Param-{name}": mirror_headers.encode_value(value).decode()
        for name, value in mirror_headers.parameter_values(table, json.dumps(arguments).encode())
    }
    theirs = inbound.mcp_param_headers(table, arguments)
    assert ours == theirs


def test_integers_that_not_every_reader_knows_exactly_have_no_header() -> None:
    table: ParameterHeaders = {("a",): "A"}
    assert list(mirror_headers.parameter_values(table, b'{"a":9007199254740993}')) == []
    assert list(mirror_headers.parameter_values(table, b'{"a":7.0}')) == [("A", "7")]


def headers(message: object) -> dict[str, str]:
    read = messages.read(msgspec.json.encode(message) + b"\n")
    lines = mirror_headers.headers(read, {("r",): "R"}).decode().split("\r\n")
    return dict(line.split(": ", 1) for line in lines if line)


def request(method: str, **params: object) -> object:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (request("tools/call", name="t"), "t"),
        (request("prompts/get", name="p"), "p"),
        (request("resources/read", uri="u:1"), "u:1"),
        (request("tasks/get", taskId="7"), "7"),
        (request("tools/list", name="x"), None),
        (request("tools/call", name=7), None),
    ],
)
def test_the_name_header_repeats_what_the_method_is_about(message: object, name: str | None) -> None:
    assert headers(message).get("Mcp-Name") == name


def test_only_a_tool_call_has_parameter_headers() -> None:
    assert headers(request("tools/call", name="t", arguments={"r": 1}))["Mcp-Param-R"] == "1"
    assert "Mcp-Param-R" not in headers(request("prompts/get", name="t", arguments={"r": "1"}))


def test_a_tool_that_is_listed_anew_loses_its_old_annotations() -> None:
    table = ParameterTable()
    annotated = {"name": "t", "inputSchema": {"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}}
    table.note(json.dumps({"result": {"tools": [annotated]}}).encode())
    assert table["t"] == {("a",): "A"}
    table.note(json.dumps({"result": {"tools": [{"name": "t", "inputSchema": {}}]}}).encode())
    assert "t" not in table


def test_a_server_that_lists_more_and_more_tools_does_not_fill_memory() -> None:
    table = ParameterTable(most_bytes=20_000)
    schema = {"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}
    for page in range(10):
        tools = [{"name": f"t{page}-{number}", "inputSchema": schema} for number in range(10)]
        assert table.note(json.dumps({"result": {"tools": tools}}).encode()) == {}
    assert len(table) == 15
    assert "t9-9" in table


@pytest.mark.parametrize("line", [b"", b"{}", b'{"result":{}}', b'{"result":{"tools":7}}', b'{"result":{"tools":[7]}}'])
def test_a_list_that_cannot_be_read_is_left_alone(line: bytes) -> None:
    assert ParameterTable().note(line) == {}
