"""Goose as an agent that runs a hook of another system: a hook may refuse, and nothing else."""

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
    output_by_status,
    text_outcome,
)
from ..shared import command_file
from ..shared.events import by_name
from .hook_file import FORMAT

_FILE: Final = ".agents/plugins/hookproxy/hooks/hooks.json"
_SESSION: Final = {Event.SESSION_START: "startup", Event.SESSION_END: "other"}


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event in a document of Goose, which gives no result of a call. Raises ValueError."""
    members = Members(raw)
    name = members.required("event")
    event = event_of(AGENT_SIDE, name)
    cwd = members.text("working_dir") or environ.get("PWD", "/")
    session = Session(members.text("session_id"), "", cwd, cwd)
    if event in _SESSION:
        return AgentEvent(name, EventContext(event, session, trigger=_SESSION[event]))
    tool_name = members.required("tool_name")
    own = {one.name for spellings in AGENT_SIDE.tool_spellings().values() for one in spellings}
    server, _, tool = tool_name.partition("__")
    server_tool = None if tool_name in own or not tool else (server, tool)
    arguments = arguments_of(members.raw("tool_input"))
    context = call_context(AGENT_SIDE, event, session, tool_name, server_tool, arguments)
    if event is not Event.PRE_TOOL_USE:
        failed = event is Event.POST_TOOL_USE_FAILURE
        context = replace(context, outcome=text_outcome("the tool failed" if failed else "", failed=failed))
    return AgentEvent(name, replace(context, tool_use_id=members.text("tool_call_id")))


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="goose",
    documents=DocumentSigns(has=("matcher_context",)),
    file=_FILE,
    can=Can.NOTHING,
    read_document=_read_document,
    write_output=output_by_status,
    write_hook_file=partial(command_file.write_hook_file, FORMAT, _FILE),
    events=by_name(
        Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE, Event.SESSION_START, Event.SESSION_END
    ),
)
