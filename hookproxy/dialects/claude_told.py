"""What Claude Code's hooks are told: the document on standard input, and the variables."""

from __future__ import annotations

from typing import Final

import msgspec

from ..model import Document, Event, HookSpec, Inquiry, Occasion, Outcome

TOOL_EVENTS: Final = (
    Event.PRE_TOOL_USE,
    Event.POST_TOOL_USE,
    Event.POST_TOOL_USE_FAILURE,
    Event.PERMISSION_REQUEST,
)
"""The events about a call, for which alone `if` is."""

_INQUIRIES: Final = (Event.ELICITATION, Event.ELICITATION_RESULT)
_ENCODER: Final = msgspec.json.Encoder()


def write(spec: HookSpec, occasion: Occasion) -> Document:
    """The document on standard input, in the order of Claude Code's own, and the variables."""
    session = occasion.session
    document: dict[str, object] = {
        "session_id": _utf8(session.id),
        "transcript_path": "",  # required, and there is none to show
        "cwd": _utf8(session.cwd),
    }
    if occasion.event in TOOL_EVENTS:
        document |= _call(occasion)
    elif occasion.event in _INQUIRIES:
        document |= _inquiry(occasion)
    else:
        document |= {"hook_event_name": occasion.event} | _moment(occasion)
    env = {
        "CLAUDE_PROJECT_DIR": session.project_dir,
        "CLAUDECODE": "1",
        "CLAUDE_CODE_CHILD_SESSION": "1",
        "CLAUDE_CODE_SESSION_ID": session.id,
    }
    document_line = bytearray()
    _ENCODER.encode_into(document, document_line)  # not through bytes: a result may be large, and is copied once
    document_line += b"\n"
    return Document(stdin=document_line, env=env)


def _call(occasion: Occasion) -> dict[str, object]:
    call: dict[str, object] = {
        "permission_mode": "default",
        "hook_event_name": occasion.event,
        "tool_name": occasion.tool_name,
        "tool_input": msgspec.Raw(occasion.arguments),
    }
    outcome = occasion.outcome or Outcome()
    if occasion.event is Event.POST_TOOL_USE:
        call["tool_response"] = msgspec.Raw(outcome.content)
    if occasion.event is not Event.PERMISSION_REQUEST:
        call["tool_use_id"] = occasion.tool_use_id
    if occasion.event is Event.POST_TOOL_USE_FAILURE:
        call |= {"error": outcome.error, "is_interrupt": outcome.interrupted}
    if occasion.event in (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE):
        call["duration_ms"] = outcome.duration_ms
    call["mcp_server"] = {"name": _utf8(occasion.session.server)}
    if occasion.annotations:
        call["annotations"] = msgspec.Raw(occasion.annotations)
    return call


def _inquiry(occasion: Occasion) -> dict[str, object]:
    """The server's question, or the answer to it. That the agent could not ask counts as nobody's choice: `cancel`."""
    inquiry = occasion.inquiry or Inquiry(occasion.message)
    told: dict[str, object] = {
        "permission_mode": "default",
        "hook_event_name": occasion.event,
        "mcp_server_name": _utf8(occasion.session.server),
    }
    if occasion.event is Event.ELICITATION:
        told["message"] = inquiry.message
    else:
        told["action"] = "cancel" if occasion.occasioned_by == "error" else occasion.occasioned_by
        if inquiry.content is not None:
            told["content"] = msgspec.Raw(inquiry.content)
    told["mode"] = inquiry.mode
    if inquiry.elicitation_id:
        told["elicitation_id"] = inquiry.elicitation_id
    if occasion.event is Event.ELICITATION and inquiry.url:
        told["url"] = inquiry.url
    if occasion.event is Event.ELICITATION and inquiry.schema:
        told["requested_schema"] = msgspec.Raw(inquiry.schema)
    return told


def _moment(occasion: Occasion) -> dict[str, object]:
    if occasion.event is Event.NOTIFICATION:
        return {"message": _utf8(occasion.message), "notification_type": occasion.occasioned_by}
    return {"source" if occasion.event is Event.SESSION_START else "reason": occasion.occasioned_by}


def _utf8(text: str) -> str:
    """Text that came from the operating system, where it may be no UTF-8."""
    return text.encode(errors="replace").decode()
