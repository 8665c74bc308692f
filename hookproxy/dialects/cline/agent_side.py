"""Cline as an agent that runs a hook of another system: one program for each event, and a refusal cancels the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from ...jsonrpc import raw_json
from ...model.errors import ConfigError
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
    milliseconds,
    text_outcome,
)
from ..dialect import HookList, WrittenEntry
from .hook_file import hooks_of

_FOLDER: Final = ".clinerules/hooks"
_MCP_TOOL: Final = "use_mcp_tool"
"""Cline's own tool that calls the tools of MCP servers."""


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event in a document of Cline. Raises ValueError."""
    members = Members(raw)
    name = members.required("hookName")
    event = event_of(AGENT_SIDE, name)
    roots = raw_json.items(members.raw("workspaceRoots", b"[]"))
    cwd = (raw_json.text(bytes(roots[0])) if roots else "") or environ.get("PWD", "/")
    session = Session(members.text("taskId"), "", cwd, cwd)
    if event in (Event.SESSION_START, Event.SESSION_END):
        trigger = "startup" if event is Event.SESSION_START else "other"
        return AgentEvent(name, EventContext(event, session, trigger=trigger))
    call = members.object("preToolUse" if event is Event.PRE_TOOL_USE else "postToolUse")
    tool_name = call.required("toolName")
    parameters, server_tool = call.raw("parameters", b"{}"), None
    if "__" in tool_name:  # the CLI's name of a server's tool
        server, _, tool = tool_name.partition("__")
        server_tool = ("", tool_name) if "__" in tool else (server, tool)
    if tool_name == _MCP_TOOL:
        of_server = call.object("parameters")
        server_tool = (of_server.text("server_name"), of_server.required("tool_name"))
        parameters = of_server.raw("arguments", b"{}")
    context = call_context(AGENT_SIDE, event, session, tool_name, server_tool, arguments_of(parameters))
    if event is Event.POST_TOOL_USE:
        failed, duration = call.raw("success") == b"false", milliseconds(call.raw("executionTimeMs"))
        outcome = text_outcome(call.text("result") or "", failed=failed, duration_ms=duration)
        event = Event.POST_TOOL_USE_FAILURE if failed else event
        context = replace(context, event=event, outcome=outcome)
    return AgentEvent(name, context)


def _refuse(reason: str) -> HookOutput:
    """Cline never reads the exit status."""
    return json_output({"cancel": True, "errorMessage": reason})


def _write_output(_event: AgentEvent, decision: HookDecision) -> HookOutput:
    output: dict[str, object] = {"contextModification": decision.feedback} if decision.feedback else {}
    if decision.permission is Permission.DENY or decision.stop:
        output |= {"cancel": True, "errorMessage": decision.reason or "denied by a hook"}
    return replace(json_output(output), stderr=decision.message)


def _read_command(entry: WrittenEntry, project_dir: str) -> HookList:
    """The hooks of a command line. Raises ConfigError."""
    if entry.event_name not in AGENT_SIDE.events:
        raise ConfigError("--event", f"{entry.event_name!r} is not an event", f"one of {', '.join(AGENT_SIDE.events)}")
    return hooks_of(entry.event_name, entry.command, ("/bin/sh", "-c", entry.command), project_dir, entry.timeout)


def _write_hook_file(entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
    """A program for each event, which runs its hooks one after another until one cancels."""
    commands: dict[str, list[str]] = {}
    for entry in entries:
        commands.setdefault(entry.event_name, []).append(entry.command)
    return {f"{_FOLDER}/{name}": _script(lines) for name, lines in commands.items()}


def _script(lines: Sequence[str]) -> str:
    if len(lines) == 1:
        return f"#!/bin/sh\n{lines[0]}\n"
    runs = "".join(
        f'out=$(printf %s "$input" | {line})\n'
        'case $out in *\'"cancel":true\'*) printf "%s\\n" "$out"; exit 0 ;; ?*) last=$out ;; esac\n'
        for line in lines
    )
    return f'#!/bin/sh\ninput=$(cat)\nlast=\n{runs}[ -z "$last" ] || printf "%s\\n" "$last"\n'


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="cline",
    documents=DocumentSigns(has=("hookName",)),
    file=_FOLDER,
    can=Can.TELL_BEFORE | Can.TELL_AFTER,
    read_document=_read_document,
    write_output=_write_output,
    write_hook_file=_write_hook_file,
    read_command=_read_command,
    events={
        "PreToolUse": Event.PRE_TOOL_USE,
        "PostToolUse": Event.POST_TOOL_USE,
        "TaskStart": Event.SESSION_START,
        "TaskComplete": Event.SESSION_END,
    },
    also={Event.POST_TOOL_USE_FAILURE: "PostToolUse"},
    refuse=_refuse,
    has_matchers=False,
    user_folder=(".clinerules/hooks", "Documents/Cline/Hooks"),
)
