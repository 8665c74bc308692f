"""The document that the hooks of systems get whose reference follows Claude Code's: its members, and no others."""

from __future__ import annotations

from typing import Final

from ...model.hooks import Event, EventContext, Outcome
from ..dialect import for_names
from . import input as shared_input
from .events import COMPACTION_UNSEEN, INSIDE_AGENT, PROMPTS_UNSEEN, TURNS_AND_SUBAGENTS_UNSEEN

UNAVAILABLE: Final = for_names(
    {
        PROMPTS_UNSEEN: "UserPromptSubmit",
        TURNS_AND_SUBAGENTS_UNSEEN: (
            "Stop StopFailure SubagentStart SubagentStop TaskCreated TaskCompleted TeammateIdle"
        ),
        COMPACTION_UNSEEN: "PreCompact PostCompact",
        INSIDE_AGENT: (
            "PermissionDenied ConfigChange InstructionsLoaded CwdChanged FileChanged WorktreeCreate WorktreeRemove"
            " Setup"
        ),
        "its page does not say what such a hook decides": "Elicitation ElicitationResult",
    }
)
"""The events that cannot fire behind MCP, or of which such a reference does not say what they decide."""


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
