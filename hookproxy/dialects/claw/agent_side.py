"""claw-code as an agent that runs a hook of another system, by what both of its editions do.

A hook before a call may refuse it, one after a call may reject the result, and each may tell the model something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from ...model.hooks import Event, Permission, Session
from ..agent_documents import DocumentSigns, Members
from ..agent_side import (
    AgentEvent,
    AgentSide,
    Can,
    HookDecision,
    HookOutput,
    arguments_of,
    call_context,
    event_of,
    split_mcp_name,
    text_outcome,
)
from ..dialect import WrittenEntry
from ..shared.command_file import json_file
from .hook_file import FAILURE_EVENT
from .output import DENIES
from .tools import TOOLS

_FILE: Final = ".claw/settings.json"


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event in a document of claw-code, which names no session and no folder. Raises ValueError."""
    members = Members(raw)
    name = members.required("hook_event_name")
    event = Event.POST_TOOL_USE_FAILURE if name == FAILURE_EVENT else event_of(AGENT_SIDE, name)
    cwd = environ.get("PWD", "/")
    session = Session("", "", cwd, cwd)
    tool_name = members.required("tool_name")
    arguments = arguments_of(members.raw("tool_input"))
    context = call_context(AGENT_SIDE, event, session, tool_name, split_mcp_name(tool_name), arguments)
    if event is Event.PRE_TOOL_USE:
        return AgentEvent(name, context)
    failed = event is Event.POST_TOOL_USE_FAILURE or members.raw("tool_result_is_error") == b"true"
    outcome = text_outcome(members.text("tool_error", "tool_output"), failed=failed)
    event = Event.POST_TOOL_USE_FAILURE if failed else event
    return AgentEvent(name, replace(context, event=event, outcome=outcome))


def _write_output(_event: AgentEvent, decision: HookDecision) -> HookOutput:
    """Standard output is the text for the model, and with exit status 2 the reason of a denial."""
    denies = decision.permission is Permission.DENY
    texts = (decision.reason or "denied by a hook" if denies else "", decision.feedback)
    text = "\n\n".join(filter(None, texts))
    if text.lstrip().startswith(("{", "[")):
        text = f"The hook said: {text}"  # the current edition would read JSON as a decision
    return HookOutput(f"{text}\n".encode() if text else b"", decision.message, DENIES if denies else 0)


def _refuse(reason: str) -> HookOutput:
    return HookOutput(f"{reason}\n".encode(), status=DENIES)


def _write_hook_file(entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
    """Command strings; a group only for a matcher in claw-code's own syntax, which its first edition does not know."""
    events: dict[str, list[object]] = {}
    for entry in entries:
        group = {"matcher": entry.matcher, "hooks": [{"type": "command", "command": entry.command}]}
        events.setdefault(entry.event_name, []).append(group if entry.matcher else entry.command)
    return json_file(_FILE, {"hooks": events})


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="claw",
    documents=DocumentSigns(has=("tool_input_json",)),
    file=_FILE,
    can=Can.TELL_BEFORE | Can.TELL_AFTER | Can.BLOCK_AFTER,
    read_document=_read_document,
    write_output=_write_output,
    write_hook_file=_write_hook_file,
    events={"PreToolUse": Event.PRE_TOOL_USE, "PostToolUse": Event.POST_TOOL_USE},
    also={Event.POST_TOOL_USE_FAILURE: "PostToolUse"},
    refuse=_refuse,
    own_tools=TOOLS,
    user_variable="CLAW_CONFIG_HOME",
)
