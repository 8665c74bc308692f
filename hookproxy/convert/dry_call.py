"""Runs the entries of a converted hook file once, as the target's agent would, before the file is written.

The documents are those of harmless calls: a file that is made for this and removed again, or the command `true`. What
the hooks decide does not matter; a hook that cannot run does, because agents let calls pass then.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..dialects.agent_side import AgentSide, split_mcp_name, text_outcome
from ..dialects.dialect import WrittenEntry
from ..dialects.registry import hook_system
from ..model.hooks import Document, Event, EventContext, HookSpec, Session
from ..processes.short_command import output_of
from .hook_file import HARMLESS, Converted
from .run_hook import FAILED

_EVENTS: Final = (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST, Event.POST_TOOL_USE)
"""The events that are tried: others are about no call, and their hooks may start something that stays."""

_SECONDS: Final = 60.0
"""How long an entry may take: hooks of most systems have that long, and people wait here."""

_REFUSED: Final = 2
"""The exit status of a hook that refuses a call, which is not a failure."""

_ERROR: Final = re.compile(r'(?:^|")error: ([^\n\\"]*)', re.M)
"""An error of `hookproxy hook` itself: on standard error, or as the reason in a document."""

_MISSING: Final = ("not found", "No such file or directory", "Permission denied")
"""How shells end a line about a program that cannot be started."""


class DryCall(Struct, frozen=True):
    """One call for which the agent would run an entry."""

    event_name: str
    tool: str
    """As the target spells it."""
    command: str
    document: Document


def failures(converted: Converted, target: AgentSide, folder: str, environ: Mapping[str, str]) -> list[str]:
    """Run each entry in `folder`. Returns a line for each one that failed."""
    found: dict[str, None] = {}
    with TemporaryDirectory(prefix="hookproxy-") as scratch:
        path = os.path.join(scratch, "dry-call.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("harmless\n")
        for call in _calls(converted, target, folder, path):
            if failure := _failure(call, converted.program, folder, environ):
                found[f"{call.event_name}: a dry call of {call.tool} failed: {failure}"] = None
    return list(found)


def listing_failure(converted: Converted, folder: str, environ: Mapping[str, str]) -> list[str]:
    """Have the server of interceptors list what it offers, in `folder`. Returns a line if it does not."""
    server = converted.server
    start = server[: server.index("interceptors") + 1]
    command = shlex.join((*start, "list", "--", *server))
    ended = output_of(("sh", "-c", command), b"", folder, environ, _SECONDS)
    if ended is None:
        return [f"{server[0]} lists nothing within {_SECONDS:g} seconds"]
    if not ended.status:
        return []
    errors = " ".join(ended.stderr.decode(errors="replace").split())
    return [errors.removeprefix("error: ") or f"exit status {ended.status}"]


def _calls(converted: Converted, target: AgentSide, folder: str, path: str) -> Iterator[DryCall]:
    for entry in converted.entries:
        event = target.events.get(entry.event_name)
        if event not in _EVENTS:
            continue
        tools = converted.tools[entry.event_name]
        calls = [call for tool in tools if (call := _call(entry, target, tool, folder, path))]
        yield from calls or filter(None, (_call(entry, target, tool, folder, path) for tool in HARMLESS))


def _call(entry: WrittenEntry, target: AgentSide, tool: str, folder: str, path: str) -> DryCall | None:
    """A call of the tool; None if the entry's event is about another tool of the agent."""
    event = target.events[entry.event_name]
    spec = HookSpec(target.name, entry.event_name, event, entry.event_name, event_name=entry.event_name)
    context = _context(target, event, tool, folder, path)
    for written in (context, replace(context, tool_name=context.tool)):  # some agents name the server beside the tool
        document = hook_system(target.name).write_input(spec, written)
        if not context.session.server:
            document = _of_own_tool(document, target.own_tool_members)
        read = target.read_document(bytes(document.stdin), {"PWD": folder, **document.env}).context
        if _is_about(read, context.tool if context.session.server else "", tool):
            return DryCall(entry.event_name, written.tool_name, entry.command, document)
    return None


def _is_about(context: EventContext, server_tool: str, familiar: str) -> bool:
    """Whether hooks would know the call as one of a server's tool, or of the tool with this familiar name."""
    if server_tool:
        return context.alias is None and context.tool.endswith(server_tool) and "__" not in context.tool
    return context.alias is not None and familiar in context.alias.names


def _context(target: AgentSide, event: Event, tool: str, folder: str, path: str) -> EventContext:
    """The event about a harmless call of a tool: a familiar name, or mcp__SERVER__TOOL."""
    outcome = text_outcome("") if event is Event.POST_TOOL_USE else None
    server_tool = split_mcp_name(tool)
    if server_tool is not None:
        server, name = server_tool
        shown, arguments = target.mcp_tool_name(server, name), {}
    else:
        server, arguments = "", _arguments(tool, path)
        spelling = next(iter(target.tool_spellings().get(tool, ())), None)
        name = shown = spelling.name if spelling else tool
        renamed = spelling.arguments if spelling else {}
        arguments = {renamed.get(key, key): value for key, value in arguments.items()}
        arguments = dict(target.harmless_arguments.get(name, arguments))
    return EventContext(
        event,
        Session("hookproxy-dry-call", server, folder, folder),
        tool=name,
        tool_name=shown,
        tool_use_id="hookproxy-dry-call",
        arguments=json.dumps(arguments).encode(),
        outcome=outcome,
    )


def _of_own_tool(document: Document, members: Mapping[str, object]) -> Document:
    """The document about a tool of the agent's own, where hookproxy writes one about a server's."""
    if not members:
        return document
    values = {**json.loads(bytes(document.stdin)), **members}
    kept = {name: value for name, value in values.items() if members.get(name, value) is not None}
    return Document(json.dumps(kept).encode(), document.env)


def _arguments(tool: str, path: str) -> dict[str, object]:
    """Arguments of a harmless call, under the familiar names."""
    by_name: dict[str, dict[str, object]] = {
        "Bash": {"command": "true"},
        "Glob": {"pattern": "*.txt", "path": os.path.dirname(path)},
        "Grep": {"pattern": "harmless", "path": path},
        "WebFetch": {"url": "https://example.com/", "prompt": "what is it?"},
        "WebSearch": {"query": "example"},
        "Write": {"file_path": path, "content": "harmless\n"},
        "Edit": {"file_path": path, "old_string": "harmless", "new_string": "harmless"},
        "MultiEdit": {"file_path": path, "edits": [{"old_string": "harmless", "new_string": "harmless"}]},
        "NotebookEdit": {"notebook_path": path, "new_source": "harmless"},
    }
    return by_name.get(tool, {"file_path": path})


def _failure(call: DryCall, program: str, folder: str, environ: Mapping[str, str]) -> str:
    """Why the entry failed, in one line; empty: it did not."""
    variables = {**environ, **call.document.env}
    ended = output_of(("sh", "-c", call.command), bytes(call.document.stdin), folder, variables, _SECONDS)
    if ended is None:
        return f"it does not end within {_SECONDS:g} seconds"
    stderr = ended.stderr.decode(errors="replace")
    lines = stderr.strip().splitlines()
    for line in lines:
        if line.startswith(FAILED):
            return line.removeprefix(FAILED)
    if error := _ERROR.search(stderr) or _ERROR.search(ended.stdout.decode(errors="replace")):
        return error[1]
    missing = [line for line in lines if f"{program}: " in line and line.endswith(_MISSING)]
    if ended.status not in (0, _REFUSED) or missing:
        return next(iter(missing or lines[-1:]), f"exit status {ended.status}")
    return ""
