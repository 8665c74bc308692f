"""Writes the input of Lime's hooks: the document on standard input, and the variables."""

from __future__ import annotations

import msgspec

from ...jsonrpc import raw_json
from ...model.hooks import Document, Event, EventContext, HookSpec, Outcome
from ..shared import input as shared_input
from .hook_file import AFTER_CALL, TOOL_EVENTS


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document, and variables with the same values."""
    event, session = context.event.value, context.session
    document: dict[str, object] = {
        "event": event,
        "hook_event_name": event,
        "session_id": shared_input.utf8(session.id),
    }
    if context.request_id:
        document["request_id"] = shared_input.utf8(context.request_id)
    document["cwd"] = shared_input.utf8(session.cwd)
    env, cut = {"HOOK_EVENT": event}, False
    if context.event in TOOL_EVENTS:
        document |= shared_input.call_members(context)
        variable, cut = shared_input.tool_input_variable(context.arguments)
        env |= {"HOOK_TOOL_NAME": context.tool_name, shared_input.TOOL_INPUT: variable}
    if context.event in AFTER_CALL:
        failed = context.event is Event.POST_TOOL_USE_FAILURE
        output = _tool_output(context.outcome or Outcome(), failed)
        document |= {"tool_output": msgspec.Raw(output), "is_error": failed}
        env |= {"HOOK_TOOL_OUTPUT": output.decode(errors="replace"), "HOOK_TOOL_IS_ERROR": "1" if failed else "0"}
    document |= _event_details(context)
    return Document(stdin=shared_input.json_line(document), env=env, cut=cut)


def _tool_output(outcome: Outcome, failed: bool) -> bytes:
    """The tool's output as JSON: its content blocks, the whole result if it has more, or the error message."""
    if failed and not outcome.has_result:
        return raw_json.encode(shared_input.utf8(outcome.error))
    return shared_input.tool_response(outcome)


def _event_details(context: EventContext) -> dict[str, object]:
    """The members that are not about the call. Lime's document does not name them, so they have Claude Code's names."""
    trigger, message = shared_input.utf8(context.trigger), shared_input.utf8(context.message)
    match context.event:
        case Event.SESSION_START:
            return {"source": trigger}
        case Event.SESSION_END:
            return {"reason": trigger}
        case Event.PERMISSION_REQUEST | Event.PERMISSION_DENIED:
            return {"reason": message}
        case Event.NOTIFICATION:
            return {"notification_type": trigger, "message": message}
        case _:
            return {}
