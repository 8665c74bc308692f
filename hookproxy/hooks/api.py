"""For Python hooks: the input document as a typed value, and functions that make hook output. Plain dicts work as well.

from hookproxy.hooks.api import HookInput, deny

def check(hook_input: HookInput) -> dict[str, object] | None:
    return deny("not there") if hook_input.tool_input.get("path") == "/etc" else None
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

HookOutput = dict[str, object]
"""Hook output, as a command would print it as JSON."""


class Server(msgspec.Struct, frozen=True):
    """The MCP server that hookproxy runs."""

    name: str = ""


class PastCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of the session that has ended."""

    tool_name: str = ""
    """The server's own name of the tool, or the agent's."""
    server: str = ""
    """Empty: it is a tool of the agent's own."""
    tool_input: dict[str, object] | None = None
    """As it ran; None: it is too long."""
    decision: str = ""
    """`allow`, `deny`, `asked-allow`, `asked-deny`; empty if the call ended before."""
    result: str = ""
    """`ok`, `error`, `refused`, `cancelled`, `lost`; `sent` if nobody has read its response."""
    timestamp: str = ""
    """When it ended."""


class PastSession(msgspec.Struct, frozen=True):
    """What was done before in the session."""

    unread: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"[]"), name="calls")
    """The calls as JSON."""

    @property
    def calls(self) -> list[PastCall]:
        """The last 200 calls that have ended, the oldest first: those that a hook, a rule or the audit concerns.

        They are read each time, which takes a tenth of a millisecond.
        """
        return msgspec.json.decode(self.unread, type=list[PastCall])


class HookInput(msgspec.Struct, frozen=True, kw_only=True):
    """A hook's input document. Members that an event does not have are empty."""

    session_id: str = ""
    cwd: str = ""
    hook_event_name: str = "PreToolUse"
    tool_name: str = ""
    tool_input: dict[str, object] = {}
    tool_use_id: str = ""
    tool_response: object = []
    """PostToolUse: the result's content blocks; the whole result, a dict, if it has more than content blocks."""
    error: str = ""
    """PostToolUseFailure: what went wrong."""
    is_interrupt: bool = False
    duration_ms: int = 0
    mcp_server: Server = Server()
    mcp_tool_name: str = ""
    """After a call, if `tool_name` is a familiar name: the server's own name for the tool."""
    annotations: dict[str, object] = {}
    source: str = ""
    """SessionStart: why the session starts."""
    reason: str = ""
    """SessionEnd: why the session ends."""
    timestamp: str = ""
    """When the event happened, as `2026-11-27T09:30:00.000Z`; empty in a document of another system."""
    session: PastSession = PastSession()
    labels: list[str] = []
    """What the session has read, if `[flow]` says where data may go: the labels of sources."""
    user: str = ""
    """At a gateway: who calls."""
    groups: list[str] = []
    """At a gateway: the groups of the user."""

    @property
    def time(self) -> datetime:
        """When the event happened; now, if the document does not say it."""
        return datetime.fromisoformat(self.timestamp) if self.timestamp else datetime.now(UTC)


class Commands(msgspec.Struct, frozen=True):
    """What a line of shell runs, as permission rules read it."""

    commands: list[list[str]]
    """The words of each command, without quotes: of the line's own, and of those that they start (`sh -c`, `env`)."""
    unreadable: str = ""
    """Why there may be others: a part is not literal (`$X`), or bash could not read it; empty: these are all."""


def commands(line: object) -> Commands:
    """Return what a line of shell runs. Of anything that is not a text, nothing can be read."""
    from ..shell.commands import commands_of

    if not isinstance(line, str):
        return Commands([], "the command is not a text")
    read = commands_of(line)
    words = [[word.text if word.literal else word.source for word in command] for command in read.commands]
    return Commands(words, read.unreadable)


def deny(reason: str) -> HookOutput:
    """Before a call: refuse it, and give the model the reason."""
    return _before(permissionDecision="deny", permissionDecisionReason=reason)


def ask(reason: str) -> HookOutput:
    """Before a call: ask a person to approve it."""
    return _before(permissionDecision="ask", permissionDecisionReason=reason)


def allow() -> HookOutput:
    """Before a call: allow it. Return None instead to decide nothing."""
    return _before(permissionDecision="allow")


def rewrite(tool_input: dict[str, object]) -> HookOutput:
    """Before a call: replace its arguments."""
    return _before(updatedInput=tool_input)


def comment(hook_input: HookInput, text: str) -> HookOutput:
    """Give the model this text with the call's result."""
    return {"hookSpecificOutput": {"hookEventName": hook_input.hook_event_name, "additionalContext": text}}


def _before(**members: object) -> HookOutput:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **members}}
