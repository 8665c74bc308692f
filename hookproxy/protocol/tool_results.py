"""Read the response to a call: whether it is final, and what PostToolUse and PostToolUseFailure hooks get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ..jsonrpc import normalize, raw_json
from ..model.hooks import Outcome
from . import elicitations
from .actions import ElicitationSeen
from .calls import Call

if TYPE_CHECKING:
    import msgspec


_READ: Final = frozenset({"resultType", "content", "structuredContent", "isError", "task", "taskId"})
_FOLDED: Final = frozenset(map(str.casefold, _READ))

NO_OUTCOME: Final = Outcome()
"""The outcome of a call that has none yet."""


class ParsedResponse(Struct, frozen=True):
    """The content of the response to a call."""

    final: bool
    """False: the call continues in further requests, and no hook runs yet."""
    failed: bool = False
    outcome: Outcome = NO_OUTCOME
    needs_input: bool = False
    """It is not final because the server requests input, and another round follows."""
    questions: tuple[ElicitationSeen, ...] = ()
    """The elicitations in a response that is not final."""


def read(call: Call) -> ParsedResponse:
    """Read a call's response. Raises Unreadable, DuplicateKeys: the agent might read it differently than hooks do."""
    if call.response is None:
        raise raw_json.Unreadable("two readers may read it differently")
    if call.response.error is not None:
        return ParsedResponse(True, True, Outcome(error=error_text(call.response.error)))
    members = call.response.result or {}
    if any(key not in _READ and raw_json.folded_key(key) in _FOLDED for key in members):
        raise raw_json.Unreadable("a member of its result differs only in case from a known member")
    result_type = raw_json.text(bytes(members["resultType"])) if "resultType" in members else "complete"
    waits = result_type == "input_required" or (result_type == "task" and "taskId" in members)
    handle = (call.stateless and waits) or (call.task and "task" in members)
    if handle and members.keys().isdisjoint({"content", "structuredContent"}):  # else an agent may show these
        needs_input = result_type == "input_required"
        return ParsedResponse(False, needs_input=needs_input, questions=tuple(elicitations.in_result(members)))
    content = normalize.normalize_output(bytes(members["content"])) if "content" in members else b"[]"
    failed = "isError" in members and bytes(members["isError"]) == b"true"
    error = (joined_text(content) or "The tool reported an error without a message.") if failed else ""
    structured = bytes(members["structuredContent"]) if "structuredContent" in members else b""
    return ParsedResponse(True, failed, Outcome(content=content, structured=structured, has_result=True, error=error))


def error_text(error: msgspec.Raw) -> str:
    """Return a JSON-RPC error in the words that Claude Code gives to hooks."""
    try:
        members = raw_json.fields(error)
    except raw_json.Unreadable:
        return "MCP error"
    message = raw_json.text(bytes(members.get("message", b""))) or ""
    return f"MCP error {bytes(members.get('code', b'')).decode(errors='replace')}: {message}"


def joined_text(content: bytes) -> str:
    """Return the texts of all content blocks, joined by line ends."""
    try:
        texts = [
            raw_json.text(bytes(raw_json.fields(bytes(block)).get("text", b""))) for block in raw_json.items(content)
        ]
    except raw_json.Unreadable:
        return ""
    return "\n".join(text for text in texts if text)
