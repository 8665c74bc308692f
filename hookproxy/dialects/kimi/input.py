"""Writes the input of Kimi Code's hooks: the document on standard input."""

from __future__ import annotations

from ...model.hooks import Document, Event, EventContext, HookSpec
from ..shared import input as shared_input


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document. `tool_output` is whole, while Kimi Code cuts it to 2,000 characters: no guard misses a part."""
    session, outcome = context.session, context.outcome
    document: dict[str, object] = {
        "hook_event_name": context.event,
        "session_id": shared_input.utf8(session.id),
        "session_title": "",
        "client_type": "mcp",
        "cwd": shared_input.utf8(session.cwd),
    }
    if context.tool:
        document |= shared_input.call_members(context) | {"tool_call_id": context.tool_use_id}
    if outcome is not None:
        name = "error" if outcome.error else "tool_output"
        document[name] = shared_input.utf8(outcome.error or shared_input.result_text(outcome))
    if context.trigger:
        names = {Event.SESSION_START: "source", Event.NOTIFICATION: "notification_type"}
        document[names.get(context.event, "reason")] = context.trigger
    if context.message:
        document["message"] = shared_input.utf8(context.message)
    return Document(shared_input.json_line(document), {})
