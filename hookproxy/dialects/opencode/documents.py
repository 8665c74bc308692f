"""What a plugin's process reads for an event, and how what it prints is read.

A function that throws before a call refuses it, as in OpenCode. A change of `output.args` rewrites the call. After a
call of an MCP tool OpenCode gives the plugin the tool's own result, and a change of it has no effect; one that throws
there takes the result away from the model.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from ...model.hooks import (
    NO_VERDICT,
    Document,
    Ended,
    Event,
    EventContext,
    HookResult,
    HookSpec,
    Outcome,
    Permission,
    Verdict,
)
from ..dialect import Effect, for_names
from ..shared import input as shared_input
from ..shared import output as shared_output

FIELDS: Final = for_names({
    Effect.DECIDES: "decision",
    Effect.REASON: "reason",
    Effect.REWRITES: "args",
})  # fmt: skip
"""What `plugin_host.mjs` prints: what a function has thrown as the reason of a denial, and changed arguments."""


class _Printed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    decision: Literal["deny"] | None = None
    reason: str = ""
    args: msgspec.Raw = shared_output.NO_JSON


_DECODER: Final = msgspec.json.Decoder(_Printed)


def write_input(spec: HookSpec, context: EventContext) -> Document:
    """The document on standard input. There are no variables."""
    about: dict[str, object] = {
        "tool": shared_input.utf8(context.tool_name),
        "sessionID": shared_input.utf8(context.session.id),
        "callID": shared_input.utf8(context.tool_use_id),
    }
    arguments = msgspec.Raw(context.arguments)
    if context.event is Event.PRE_TOOL_USE:
        return _document(spec, context, about, {"args": arguments})
    outcome = context.outcome or Outcome()
    output: dict[str, object] = {
        "title": "",
        "output": shared_input.utf8(shared_input.result_text(outcome)),
        "metadata": {},
        "content": msgspec.Raw(outcome.content),
    }
    if context.event is Event.POST_TOOL_USE_FAILURE:
        output["isError"] = True
    if outcome.structured:
        output["structuredContent"] = msgspec.Raw(outcome.structured)
    return _document(spec, context, {**about, "args": arguments}, output)


def _document(spec: HookSpec, context: EventContext, about: object, output: object) -> Document:
    folder = shared_input.utf8(context.session.project_dir)
    members = {"hook": spec.event_name, "directory": folder, "input": about, "output": output}
    return Document(stdin=shared_input.json_line(members), env={})


def read_output(spec: HookSpec, result: HookResult) -> Verdict:
    """The verdict of a plugin on an event. Never raises."""
    if result.ended is not Ended.EXITED:
        return Verdict(failure=shared_output.describe_end(spec, result), fails_closed=True)
    try:
        printed = shared_output.parse_json_object(result.stdout, _DECODER)
    except shared_output.InvalidOutput as error:
        return Verdict(failure=str(error), fails_closed=True)
    if printed is None:
        return Verdict(failure="printed nothing", fails_closed=True)
    if printed.decision == "deny":
        reason = printed.reason or "it has thrown an error without a message"
        if spec.event is Event.PRE_TOOL_USE:
            return Verdict(permission=Permission.DENY, reason=reason)
        return Verdict(hides=True, feedback=(reason,))
    changed = shared_output.given(printed.args)
    if changed and (spec.event is not Event.PRE_TOOL_USE or not changed.startswith(b"{")):
        return Verdict(failure="has changed the arguments into something other than an object", fails_closed=True)
    return Verdict(arguments=changed) if changed else NO_VERDICT
