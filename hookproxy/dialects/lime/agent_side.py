"""Lime as an agent that runs a hook of another system. Its hooks after a call decide nothing, and have no matchers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from ...model.hooks import Event
from ..agent_documents import DocumentSigns, Members
from ..agent_side import AgentEvent, AgentSide, Can, result_outcome
from ..dialect import WrittenEntry
from ..shared import claude_agent_side as envelope
from ..shared.command_file import json_file
from ..shared.events import by_name
from .tools import TOOLS

_FILE: Final = ".lime/settings.json"


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    event = envelope.read_document(AGENT_SIDE, "", raw, environ)
    if event.context.event not in (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE):
        return event
    failed = event.context.event is Event.POST_TOOL_USE_FAILURE
    outcome = result_outcome(Members(raw).raw("tool_output", b'""'), failed=failed)
    return AgentEvent(event.name, replace(event.context, outcome=outcome))


def _write_hook_file(entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
    """Lists of command lines by event."""
    events: dict[str, list[str]] = {}
    for entry in entries:
        events.setdefault(entry.event_name, []).append(entry.command)
    return json_file(_FILE, {"hooks": events})


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="lime",
    documents=DocumentSigns(has=("event", "hook_event_name")),
    file=_FILE,
    can=Can.ALLOW | Can.ASK | Can.REWRITE | Can.TELL_BEFORE,
    read_document=_read_document,
    write_output=partial(envelope.write_output, replacement=""),
    write_hook_file=_write_hook_file,
    events=by_name(
        Event.PRE_TOOL_USE,
        Event.POST_TOOL_USE,
        Event.POST_TOOL_USE_FAILURE,
        Event.PERMISSION_REQUEST,
        Event.SESSION_START,
        Event.SESSION_END,
        Event.NOTIFICATION,
    ),
    has_matchers=False,
    own_tools=TOOLS,
)
