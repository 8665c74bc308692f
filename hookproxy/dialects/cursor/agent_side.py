"""Cursor as an agent that runs a hook of another system, by its events for all tools: preToolUse and its companions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from ...jsonrpc import raw_json
from ...model.hooks import Event, Outcome, Permission, Session
from ...model.settings import ServerNamed
from ..agent_documents import DocumentSigns, Members
from ..agent_side import (
    AgentEvent,
    AgentSide,
    Can,
    DocumentForm,
    HookDecision,
    HookOutput,
    json_output,
    milliseconds,
    read_document,
    result_outcome,
    text_outcome,
)
from .hook_file import FORMAT, MCP, OWN, TOOL_SPELLINGS

_KNOWN: Final = frozenset(spelling.name for spellings in TOOL_SPELLINGS.values() for spelling in spellings)


def _tool_name(members: Members) -> str:
    name = members.required("tool_name")
    return OWN + name if OWN + name in _KNOWN else name


def _server_tool(_members: Members, name: str) -> tuple[str, str] | None:
    """The tool of a server, whose name the document does not have."""
    return ("", name.removeprefix(MCP)) if name.startswith(MCP) else None


def _session(members: Members, environ: Mapping[str, str]) -> Session:
    project = environ.get("CURSOR_PROJECT_DIR") or environ.get("PWD", "/")
    return Session(members.text("conversation_id", "session_id"), "", members.text("cwd") or project, project)


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event; a refused call has one of its own. Raises ValueError."""
    event, members = read_document(AGENT_SIDE, raw, environ), Members(raw)
    if event.context.event is Event.POST_TOOL_USE_FAILURE and members.text("failure_type") == "permission_denied":
        context = replace(event.context, event=Event.PERMISSION_DENIED, message=members.text("error_message"))
        return replace(event, context=replace(context, outcome=None))
    return event


def _outcome(members: Members, failed: bool) -> Outcome:
    """The result, which is JSON in a string. Of a command it has the output as `stdout`."""
    text, duration = members.text("tool_output"), milliseconds(members.raw("duration"))
    if failed:
        error = members.text("error_message") or "the tool failed"
        outcome = text_outcome(error, failed=True, duration_ms=duration)
        return replace(outcome, interrupted=members.raw("is_interrupt") == b"true")
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
        output["permission"] = decision.permission.name.lower()
    if decision.arguments is not None:
        output["updated_input"] = msgspec.Raw(decision.arguments)
    return HookOutput(raw_json.encode(output) + b"\n")


def _object(replacement: bytes) -> msgspec.Raw:
    """The output that the model reads instead, as an object: a text or another value becomes a result of MCP."""
    if replacement.startswith(b"{"):
        return msgspec.Raw(replacement)
    block = {"type": "text", "text": raw_json.text_or_json(replacement)}
    return msgspec.Raw(raw_json.encode({"content": [block]}))


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=FORMAT,
    documents=DocumentSigns(has=("cursor_version",)),
    form=DocumentForm(
        session=_session,
        triggers={Event.SESSION_START: "startup", Event.SESSION_END: "other"},
        tool_name=_tool_name,
        server_tool=_server_tool,
        server_named=ServerNamed.NOT,
        outcome=_outcome,
    ),
    also_reads=("claude",),
    file=".cursor/hooks.json",
    can=Can.ALLOW | Can.REWRITE | Can.TELL_AFTER | Can.REPLACE,
    read_document=_read_document,
    write_output=_write_output,
    events={
        "preToolUse": Event.PRE_TOOL_USE,
        "postToolUse": Event.POST_TOOL_USE,
        "postToolUseFailure": Event.POST_TOOL_USE_FAILURE,
        "sessionStart": Event.SESSION_START,
        "sessionEnd": Event.SESSION_END,
    },
    also={Event.PERMISSION_DENIED: "postToolUseFailure"},
)
