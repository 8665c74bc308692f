"""Gemini CLI as an agent that runs a hook of another system."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

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
    split_underscored_name,
)
from ..shared import command_file
from ..shared.llm_outcome import llm_outcome
from .hook_file import FORMAT

_FILE: Final = ".gemini/settings.json"


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event in a document of Gemini CLI. Raises ValueError."""
    members = Members(raw)
    name = members.required("hook_event_name")
    event = event_of(AGENT_SIDE, name)
    cwd = members.text("cwd") or "/"
    session = Session(members.text("session_id"), "", cwd, environ.get("GEMINI_PROJECT_DIR") or cwd)
    if event not in (Event.PRE_TOOL_USE, Event.POST_TOOL_USE):
        trigger = members.text("source", "reason", "notification_type")
        return AgentEvent(name, EventContext(event, session, trigger=trigger, message=members.text("message")))
    tool_name = members.required("tool_name")
    server = members.object("mcp_context")
    server_tool = split_underscored_name(tool_name)  # versions without mcp_context
    if "tool_name" in server:
        server_tool = (server.text("server_name"), server.text("tool_name"))
    arguments = arguments_of(members.raw("tool_input"))
    context = call_context(AGENT_SIDE, event, session, tool_name, server_tool, arguments)
    if event is Event.POST_TOOL_USE:
        outcome = llm_outcome(members.object("tool_response"))
        event = Event.POST_TOOL_USE_FAILURE if outcome.error else event
        context = replace(context, event=event, outcome=outcome)
    return AgentEvent(name, context)


def _write_output(event: AgentEvent, decision: HookDecision) -> HookOutput:
    output: dict[str, object] = {"systemMessage": decision.message} if decision.message else {}
    if decision.stop:
        output |= {"continue": False, "stopReason": decision.reason}
    if decision.permission is Permission.DENY:
        output |= {"decision": "deny", "reason": decision.reason or "denied by a hook"}
    elif decision.permission is Permission.ASK:
        output |= {"decision": "ask", "reason": decision.reason}
    elif decision.permission is Permission.ALLOW:
        output["decision"] = "allow"
    specific: dict[str, object] = {}
    if decision.arguments is not None and decision.permission is not Permission.DENY:
        specific["tool_input"] = msgspec.Raw(decision.arguments)
    if decision.feedback:
        specific["additionalContext"] = decision.feedback
    if specific:
        output["hookSpecificOutput"] = {"hookEventName": event.name} | specific
    return json_output(output)


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="gemini",
    documents=DocumentSigns(values={"hook_event_name": ("BeforeTool", "AfterTool")}),
    file=_FILE,
    can=Can.ALLOW | Can.ASK | Can.REWRITE | Can.TELL_AFTER | Can.BLOCK_AFTER,
    read_document=_read_document,
    write_output=_write_output,
    write_hook_file=partial(command_file.write_hook_file, FORMAT, _FILE),
    events={
        "BeforeTool": Event.PRE_TOOL_USE,
        "AfterTool": Event.POST_TOOL_USE,
        "SessionStart": Event.SESSION_START,
        "SessionEnd": Event.SESSION_END,
        "Notification": Event.NOTIFICATION,
    },
    also={Event.POST_TOOL_USE_FAILURE: "AfterTool"},
    own_tool_members={"mcp_context": None},
)
