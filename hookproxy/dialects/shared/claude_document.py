"""The document that the hooks of systems get whose reference follows Claude Code's: its members, and no others."""

from __future__ import annotations

from ...model.hooks import Event, EventContext, Outcome
from . import input as shared_input


def members(context: EventContext) -> dict[str, object]:
    """The members on an event, in the order of Claude Code's reference. There is no transcript: its path is empty."""
    session, outcome = context.session, context.outcome or Outcome()
    document: dict[str, object] = {
        "session_id": shared_input.utf8(session.id),
        "transcript_path": "",
        "cwd": shared_input.utf8(session.cwd),
        "permission_mode": "default",
        "hook_event_name": context.event,
    }
    match context.event:
        case Event.SESSION_START:
            document["source"] = context.trigger
        case Event.SESSION_END:
            document["reason"] = "other"  # of the reasons, the one that holds for an agent that disconnects
        case Event.NOTIFICATION:
            document |= {"message": shared_input.utf8(context.message), "notification_type": context.trigger}
        case _:
            document |= shared_input.call_members(context)
    if context.event in (Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE):
        document["tool_use_id"] = shared_input.utf8(context.tool_use_id)
    if context.event is Event.POST_TOOL_USE:
        document["tool_response"] = shared_input.utf8_result(context)
    if context.event is Event.POST_TOOL_USE_FAILURE:
        document |= {"error": shared_input.utf8(outcome.error), "is_interrupt": outcome.interrupted}
    return document
