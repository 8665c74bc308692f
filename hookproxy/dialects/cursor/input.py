"""Writes the input of Cursor's hooks: one document with the members of the event, and the variables."""

from __future__ import annotations

import os
from typing import Final

import msgspec

from ...jsonrpc import raw_json
from ...model import aliases
from ...model.hooks import Document, Event, EventContext, HookSpec, Outcome, Session
from ..shared import familiar_call
from ..shared import input as shared_input
from .hook_file import AFTER_EDIT, AFTER_MCP, AFTER_SHELL, BEFORE_MCP, BEFORE_READ, BEFORE_SHELL, OWN

VERSION: Final = "3.19.10"
"""The version whose behaviour this dialect follows, and for which hooks that compare versions take it."""

_UNKNOWN_MODEL: Final = "unknown"  # no server sees it; a hook that reads the member must not fail


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, with the common members first, and the variables."""
    session = context.session
    project, session_id = shared_input.utf8(session.project_dir), shared_input.utf8(session.id)
    document: dict[str, object] = {
        "conversation_id": session_id,
        "generation_id": shared_input.utf8(context.tool_use_id) or session_id,
        "model": _UNKNOWN_MODEL,
        "session_id": session_id,
        "hook_event_name": spec.event_name,
        "cursor_version": VERSION,
        "workspace_roots": [project],
        "user_email": None,
        "transcript_path": None,
    }
    env = {
        "CURSOR_PROJECT_DIR": session.project_dir,
        "CURSOR_VERSION": VERSION,
        "CLAUDE_PROJECT_DIR": session.project_dir,
    }
    return Document(shared_input.json_line(document | _event_members(spec.event_name, context)), env)


def _event_members(event_name: str, context: EventContext) -> dict[str, object]:
    match event_name:
        case "sessionStart":
            return {"is_background_agent": False, "composer_mode": "agent"}
        case "sessionEnd":
            return {"reason": "completed", "duration_ms": 0, "is_background_agent": False, "final_status": "completed"}
        case _ if event_name in (BEFORE_MCP, AFTER_MCP):
            return _mcp_call(event_name, context)
        case _ if event_name == BEFORE_SHELL:
            return {"command": _command(context), "cwd": _folder(context), "sandbox": False}
        case _ if event_name == AFTER_SHELL:
            text = shared_input.result_text(context.outcome or Outcome())
            members = {"command": _command(context), "output": shared_input.utf8(text)}
            return {**members, "duration": _duration(context), "sandbox": False}
        case _ if event_name == BEFORE_READ:  # the file is not read here: its server may have another one
            return {"file_path": _path(context), "content": "", "attachments": []}
        case _ if event_name == AFTER_EDIT:
            return {"file_path": _path(context), "edits": familiar_call.edits(context.arguments)}
        case _:
            return _tool_call(context)


def _tool_call(context: EventContext) -> dict[str, object]:
    """A call as preToolUse, postToolUse and postToolUseFailure have it: the arguments are an object."""
    call: dict[str, object] = {
        "tool_name": shared_input.utf8(context.tool_name.removeprefix(OWN)),
        "tool_input": msgspec.Raw(context.arguments),
        "tool_use_id": shared_input.utf8(context.tool_use_id),
        "cwd": shared_input.utf8(context.session.cwd),
    }
    outcome = context.outcome or Outcome()
    match context.event:
        case Event.PRE_TOOL_USE:
            return call | {"agent_message": ""}
        case Event.POST_TOOL_USE:
            return call | {"tool_output": _tool_output(context, outcome), "duration": outcome.duration_ms}
        case _:
            return call | _failure(context, outcome)


def _tool_output(context: EventContext, outcome: Outcome) -> str:
    """The result as JSON in a string. Cursor's own Shell has another one, of which a server gives the text only."""
    if context.tool_name == f"{OWN}Shell":
        return raw_json.encode({"stdout": shared_input.utf8(shared_input.result_text(outcome))}).decode()
    return _result(outcome)


def _failure(context: EventContext, outcome: Outcome) -> dict[str, object]:
    denied = context.event is Event.PERMISSION_DENIED
    message = context.message if denied else shared_input.result_text(outcome) or outcome.error
    return {
        "error_message": shared_input.utf8(message),
        "failure_type": "permission_denied" if denied else "error",
        "duration": outcome.duration_ms,
        "is_interrupt": outcome.interrupted,
    }


def _mcp_call(event_name: str, context: EventContext) -> dict[str, object]:
    """A call as the two MCP events have it: names without a prefix, and JSON in strings."""
    name, arguments = _own_name(context)
    call: dict[str, object] = {
        "tool_name": shared_input.utf8(name),
        "tool_input": arguments.decode(errors="replace"),
        "mcp_server_name": shared_input.utf8(context.session.server),
    }
    if event_name == BEFORE_MCP:
        return call | _server(context.session)
    if context.session.url:
        call["mcp_server_url"] = shared_input.utf8(context.session.url)
    return call | {"result_json": _result(context.outcome or Outcome()), "duration": _duration(context)}


def _own_name(context: EventContext) -> tuple[str, bytes]:
    """The tool's name and arguments: the server's own, or a configured alias's that is not a tool of Cursor's."""
    if context.alias is None:
        return context.tool, context.arguments
    if context.tool_name.startswith(OWN):
        return context.tool, aliases.for_server(context.alias, context.arguments)
    return context.tool_name, context.arguments


def _server(session: Session) -> dict[str, object]:
    if session.url:
        url = shared_input.utf8(session.url)
        return {"url": url, "mcp_server_url": url}
    return {"command": shared_input.utf8(" ".join(session.command))}


def _result(outcome: Outcome) -> str:
    """The whole result as MCP has it; an error without a result as one that says so."""
    if not outcome.has_result:
        text = {"type": "text", "text": shared_input.utf8(outcome.error)}
        return raw_json.encode({"content": [text], "isError": True}).decode()
    if outcome.whole:
        return outcome.whole.decode(errors="replace")
    structured = shared_input.structured_member(outcome)
    failed = b',"isError":true' if outcome.error else b""
    return (b'{"content":%b%b%b}' % (outcome.content, structured, failed)).decode(errors="replace")


def _duration(context: EventContext) -> int:
    return context.outcome.duration_ms if context.outcome else 0


def _command(context: EventContext) -> str:
    return shared_input.utf8(familiar_call.command_line(context.arguments, "command"))


def _folder(context: EventContext) -> str:
    """The folder that the call names, else the server's."""
    members = raw_json.fields(context.arguments)
    named = (raw_json.text(bytes(members[name])) for name in ("working_directory", "cwd") if name in members)
    folder = next((text for text in named if text), "")
    own = context.session.server_folder
    return shared_input.utf8(os.path.join(own, folder) if folder else own)


def _path(context: EventContext) -> str:
    """The path, absolute as documented: a relative one starts from the server's folder."""
    path = shared_input.utf8(familiar_call.text(context.arguments, "file_path"))
    if path.startswith(("{", "~")):  # all arguments, because there is no such text; or a home folder
        return path
    path = os.path.join(shared_input.utf8(context.session.server_folder), path)
    return path if ".." in path.split("/") else os.path.normpath(path)  # after a link, only the system resolves `..`
