import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.announcements import with_instructions, without_output_schemas

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


def test_only_hooked_tools_lose_their_output_schema_and_the_list_is_no_more_public() -> None:
    went = without_output_schemas(answer(TOOLS), lambda name: name in {"a", "c"})
    assert went == answer(
        b'{"tools": [ {"name":"a", "n":1.0} ,{"outputSchema":{},"name":"b"},{"name":"c"}], '
        b'"cacheScope":"private","ttlMs":1}'
    )
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
def test_session_texts_stand_at_the_end_of_the_instructions(result: bytes, expected: bytes) -> None:
    assert with_instructions(answer(result), ["one", "", "two"]) == answer(expected)


def test_an_answer_without_texts_or_without_a_result_is_the_same_object() -> None:
    for line, texts in (
        (answer(b"{}"), [""]),
        (answer(b"{}"), []),
        (b'{"id":1,"error":{}}', ["one"]),
        (b"{", ["one"]),
    ):
        assert with_instructions(line, texts) is line
