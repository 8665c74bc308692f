"""Writes the input of Copilot CLI's hooks, in one of two formats: the spelling of the event's name selects it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ...model.hooks import Document, Event, EventContext, HookSpec, Outcome
from ..shared import input as shared_input

OBJECT: Final = "toolArgs is an object"
"""The trait of hooks whose `[[use]]` has `tool_args = "object"`."""


_IN_SNAKE_CASE: Final = {
    "sessionId": "session_id",
    "toolName": "tool_name",
    "toolArgs": "tool_input",
    "toolResult": "tool_result",
    "resultType": "result_type",
    "textResultForLlm": "text_result_for_llm",
    "permissionSuggestions": "permission_suggestions",
    "errorContext": "error_context",
}


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document on standard input and the variables.

    A name in PascalCase selects VS Code's format: members in snake_case, times as text, arguments as JSON.
    """
    if context.event is Event.PRE_MCP_TOOL_CALL:
        members = _head(context) | _mcp_call(context)
    elif spec.event_name[:1].isupper():
        head = _head(context) | {"timestamp": shared_input.iso_8601(context.at)}
        details = _details(context, msgspec.Raw(context.arguments))
        members = {"hook_event_name": spec.event_name} | _in_snake_case(head | details)
    else:
        members = _camel_case(spec, context)
    session_id = shared_input.utf8(context.session.id)
    return Document(
        stdin=shared_input.json_line(members), env={"COPILOT_CLI": "1", "COPILOT_AGENT_SESSION_ID": session_id}
    )


def _head(context: EventContext) -> dict[str, object]:
    return {
        "sessionId": shared_input.utf8(context.session.id),
        "timestamp": round(context.at * 1000),
        "cwd": shared_input.utf8(context.session.cwd),
    }


def _in_snake_case(members: Mapping[str, object]) -> dict[str, object]:
    return {
        _IN_SNAKE_CASE.get(name, name): _in_snake_case(value) if isinstance(value, dict) else value
        for name, value in members.items()
    }


def _camel_case(spec: HookSpec, context: EventContext) -> dict[str, object]:
    arguments: object = msgspec.Raw(context.arguments)
    if OBJECT not in spec.traits:
        arguments = context.arguments.decode(errors="replace")
    members = _head(context)
    if context.event is Event.PERMISSION_REQUEST:  # not documented: as for preToolUse, and as Copilot CLI sends it
        call = {"toolName": shared_input.utf8(context.tool_name), "toolArgs": arguments}
        request = {"toolInput": msgspec.Raw(context.arguments), "permissionSuggestions": []}
        return {"hookName": "permissionRequest"} | members | call | request
    if context.event is Event.NOTIFICATION:
        members["hook_event_name"] = "Notification"
    return members | _details(context, arguments)


def _details(context: EventContext, arguments: object) -> dict[str, object]:
    """The members about the event, in camelCase."""
    call: dict[str, object] = {"toolName": shared_input.utf8(context.tool_name), "toolArgs": arguments}
    outcome = context.outcome or Outcome()
    match context.event:
        case Event.PRE_TOOL_USE:
            return call
        case Event.POST_TOOL_USE:
            result = {"resultType": "success", "textResultForLlm": shared_input.result_text(outcome)}
            return call | {"toolResult": result}
        case Event.POST_TOOL_USE_FAILURE:
            return call | {"error": shared_input.result_text(outcome) or outcome.error}
        case Event.PERMISSION_REQUEST:
            return call | {"permissionSuggestions": []}
        case Event.ERROR_OCCURRED:
            failed_call = context.trigger == "tool_execution"
            name = "McpError" if failed_call else "Error"
            error = {"message": shared_input.utf8(context.message), "name": name}
            # Only a failed call is recoverable: a server that has ended does not come back.
            return {"error": error, "errorContext": context.trigger, "recoverable": failed_call}
        case Event.NOTIFICATION:
            title = {"title": "Permission needed"} if context.trigger == "permission_prompt" else {}
            return {"message": shared_input.utf8(context.message), **title, "notification_type": context.trigger}
        case Event.SESSION_START:
            return {"source": context.trigger}
        case _:  # the reference has "complete" for an agent that has disconnected
            return {"reason": "complete" if context.trigger == "other" else context.trigger}


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
