"""The output that the agents with Claude Code's documents read: Claude Code, Codex, Droid, Qwen Code and others."""

from __future__ import annotations

import msgspec

from ...model.hooks import Event, Permission
from ..agent_side import AgentEvent, HookDecision, HookOutput, json_output


def write_output(
    event: AgentEvent,
    decision: HookDecision,
    *,
    explicit_allow: bool = True,
    rewrites_undecided: bool = False,
    replacement: str = "updatedMCPToolOutput",
) -> HookOutput:
    """The JSON output for a decision.

    `explicit_allow`: `permissionDecision: "allow"` may stand without `updatedInput`. `rewrites_undecided`: the agent
    applies `updatedInput` without a decision, and asks the person as if the call had come so; the others apply it only
    where the call is also allowed. `replacement` is the member that replaces a tool's output; empty: there is none.
    """
    kind = event.context.event
    output: dict[str, object] = {"systemMessage": decision.message} if decision.message else {}
    specific: dict[str, object] = {}
    if kind is Event.PRE_TOOL_USE:
        specific = _before_call(decision, explicit_allow, rewrites_undecided)
    elif kind is Event.PERMISSION_REQUEST:
        specific = _permission_request(decision)
    elif decision.permission is Permission.DENY:
        output |= {"decision": "block", "reason": decision.reason}
    if decision.replacement is not None and replacement:
        specific[replacement] = msgspec.Raw(decision.replacement)
    if decision.feedback and kind is not Event.PERMISSION_REQUEST:
        specific["additionalContext"] = decision.feedback
    if decision.stop and (explicit_allow or kind is not Event.PRE_TOOL_USE):
        output |= {"continue": False, "stopReason": decision.reason}
    if specific:
        output["hookSpecificOutput"] = {"hookEventName": event.name} | specific
    return json_output(output)


def _permission_request(decision: HookDecision) -> dict[str, object]:
    if decision.permission is Permission.DENY:
        return {"decision": {"behavior": "deny", "message": decision.reason}}
    if decision.permission is not Permission.ALLOW:
        return {}
    changed = {} if decision.arguments is None else {"updatedInput": msgspec.Raw(decision.arguments)}
    return {"decision": {"behavior": "allow"} | changed}


def _before_call(decision: HookDecision, explicit_allow: bool, rewrites_undecided: bool) -> dict[str, object]:
    specific: dict[str, object] = {}
    permission = decision.permission
    if decision.arguments is not None and permission is None and not rewrites_undecided:
        permission = Permission.ALLOW
    if permission is Permission.ALLOW and decision.arguments is None and not explicit_allow:
        permission = None
    if permission is not None:
        specific["permissionDecision"] = permission.name.lower()
        if decision.reason or permission is Permission.DENY:
            specific["permissionDecisionReason"] = decision.reason or "denied by a hook"
    if decision.arguments is not None and permission is not Permission.DENY:
        specific["updatedInput"] = msgspec.Raw(decision.arguments)
    return specific
