"""Kiro as an agent that runs a hook of another system, by its files of version v1: a hook may refuse, and no more."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from ...model.hooks import Event, EventContext
from ..agent_documents import DocumentSigns, Members
from ..agent_side import (
    AgentEvent,
    AgentSide,
    Can,
    arguments_of,
    call_context,
    event_of,
    output_by_status,
    result_outcome,
    session_of,
    split_underscored_name,
)
from ..dialect import WrittenEntry
from ..shared import command_file
from .hook_file import AGENT_FILE, VERSION_1_FILE

_FILE: Final = ".kiro/hooks/hookproxy.json"
_AGENT_FILE: Final = ".kiro/agents/hookproxy.json"


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event in a document of Kiro; its versions spell the event `preToolUse` or `PreToolUse`. Raises ValueError."""
    members = Members(raw)
    name = members.required("hook_event_name")
    name = name[:1].upper() + name[1:]
    event = event_of(AGENT_SIDE, name)
    session = session_of(members, environ)
    if event is Event.SESSION_START:
        return AgentEvent(name, EventContext(event, session, trigger="startup"))
    tool_name = members.required("tool_name")
    arguments = arguments_of(members.raw("tool_input"))
    context = call_context(AGENT_SIDE, event, session, tool_name, _server_tool(tool_name), arguments)
    if event is not Event.POST_TOOL_USE:
        return AgentEvent(name, context)
    response = members.raw("tool_response", b'""')
    parts = members.object("tool_response")
    failed = parts.raw("success") == b"false"
    shown = parts.raw("error" if failed else "result", response) if "success" in parts else response
    event = Event.POST_TOOL_USE_FAILURE if failed else event
    return AgentEvent(name, replace(context, event=event, outcome=result_outcome(_blocks(shown), failed=failed)))


def _blocks(raw: bytes) -> bytes:
    """A list of texts is not a list of content blocks: its JSON is the text."""
    return json.dumps(raw.decode(errors="replace")).encode() if raw.startswith(b"[") else raw


def _server_tool(name: str) -> tuple[str, str] | None:
    """Server and tool of `@SERVER/TOOL`, or of the IDE's `mcp_SERVER_TOOL`."""
    server, separator, tool = name.removeprefix("@").partition("/")
    return (server, tool) if name.startswith("@") and separator else split_underscored_name(name)


def _write_hook_file(entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
    """A file of version 1, and an agent file for events that are spelled as there: the matchers of both differ."""
    of_agent = [entry for entry in entries if entry.event_name[:1].islower()]
    files: dict[str, str] = {}
    if of_agent:
        files |= command_file.write_hook_file(AGENT_FILE, _AGENT_FILE, of_agent)
    if len(of_agent) < len(entries):
        of_version_1 = [_version_1(number, entry) for number, entry in enumerate(entries, 1) if entry not in of_agent]
        files |= command_file.json_file(_FILE, {"version": "v1", "hooks": of_version_1})
    return files


def _version_1(number: int, entry: WrittenEntry) -> dict[str, object]:
    return {
        "name": f"hookproxy {number}",
        "trigger": entry.event_name,
        **command_file.written_matcher(VERSION_1_FILE.matchers, entry),
        "action": {"type": "command", "command": entry.command},
        **VERSION_1_FILE.timeouts.members(entry.timeout),
        "enabled": True,
    }


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="kiro",
    documents=DocumentSigns(
        values={"hook_event_name": ("preToolUse", "PreToolUse", "postToolUse", "PostToolUse"), "tool_name": ("@*",)}
    ),
    file=_FILE,
    can=Can.NOTHING,
    read_document=_read_document,
    write_output=output_by_status,
    write_hook_file=_write_hook_file,
    events={
        "PreToolUse": Event.PRE_TOOL_USE,
        "PostToolUse": Event.POST_TOOL_USE,
        "SessionStart": Event.SESSION_START,
    },
    also={Event.POST_TOOL_USE_FAILURE: "PostToolUse"},
)
