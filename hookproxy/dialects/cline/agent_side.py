"""Cline as an agent that runs a hook of another system: one program for each event, and a refusal cancels the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from ...model.errors import ConfigError
from ...model.hooks import Event, Outcome, Permission, Session
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
    session_in_first,
    text_outcome,
)
from ..dialect import HookList, WrittenEntry
from .hook_file import hooks_of

_FOLDER: Final = ".clinerules/hooks"
_MCP_TOOL: Final = "use_mcp_tool"
"""Cline's own tool that calls the tools of MCP servers."""


def _session(members: Members, environ: Mapping[str, str]) -> Session:
    return session_in_first(members.raw("workspaceRoots", b"[]"), members.text("taskId"), environ)


def _call(members: Members) -> Members:
    return members.object("preToolUse" if members.text("hookName") == "PreToolUse" else "postToolUse")


def _arguments(members: Members) -> bytes:
    call = _call(members)
    if call.text("toolName") == _MCP_TOOL:
        return call.object("parameters").raw("arguments", b"{}")
    return call.raw("parameters", b"{}")


def _server_tool(members: Members, name: str) -> tuple[str, str] | None:
    if name == _MCP_TOOL:
        parameters = _call(members).object("parameters")
        return parameters.text("server_name"), parameters.required("tool_name")
    server, separator, tool = name.partition("__")  # the CLI's name of a server's tool
    if not separator:
        return None
    return ("", name) if "__" in tool else (server, tool)


def _outcome(members: Members, failed: bool) -> Outcome:
    call = _call(members)
    return text_outcome(call.text("result"), failed=failed, duration_ms=milliseconds(call.raw("executionTimeMs")))


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
    form=DocumentForm(
        event=("hookName",),
        session=_session,
        triggers={Event.SESSION_START: "startup", Event.SESSION_END: "other"},
        tool_name=lambda members: _call(members).required("toolName"),
        arguments=_arguments,
        server_tool=_server_tool,
        failed=lambda members: _call(members).raw("success") == b"false",
        outcome=_outcome,
    ),
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
