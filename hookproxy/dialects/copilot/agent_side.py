"""Copilot CLI as an agent that runs a hook of another system, in its format for event names in PascalCase."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from ...jsonrpc import raw_json
from ...model.hooks import Event, Outcome, Permission
from ..agent_documents import DocumentSigns, Members
from ..agent_side import AgentEvent, AgentSide, Can, DocumentForm, HookDecision, HookOutput, json_output, text_outcome
from ..shared.events import by_name
from .hook_file import OLDER_FORMAT, TOOLS

_EVENTS: Final = by_name(
    Event.PRE_TOOL_USE,
    Event.POST_TOOL_USE,
    Event.POST_TOOL_USE_FAILURE,
    Event.PERMISSION_REQUEST,
    Event.SESSION_START,
    Event.SESSION_END,
)


def _outcome(members: Members, failed: bool) -> Outcome:
    if failed:
        return text_outcome(members.text("error") or "the tool failed", failed=True)
    return text_outcome(members.object("tool_result").text("text_result_for_llm"))


def _server_tool(_members: Members, name: str) -> tuple[str, str] | None:
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
    output: dict[str, object] = {"permissionDecision": permission.name.lower()}
    if decision.reason or permission is Permission.DENY:
        output["permissionDecisionReason"] = decision.reason or "denied by a hook"
    if decision.arguments is not None and permission is not Permission.DENY:
        output["modifiedArgs"] = msgspec.Raw(decision.arguments)
    return output


def _permission_request(decision: HookDecision) -> dict[str, object]:
    if decision.permission not in (Permission.ALLOW, Permission.DENY):
        return {}
    return {"behavior": decision.permission.name.lower(), "message": decision.reason, "interrupt": decision.stop}


def _after_call(decision: HookDecision) -> dict[str, object]:
    output: dict[str, object] = {"additionalContext": decision.feedback} if decision.feedback else {}
    if decision.replacement is not None:
        text = raw_json.text_or_json(decision.replacement)
        output["modifiedResult"] = {"textResultForLlm": text, "resultType": "success"}
    return output


def _refuse(reason: str) -> HookOutput:
    """Older versions skip a hook with exit status 2; all read JSON, with other members for PermissionRequest."""
    before = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return json_output({**before, "behavior": "deny", "message": reason})


AGENT_SIDE: Final[AgentSide] = AgentSide(
    files=OLDER_FORMAT,
    documents=DocumentSigns(
        has=("timestamp",),
        lacks=("permission_mode", "tool_use_id", "cursor_version"),
        values={"hook_event_name": tuple(_EVENTS)},
    ),
    form=DocumentForm(server_tool=_server_tool, outcome=_outcome),
    also_reads=("claude", "vscode"),
    file=".github/hooks/hookproxy.json",
    can=Can.ALLOW | Can.ASK | Can.REWRITE | Can.TELL_AFTER | Can.REPLACE,
    write_output=_write_output,
    refuse=_refuse,
    events=_EVENTS,
    own_mcp_names=lambda server, tool: f"{server}-{tool}",
    own_tools=TOOLS,
    user_folder=(".github/", ".copilot/"),
    user_variable="COPILOT_HOME",
)
