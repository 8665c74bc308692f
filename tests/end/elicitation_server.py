"""A server of the `mcp` package some of whose tools ask the person in several rounds; each line it gets is logged."""

from __future__ import annotations

import logging
import os
import threading
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
from pydantic import BaseModel

logging.basicConfig()  # else the package paints each traceback, and that takes two seconds
server = MCPServer("rounds", version="1", log_level="ERROR")
AnyContext = Context[Any, Any]


class Answer(BaseModel):
    name: str


@server.tool(structured_output=False)
def write(path: str, text: str = "") -> str:
    return f"wrote {path} {text}".rstrip()


@server.tool(structured_output=False)
def look(path: str) -> str:
    return f"saw {path}"


@server.tool(structured_output=False)
def delete(path: str) -> str:
    return f"deleted {path}"


@server.tool(structured_output=False)
async def travel(ctx: AnyContext, to: str) -> str | InputRequiredResult:
    """Asks for a name, then for another one, and reports the answer of each round."""
    answers = ctx.input_responses or {}
    if "second" in answers:
        return f"{ctx.request_state}, then {answers['second'].model_dump()['content']['name']} to {to}"
    if "first" in answers:
        return asks("second", f"{ctx.request_state}, then {answers['first'].model_dump()['content']['name']}")
    return asks("first", f"begun to {to}")


def asks(key: str, state: str) -> InputRequiredResult:
    question = ElicitRequestFormParams(message=f"The {key} name?", requested_schema=Answer.model_json_schema())
    return InputRequiredResult(input_requests={key: ElicitRequest(params=question)}, request_state=state)


def log_input(path: str) -> None:
    """Have each line of standard input appended to a file before the server can read it."""
    source = os.fdopen(os.dup(0), "rb")
    read, write_end = os.pipe()
    os.dup2(read, 0)
    os.close(read)
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def copy() -> None:
        for line in source:
            os.write(log, line)
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(write_end, rest) :]
        os.close(write_end)

    threading.Thread(target=copy, daemon=True).start()


if __name__ == "__main__":
    log_input(os.environ.get("E2E_LOG", os.devnull))
    server.run("stdio")
