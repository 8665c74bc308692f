"""VS Code's local agent as an agent that runs a hook of another system."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from msgspec.structs import replace

from ...model.hooks import Event, EventContext, Session
from ..agent_documents import DocumentSigns, Members
from ..agent_side import (
    AgentEvent,
    AgentSide,
    Can,
    arguments_of,
    call_context,
    event_of,
    result_outcome,
    split_underscored_name,
)
from ..shared import claude_agent_side as envelope
from ..shared import command_file
from ..shared.events import by_name
from .hook_file import FORMAT

_FILE: Final = ".github/hooks/hookproxy.json"


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event in a document with members in snake_case. Raises ValueError."""
    members = Members(raw)
    name = members.required("hook_event_name", "hookEventName")
    event = event_of(AGENT_SIDE, name)
    cwd = members.text("cwd") or environ.get("PWD", "/")
    session = Session(members.text("session_id", "sessionId"), "", cwd, cwd)
    if event is Event.SESSION_START:
        return AgentEvent(name, EventContext(event, session, trigger=members.text("source")))
    tool_name = members.required("tool_name")
    arguments = arguments_of(members.raw("tool_input"))
    context = call_context(AGENT_SIDE, event, session, tool_name, split_underscored_name(tool_name), arguments)
    if event is Event.POST_TOOL_USE:
        context = replace(context, outcome=result_outcome(members.raw("tool_response", b'""')))
    return AgentEvent(name, replace(context, tool_use_id=members.text("tool_use_id")))


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="vscode",
    documents=DocumentSigns(has=("timestamp", "tool_use_id"), lacks=("permission_mode",)),
    file=_FILE,
    can=Can.ALLOW | Can.ASK | Can.REWRITE | Can.TELL_BEFORE | Can.TELL_AFTER | Can.BLOCK_AFTER,
    read_document=_read_document,
    write_output=partial(envelope.write_output, replacement=""),
    write_hook_file=partial(command_file.write_hook_file, FORMAT, _FILE),
    events=by_name(Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.SESSION_START),
    has_matchers=False,
    user_folder=(".github/", ".copilot/"),
)
