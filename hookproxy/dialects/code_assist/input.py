"""Writes the input of code-assist's hooks: the document on standard input. There are no variables."""

from __future__ import annotations

import msgspec

from ...model.hooks import Document, Event, EventContext, HookSpec
from ..shared import input as shared_input
from .hook_file import AFTER_CALL, TOOL_EVENTS


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The nine members that every hook gets, in the document's order; null where one does not apply.

    The document's table has tool_input for calls that will run or have succeeded, so PostToolUseFailure has none.
    Hooks about a call's permission get the call's tool and input: a hook that does not know the tool would approve any.
    """
    event, session = context.event, context.session
    about_call, has_run = event in TOOL_EVENTS, event in AFTER_CALL
    has_input = about_call and event is not Event.POST_TOOL_USE_FAILURE
    document: dict[str, object] = {
        "hook_event": event.value,
        "tool_name": shared_input.utf8(context.tool_name) if about_call else None,
        "tool_input": msgspec.Raw(context.arguments) if has_input else None,
        "tool_use_id": shared_input.utf8(context.tool_use_id) if about_call else None,
        "tool_output": shared_input.utf8_result(context) if has_run else None,
        "user_prompt": None,
        "session_id": shared_input.utf8(session.id),
        "agent_id": None,
        "cwd": shared_input.utf8(session.cwd),
    }
    return Document(stdin=shared_input.json_line(document), env={})
