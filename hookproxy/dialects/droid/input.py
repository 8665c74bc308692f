"""Writes the input of Factory Droid's hooks: the document on standard input, and the project's folder."""

from __future__ import annotations

from ...model.hooks import Document, Event, EventContext, HookSpec
from ..shared import input as shared_input


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, with its members in the order of Droid's reference."""
    session = context.session
    document: dict[str, object] = {
        "session_id": shared_input.utf8(session.id),
        "transcript_path": "",  # required, and an MCP server has none
        "cwd": shared_input.utf8(session.cwd),
        "permission_mode": "off",
        "hook_event_name": context.event,
    }
    match context.event:
        case Event.PRE_TOOL_USE | Event.POST_TOOL_USE:
            document |= shared_input.call_members(context)
        case Event.NOTIFICATION:
            document["message"] = shared_input.utf8(context.message)
        case Event.SESSION_START:
            document["source"] = context.trigger
        case _:
            document["reason"] = "other"  # of Droid's reasons, the one that holds for an agent that disconnects
    if context.event is Event.POST_TOOL_USE:
        document["tool_response"] = shared_input.utf8_result(context)
    return Document(shared_input.json_line(document), {"FACTORY_PROJECT_DIR": session.project_dir})
