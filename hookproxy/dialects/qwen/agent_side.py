"""Qwen Code as an agent that runs a hook of another system."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from msgspec import structs

from ...model.hooks import Event
from ..agent_documents import DocumentSigns, Members
from ..agent_side import AgentEvent, AgentSide, Can, HookDecision, HookOutput
from ..shared import claude_agent_side as envelope
from ..shared import command_file
from ..shared.events import by_name
from ..shared.llm_outcome import llm_outcome
from .hook_file import FORMAT

_FILE: Final = ".qwen/settings.json"


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    event = envelope.read_document(AGENT_SIDE, "QWEN_PROJECT_DIR", raw, environ)
    response = Members(raw).object("tool_response")
    if event.context.event is not Event.POST_TOOL_USE or "llmContent" not in response:
        return event
    duration = event.context.outcome.duration_ms if event.context.outcome else 0
    return structs.replace(event, context=structs.replace(event.context, outcome=llm_outcome(response, duration)))


def _write_output(event: AgentEvent, decision: HookDecision) -> HookOutput:
    return envelope.write_output(event, decision, replacement="")


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="qwen",
    documents=DocumentSigns(has=("timestamp", "permission_mode")),
    file=_FILE,
    can=Can.ALLOW | Can.ASK | Can.TELL_BEFORE | Can.TELL_AFTER,
    read_document=_read_document,
    write_output=_write_output,
    write_hook_file=partial(command_file.write_hook_file, FORMAT, _FILE),
    events=by_name(
        Event.PRE_TOOL_USE,
        Event.POST_TOOL_USE,
        Event.POST_TOOL_USE_FAILURE,
        Event.PERMISSION_REQUEST,
        Event.SESSION_START,
        Event.SESSION_END,
        Event.NOTIFICATION,
    ),
)
