"""The demo's tool server: a few files, only in memory. It records each call in the file that its argument names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from .received import Received

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

_ARGUMENTS: Final = {
    "list_files": (),
    "read_file": ("path",),
    "write_file": ("path", "text"),
    "delete_file": ("path",),
}
"""The tools, and the names of their arguments, which are all strings."""


class Files:
    """The tools. Each returns the text of its result, and raises KeyError for a file that does not exist."""

    def __init__(self) -> None:
        self._texts = {"README.md": "# A project\n", ".env": "TOKEN=sk-1234567890abcdef\n"}

    def call(self, tool: str, arguments: dict[str, str]) -> str:
        """Run the tool. Raises KeyError, which names the file."""
        match tool:
            case "list_files":
                return "\n".join(self._texts)
            case "read_file":
                return self._texts[arguments["path"]]
            case "write_file":
                self._texts[arguments["path"]] = arguments["text"]
                return f"{arguments['path']}: {len(arguments['text'])} characters written"
            case _:
                del self._texts[arguments["path"]]
                return f"{arguments['path']} deleted"


def tools() -> list[types.Tool]:
    """The tools for tools/list."""
    return [
        types.Tool(
            name=name,
            input_schema={
                "type": "object",
                "properties": {argument: {"type": "string"} for argument in arguments},
                "required": list(arguments),
                "additionalProperties": False,
            },
        )
        for name, arguments in _ARGUMENTS.items()
    ]


def call_result(files: Files, tool: str, arguments: dict[str, object]) -> types.CallToolResult:
    """A call's result. A failed call has `isError`, as MCP requires for errors that a model can correct."""
    names = _ARGUMENTS.get(tool)
    if names is None:
        return _result(f"there is no tool {tool!r}", failed=True)
    values = {name: value for name, value in arguments.items() if isinstance(value, str)}
    if set(values) != set(names) or len(values) != len(arguments):
        return _result(f"{tool} takes exactly these arguments, as strings: {', '.join(names) or 'none'}", failed=True)
    try:
        return _result(files.call(tool, values))
    except KeyError as error:
        return _result(f"there is no file {error.args[0]}", failed=True)


def _result(text: str, *, failed: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)


async def serve(record: Path | None) -> None:
    """Serve on standard input and output until the input ends; append each call to `record`."""
    files = Files()

    async def list_tools(
        _context: ServerRequestContext, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools())

    async def call_tool(context: ServerRequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        result = call_result(files, params.name, arguments)
        if record is not None:
            texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
            received = Received(context.request_id or "", params.name, arguments, texts)
            with record.open("ab") as file:
                file.write(msgspec.json.encode(received) + b"\n")
        return result

    server: Server[dict[str, object]] = Server("files", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(serve, Path(sys.argv[1]) if sys.argv[1:] else None)
