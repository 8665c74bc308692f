"""Writes the input of Claude Code's hooks: the document on standard input, and the variables."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from ...model.hooks import Document, Elicitation, Event, EventContext, HookSpec, Outcome, Session
from ..shared import input as shared_input
from . import tool_response

TOOL_EVENTS: Final = (
    Event.PRE_TOOL_USE,
    Event.POST_TOOL_USE,
    Event.POST_TOOL_USE_FAILURE,
    Event.PERMISSION_REQUEST,
)
"""The events about a call. `if` is only for these."""

_ELICITATION_EVENTS: Final = (Event.ELICITATION, Event.ELICITATION_RESULT)
_CACHE_SIZE: Final = 256  # tools whose constant parts are cached: more than a server has
_LONGEST_NAME: Final = 1024  # characters of such a tool's name: agents choose names, and MCP's have at most 128


def write_input(spec: HookSpec, context: EventContext, more: bytes = b"") -> Document:
    """The document on standard input, with its members in Claude Code's order, and the variables.

    `more` are the last members of another system's document that is otherwise the same: JSON with a comma in front.
    """
    session = context.session
    env = _variables(session)
    if context.event is Event.PRE_TOOL_USE and context.agent_state is None:
        parts = _kept_parts if len(context.tool_name) <= _LONGEST_NAME else _constant_parts
        head, tail = parts(session, context.tool_name, context.annotations)
        use_id = msgspec.json.encode(context.tool_use_id)
        if more:
            tail = b"%b%b}\n" % (tail[: -len(b"}\n")], more)
        return Document(b"".join((head, context.arguments, b',"tool_use_id":', use_id, b",", tail)), env)
    if context.event in TOOL_EVENTS:
        members = _call(context)
    elif context.event in _ELICITATION_EVENTS:
        members = _elicitation(context)
    else:
        members = {"hook_event_name": context.event} | shared_input.session_event(context)
    stdin = shared_input.json_line(_session(session) | members | _of_agent(context))
    if more:
        stdin[-len(b"}\n") :] = more + b"}\n"
    return Document(stdin, env)


@lru_cache(maxsize=_CACHE_SIZE)
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
        "transcript_path": shared_input.utf8(session.transcript),
        "cwd": shared_input.utf8(session.cwd),
    }


def _of_agent(context: EventContext) -> dict[str, object]:
    """What only the agent knows, if the event comes from its own document."""
    if context.agent_state is None:
        return {}
    return {name: shared_input.utf8(text) for name, text in msgspec.structs.asdict(context.agent_state).items() if text}


def _constant_parts(session: Session, tool_name: str, annotations: bytes) -> tuple[bytes, bytes]:
    """The document before a call's arguments and after its id: the same for each call of a tool."""
    before = _session(session) | _call_head(Event.PRE_TOOL_USE, tool_name)
    after = {"mcp_server": {"name": shared_input.utf8(session.server)}}
    head, tail = (
        shared_input.json_line(before | {"tool_input": 0}),
        shared_input.json_line(after | _annotations(annotations)),
    )
    return bytes(head[: -len(b"0}\n")]), bytes(tail[1:])


_kept_parts = lru_cache(maxsize=_CACHE_SIZE)(_constant_parts)


def _call_head(event: Event, tool_name: str) -> dict[str, object]:
    return {"permission_mode": "default", "hook_event_name": event, "tool_name": tool_name}


def _annotations(annotations: bytes) -> dict[str, object]:
    return {"annotations": msgspec.Raw(annotations)} if annotations else {}


def _call(context: EventContext) -> dict[str, object]:
    call = _call_head(context.event, context.tool_name)
    call["tool_input"] = msgspec.Raw(context.arguments)
    outcome = context.outcome or Outcome()
    if context.event is Event.POST_TOOL_USE:
        has_familiar_form = context.alias is not None and not outcome.more  # which no familiar form has a place for
        familiar = tool_response.familiar_response(context) if has_familiar_form else None
        call["tool_response"] = msgspec.Raw(shared_input.tool_response(outcome)) if familiar is None else familiar
    if context.event is not Event.PERMISSION_REQUEST:
        call["tool_use_id"] = context.tool_use_id
    if context.event is Event.POST_TOOL_USE_FAILURE:
        call |= {"error": outcome.error, "is_interrupt": outcome.interrupted}
    if context.event in (Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE):
        call["duration_ms"] = outcome.duration_ms
    call["mcp_server"] = {"name": shared_input.utf8(context.session.server)}
    return call | _annotations(context.annotations)


def _elicitation(context: EventContext) -> dict[str, object]:
    """The server's elicitation, or the result. If the agent could not ask the person, the action is `cancel`."""
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
