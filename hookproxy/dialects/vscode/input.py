"""Writes the input of the hooks of VS Code's local agent: the document on standard input."""

from __future__ import annotations

from ...model.hooks import Document, Event, EventContext, HookSpec
from ..shared import input as shared_input
from ..shared.output import AFTER_CALL


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, with members in snake_case as in VS Code's source. There are no variables.

    `hook_event_name` is VS Code's own name, whichever spelling the file has.
    """
    session = context.session
    document: dict[str, object] = {
        "timestamp": shared_input.iso_8601(context.at),
        "hook_event_name": (Event.POST_TOOL_USE if context.event in AFTER_CALL else context.event).value,
        "session_id": shared_input.utf8(session.id),
        "transcript_path": "",  # required by the documentation, and an MCP server has none
        "cwd": shared_input.utf8(spec.cwd or session.cwd),
    }
    if context.event is Event.SESSION_START:
        return Document(shared_input.json_line(document | {"source": "new"}), {})
    document |= shared_input.call_members(context)
    if context.event in AFTER_CALL:
        document["tool_response"] = shared_input.utf8_result(context)
    return Document(shared_input.json_line(document | {"tool_use_id": context.tool_use_id}), {})
