"""The line about the tools that hooks see: once, when the list is complete, and again when the counts change."""

from __future__ import annotations

import json
from typing import Final

from hookproxy.config.load import Loaded
from hookproxy.model.hooks import Event
from hookproxy.model.settings import Settings
from hookproxy.session.tool_coverage import ToolCoverage
from tests.support.proxy_rig import group, hook

LOADED: Final = Loaded(Settings(auto_aliases=False), (group(hook("true", Event.PRE_TOOL_USE, "look|list")),), ())


def page(*names: str, cursor: str = "") -> bytes:
    result = {"tools": [{"name": name, "inputSchema": {}} for name in names]} | (
        {"nextCursor": cursor} if cursor else {}
    )
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()


def reported(*lines: bytes, name: str = "files") -> list[str]:
    reports: list[str] = []
    coverage = ToolCoverage(LOADED, name, ("files",), reports.append, name)
    for line in lines:
        coverage.note(line, "")
    return reports


def test_a_complete_list_is_reported_once() -> None:
    assert reported(page("look", "write"), page("look", "write")) == ["files: 1 hook on 1 of 2 tools"]


def test_pages_are_counted_together_when_the_last_one_has_come() -> None:
    assert reported(page("look", cursor="next")) == []
    assert reported(page("look", cursor="next"), page("list", "write")) == ["files: 1 hook on 2 of 3 tools"]


def test_a_later_list_is_reported_if_it_changes_the_counts() -> None:
    assert reported(page("look"), page("look", "list"), page("list", "look")) == [
        "files: 1 hook on 1 of 1 tool",
        "files: 1 hook on 2 of 2 tools",
    ]


def test_an_error_and_an_unreadable_list_are_not_counted() -> None:
    error = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'
    assert reported(error, b'{"jsonrpc":"2.0","id":1,"result":{"tools":5}}', b"nonsense") == []


def test_the_name_of_the_server_is_printed_harmlessly() -> None:
    assert reported(page("look"), name="\x1b[31mred") == ["\\x1b[31mred: 1 hook on 1 of 1 tool"]
