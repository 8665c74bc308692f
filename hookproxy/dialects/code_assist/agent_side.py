"""code-assist as an agent that runs a hook of another system. Its hooks have no matchers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from ...jsonrpc import raw_json
from ...model.aliases import ToolSpelling
from ...model.hooks import Event, EventContext, Permission, Session
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
    json_output,
    result_outcome,
    split_mcp_name,
    text_outcome,
)
from ..shared import command_file
from ..shared.events import by_name
from .hook_file import FORMAT
from .tools import TOOLS

_FILE: Final = ".claude/settings.json"
_DECISIONS: Final = {Permission.ALLOW: "approve", Permission.DENY: "deny"}


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event in a document of code-assist, which after a failure does not show the arguments. Raises ValueError."""
    members = Members(raw)
    name = members.required("hook_event")
    event = event_of(AGENT_SIDE, name)
    cwd = members.text("cwd") or environ.get("PWD", "/")
    session = Session(members.text("session_id"), "", cwd, cwd)
    if event in (Event.SESSION_START, Event.NOTIFICATION):
        trigger = "startup" if event is Event.SESSION_START else ""
        return AgentEvent(name, EventContext(event, session, trigger=trigger))
    tool_name = members.required("tool_name")
    arguments = members.raw("tool_input")
    if event is Event.POST_TOOL_USE_FAILURE and arguments == b"null":
        arguments = b"{}"
    server_tool = split_mcp_name(tool_name)
    context = call_context(AGENT_SIDE, event, session, tool_name, server_tool, arguments_of(arguments))
    output = members.raw("tool_output", b'""')
    if event is Event.POST_TOOL_USE:
        context = replace(context, outcome=result_outcome(b'""' if output == b"null" else output))
    if event is Event.POST_TOOL_USE_FAILURE:
        context = replace(context, outcome=text_outcome(members.text("tool_output") or "the tool failed", failed=True))
    return AgentEvent(name, replace(context, tool_use_id=members.text("tool_use_id")))


def _write_output(_event: AgentEvent, decision: HookDecision) -> HookOutput:
    output: dict[str, object] = {}
    if decision.permission in _DECISIONS:
        output["decision"] = _DECISIONS[decision.permission]
    if decision.permission is Permission.DENY:
        output["reason"] = decision.reason or "denied by a hook"
    elif decision.arguments is not None:
        output["updated_input"] = msgspec.Raw(decision.arguments)
    if decision.replacement is not None:
        output["updated_output"] = _text(decision.replacement)
    if decision.feedback:
        output["additional_context"] = decision.feedback
    if decision.message:
        output["status_message"] = decision.message
    return json_output(output)


def _text(replacement: bytes) -> str:
    """Other output as a text: code-assist knows no blocks."""
    text = raw_json.text(replacement)
    return replacement.decode(errors="replace") if text is None else text


def _refuse(reason: str) -> HookOutput:
    """Its page names no exit status that denies, and its program has none."""
    return json_output({"decision": "deny", "reason": reason})


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="code-assist",
    documents=DocumentSigns(has=("hook_event",)),
    file=_FILE,
    can=Can.ALLOW | Can.REWRITE | Can.TELL_BEFORE | Can.TELL_AFTER | Can.REPLACE,
    read_document=_read_document,
    write_output=_write_output,
    write_hook_file=partial(command_file.write_hook_file, FORMAT, _FILE),
    events=by_name(
        Event.PRE_TOOL_USE,
        Event.POST_TOOL_USE,
        Event.POST_TOOL_USE_FAILURE,
        Event.PERMISSION_REQUEST,
        Event.SESSION_START,
        Event.NOTIFICATION,
    ),
    refuse=_refuse,
    has_matchers=False,
    own_tools={known: (*of_tool, ToolSpelling(known)) for known, of_tool in TOOLS.items()},
)
