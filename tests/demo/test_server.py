"""The demo server, as agents and the demo see it."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest
from mcp import Client, StdioServerParameters, types

from hookproxy.demo.received import Received
from hookproxy.demo.server import Files, call_result, tools

pytestmark = pytest.mark.slow


def call(tool: str, **arguments: object) -> tuple[bool, str]:
    result = call_result(Files(), tool, arguments)
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return result.is_error, block.text


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("list_files", {}, "README.md\n.env"),
        ("read_file", {"path": "README.md"}, "# A project\n"),
        ("write_file", {"path": "a", "text": "xyz"}, "a: 3 characters written"),
        ("delete_file", {"path": ".env"}, ".env deleted"),
    ],
)
def test_each_tool_returns_its_text(tool: str, arguments: dict[str, object], text: str) -> None:
    assert call(tool, **arguments) == (False, text)


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("read_file", {"path": "x"}, "there is no file x"),
        ("delete_file", {"path": "x"}, "there is no file x"),
        ("read_file", {}, "read_file takes exactly these arguments, as strings: path"),
        ("read_file", {"path": 1}, "read_file takes exactly these arguments, as strings: path"),
        ("list_files", {"path": "x"}, "list_files takes exactly these arguments, as strings: none"),
        ("format_disk", {}, "there is no tool 'format_disk'"),
    ],
)
def test_a_call_that_fails_says_why(tool: str, arguments: dict[str, object], text: str) -> None:
    assert call(tool, **arguments) == (True, text)


def test_a_written_file_can_be_read_and_deleted() -> None:
    files = Files()
    files.call("write_file", {"path": "a", "text": "x"})
    assert files.call("read_file", {"path": "a"}) == "x"
    files.call("delete_file", {"path": "a"})
    with pytest.raises(KeyError):
        files.call("read_file", {"path": "a"})


async def test_an_agent_finds_the_tools_and_each_call_is_recorded(tmp_path: Path) -> None:
    record = tmp_path / "received.jsonl"
    command = StdioServerParameters(command=sys.executable, args=["-m", "hookproxy.demo.server", str(record)])
    async with Client(command) as agent:
        listed = await agent.list_tools()
        await agent.call_tool("write_file", {"path": "a", "text": "é"})
        await agent.call_tool("read_file", {"path": "a"})
    assert [tool.name for tool in listed.tools] == [tool.name for tool in tools()]
    first, second = msgspec.json.Decoder(Received).decode_lines(record.read_bytes())
    assert (first.tool, first.arguments, first.texts) == (
        "write_file",
        {"path": "a", "text": "é"},
        ["a: 1 characters written"],
    )
    assert (second.tool, second.texts) == ("read_file", ["é"])
    assert first.id != second.id
