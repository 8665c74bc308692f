"""Writes the input of claw-code's hooks: the document on standard input, and the variables."""

from __future__ import annotations

import msgspec

from ...model.hooks import Document, Event, EventContext, HookSpec, Outcome
from ..shared import input as shared_input
from .hook_file import FAILURE_EVENT


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document and the variables. The tool's input is in `tool_input`, `tool_input_json` and HOOK_TOOL_INPUT."""
    variable, cut = shared_input.tool_input_variable(context.arguments)
    failed = context.event is Event.POST_TOOL_USE_FAILURE
    has_run = context.event is not Event.PRE_TOOL_USE
    output = shared_input.result_text(context.outcome or Outcome()) if has_run else None
    document = {
        "hook_event_name": spec.event_name,
        "tool_name": context.tool_name,
        "tool_input": msgspec.Raw(context.arguments),
        "tool_input_json": context.arguments.decode(),
        "tool_error" if spec.event_name == FAILURE_EVENT else "tool_output": output,
        "tool_result_is_error": failed,
    }
    env = {
        "HOOK_EVENT": spec.event_name,
        "HOOK_TOOL_NAME": context.tool_name,
        shared_input.TOOL_INPUT: variable,
        "HOOK_TOOL_IS_ERROR": "1" if failed else "0",
    }
    if output is not None:
        env["HOOK_TOOL_OUTPUT"] = output
    return Document(stdin=shared_input.json_line(document), env=env, cut=cut)
