"""The tools in a list; a part that cannot be read stays unknown."""

from __future__ import annotations

import pytest

from hookproxy.model.hooks import Tool
from hookproxy.protocol.tool_list import listed_tools, next_cursor


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
