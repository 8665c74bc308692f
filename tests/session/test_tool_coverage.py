"""The line about the tools that hooks see: once, when the list is complete, and again when the counts change."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Final

import anyio
import anyio.lowlevel
import pytest

from hookproxy.config.load import Loaded
from hookproxy.model.hooks import Event
from hookproxy.model.settings import Settings
from hookproxy.protocol.tool_list import listed_tools
from hookproxy.session.tool_coverage import ToolCoverage
from tests.support.proxy_rig import group, hook

LOADED: Final = Loaded(Settings(auto_aliases=False), (group(hook("true", Event.PRE_TOOL_USE, "look|list")),), ())


def page(*names: str, cursor: str = "") -> bytes:
    result = {"tools": [{"name": name, "inputSchema": {}} for name in names]} | (
        {"nextCursor": cursor} if cursor else {}
    )
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()


class Session:
    """Reports of a ToolCoverage, and the coroutines that it spawned."""

    def __init__(self, name: str = "files") -> None:
        self.reports: list[str] = []
        self.spawned: list[Coroutine[object, object, None]] = []
        self.coverage = ToolCoverage(LOADED, name, ("files",), self.reports.append, self._spawn, name)

    def _spawn(self, function: Callable[..., Coroutine[object, object, None]], argument: object) -> None:
        self.spawned.append(function(argument))

    def note(self, line: bytes) -> None:
        self.coverage.note(line, listed_tools(line), "")


def reported(*lines: bytes, name: str = "files") -> list[str]:
    session = Session(name)
    session.coverage.slice_seconds = 3600
    for line in lines:
        session.note(line)
    assert session.spawned == []
    return session.reports


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


@pytest.mark.anyio
async def test_what_takes_longer_than_a_slice_is_done_between_turns_of_the_event_loop() -> None:
    session = Session()
    session.coverage.slice_seconds = 0.0  # one step at a time
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        session.note(page(*(f"t{number}" for number in range(50)), "look"))
        assert session.reports == []
        (rest,) = session.spawned
        tasks.start_soon(count_turns)
        await rest
        tasks.cancel_scope.cancel()
    assert session.reports == ["files: 1 hook on 1 of 51 tools"]
    assert turns >= 100  # each tool is listed, and looked at


@pytest.mark.anyio
async def test_a_newer_list_ends_the_work_on_an_older_one() -> None:
    session = Session()
    session.coverage.slice_seconds = 0.0
    session.note(page("look", "write"))
    session.note(page("look"))
    for rest in session.spawned:
        await rest
    assert session.reports == ["files: 1 hook on 1 of 1 tool"]


def test_the_name_of_the_server_is_printed_harmlessly() -> None:
    assert reported(page("look"), name="\x1b[31mred") == ["\\x1b[31mred: 1 hook on 1 of 1 tool"]
