"""Augment as an agent that runs a hook of another system: a hook may refuse, and comment on a result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Final

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
    edit_context,
    event_of,
    json_output,
    refuse_by_status,
    result_outcome,
    text_outcome,
)
from ..shared import command_file
from ..shared.events import by_name
from .hook_file import FORMAT

_FILE: Final = ".augment/settings.json"
_EDITOR: Final = "str-replace-editor"
_TEXT: Final = re.compile(r"(?:old|new)_str(\w*)")
_SESSION: Final = {Event.SESSION_START: "startup", Event.SESSION_END: "other"}


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event in a document of Augment. Raises ValueError."""
    members = Members(raw)
    name = members.required("hook_event_name")
    event = event_of(AGENT_SIDE, name)
    roots = raw_json.items(members.raw("workspace_roots", b"[]"))
    project = (raw_json.text(bytes(roots[0])) if roots else "") or environ.get("AUGMENT_PROJECT_DIR", "")
    project = project or environ.get("PWD", "/")
    session = Session(members.text("conversation_id"), "", project, project)
    if event in _SESSION:
        return AgentEvent(name, EventContext(event, session, trigger=_SESSION[event]))
    tool_name = members.required("tool_name")
    arguments = arguments_of(members.raw("tool_input"))
    server_tool = _server_tool(members, tool_name)
    context = call_context(AGENT_SIDE, event, session, tool_name, server_tool, arguments)
    if server_tool is None and tool_name == _EDITOR:
        context = edit_context(context, _edits(arguments), {"file_path": "path"})
    if event is not Event.POST_TOOL_USE:
        return AgentEvent(name, context)
    if error := members.text("tool_error"):
        outcome = text_outcome(error, failed=True)
        return AgentEvent(name, replace(context, event=Event.POST_TOOL_USE_FAILURE, outcome=outcome))
    return AgentEvent(name, replace(context, outcome=result_outcome(members.raw("tool_output", b'""'))))


def _edits(arguments: bytes) -> list[bytes]:
    """The edits in `old_str_1`, `new_str_1`, `old_str_2`, …; an insertion has no old text."""
    members = Members(arguments)
    numbers = sorted({found[1] for name in raw_json.fields(arguments) if (found := _TEXT.fullmatch(name))})
    return [
        raw_json.encode({"old_string": members.text(f"old_str{end}"), "new_string": members.text(f"new_str{end}")})
        for end in numbers
    ]


def _server_tool(members: Members, tool_name: str) -> tuple[str, str] | None:
    """Server and tool of `TOOL_SERVER`; the server is empty if the hook file does not ask for MCP's metadata."""
    if members.raw("is_mcp_tool") == b"false":
        return None
    own = {one.name for spellings in AGENT_SIDE.tool_spellings().values() for one in spellings}
    server = members.object("mcp_metadata").text("mcpExecutedToolServerName")
    if "is_mcp_tool" not in members and not server and tool_name in own:
        return None
    return (server, tool_name.removesuffix(f"_{server}"))


def _write_output(event: AgentEvent, decision: HookDecision) -> HookOutput:
    """Exit status 2 refuses a call in every version; of a decision after a call, the model reads the reason."""
    if event.context.event is Event.PRE_TOOL_USE and decision.permission is Permission.DENY and not decision.stop:
        return refuse_by_status(decision.reason or "denied by a hook")
    output: dict[str, object] = {"systemMessage": decision.message} if decision.message else {}
    specific: dict[str, object] = {}
    if decision.stop:
        output |= {"continue": False, "stopReason": decision.reason}
    if decision.permission is Permission.DENY:
        if event.context.event is Event.PRE_TOOL_USE:
            specific = {"permissionDecision": "deny", "permissionDecisionReason": decision.reason or "denied by a hook"}
        else:
            specific = {"decision": "block", "reason": decision.reason}
    if decision.feedback:
        specific["additionalContext"] = decision.feedback
    return json_output(output | ({"hookSpecificOutput": {"hookEventName": event.name} | specific} if specific else {}))


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="augment",
    documents=DocumentSigns(has=("conversation_id",), lacks=("cursor_version",)),
    file=_FILE,
    can=Can.TELL_AFTER | Can.BLOCK_AFTER,
    read_document=_read_document,
    write_output=_write_output,
    write_hook_file=partial(command_file.write_hook_file, FORMAT, _FILE),
    events=by_name(Event.PRE_TOOL_USE, Event.POST_TOOL_USE, Event.SESSION_START, Event.SESSION_END),
    also={Event.POST_TOOL_USE_FAILURE: "PostToolUse"},
    script_folder=".augment/hooks",
    own_tool_members={"is_mcp_tool": False, "mcp_metadata": None},
)
