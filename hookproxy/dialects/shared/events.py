"""The names of events in hook files, and the reasons why some events never occur behind MCP."""

from __future__ import annotations

from typing import Final

from ...model.hooks import Event

BEFORE_CALL: Final = (Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST)
AFTER_CALL: Final = (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)

PROMPTS_UNSEEN: Final = "prompts never pass through MCP"
TURNS_UNSEEN: Final = "an MCP server does not see the agent's turns"
SUBAGENTS_UNSEEN: Final = "an MCP server does not see subagents"
TURNS_AND_SUBAGENTS_UNSEEN: Final = "an MCP server does not see turns and subagents"
COMPACTION_UNSEEN: Final = "the agent compacts its conversation itself, and an MCP server does not see it"
INSIDE_AGENT: Final = "it happens inside the agent, and an MCP server does not see it"
"""In `unavailable`: what the remark on an event's hooks gives as the reason."""


def by_name(*events: Event) -> dict[str, Event]:
    """These events under Claude Code's names for them, which other systems have, too."""
    return {event.value: event for event in events}
