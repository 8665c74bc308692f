"""Claude Code as an agent that runs a hook of another system."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from ...model.hooks import Event
from ..agent_documents import DocumentSigns
from ..agent_side import AgentEvent, AgentSide, Can
from ..shared import claude_agent_side as envelope
from ..shared import command_file
from ..shared.events import by_name
from .hook_file import FORMAT


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    return envelope.read_document(AGENT_SIDE, "CLAUDE_PROJECT_DIR", raw, environ)


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="claude",
    documents=DocumentSigns(
        lacks=("turn_id", "timestamp"),
        values={"permission_mode": ("default", "plan", "acceptEdits", "auto", "dontAsk", "bypassPermissions")},
    ),
    file=".claude/settings.json",
    can=Can.ALLOW | Can.ASK | Can.REWRITE | Can.TELL_BEFORE | Can.TELL_AFTER | Can.REPLACE | Can.BLOCK_AFTER,
    read_document=_read_document,
    write_output=envelope.write_output,
    write_hook_file=partial(command_file.write_hook_file, FORMAT, ".claude/settings.json"),
    events=by_name(
        Event.PRE_TOOL_USE,
        Event.POST_TOOL_USE,
        Event.POST_TOOL_USE_FAILURE,
        Event.PERMISSION_REQUEST,
        Event.SESSION_START,
        Event.SESSION_END,
        Event.NOTIFICATION,
    ),
    user_variable="CLAUDE_CONFIG_DIR",
)
