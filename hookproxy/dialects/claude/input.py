"""What Claude Code's hooks are told: the document on standard input, and the variables."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from ...model.hooks import Document, Event, HookSpec, Inquiry, Occasion, Outcome, Session
from ..shared import input as shared_input

TOOL_EVENTS: Final = (
    Event.PRE_TOOL_USE,
    Event.POST_TOOL_USE,
    Event.POST_TOOL_USE_FAILURE,
    Event.PERMISSION_REQUEST,
)
"""The events about a call, for which alone `if` is."""

_INQUIRIES: Final = (Event.ELICITATION, Event.ELICITATION_RESULT)
_KEPT: Final = 256  # tools of which what is the same for each call is kept: more than a server has


def write(spec: HookSpec, occasion: Occasion) -> Document:
    """The document on standard input, in the order of Claude Code's own, and the variables."""
    session = occasion.session
    env = _variables(session)
    if occasion.event is Event.PRE_TOOL_USE:
        head, tail = _around(session, occasion.tool_name, occasion.annotations)
        use_id = msgspec.json.encode(occasion.tool_use_id)
        return Document(b"".join((head, occasion.arguments, b',"tool_use_id":', use_id, b",", tail)), env)
    if occasion.event in TOOL_EVENTS:
        said = _call(occasion)
    elif occasion.event in _INQUIRIES:
        said = _inquiry(occasion)
    else:
        said = {"hook_event_name": occasion.event} | _moment(occasion)
    return Document(shared_input.line(_session(session) | said), env)


@lru_cache(maxsize=_KEPT)
def _variables(session: Session) -> Mapping[str, str]:
    return {
        "CLAUDE_PROJECT_DIR": session.project_dir,
        "CLAUDECODE": "1",
        "CLAUDE_CODE_CHILD_SESSION": "1",
        "CLAUDE_CODE_SESSION_ID": session.id,
    }


def _session(session: Session) -> dict[str, object]:
    return {
        "session_id": shared_input.utf8(session.id),
        "transcript_path": "",  # required, and there is none to show
        "cwd": shared_input.utf8(session.cwd),
    }


@lru_cache(maxsize=_KEPT)
def _around(session: Session, tool_name: str, annotations: bytes) -> tuple[bytes, bytes]:
    """What stands before a call's arguments and after its id: the same for each call of a tool, and made once."""
    before = _session(session) | _named(Event.PRE_TOOL_USE, tool_name)
    after = {"mcp_server": {"name": shared_input.utf8(session.server)}}
    head, tail = shared_input.line(before | {"tool_input": 0}), shared_input.line(after | _annotated(annotations))
    return bytes(head[: -len(b"0}\n")]), bytes(tail[1:])


def _named(event: Event, tool_name: str) -> dict[str, object]:
    return {"permission_mode": "default", "hook_event_name": event, "tool_name": tool_name}


def _annotated(annotations: bytes) -> dict[str, object]:
    return {"annotations": msgspec.Raw(annotations)} if annotations else {}


def _call(occasion: Occasion) -> dict[str, object]:
    call = _named(occasion.event, occasion.tool_name)
    call["tool_input"] = msgspec.Raw(occasion.arguments)
    outcome = occasion.outcome or Outcome()
    if occasion.event is Event.POST_TOOL_USE:
        call["tool_response"] = msgspec.Raw(outcome.content)
    if occasion.event is not Event.PERMISSION_REQUEST:
        call["tool_use_id"] = occasion.tool_use_id
    if occasion.event is Event.POST_TOOL_USE_FAILURE:
        call |= {"error": outcome.error, "is_interrupt": outcome.interrupted}
    if occasion.event in (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE):
        call["duration_ms"] = outcome.duration_ms
    call["mcp_server"] = {"name": shared_input.utf8(occasion.session.server)}
    return call | _annotated(occasion.annotations)


def _inquiry(occasion: Occasion) -> dict[str, object]:
    """The server's question, or the answer to it. That the agent could not ask counts as nobody's choice: `cancel`."""
    inquiry = occasion.inquiry or Inquiry(occasion.message)
    members: dict[str, object] = {
        "permission_mode": "default",
        "hook_event_name": occasion.event,
        "mcp_server_name": shared_input.utf8(occasion.session.server),
    }
    if occasion.event is Event.ELICITATION:
        members["message"] = inquiry.message
    else:
        members["action"] = "cancel" if occasion.occasioned_by == "error" else occasion.occasioned_by
        if inquiry.content is not None:
            members["content"] = msgspec.Raw(inquiry.content)
    members["mode"] = inquiry.mode
    if inquiry.elicitation_id:
        members["elicitation_id"] = inquiry.elicitation_id
    if occasion.event is Event.ELICITATION and inquiry.url:
        members["url"] = inquiry.url
    if occasion.event is Event.ELICITATION and inquiry.schema:
        members["requested_schema"] = msgspec.Raw(inquiry.schema)
    return members


def _moment(occasion: Occasion) -> dict[str, object]:
    if occasion.event is Event.NOTIFICATION:
        return {"message": shared_input.utf8(occasion.message), "notification_type": occasion.occasioned_by}
    return {"source" if occasion.event is Event.SESSION_START else "reason": occasion.occasioned_by}
