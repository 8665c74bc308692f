"""The tools in a list; a part that cannot be read stays unknown."""

from __future__ import annotations

import pytest

from hookproxy.model.hooks import Tool
from hookproxy.protocol.feedback import without_tools
from hookproxy.protocol.tool_list import ListedTools, listed_tools, next_cursor


def test_a_list_contains_its_tools() -> None:
    line = (
        b'{"id":1,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"x":1},'
        b'"annotations":{"readOnlyHint":true}},{"name":"b"}]}}'
    )
    one, two = listed_tools(line)
    assert one == Tool("a", b'{"type":"object"}', b'{"x":1}', b'{"readOnlyHint":true}')
    assert two == Tool("b")


@pytest.mark.parametrize(
    "tool",
    [b"{}", b"7", b'{"name":7}', b'{"name":"x","name":"y"}', b'{"name":"x","inputSchema":{"properties":7}}'],
)
def test_a_tool_that_cannot_be_read_stays_unknown_and_the_other_tools_are_known(tool: bytes) -> None:
    listed = listed_tools(b'{"result":{"tools":[{"name":"a"},%b,{"name":"b"}]}}' % tool)
    assert [one.name for one in listed] == ["a", "b"]


@pytest.mark.parametrize(
    "tool",
    [b'{"name":"\\ud800"}', b'{"name":"q","inputSchema":{"properties":{"\\ud800":{}}}}', b'{"\\udc00":1,"name":"q"}'],
)
def test_half_of_a_surrogate_pair_makes_only_its_own_tool_unknown(tool: bytes) -> None:
    for blank in (b"", b" "):
        tools = b'[%b{"name":"a"}%b,%b%b,{"name":"b"}%b]' % (blank, blank, blank, tool, blank)
        line = b'{"jsonrpc":"2.0","id":1,"result":{"tools":%b}}' % tools
        assert [one.name for one in listed_tools(line)] == ["a", "b"]
        assert next_cursor(line) == ""
        hidden = without_tools(line, lambda name: name == "b")
        assert b'"b"' not in hidden
        assert tool in hidden


@pytest.mark.parametrize("tools", [b'[{"name":"\\ud800"}', b'[{"name":"\\ud800"},]', b'["\\ud800"]x', b"[" * 9000])
def test_a_broken_list_with_half_of_a_surrogate_pair_stays_unknown(tools: bytes) -> None:
    assert listed_tools(b'{"result":{"tools":%b}}' % tools) == []


def test_half_of_a_surrogate_pair_in_a_description_leaves_the_tool_known() -> None:
    line = b'{"result":{"tools":[{"name":"a","description":"\\ud800","inputSchema":{"properties":{"x":{}}}}]}}'
    (tool,) = listed_tools(line)
    assert tool.properties == {"x"}


@pytest.mark.parametrize(
    "line", [b"", b"{}", b'{"result":[]}', b'{"result":{}}', b'{"result":{"tools":7}}', b'{"error":{}}', b"[]"]
)
def test_a_line_that_is_not_a_list_has_no_tools(line: bytes) -> None:
    assert listed_tools(line) == []


@pytest.mark.parametrize(
    ("result", "cursor"),
    [
        (b'{"tools":[],"nextCursor":"x"}', "x"),
        (b'{"tools":[]}', ""),
        (b'{"tools":[],"nextCursor":null}', ""),
        (b'{"tools":[],"nextCursor":""}', ""),
        (b'{"nextCursor":"x"}', None),
        (b'{"tools":{}}', None),
        (b"[]", None),
    ],
)
def test_a_page_says_whether_another_one_follows(result: bytes, cursor: str | None) -> None:
    assert next_cursor(b'{"id":1,"result":%b}' % result) == cursor
    assert next_cursor(b'{"id":1,"error":{}}') is None


def test_a_server_that_lists_more_and_more_tools_does_not_fill_memory() -> None:
    known = ListedTools(most_bytes=10_000)
    known.note(Tool(f"tool{number}", b"x" * 900) for number in range(100))
    assert list(known) == ["tool95", "tool96", "tool97", "tool98", "tool99"]
    known.note([Tool("wide", b"{}", properties=frozenset(map(str, range(20))))])
    assert list(known) == ["tool99", "wide"], "names of arguments take memory too"
    known.note([Tool("long", b"x" * 10_000)])
    assert not known


def test_a_tool_that_is_listed_again_is_known_as_it_was_listed_last() -> None:
    known = ListedTools()
    for schema in (b"1", b"2"):
        known.note([Tool("a", schema), Tool("b")])
    assert known == {"a": Tool("a", b"2"), "b": Tool("b")}
