"""Runs a hook of type `agent`: a model may look into files before it gives its verdict.

As Claude Code's page has it, the model works in up to 50 turns, with tools that read: Read, Grep and Glob, below the
folder in which the agent works. Each of its calls is a process of its own (`agent_tools`), which is ended with the
hook, so no pattern and no file holds anything up. It runs no commands and writes nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw

from ..jsonrpc import raw_json
from ..model.hooks import Document, Ended, Event, HookResult, HookSpec
from .command import run_command
from .model_api import Conversation, Tool, ToolCall, model_of
from .model_verdict import SYSTEM, VERDICT, Verdict, question, result_for, verdict_in, verdict_tool
from .runner import HookFailed, Report, StatefulRunner

_MOST_TURNS: Final = 50  # as the page says
_MOST_CALLS: Final = 16  # of one turn: models make a few at once
_MOST_CHARACTERS: Final = 2_000_000  # of all turns together: more than models read
_TOOL_SECONDS: Final = 10.0  # for one search: the hook itself has 60 by default

_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}


def _tool(name: str, description: str, required: str, properties: dict[str, object]) -> Tool:
    return Tool(name, description, {"type": "object", "properties": properties, "required": [required]})


_TOOLS: Final = (
    _tool(
        "Read",
        "Read a text file of the project. `offset` and `limit` count lines.",
        "file_path",
        {"file_path": _TEXT, "offset": _NUMBER, "limit": _NUMBER},
    ),
    _tool(
        "Glob", "List the files of the project that match a pattern such as src/**/*.py.", "pattern", {"pattern": _TEXT}
    ),
    _tool(
        "Grep",
        "Find the lines that a regular expression matches, in all files of the project, or in those below `path` or "
        "that match `glob`.",
        "pattern",
        {"pattern": _TEXT, "path": _TEXT, "glob": _TEXT},
    ),
)
_SYSTEM: Final = (
    f"{SYSTEM} Before that you may look into the project with the tools Read, Glob and Grep. Files whose name begins "
    "with a dot, or that lie in such a folder, cannot be read, and nothing can be run."
)


def open_runner(_hooks: list[HookSpec], _report: Report) -> StatefulRunner:
    """As `runner.OpenRunner`. Nothing is kept from one event to the next."""
    program = os.path.join(os.path.dirname(__file__), "agent_tools.py")
    reader = HookSpec(
        "claude",
        "hookproxy",
        Event.PRE_TOOL_USE,
        "agent_tools",
        argv=(sys.executable, "-I", "-S", program),
        cwd="/",
        timeout=_TOOL_SECONDS,
    )

    async def run_agent_hook(spec: HookSpec, document: Document, env: Mapping[str, str]) -> HookResult:
        return await result_for(spec, _verdict(spec, document, env, reader))

    return StatefulRunner(run_agent_hook, _nothing_to_close)


async def _verdict(spec: HookSpec, document: Document, env: Mapping[str, str], reader: HookSpec) -> Verdict:
    asked = model_of(spec)
    tools = (*_TOOLS, verdict_tool(takes_context=asked.takes_context))
    conversation = Conversation(asked, _SYSTEM, question(spec, document), tools)
    folder = _folder(spec, document)
    for turn in range(_MOST_TURNS):
        is_last = turn == _MOST_TURNS - 1
        reply = await conversation.ask(env, only=VERDICT if is_last else "")
        verdict = verdict_in(reply, takes_context=asked.takes_context)
        if verdict is not None:
            return verdict
        if len(reply.calls) > _MOST_CALLS:
            raise HookFailed(f"the model called more than {_MOST_CALLS} tools at once")
        conversation.add_results([(call, await _result(call, folder, reader)) for call in reply.calls])
        if conversation.size > _MOST_CHARACTERS:
            raise HookFailed("the model has read more than it can judge, and gave no verdict")
    raise HookFailed(f"the model gave no verdict in {_MOST_TURNS} turns")


async def _result(call: ToolCall, folder: str, reader: HookSpec) -> str:
    """What a call of a tool returns, or what is wrong with it: the model may try something else."""
    if call.name not in {tool.name for tool in _TOOLS}:
        return f"error: there is no tool {call.name}"
    try:
        raw_json.fields(call.arguments)
    except (ValueError, RecursionError):
        return "error: the arguments are not a JSON object"
    request = raw_json.encode({"root": folder, "tool": call.name, "input": Raw(call.arguments)})
    result = await run_command(reader, Document(request, {}), {"PATH": os.defpath})
    if result.ended is Ended.TIMED_OUT:
        return f"error: it takes more than {_TOOL_SECONDS:g} seconds"
    if result.ended is not Ended.EXITED or result.code:
        return "error: it could not be done"
    return result.stdout.decode(errors="replace")


def _folder(spec: HookSpec, document: Document) -> str:
    """The folder in which the agent works, as the document says it; else that of the hook's project."""
    try:
        cwd = raw_json.text(bytes(raw_json.fields(bytes(document.stdin)).get("cwd", b"")))
    except (ValueError, RecursionError, msgspec.MsgspecError):
        cwd = None
    return cwd if cwd and os.path.isabs(cwd) else spec.cwd


async def _nothing_to_close() -> None:
    """Each question has a connection of its own, and each process ends with its call."""
