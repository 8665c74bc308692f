"""For Python hooks: the document as a typed value, and answers in fewer words. A plain dict serves as well.

from hookproxy.hooks.api import HookInput, deny

def check(hook_input: HookInput) -> dict[str, object] | None:
    return deny("not there") if hook_input.tool_input.get("path") == "/etc" else None
"""

from __future__ import annotations

import msgspec

Answer = dict[str, object]
"""What a command would print as JSON."""


class Server(msgspec.Struct, frozen=True):
    """The MCP server behind us."""

    name: str = ""


class HookInput(msgspec.Struct, frozen=True, kw_only=True):
    """What a hook is told. What an event does not have is empty."""

    session_id: str
    cwd: str
    hook_event_name: str
    tool_name: str = ""
    tool_input: dict[str, object] = {}
    tool_use_id: str = ""
    tool_response: list[object] = []
    """PostToolUse: the result's content blocks."""
    error: str = ""
    """PostToolUseFailure: what went wrong."""
    is_interrupt: bool = False
    duration_ms: int = 0
    mcp_server: Server = Server()
    annotations: dict[str, object] = {}
    source: str = ""
    """SessionStart: why there is a session."""
    reason: str = ""
    """SessionEnd: why there is none any more."""


def deny(reason: str) -> Answer:
    """Before a call: it is refused, and the model told why."""
    return _before(permissionDecision="deny", permissionDecisionReason=reason)


def ask(reason: str) -> Answer:
    """Before a call: a person is asked."""
    return _before(permissionDecision="ask", permissionDecisionReason=reason)


def allow() -> Answer:
    """Before a call: it is wanted. To say nothing, return None."""
    return _before(permissionDecision="allow")


def rewrite(tool_input: dict[str, object]) -> Answer:
    """Before a call: it is made with these arguments instead."""
    return _before(updatedInput=tool_input)


def comment(hook_input: HookInput, text: str) -> Answer:
    """The model is told this with the call's result."""
    return {"hookSpecificOutput": {"hookEventName": hook_input.hook_event_name, "additionalContext": text}}


def _before(**members: object) -> Answer:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **members}}
