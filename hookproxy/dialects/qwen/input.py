"""Writes the input of Qwen Code's hooks: the document on standard input, and the variables."""

from __future__ import annotations

import hashlib
import string
from typing import Final

import msgspec

from ...model.hooks import Document, Event, EventContext, HookSpec, Outcome
from ..shared import input as shared_input
from .hook_file import PROJECT_VARIABLES

_CALL_EVENTS = (
    Event.PRE_TOOL_USE,
    Event.POST_TOOL_USE,
    Event.POST_TOOL_USE_FAILURE,
    Event.PERMISSION_REQUEST,
    Event.PERMISSION_DENIED,
)


_DIGITS: Final = string.digits + string.ascii_lowercase
_SUFFIX_LENGTH: Final = 9  # as in Qwen Code


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, and the variables."""
    session = context.session
    document: dict[str, object] = {
        "session_id": shared_input.utf8(session.id),
        "transcript_path": "",  # required, and an MCP server has none
        "cwd": shared_input.utf8(session.cwd),
        "hook_event_name": context.event,
        "timestamp": shared_input.iso_8601(context.at),
        "permission_mode": "default",
    }
    document |= _call(context) if context.event in _CALL_EVENTS else _session_event(context)
    env = dict.fromkeys(PROJECT_VARIABLES, session.project_dir)
    return Document(shared_input.json_line(document), env)


def _call(context: EventContext) -> dict[str, object]:
    outcome = context.outcome or Outcome()
    members: dict[str, object] = {
        "tool_name": shared_input.utf8(context.tool_name),
        "tool_input": msgspec.Raw(context.arguments),
    }
    if context.event is Event.POST_TOOL_USE:
        text = shared_input.utf8(shared_input.result_text(outcome))
        members["tool_response"] = {"llmContent": [{"text": text}], "returnDisplay": text}
    if context.event is not Event.PERMISSION_REQUEST:
        members |= {"tool_use_id": _tool_use_id(context), "tool_call_id": shared_input.utf8(context.tool_use_id)}
    if context.event is Event.POST_TOOL_USE_FAILURE:
        members |= {"error": shared_input.utf8(outcome.error), "is_interrupt": outcome.interrupted}
    if context.event in (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE):
        members["duration_ms"] = outcome.duration_ms
    if context.event is Event.PERMISSION_DENIED:
        members["reason"] = shared_input.utf8(context.message)
    return members


def _tool_use_id(context: EventContext) -> str:
    """An id of the form of `generateToolUseId`: the time of the call, and what distinguishes it from calls at the same
    time. All events of a call have the same."""
    call = f"{context.session.id}\0{context.tool_use_id}".encode(errors="replace")
    number = int.from_bytes(hashlib.sha256(call).digest(), "big")
    suffix = "".join(_DIGITS[number // len(_DIGITS) ** place % len(_DIGITS)] for place in range(_SUFFIX_LENGTH))
    return f"toolu_{int(context.at * 1000)}_{suffix}"


def _session_event(context: EventContext) -> dict[str, object]:
    if context.event is Event.NOTIFICATION:
        return {"message": shared_input.utf8(context.message), "notification_type": context.trigger}
    return {"source" if context.event is Event.SESSION_START else "reason": context.trigger}
