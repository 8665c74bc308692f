"""Asks post hooks about what a call came to, and writes what they say into the answer that carries it."""

from __future__ import annotations

from msgspec.structs import replace

from ..model.decision import Comments, Refuse
from ..model.hooks import Event, EventContext, HookRun, Outcome
from ..protocol import feedback
from ..protocol.calls import Call
from .call_context import CallServices


async def run_post_hooks(
    call: Call, services: CallServices, event_context: EventContext, outcome: Outcome, hook_runs: list[HookRun]
) -> Comments:
    """Have the hooks of a success or of a failure speak; all that is said goes to `heard`."""
    event = Event.POST_TOOL_USE_FAILURE if outcome.error else Event.POST_TOOL_USE
    happened = replace(event_context, event=event, outcome=outcome)
    if outcome.error and not (outcome.has_result or outcome.interrupted):
        told = replace(happened, event=Event.ERROR_OCCURRED, trigger="tool_execution", message=outcome.error)
        services.start_hooks(told)
    before = len(hook_runs)
    comments = await services.hooks.run_post_hooks(happened, hook_runs)
    stopping = [one.spec.label for one in hook_runs[before:] if one.verdict.stop]
    if stopping:
        services.refuse_other_calls(call, Refuse(by=stopping[0], reason="", stop=True))
    return comments


def add_feedback(
    call: Call, services: CallServices, line: bytes, comments: Comments, texts: tuple[str, ...], *, result: bool
) -> bytes:
    """The answer with what hooks said; `line` itself where they said nothing. `result`: it holds no error."""
    if result:
        delivered = feedback.deliver(line, comments, texts, services.settings.feedback, services.tool(call.tool))
    else:
        delivered = feedback.deliver_error(line, comments, texts)
    if delivered.note is not None:
        services.report_once(f"{call.tool}: {delivered.note.value}")
    return delivered.line
