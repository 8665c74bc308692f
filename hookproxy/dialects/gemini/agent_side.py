"""Gemini CLI as an agent that runs a hook of another system."""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from ...model.hooks import Event, Permission
from ..agent_documents import DocumentSigns, Members
from ..agent_side import (
    AgentEvent,
    AgentSide,
    Can,
    DocumentForm,
    HookDecision,
    HookOutput,
    json_output,
    session_of,
    split_underscored_name,
)
from ..shared.llm_outcome import llm_outcome
from .hook_file import FORMAT


def _server_tool(members: Members, name: str) -> tuple[str, str] | None:
    server = members.object("mcp_context")
    if "tool_name" in server:
        return server.text("server_name"), server.text("tool_name")
    return split_underscored_name(name)  # versions without mcp_context


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
    files=FORMAT,
    documents=DocumentSigns(values={"hook_event_name": ("BeforeTool", "AfterTool")}),
    form=DocumentForm(
        session=partial(session_of, project_variable="GEMINI_PROJECT_DIR"),
        server_tool=_server_tool,
        failed=lambda members: bool(members.object("tool_response").object("error").text("message")),
        outcome=lambda members, _failed: llm_outcome(members.object("tool_response")),
    ),
    file=".gemini/settings.json",
    can=Can.ALLOW | Can.ASK | Can.REWRITE | Can.TELL_AFTER | Can.BLOCK_AFTER,
    write_output=_write_output,
    also={Event.POST_TOOL_USE_FAILURE: "AfterTool"},
    own_tool_members={"mcp_context": None},
)
