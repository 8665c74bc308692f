"""Crush as an agent that runs a hook of another system: it has one event, before a call."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from ...model.hooks import Event, Permission, Session
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
)
from ..shared import command_file
from .hook_file import FORMAT

_FILE: Final = "crush.json"
_MCP: Final = "mcp_"
_DECISIONS: Final = {Permission.ALLOW: "allow", Permission.DENY: "deny"}


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event in a document of Crush. Raises ValueError."""
    members = Members(raw)
    name = members.required("event")
    cwd = members.text("cwd") or environ.get("PWD", "/")
    session = Session(members.text("session_id"), "", cwd, environ.get("CRUSH_PROJECT_DIR") or cwd)
    tool_name = members.required("tool_name")
    server_tool = ("", tool_name.removeprefix(_MCP)) if tool_name.startswith(_MCP) else None
    arguments = arguments_of(members.raw("tool_input"))
    event = event_of(AGENT_SIDE, name)
    return AgentEvent(name, call_context(AGENT_SIDE, event, session, tool_name, server_tool, arguments))


def _write_output(_event: AgentEvent, decision: HookDecision) -> HookOutput:
    permission = Permission.ALLOW if decision.permission is None and decision.arguments else decision.permission
    output: dict[str, object] = {"decision": _DECISIONS[permission]} if permission in _DECISIONS else {}
    if permission is Permission.DENY:
        output["reason"] = decision.reason or "denied by a hook"
    elif decision.arguments is not None:
        output["updated_input"] = msgspec.Raw(decision.arguments)
    if decision.feedback:
        output["context"] = decision.feedback
    if decision.stop:
        output["halt"] = True
    return replace(json_output({"version": 1} | output if output else {}), stderr=decision.message)


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="crush",
    documents=DocumentSigns(has=("event", "cwd"), lacks=("hook_event_name",)),
    file=_FILE,
    can=Can.ALLOW | Can.REWRITE | Can.TELL_BEFORE,
    read_document=_read_document,
    write_output=_write_output,
    write_hook_file=partial(command_file.write_hook_file, FORMAT, _FILE),
    events={"PreToolUse": Event.PRE_TOOL_USE},
    merges=True,
    user_folder=("", ".config/crush/"),
)
