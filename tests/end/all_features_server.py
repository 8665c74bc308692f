"""An MCP server with all features of the protocol; `tests/support/serve_mcp.py` serves it."""

from __future__ import annotations

import base64
import logging
import os
import warnings
from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.types import (
    AudioContent,
    CallToolResult,
    Completion,
    CompletionArgument,
    CompletionContext,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ListRootsResult,
    PromptReference,
    ResourceLink,
    ResourceTemplateReference,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel, ConfigDict

warnings.simplefilter("ignore", MCPDeprecationWarning)  # sampling, roots and logging are still there, in 2025

BYTES = base64.b64encode(bytes(range(256))).decode()

logging.basicConfig()  # else the package paints each traceback, and that takes two seconds
server = MCPServer("everything", version="7", instructions="All of it.", log_level="ERROR")
AnyContext = Context[Any, Any]


class Open(BaseModel):
    text: str
    length: int
    ratio: float


class Closed(Open):
    model_config = ConfigDict(extra="forbid")


class Answer(BaseModel):
    name: str


@server.tool()
def text(word: str) -> str:
    """Without a schema of its own, so with the package's."""
    return f"You said {word}."


@server.tool(structured_output=False)
def unstructured(word: str) -> str:
    return f"You said {word}."


@server.tool()
def open_schema(word: str) -> Open:
    return Open(text=word, length=len(word), ratio=len(word) / 3)


@server.tool()
def closed_schema(word: str) -> Closed:
    return Closed(text=word, length=len(word), ratio=len(word) / 3)


@server.tool(structured_output=False)
def all_kinds() -> CallToolResult:
    resource = TextResourceContents(uri="memo://1", text="memo", mime_type="text/plain")
    return CallToolResult(
        content=[
            TextContent(type="text", text="é ☃ \u2028"),
            ImageContent(type="image", data=BYTES, mime_type="image/png"),
            AudioContent(type="audio", data=BYTES, mime_type="audio/wav"),
            ResourceLink(type="resource_link", uri="memo://2", name="two", mime_type="text/plain"),
            EmbeddedResource(type="resource", resource=resource),
        ],
        _meta={"example.org/extra": {"n": 1.0}},
    )


@server.tool(structured_output=False)
def error_result() -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text="it broke")], is_error=True)


@server.tool()
def raises() -> str:
    raise ValueError("out of cheese")


@server.tool()
def protocol_error() -> str:
    raise MCPError(code=-31999, message="not like this", data={"n": 1})


@server.tool()
def environment(name: str) -> str:
    return os.environ.get(name, "absent")


@server.tool()
async def progress(ctx: AnyContext, steps: int) -> str:
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
    return "done"


@server.tool()
async def logs(ctx: AnyContext) -> str:
    await ctx.info("first")
    await ctx.warning({"second": 2})
    return "logged"


@server.tool()
async def samples(ctx: AnyContext, prompt: str) -> str:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    result: CreateMessageResult = await ctx.session.create_message([message], max_tokens=10)
    return result.model_dump_json()


@server.tool()
async def elicits(ctx: AnyContext) -> str:
    result = await ctx.elicit("What is your name?", Answer)
    return f"{result.action} {getattr(result, 'data', None)}"


@server.tool()
async def roots(ctx: AnyContext) -> str:
    result: ListRootsResult = await ctx.session.list_roots()
    return result.model_dump_json()


@server.tool()
async def asks(ctx: AnyContext) -> str | InputRequiredResult:
    """Elicits as in 2026: the request is a result, and the answer comes with another call."""
    if ctx.input_responses is None:
        question = ElicitRequestFormParams(message="Your name?", requested_schema=Answer.model_json_schema())
        return InputRequiredResult(
            input_requests={"name": ElicitRequest(params=question)}, request_state="state of the server"
        )
    return f"{ctx.request_state}: {ctx.input_responses['name'].model_dump_json(exclude_none=True)}"


@server.tool()
async def grows(ctx: AnyContext) -> str:
    """Adds a tool, and announces it in both eras."""
    server.add_tool(text, name="grown")
    await ctx.session.send_tool_list_changed()
    await ctx.notify_tools_changed()
    return "grown"


@server.tool()
async def slow(ctx: AnyContext) -> str:
    """Never ends by itself; writes to a FIFO when it begins, and when it is cancelled."""
    path = os.environ["E2E_FIFO"]
    append_word(path, "begun")
    try:
        await anyio.sleep_forever()
    finally:
        append_word(path, "cancelled")
    return "never"


def append_word(path: str, word: str) -> None:
    with open(path, "w") as fifo:
        fifo.write(word + "\n")


@server.prompt()
def handshake(name: str) -> str:
    return f"Greet {name}."


@server.resource("memo://{number}")
def memo(number: str) -> str:
    return f"memo {number}"


@server.resource("data://bytes", mime_type="application/octet-stream")
def data() -> bytes:
    return bytes(range(256))


@server.completion()  # type: ignore[no-untyped-call, untyped-decorator]  # the package's own
async def complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: CompletionArgument,
    context: CompletionContext | None,
) -> Completion | None:
    return Completion(values=[argument.value + "-1", argument.value + "-2"], total=2, has_more=False)
