"""Kimi Code as an agent that runs a hook of another system: a hook may refuse, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from ...model.hooks import Event
from ..agent_documents import DocumentSigns, Members
from ..agent_side import AgentEvent, AgentSide, Can, output_by_status, result_outcome
from ..dialect import WrittenEntry
from ..shared import claude_agent_side as envelope
from ..shared import command_file
from ..shared.events import by_name
from .hook_file import FORMAT

_FILE: Final = ".kimi-code/config.toml"


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    event = envelope.read_document(AGENT_SIDE, "", raw, environ)
    members = Members(raw)
    context = replace(event.context, tool_use_id=members.text("tool_call_id"))
    if context.event is Event.POST_TOOL_USE:
        context = replace(context, outcome=result_outcome(members.raw("tool_output", b'""')))
    return AgentEvent(event.name, context)


def _write_hook_file(entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
    """Tables of TOML, whose strings JSON spells as well."""
    tables = [
        {"event": name, **hook}
        for name, hooks in command_file.written_events(FORMAT, entries).items()
        for hook in hooks
    ]
    lines = ("".join(f"{name} = {json.dumps(value)}\n" for name, value in table.items()) for table in tables)
    return {_FILE: "\n".join(f"[[hooks]]\n{one}" for one in lines)}


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="kimi",
    documents=DocumentSigns(has=("client_type",)),
    file=_FILE,
    can=Can.NOTHING,
    read_document=_read_document,
    write_output=output_by_status,
    write_hook_file=_write_hook_file,
    events=by_name(
        Event.PRE_TOOL_USE,
        Event.POST_TOOL_USE,
        Event.POST_TOOL_USE_FAILURE,
        Event.SESSION_START,
        Event.SESSION_END,
        Event.NOTIFICATION,
    ),
)
