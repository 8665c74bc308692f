"""Codex as an agent that runs a hook of another system."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from ...model.hooks import Event
from ..agent_side import AgentEvent, AgentSide, Answer, Can, HookOutput
from ..shared import claude_agent_side as envelope

_FILE: Final = ".codex/hooks.json"


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    return envelope.read_document(AGENT_SIDE, "", raw, environ)


def _write_output(event: AgentEvent, answer: Answer) -> HookOutput:
    """Codex takes "allow" only together with changed arguments: every other use makes the run fail."""
    return envelope.write_output(event, answer, explicit_allow=False, replacement="")


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="codex",
    file=_FILE,
    can=Can.REWRITE | Can.TELL_BEFORE | Can.TELL_AFTER | Can.BLOCK_AFTER,
    read_document=_read_document,
    write_output=_write_output,
    write_hook_file=partial(envelope.write_hook_file, _FILE),
    events={
        event.value: event
        for event in (
            Event.PRE_TOOL_USE,
            Event.POST_TOOL_USE,
            Event.PERMISSION_REQUEST,
            Event.SESSION_START,
            Event.SESSION_END,
        )
    },
    recognises=lambda members: "turn_id" in members,
)
