"""The documents that agents give to hooks: their members, and by which of them each agent is known.

It imports no dialect: an agent runs `hookproxy hook` at each of its calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ..jsonrpc import raw_json


class Members:
    """The members of a document, each with the type that is wanted. Wrong types count as absent."""

    def __init__(self, raw: bytes) -> None:
        """Raises Unreadable, DuplicateKeys."""
        self._raw = {name: bytes(value) for name, value in raw_json.fields(raw).items()}

    def __contains__(self, name: str) -> bool:
        return name in self._raw

    def raw(self, name: str, default: bytes = b"") -> bytes:
        """A member's JSON text."""
        return self._raw.get(name, default)

    def text(self, *names: str) -> str:
        """The first of these members that is a string; else an empty one."""
        found = (raw_json.text(self._raw[name]) for name in names if name in self._raw)
        return next((text for text in found if text), "")

    def object(self, name: str) -> Members:
        """A member that is an object; empty if it is not. Raises DuplicateKeys."""
        raw = self._raw.get(name, b"")
        return Members(raw if raw.startswith(b"{") else b"{}")

    def required(self, *names: str) -> str:
        """As `text`. Raises ValueError if there is none."""
        found = self.text(*names)
        if not found:
            raise ValueError(f"the document has no {names[0]}")
        return found


_CLAUDE_MODES: Final = ("default", "plan", "acceptEdits", "auto", "dontAsk", "bypassPermissions")
_DROID_MODES: Final = ("off", "spec", "auto-low", "auto-medium", "auto-high")
_COPILOT_EVENTS: Final = (
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "SessionStart",
    "SessionEnd",
)
_DOCKER_AGENT_EVENTS: Final = ("pre_tool_use", "post_tool_use", "session_start", "session_end")


def _copilot(members: Members) -> bool:
    others = ("permission_mode", "tool_use_id", "cursor_version")
    known = members.text("hook_event_name") in _COPILOT_EVENTS
    return known and "timestamp" in members and not any(other in members for other in others)


def _claude(members: Members) -> bool:
    known = members.text("permission_mode") in _CLAUDE_MODES
    return known and "turn_id" not in members and "timestamp" not in members


def _kiro(members: Members) -> bool:
    is_call = members.text("hook_event_name").lower() in ("pretooluse", "posttooluse")
    return is_call and members.text("tool_name").startswith("@")


_RECOGNISES: Final[Mapping[str, Callable[[Members], bool]]] = {
    "augment": lambda members: "conversation_id" in members and "cursor_version" not in members,
    "cascade": lambda members: "agent_action_name" in members,
    "claude": _claude,
    "claw": lambda members: "tool_input_json" in members,
    "cline": lambda members: "hookName" in members,
    "code-assist": lambda members: "hook_event" in members,
    "codex": lambda members: "turn_id" in members,
    "copilot": _copilot,
    "crush": lambda members: "event" in members and "cwd" in members and "hook_event_name" not in members,
    "cursor": lambda members: "cursor_version" in members,
    "docker-agent": lambda members: members.text("hook_event_name") in _DOCKER_AGENT_EVENTS,
    "droid": lambda members: members.text("permission_mode") in _DROID_MODES,
    "gemini": lambda members: members.text("hook_event_name") in ("BeforeTool", "AfterTool"),
    "goose": lambda members: "matcher_context" in members,
    "iflow": lambda _members: False,  # its variables tell, and another agent that it started inherits them
    "kimi": lambda members: "client_type" in members,
    "kiro": _kiro,
    "lime": lambda members: "event" in members and "hook_event_name" in members,
    "qwen": lambda members: "timestamp" in members and "permission_mode" in members,
    "vscode": lambda members: "timestamp" in members and "tool_use_id" in members and "permission_mode" not in members,
}
"""The documents of each agent have these members, and those of other agents have not."""


def agents_of(members: Members) -> tuple[str, ...]:
    """The agents that give such a document to their hooks, by the names of their dialects."""
    return tuple(name for name, recognises in _RECOGNISES.items() if recognises(members))
