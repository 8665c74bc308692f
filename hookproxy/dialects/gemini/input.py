"""Writes the input of Gemini CLI's hooks: the document on standard input, and the variables."""

from __future__ import annotations

from typing import Final

import msgspec

from ...model.hooks import Document, Event, EventContext, HookSpec, Outcome
from ..shared import input as shared_input

_TOOL_EVENTS: Final = (Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE)
_NAMES: Final = {
    Event.PRE_TOOL_USE: "BeforeTool",
    Event.POST_TOOL_USE: "AfterTool",
    Event.POST_TOOL_USE_FAILURE: "AfterTool",
    Event.SESSION_START: "SessionStart",
    Event.SESSION_END: "SessionEnd",
    Event.NOTIFICATION: "Notification",
}


def write_input(_spec: HookSpec, context: EventContext) -> Document:
    """The document, with the members of `createBaseInput` first, and the variables."""
    session = context.session
    document: dict[str, object] = {
        "session_id": shared_input.utf8(session.id),
        "transcript_path": "",  # required, and an MCP server has none
        "cwd": shared_input.utf8(session.cwd),
        "hook_event_name": _NAMES[context.event],
        "timestamp": shared_input.iso_8601(context.at),
    }
    env = {
        "GEMINI_PROJECT_DIR": session.project_dir,
        "GEMINI_CWD": session.cwd,
        "GEMINI_SESSION_ID": session.id,
        "CLAUDE_PROJECT_DIR": session.project_dir,
    }
    return Document(shared_input.json_line(document | _event_members(context)), env)


def _event_members(context: EventContext) -> dict[str, object]:
    if context.event in _TOOL_EVENTS:
        return _call(context)
    if context.event is Event.NOTIFICATION:
        return {
            "notification_type": context.trigger,
            "message": shared_input.utf8(context.message),
            "details": {
                "type": "mcp",
                "title": "Allow the tool of an MCP server",
                "serverName": shared_input.utf8(context.session.server),
                "toolName": shared_input.utf8(context.tool),
                "toolDisplayName": shared_input.utf8(context.tool),
            },
        }
    return {"source" if context.event is Event.SESSION_START else "reason": context.trigger}


def _call(context: EventContext) -> dict[str, object]:
    call: dict[str, object] = {
        "tool_name": shared_input.utf8(context.tool_name),
        "tool_input": msgspec.Raw(context.arguments),
    }
    if context.event is not Event.PRE_TOOL_USE:
        call["tool_response"] = _response(context, context.outcome or Outcome())
    if context.alias is None:  # a tool of Gemini CLI's own has no server
        call["mcp_context"] = _mcp_context(context)
    return call


def _mcp_context(context: EventContext) -> dict[str, object]:
    session = context.session
    server: dict[str, object] = {
        "server_name": shared_input.utf8(session.server),
        "tool_name": shared_input.utf8(context.tool),
    }
    if session.command:
        command, *arguments = map(shared_input.utf8, session.command)
        server |= {"command": command, "args": arguments, "cwd": shared_input.utf8(session.server_folder)}
    if session.url:
        server["url"] = shared_input.utf8(session.url)
    return server


def _response(context: EventContext, outcome: Outcome) -> dict[str, object]:
    """What the model gets and what the person sees; of a failure as `mcp-tool.ts` writes it."""
    text = shared_input.utf8(shared_input.result_text(outcome))
    if context.event is Event.POST_TOOL_USE_FAILURE:
        message = f"MCP tool '{shared_input.utf8(context.tool)}' reported tool error for function call: {text}"
        error = {"message": message, "type": "mcp_tool_error"}
        return {"llmContent": message, "returnDisplay": f"Error: {text}", "error": error}
    return {"llmContent": [{"text": text}], "returnDisplay": text}
