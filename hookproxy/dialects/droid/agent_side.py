"""Factory Droid as an agent that runs a hook of another system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...model.hooks import Event
from ..agent_documents import DocumentSigns
from ..agent_side import AgentEvent, AgentSide, Can, HookDecision, HookOutput
from ..shared import claude_agent_side as envelope
from ..shared import command_file
from ..shared.events import by_name
from .hook_file import FORMAT

_FILE: Final = ".factory/hooks.json"


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    return envelope.read_document(AGENT_SIDE, "FACTORY_PROJECT_DIR", raw, environ)


def _write_output(event: AgentEvent, decision: HookDecision) -> HookOutput:
    return envelope.write_output(event, decision, replacement="")


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="droid",
    documents=DocumentSigns(values={"permission_mode": ("off", "spec", "auto-low", "auto-medium", "auto-high")}),
    file=_FILE,
    can=Can.ALLOW | Can.ASK | Can.REWRITE | Can.TELL_AFTER | Can.BLOCK_AFTER,
    read_document=_read_document,
    write_output=_write_output,
    write_hook_file=lambda entries: command_file.json_file(_FILE, command_file.written_events(FORMAT, entries)),
    events=by_name(Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.SESSION_START, Event.SESSION_END, Event.NOTIFICATION),
    merges=True,
)
