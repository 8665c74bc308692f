"""Writes the input of Goose's hooks."""

from __future__ import annotations

from ...model.hooks import Document, EventContext, HookSpec
from ..shared import input as shared_input


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document on standard input. There are no variables but `PLUGIN_ROOT`."""
    session = context.session
    members: dict[str, object] = {"event": spec.event_name, "session_id": shared_input.utf8(session.id)}
    if context.tool:
        members |= {
            "matcher_context": shared_input.utf8(context.tool_name),
            **shared_input.call_members(context),
            "working_dir": shared_input.utf8(session.cwd),
            "tool_call_id": shared_input.utf8(context.tool_use_id),
        }
    return Document(stdin=shared_input.json_line(members), env={})
