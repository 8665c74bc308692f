"""Docker Agent as an agent that runs a hook of another system, by what both of its editions do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from ...jsonrpc import raw_json
from ...model.hooks import Event, Permission
from ...model.settings import ServerNamed
from ..agent_documents import DocumentSigns, Members
from ..agent_side import (
    AgentEvent,
    AgentSide,
    Can,
    DocumentForm,
    HookDecision,
    HookOutput,
    edit_context,
    is_own_tool,
    json_output,
    read_document,
    text_outcome,
)
from ..dialect import WrittenEntry
from ..shared import familiar_call
from ..shared.command_file import quoted, regular_expression
from .hook_file import CURRENT, DOCUMENTED, LISTS, TOOLS

_FILE: Final = "agent.yaml"
_EDITOR: Final = "edit_file"
_REWRITTEN_EDIT: Final = "A hook wants other arguments for this edit, and they cannot be written as Docker Agent's."


def _server_tool(_members: Members, name: str) -> tuple[str, str] | None:
    """A name of no tool of its own is `TOOLSET_TOOL`, whose parts no name tells apart."""
    return None if is_own_tool(AGENT_SIDE, name) else ("", name)


def _read_document(raw: bytes, environ: Mapping[str, str]) -> AgentEvent:
    """The event; guards of an edit see all texts of it. Raises ValueError."""
    event = read_document(AGENT_SIDE, raw, environ)
    context = event.context
    if context.alias is None or context.tool != _EDITOR:
        return event
    edits = raw_json.items(raw_json.encode(familiar_call.edits(context.arguments)))
    return replace(event, context=edit_context(context, [_edit(bytes(edit)) for edit in edits], {"file_path": "path"}))


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
        specific["permission_decision"] = decision.permission.name.lower()
        if decision.reason or decision.permission is Permission.DENY:
            specific["permission_decision_reason"] = decision.reason or "denied by a hook"
    if decision.arguments is not None and decision.permission is not Permission.DENY:
        specific["updated_input"] = msgspec.Raw(decision.arguments)
    return specific


def _write_hook_file(entries: Sequence[WrittenEntry]) -> Mapping[str, str]:
    events: dict[str, list[str]] = {}
    for entry in entries:
        events.setdefault(entry.event_name, []).append(_yaml(entry))
    lines = "".join(f"      {name}:\n{''.join(hooks)}" for name, hooks in events.items())
    return {_FILE: f"agents:\n  root:\n    hooks:\n{lines}"}


def _yaml(entry: WrittenEntry) -> str:
    """An item of an event's list; JSON spells strings as YAML does."""
    members = [f"command: {quoted(entry.command)}"]
    members += [f"{key}: {value}" for key, value in CURRENT.timeouts.members(entry.timeout).items()]
    if entry.event_name in LISTS:
        return "        - type: command\n" + "".join(f"          {member}\n" for member in members)
    matcher = quoted(entry.matcher or regular_expression(entry.names) or "*")
    head = f"        - matcher: {matcher}\n          hooks:\n            - type: command\n"
    return head + "".join(f"              {member}\n" for member in members)


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=DOCUMENTED,
    documents=DocumentSigns(
        values={"hook_event_name": ("pre_tool_use", "post_tool_use", "session_start", "session_end")}
    ),
    file=_FILE,
    can=Can.ALLOW | Can.ASK | Can.REWRITE,
    form=DocumentForm(
        server_named=ServerNamed.NOT,
        server_tool=_server_tool,
        failed=lambda members: members.raw("tool_error") == b"true",
        outcome=lambda members, failed: text_outcome(members.text("tool_response"), failed=failed),
    ),
    read_document=_read_document,
    write_output=_write_output,
    write_hook_file=_write_hook_file,
    also={Event.POST_TOOL_USE_FAILURE: "post_tool_use"},
    merges=True,
    own_names_are_unique=False,  # the tools of a server without a name have no prefix
    own_tools=TOOLS,
    user_folder=None,
)
