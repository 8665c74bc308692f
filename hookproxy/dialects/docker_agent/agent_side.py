"""Docker Agent as an agent that runs a hook of another system, by what both of its editions do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from ...jsonrpc import raw_json
from ...model.hooks import Event, EventContext, Permission
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
    is_own_tool,
    json_output,
    session_of,
    text_outcome,
)
from ..dialect import WrittenEntry
from ..shared import familiar_call
from ..shared.command_file import Timeouts, regular_expression
from .hook_file import CURRENT, TIMEOUT
from .tools import TOOLS

_FILE: Final = "agent.yaml"
_EDITOR: Final = "edit_file"
_REWRITTEN_EDIT: Final = "A hook wants other arguments for this edit, and they cannot be written as Docker Agent's."
_PERMISSIONS: Final = {Permission.ALLOW: "allow", Permission.ASK: "ask", Permission.DENY: "deny"}
_PATH: Final = {"file_path": "path"}


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event in a document of Docker Agent. Raises ValueError."""
    members = Members(raw)
    name = members.required("hook_event_name")
    event = event_of(AGENT_SIDE, name)
    session = session_of(members, environ)
    if event in (Event.SESSION_START, Event.SESSION_END):
        return AgentEvent(name, EventContext(event, session, trigger=members.text("source", "reason")))
    tool_name = members.required("tool_name")
    # Another name is `TOOLSET_TOOL`, whose parts no name tells apart.
    server_tool = None if is_own_tool(AGENT_SIDE, tool_name) else ("", tool_name)
    arguments = arguments_of(members.raw("tool_input"))
    context = call_context(AGENT_SIDE, event, session, tool_name, server_tool, arguments)
    if server_tool is None and tool_name == _EDITOR:
        edits = raw_json.items(raw_json.encode(familiar_call.edits(arguments)))
        context = edit_context(context, [_edit(bytes(one)) for one in edits], _PATH)
    context = replace(context, tool_use_id=members.text("tool_use_id"))
    if event is not Event.POST_TOOL_USE:
        return AgentEvent(name, context)
    failed = members.raw("tool_error") == b"true"
    event = Event.POST_TOOL_USE_FAILURE if failed else event
    outcome = text_outcome(members.text("tool_response"), failed=failed)
    return AgentEvent(name, replace(context, event=event, outcome=outcome))


def _edit(raw: bytes) -> bytes:
    """An edit as an object with two texts; in any other form, all of it is the new text."""
    if raw.startswith(b"{") and "new_string" in Members(raw):
        return raw
    return raw_json.encode({"old_string": "", "new_string": raw.decode(errors="replace")})


def _write_output(event: AgentEvent, decision: HookDecision) -> HookOutput:
    is_edit = event.context.tool == _EDITOR and event.context.alias is not None
    if is_edit and decision.arguments is not None and decision.permission is not Permission.DENY:
        decision = HookDecision(Permission.DENY, _REWRITTEN_EDIT, message=decision.message)
    output: dict[str, object] = {"system_message": decision.message} if decision.message else {}
    if decision.stop:
        output |= {"continue": False, "stop_reason": decision.reason}
    if event.context.event is Event.PRE_TOOL_USE:
        specific = _before_call(decision)
    else:
        starts = event.context.event is Event.SESSION_START  # the only other event with a text for the model
        specific = {"additional_context": decision.feedback} if starts and decision.feedback else {}
    if specific:
        output["hook_specific_output"] = {"hook_event_name": event.name} | specific
    return json_output(output)


def _before_call(decision: HookDecision) -> dict[str, object]:
    specific: dict[str, object] = {}
    if decision.permission is not None:
        specific["permission_decision"] = _PERMISSIONS[decision.permission]
        if decision.reason or decision.permission is Permission.DENY:
            specific["permission_decision_reason"] = decision.reason or "denied by a hook"
    if decision.arguments is not None and decision.permission is not Permission.DENY:
        specific["updated_input"] = msgspec.Raw(decision.arguments)
    return specific


def _write_hook_file(entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
    """The hooks of the agent `root`."""
    events: dict[str, list[str]] = {}
    for entry in entries:
        events.setdefault(entry.event_name, []).append(_yaml(entry))
    lines = "".join(f"      {name}:\n{''.join(hooks)}" for name, hooks in events.items())
    return {_FILE: f"agents:\n  root:\n    hooks:\n{lines}"}


def _yaml(entry: WrittenEntry) -> str:
    """An item of an event's list; JSON spells strings as YAML does."""
    members = [f"command: {json.dumps(entry.command)}"]
    members += [f"{key}: {value}" for key, value in Timeouts(TIMEOUT).members(entry.timeout).items()]
    if entry.event_name not in CURRENT.groups:
        return "        - type: command\n" + "".join(f"          {one}\n" for one in members)
    matcher = json.dumps(entry.matcher or regular_expression(entry.names) or "*")
    head = f"        - matcher: {matcher}\n          hooks:\n            - type: command\n"
    return head + "".join(f"              {one}\n" for one in members)


AGENT_SIDE: Final[AgentSide] = AgentSide(
    name="docker-agent",
    documents=DocumentSigns(
        values={"hook_event_name": ("pre_tool_use", "post_tool_use", "session_start", "session_end")}
    ),
    file=_FILE,
    can=Can.ALLOW | Can.ASK | Can.REWRITE,
    read_document=_read_document,
    write_output=_write_output,
    write_hook_file=_write_hook_file,
    events={
        "pre_tool_use": Event.PRE_TOOL_USE,
        "post_tool_use": Event.POST_TOOL_USE,
        "session_start": Event.SESSION_START,
        "session_end": Event.SESSION_END,
    },
    also={Event.POST_TOOL_USE_FAILURE: "post_tool_use"},
    merges=True,
    own_names_are_unique=False,  # the tools of a server without a name have no prefix
    own_tools=TOOLS,
    user_folder=None,
)
