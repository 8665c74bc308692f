"""The agent's side of the systems with Claude Code's documents and output: Claude Code, Codex, Droid, Qwen Code."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from ...model.hooks import Event, EventContext, Permission
from ..agent_documents import Members
from ..agent_side import (
    AgentEvent,
    AgentSide,
    HookDecision,
    HookOutput,
    arguments_of,
    call_context,
    event_of,
    json_output,
    milliseconds,
    result_outcome,
    session_of,
    split_mcp_name,
    text_outcome,
)

_PERMISSIONS = {Permission.ALLOW: "allow", Permission.ASK: "ask", Permission.DENY: "deny"}
_CALL_EVENTS = (
    Event.PRE_TOOL_USE,
    Event.POST_TOOL_USE,
    Event.POST_TOOL_USE_FAILURE,
    Event.PERMISSION_REQUEST,
)


def read_document(side: AgentSide, project_variable: str, raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event in a document with Claude Code's members. Raises ValueError."""
    members = Members(raw)
    name = members.required("hook_event_name")
    event = event_of(side, name)
    session = session_of(members, environ, project_variable=project_variable)
    if event not in _CALL_EVENTS:
        trigger = members.text("source", "reason", "notification_type")
        return AgentEvent(name, EventContext(event, session, trigger=trigger, message=members.text("message")))
    tool_name = members.required("tool_name")
    arguments = arguments_of(members.raw("tool_input"))
    server_tool = split_mcp_name(tool_name)
    server = members.object("mcp_server").text("name")
    if server_tool is not None and server:
        prefix = f"mcp__{server}__"
        server_tool = (server, tool_name.removeprefix(prefix)) if tool_name.startswith(prefix) else server_tool
    context = call_context(side, event, session, tool_name, server_tool, arguments)
    duration = milliseconds(members.raw("duration_ms"))
    if event is Event.POST_TOOL_USE:
        context = replace(context, outcome=result_outcome(members.raw("tool_response"), duration_ms=duration))
    if event is Event.POST_TOOL_USE_FAILURE:
        outcome = text_outcome(members.text("error") or "the tool failed", failed=True, duration_ms=duration)
        context = replace(context, outcome=outcome)
    return AgentEvent(name, replace(context, tool_use_id=members.text("tool_use_id")))


def write_output(
    event: AgentEvent, decision: HookDecision, *, explicit_allow: bool = True, replacement: str = "updatedMCPToolOutput"
) -> HookOutput:
    """The JSON output for a decision.

    `explicit_allow`: `permissionDecision: "allow"` may stand without `updatedInput`. `replacement` is the member that
    replaces a tool's output; empty: there is none.
    """
    kind = event.context.event
    output: dict[str, object] = {"systemMessage": decision.message} if decision.message else {}
    specific: dict[str, object] = {}
    if kind is Event.PRE_TOOL_USE:
        specific = _before_call(decision, explicit_allow)
    elif kind is Event.PERMISSION_REQUEST:
        specific = _permission_request(decision)
    elif decision.permission is Permission.DENY:
        output |= {"decision": "block", "reason": decision.reason}
    if decision.replacement is not None and replacement:
        specific[replacement] = msgspec.Raw(decision.replacement)
    if decision.feedback and kind is not Event.PERMISSION_REQUEST:
        specific["additionalContext"] = decision.feedback
    if decision.stop and (explicit_allow or kind is not Event.PRE_TOOL_USE):
        output |= {"continue": False, "stopReason": decision.reason}
    if specific:
        output["hookSpecificOutput"] = {"hookEventName": event.name} | specific
    return json_output(output)


def _permission_request(decision: HookDecision) -> dict[str, object]:
    if decision.permission is Permission.DENY:
        return {"decision": {"behavior": "deny", "message": decision.reason}}
    if decision.permission is not Permission.ALLOW:
        return {}
    changed = {} if decision.arguments is None else {"updatedInput": msgspec.Raw(decision.arguments)}
    return {"decision": {"behavior": "allow"} | changed}


def _before_call(decision: HookDecision, explicit_allow: bool) -> dict[str, object]:
    specific: dict[str, object] = {}
    permission = decision.permission
    if decision.arguments is not None and permission is None:
        permission = Permission.ALLOW
    if permission is Permission.ALLOW and decision.arguments is None and not explicit_allow:
        permission = None
    if permission is not None:
        specific["permissionDecision"] = _PERMISSIONS[permission]
        if decision.reason or permission is Permission.DENY:
            specific["permissionDecisionReason"] = decision.reason or "denied by a hook"
    if decision.arguments is not None and permission is not Permission.DENY:
        specific["updatedInput"] = msgspec.Raw(decision.arguments)
    return specific
