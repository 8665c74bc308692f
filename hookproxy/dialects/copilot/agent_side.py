"""Copilot CLI as an agent that runs a hook of another system, in its format for event names in PascalCase."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from ...jsonrpc import raw_json
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
    text_outcome,
)
from ..shared import command_file
from .hook_file import OLDER_FORMAT
from .tools import TOOLS

_FILE: Final = ".github/hooks/hookproxy.json"
_PERMISSIONS: Final = {Permission.ALLOW: "allow", Permission.ASK: "ask", Permission.DENY: "deny"}


def _read_document(raw: bytes, _environ: Mapping[str, str]) -> AgentEvent:
    """The event in a document with members in snake_case. Raises ValueError."""
    members = Members(raw)
    name = members.required("hook_event_name")
    event = event_of(AGENT_SIDE, name)
    cwd = members.text("cwd") or "/"
    session = Session(members.text("session_id"), "", cwd, cwd)
    if event in (Event.SESSION_START, Event.SESSION_END):
        return AgentEvent(name, EventContext(event, session, trigger=members.text("source", "reason")))
    tool_name = members.required("tool_name")
    arguments = arguments_of(members.raw("tool_input"))
    context = call_context(AGENT_SIDE, event, session, tool_name, _server_tool(tool_name), arguments)
    if event is Event.POST_TOOL_USE:
        text = members.object("tool_result").text("text_result_for_llm")
        context = replace(context, outcome=text_outcome(text))
    if event is Event.POST_TOOL_USE_FAILURE:
        context = replace(context, outcome=text_outcome(members.text("error") or "the tool failed", failed=True))
    return AgentEvent(name, context)


def _server_tool(name: str) -> tuple[str, str] | None:
    """Server and tool of `SERVER-TOOL`, as Copilot CLI composes the names of MCP tools; its own tools have no `-`.

    Where the server's name ends is unknown if there are several hyphens: then no server is named.
    """
    server, separator, tool = name.partition("-")
    if "-" in tool:
        return "", name
    return (server, tool) if separator else None


def _write_output(event: AgentEvent, decision: HookDecision) -> HookOutput:
    kind = event.context.event
    if kind is Event.PRE_TOOL_USE:
        output = _before_call(decision)
    elif kind is Event.PERMISSION_REQUEST:
        output = _permission_request(decision)
    else:
        output = _after_call(decision)
    return replace(json_output(output), stderr=decision.message)


def _before_call(decision: HookDecision) -> dict[str, object]:
    permission = Permission.ALLOW if decision.permission is None and decision.arguments else decision.permission
    if permission is None:
        return {}
    output: dict[str, object] = {"permissionDecision": _PERMISSIONS[permission]}
    if decision.reason or permission is Permission.DENY:
        output["permissionDecisionReason"] = decision.reason or "denied by a hook"
    if decision.arguments is not None and permission is not Permission.DENY:
        output["modifiedArgs"] = msgspec.Raw(decision.arguments)
    return output


def _permission_request(decision: HookDecision) -> dict[str, object]:
    if decision.permission not in (Permission.ALLOW, Permission.DENY):
        return {}
    return {"behavior": _PERMISSIONS[decision.permission], "message": decision.reason, "interrupt": decision.stop}


def _after_call(decision: HookDecision) -> dict[str, object]:
    output: dict[str, object] = {"additionalContext": decision.feedback} if decision.feedback else {}
    if decision.replacement is not None:
        text = raw_json.text(decision.replacement)
        text = decision.replacement.decode() if text is None else text
        output["modifiedResult"] = {"textResultForLlm": text, "resultType": "success"}
    return output


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="copilot",
    documents=DocumentSigns(
        has=("timestamp",),
        lacks=("permission_mode", "tool_use_id", "cursor_version"),
        values={
            "hook_event_name": (
                "PreToolUse",
                "PostToolUse",
                "PostToolUseFailure",
                "PermissionRequest",
                "SessionStart",
                "SessionEnd",
            )
        },
    ),
    file=_FILE,
    can=Can.ALLOW | Can.ASK | Can.REWRITE | Can.TELL_AFTER | Can.REPLACE,
    read_document=_read_document,
    write_output=_write_output,
    write_hook_file=partial(command_file.write_hook_file, OLDER_FORMAT, _FILE),
    events={
        "PreToolUse": Event.PRE_TOOL_USE,
        "PostToolUse": Event.POST_TOOL_USE,
        "PostToolUseFailure": Event.POST_TOOL_USE_FAILURE,
        "PermissionRequest": Event.PERMISSION_REQUEST,
        "SessionStart": Event.SESSION_START,
        "SessionEnd": Event.SESSION_END,
    },
    own_mcp_names=lambda server, tool: f"{server}-{tool}",
    own_tools=TOOLS,
    user_folder=(".github/", ".copilot/"),
    user_variable="COPILOT_HOME",
)
