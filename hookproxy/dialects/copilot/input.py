"""Writes the input of Copilot CLI's hooks, in one of two formats: the spelling of the event's name selects it."""

from __future__ import annotations

from typing import Final

import msgspec

from ...model.hooks import Document, Event, EventContext, HookSpec, Outcome
from ..shared import input as shared_input

OBJECT: Final = "toolArgs is an object"
"""The trait of hooks whose `[[use]]` has `tool_args = "object"`."""


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document on standard input and the variables.

    A name in PascalCase selects VS Code's format: members in snake_case, times as text, arguments as JSON.
    """
    if context.event is Event.PRE_MCP_TOOL_CALL:
        members = _head(context) | _mcp_call(context)
    else:
        members = _snake_case(spec, context) if spec.event_name[:1].isupper() else _camel_case(spec, context)
    session_id = shared_input.utf8(context.session.id)
    return Document(
        stdin=shared_input.json_line(members), env={"COPILOT_CLI": "1", "COPILOT_AGENT_SESSION_ID": session_id}
    )


def _head(context: EventContext) -> dict[str, object]:
    return {
        "sessionId": shared_input.utf8(context.session.id),
        "timestamp": _milliseconds(context),
        "cwd": shared_input.utf8(context.session.cwd),
    }


def _camel_case(spec: HookSpec, context: EventContext) -> dict[str, object]:
    members = _head(context)
    arguments: object = msgspec.Raw(context.arguments)
    if OBJECT not in spec.traits:
        arguments = context.arguments.decode(errors="replace")
    call = {"toolName": shared_input.utf8(context.tool_name), "toolArgs": arguments}
    outcome = context.outcome or Outcome()
    match context.event:
        case Event.PRE_TOOL_USE:
            return members | call
        case Event.POST_TOOL_USE:
            return (
                members
                | call
                | {"toolResult": {"resultType": "success", "textResultForLlm": shared_input.result_text(outcome)}}
            )
        case Event.POST_TOOL_USE_FAILURE:
            return members | call | {"error": _failure(outcome)}
        case Event.PERMISSION_REQUEST:  # not documented: as for preToolUse, and as Copilot CLI sends it
            request = {"toolInput": msgspec.Raw(context.arguments), "permissionSuggestions": []}
            return {"hookName": "permissionRequest"} | members | call | request
        case Event.ERROR_OCCURRED:
            return members | {"error": _error(context), "errorContext": context.trigger} | _recoverable(context)
        case Event.NOTIFICATION:
            return members | {"hook_event_name": "Notification"} | _notification(context)
        case _:
            return members | _session_event(context)


def _mcp_call(context: EventContext) -> dict[str, object]:
    """The call that the server will get, under the server's own names (PreMcpToolCallHookInput of the SDKs)."""
    call: dict[str, object] = {
        "serverName": shared_input.utf8(context.session.server),
        "toolName": shared_input.utf8(context.tool),
        "arguments": msgspec.Raw(context.arguments),
    }
    if context.tool_use_id:
        call["toolCallId"] = shared_input.utf8(context.tool_use_id)
    return call | ({"_meta": msgspec.Raw(context.meta)} if context.meta else {})


def _snake_case(spec: HookSpec, context: EventContext) -> dict[str, object]:
    session = context.session
    members: dict[str, object] = {
        "hook_event_name": spec.event_name,
        "session_id": shared_input.utf8(session.id),
        "timestamp": shared_input.iso_8601(context.at),
        "cwd": shared_input.utf8(session.cwd),
    }
    call = {"tool_name": shared_input.utf8(context.tool_name), "tool_input": msgspec.Raw(context.arguments)}
    outcome = context.outcome or Outcome()
    match context.event:
        case Event.PRE_TOOL_USE:
            return members | call
        case Event.POST_TOOL_USE:
            result = {"result_type": "success", "text_result_for_llm": shared_input.result_text(outcome)}
            return members | call | {"tool_result": result}
        case Event.POST_TOOL_USE_FAILURE:
            return members | call | {"error": _failure(outcome)}
        case Event.PERMISSION_REQUEST:
            return members | call | {"permission_suggestions": []}
        case Event.ERROR_OCCURRED:
            error = {"error": _error(context), "error_context": context.trigger}
            return members | error | _recoverable(context)
        case Event.NOTIFICATION:
            return members | _notification(context)
        case _:
            return members | _session_event(context)


def _session_event(context: EventContext) -> dict[str, object]:
    if context.event is Event.SESSION_START:
        return {"source": context.trigger}
    reason = context.trigger  # the reference has "complete" for an agent that has disconnected
    return {"reason": "complete" if reason == "other" else reason}


def _notification(context: EventContext) -> dict[str, object]:
    members: dict[str, object] = {"message": shared_input.utf8(context.message)}
    if context.trigger == "permission_prompt":
        members["title"] = "Permission needed"
    return members | {"notification_type": context.trigger}


def _error(context: EventContext) -> dict[str, object]:
    name = "McpError" if context.trigger == "tool_execution" else "Error"
    return {"message": shared_input.utf8(context.message), "name": name}


def _recoverable(context: EventContext) -> dict[str, object]:
    """Only a failed call is recoverable: other calls may succeed, but a server that has ended does not come back."""
    return {"recoverable": context.trigger == "tool_execution"}


def _failure(outcome: Outcome) -> str:
    return shared_input.result_text(outcome) or outcome.error


def _milliseconds(context: EventContext) -> int:
    return round(context.at * 1000)
