"""An MCP server that says a secret wherever a server can, in any encoding; `tests/support/serve_mcp.py` serves it."""

from __future__ import annotations

import base64
import html
import json
import logging
import os
import urllib.parse
import warnings
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.types import (
    BlobResourceContents,
    CallToolResult,
    CreateMessageResult,
    EmbeddedResource,
    ResourceLink,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel

warnings.simplefilter("ignore", MCPDeprecationWarning)  # sampling and logging are still there, in 2025
logging.basicConfig()  # else the package paints each traceback, and that takes two seconds

LEAK = os.environ["LEAK"]
RAW = LEAK.encode()
ENCODED = {
    "plain": LEAK,
    "json": json.dumps({"k": LEAK}),
    "json twice": json.dumps(json.dumps(LEAK)),
    "escapes": "".join(f"\\u{ord(char):04x}" for char in LEAK),
    "percent": urllib.parse.quote(LEAK, safe=""),
    "html": html.escape(LEAK),
    "hex": RAW.hex(),
    "base64": base64.b64encode(RAW).decode(),
    "base64, second place": base64.b64encode(b"x" + RAW).decode(),
    "base64, third place": base64.urlsafe_b64encode(b"xy" + RAW).decode(),
    "address": f"https://user:{urllib.parse.quote(LEAK, safe='')}@example.com/",
    "header": f"Authorization: Bearer {LEAK}\r\nX-Other: 1",
    "variables": f"A=1\nexport SECRET='{LEAK}'\n",
}

server = MCPServer("leaky", version="1", instructions=f"Use {LEAK}.", log_level="ERROR")
AnyContext = Context[Any, Any]


class Answer(BaseModel):
    name: str


@server.tool()
def say(how: str) -> str:
    return ENCODED[how]


@server.tool(description=f"As {LEAK}")
def split() -> CallToolResult:
    parts = (f"begin {LEAK[:5]}", LEAK[5:12], f"{LEAK[12:]} end")
    return CallToolResult(content=[TextContent(type="text", text=part) for part in parts])


@server.tool()
def kinds() -> CallToolResult:
    text = TextResourceContents(uri="memo://1", text=f"a {LEAK}", mime_type="text/plain")
    blob = BlobResourceContents(uri="memo://2", blob=base64.b64encode(f"b {LEAK}".encode()).decode())
    return CallToolResult(
        content=[
            ResourceLink(type="resource_link", uri=f"x://{urllib.parse.quote(LEAK, safe='')}@h/", name=LEAK),
            EmbeddedResource(type="resource", resource=text),
            EmbeddedResource(type="resource", resource=blob),
        ],
        structured_content={"deep": [{"key": LEAK, LEAK: 1}]},
        _meta={"example.org/extra": LEAK},
    )


@server.tool()
def fails() -> str:
    raise ValueError(f"cannot log in with {LEAK}")


@server.tool()
def protocol_error() -> str:
    raise MCPError(code=-31999, message=f"not with {LEAK}", data={"header": LEAK})


@server.tool()
async def notifies(ctx: AnyContext) -> str:
    await ctx.report_progress(1, 2, f"with {LEAK}")
    await ctx.info(f"with {LEAK}")
    await ctx.warning({"with": LEAK})
    return "done"


@server.tool()
async def asks(ctx: AnyContext) -> str:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=f"sum up {LEAK}"))
    result: CreateMessageResult = await ctx.session.create_message([message], max_tokens=10)
    answer = await ctx.elicit(f"May I use {LEAK}?", Answer)
    return f"{result.role} {answer.action} {LEAK}"


@server.tool()
def compare(token: str) -> str:
    """What the server got: it says whether that is the secret, and repeats it in three ways."""
    return f"{token == LEAK} {token} {token.encode().hex()} {base64.b64encode(token.encode()).decode()}"


@server.prompt()
def advice(name: str) -> str:
    return f"{name}: use {LEAK}."


@server.resource("memo://{number}")
def memo(number: str) -> str:
    return f"memo {number}: {LEAK}"


@server.resource("data://blob", mime_type="application/octet-stream")
def blob() -> bytes:
    return f"key: {LEAK}\n".encode()
