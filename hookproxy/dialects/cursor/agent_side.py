"""Cursor as an agent that runs a hook of another system, by its events for all tools: preToolUse and its companions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from ...jsonrpc import raw_json
from ...model.aliases import Alias
from ...model.hooks import Event, EventContext, Outcome, Permission, Session
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
    milliseconds,
    result_outcome,
    text_outcome,
)
from ..shared import command_file
from .hook_file import FORMAT, MCP, OWN, TOOL_SPELLINGS

_FILE: Final = ".cursor/hooks.json"
_KNOWN: Final = frozenset(spelling.name for spellings in TOOL_SPELLINGS.values() for spelling in spellings)
_PERMISSIONS: Final = {Permission.ALLOW: "allow", Permission.DENY: "deny"}


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event in a document of Cursor. Raises ValueError."""
    members = Members(raw)
    name = members.required("hook_event_name")
    event = event_of(AGENT_SIDE, name)
    project = environ.get("CURSOR_PROJECT_DIR") or environ.get("PWD", "/")
    session = Session(members.text("conversation_id", "session_id"), "", members.text("cwd") or project, project)
    if event in (Event.SESSION_START, Event.SESSION_END):
        trigger = "startup" if event is Event.SESSION_START else "other"
        return AgentEvent(name, EventContext(event, session, trigger=trigger))
    context = _call(event, session, members)
    if event is Event.POST_TOOL_USE:
        context = replace(context, outcome=_outcome(members))
    if event is Event.POST_TOOL_USE_FAILURE and members.text("failure_type") == "permission_denied":
        context = replace(context, event=Event.PERMISSION_DENIED, message=members.text("error_message"))
    elif event is Event.POST_TOOL_USE_FAILURE:
        duration = milliseconds(members.raw("duration"))
        outcome = text_outcome(members.text("error_message") or "the tool failed", failed=True, duration_ms=duration)
        context = replace(context, outcome=replace(outcome, interrupted=members.raw("is_interrupt") == b"true"))
    return AgentEvent(name, replace(context, tool_use_id=members.text("tool_use_id")))


def _call(event: Event, session: Session, members: Members) -> EventContext:
    tool_name = members.required("tool_name")
    arguments = arguments_of(members.raw("tool_input"))
    if tool_name.startswith(MCP):  # without the server's name
        return call_context(AGENT_SIDE, event, session, tool_name, ("", tool_name.removeprefix(MCP)), arguments)
    if OWN + tool_name in _KNOWN:
        return call_context(AGENT_SIDE, event, session, OWN + tool_name, None, arguments)
    return EventContext(event, session, tool=tool_name, arguments=arguments, alias=Alias(tool_name, tool_name))


def _outcome(members: Members) -> Outcome:
    """The result, which is JSON in a string. Of a command it has the output as `stdout`."""
    text, duration = members.text("tool_output"), milliseconds(members.raw("duration"))
    try:
        output = Members(text.encode(errors="replace")).text("stdout")
    except ValueError:  # other text
        return text_outcome(text, duration_ms=duration)
    if output:
        return text_outcome(output, duration_ms=duration)
    return result_outcome(text.encode(errors="replace"), duration_ms=duration)


def _write_output(event: AgentEvent, decision: HookDecision) -> HookOutput:
    if event.context.event is Event.PRE_TOOL_USE:
        return replace(_before_call(decision), stderr=decision.message)
    output: dict[str, object] = {"additional_context": decision.feedback} if decision.feedback else {}
    messages = [decision.message]
    if decision.replacement is not None and event.context.alias is None:
        output["updated_mcp_tool_output"] = _object(decision.replacement)
    elif decision.replacement is not None:
        messages.append("cursor does not let hooks replace the output of its own tools: the model reads it")
    return replace(json_output(output), stderr="\n".join(filter(None, messages)))


def _before_call(decision: HookDecision) -> HookOutput:
    """The decision. Without one it is an empty object, because with failClosed no output at all is a failure."""
    if decision.permission is Permission.DENY or decision.stop:
        reason = decision.reason or "denied by a hook"
        return json_output({"permission": "deny", "user_message": decision.message or reason, "agent_message": reason})
    output: dict[str, object] = {}
    if decision.permission is not None:
        output["permission"] = _PERMISSIONS[decision.permission]
    if decision.arguments is not None:
        output["updated_input"] = msgspec.Raw(decision.arguments)
    return HookOutput(raw_json.encode(output) + b"\n")


def _object(replacement: bytes) -> msgspec.Raw:
    """The output that the model reads instead, as an object: a text or another value becomes a result of MCP."""
    if replacement.startswith(b"{"):
        return msgspec.Raw(replacement)
    text = raw_json.text(replacement)
    block = {"type": "text", "text": replacement.decode(errors="replace") if text is None else text}
    return msgspec.Raw(raw_json.encode({"content": [block]}))


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="cursor",
    documents=DocumentSigns(has=("cursor_version",)),
    file=_FILE,
    can=Can.ALLOW | Can.REWRITE | Can.TELL_AFTER | Can.REPLACE,
    read_document=_read_document,
    write_output=_write_output,
    write_hook_file=partial(command_file.write_hook_file, FORMAT, _FILE),
    events={
        "preToolUse": Event.PRE_TOOL_USE,
        "postToolUse": Event.POST_TOOL_USE,
        "postToolUseFailure": Event.POST_TOOL_USE_FAILURE,
        "sessionStart": Event.SESSION_START,
        "sessionEnd": Event.SESSION_END,
    },
    also={Event.PERMISSION_DENIED: "postToolUseFailure"},
)
