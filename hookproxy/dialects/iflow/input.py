"""Writes the input of iFlow CLI's hooks: the document and the variables, of which the page describes the latter."""

from __future__ import annotations

import msgspec

from ...model.hooks import Document, Event, EventContext, HookSpec
from ...processes import environment
from ..shared import input as shared_input
from .hook_file import ALIASES


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, and variables with the same values. A tool of iFlow CLI's own has its real name, not an alias."""
    session = context.session
    members: dict[str, object] = {
        "session_id": shared_input.utf8(session.id),
        "cwd": shared_input.utf8(session.cwd),
        "hook_event_name": spec.event_name,
    }
    env = {"IFLOW_SESSION_ID": session.id, "IFLOW_CWD": session.cwd, "IFLOW_HOOK_EVENT_NAME": spec.event_name}
    if context.tool:
        seen = context.tool_name
        own = next((tool for tool, names in ALIASES.items() if seen in names), seen) if context.alias else seen
        members |= {"tool_name": shared_input.utf8(own), "tool_input": msgspec.Raw(context.arguments)}
        aliases = msgspec.json.encode(ALIASES.get(own, ()) if context.alias else ()).decode()
        env |= {"IFLOW_TOOL_NAME": own, "IFLOW_TOOL_ALIASES": aliases}
        env["IFLOW_TOOL_ARGS"] = context.arguments.decode(errors="replace")
    if context.outcome is not None:
        members["tool_response"] = shared_input.utf8_result(context)
    if context.event is Event.SESSION_START:
        env["IFLOW_SESSION_SOURCE"] = context.trigger
    if context.event is Event.NOTIFICATION:
        members["message"] = shared_input.utf8(context.message)
        env["IFLOW_NOTIFICATION_MESSAGE"] = context.message
    return Document(stdin=shared_input.json_line(members), env=env, cut=environment.cuts(env))
