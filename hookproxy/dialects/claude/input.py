"""What Claude Code's hooks are told: the document on standard input, and the variables."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from ...model.hooks import Document, Elicitation, Event, EventContext, HookSpec, Outcome, Session
from ..shared import input as shared_input

TOOL_EVENTS: Final = (
    Event.PRE_TOOL_USE,
    Event.POST_TOOL_USE,
    Event.POST_TOOL_USE_FAILURE,
    Event.PERMISSION_REQUEST,
)
"""The events about a call, for which alone `if` is."""

_ELICITATION_EVENTS: Final = (Event.ELICITATION, Event.ELICITATION_RESULT)
_KEPT: Final = 256  # tools of which what is the same for each call is kept: more than a server has


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document on standard input, in the order of Claude Code's own, and the variables."""
    session = context.session
    env = _variables(session)
    if context.event is Event.PRE_TOOL_USE:
        head, tail = _around(session, context.tool_name, context.annotations)
        use_id = msgspec.json.encode(context.tool_use_id)
        return Document(b"".join((head, context.arguments, b',"tool_use_id":', use_id, b",", tail)), env)
    if context.event in TOOL_EVENTS:
        said = _call(context)
    elif context.event in _ELICITATION_EVENTS:
        said = _elicitation(context)
    else:
        said = {"hook_event_name": context.event} | _moment(context)
    return Document(shared_input.json_line(_session(session) | said), env)


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
    head, tail = (
        shared_input.json_line(before | {"tool_input": 0}),
        shared_input.json_line(after | _annotated(annotations)),
    )
    return bytes(head[: -len(b"0}\n")]), bytes(tail[1:])


def _named(event: Event, tool_name: str) -> dict[str, object]:
    return {"permission_mode": "default", "hook_event_name": event, "tool_name": tool_name}


def _annotated(annotations: bytes) -> dict[str, object]:
    return {"annotations": msgspec.Raw(annotations)} if annotations else {}


def _call(context: EventContext) -> dict[str, object]:
    call = _named(context.event, context.tool_name)
    call["tool_input"] = msgspec.Raw(context.arguments)
    outcome = context.outcome or Outcome()
    if context.event is Event.POST_TOOL_USE:
        call["tool_response"] = msgspec.Raw(outcome.content)
    if context.event is not Event.PERMISSION_REQUEST:
        call["tool_use_id"] = context.tool_use_id
    if context.event is Event.POST_TOOL_USE_FAILURE:
        call |= {"error": outcome.error, "is_interrupt": outcome.interrupted}
    if context.event in (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE):
        call["duration_ms"] = outcome.duration_ms
    call["mcp_server"] = {"name": shared_input.utf8(context.session.server)}
    return call | _annotated(context.annotations)


def _elicitation(context: EventContext) -> dict[str, object]:
    """The server's question, or the answer to it. That the agent could not ask counts as nobody's choice: `cancel`."""
    elicitation = context.elicitation or Elicitation(context.message)
    members: dict[str, object] = {
        "permission_mode": "default",
        "hook_event_name": context.event,
        "mcp_server_name": shared_input.utf8(context.session.server),
    }
    if context.event is Event.ELICITATION:
        members["message"] = elicitation.message
    else:
        members["action"] = "cancel" if context.trigger == "error" else context.trigger
        if elicitation.content is not None:
            members["content"] = msgspec.Raw(elicitation.content)
    members["mode"] = elicitation.mode
    if elicitation.elicitation_id:
        members["elicitation_id"] = elicitation.elicitation_id
    if context.event is Event.ELICITATION and elicitation.url:
        members["url"] = elicitation.url
    if context.event is Event.ELICITATION and elicitation.schema:
        members["requested_schema"] = msgspec.Raw(elicitation.schema)
    return members


def _moment(context: EventContext) -> dict[str, object]:
    if context.event is Event.NOTIFICATION:
        return {"message": shared_input.utf8(context.message), "notification_type": context.trigger}
    return {"source" if context.event is Event.SESSION_START else "reason": context.trigger}
