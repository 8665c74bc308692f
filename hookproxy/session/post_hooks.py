"""Handles the response to a call: post hooks run on it, and their feedback is written into it (law 1).

How it works: a response is final, or begins another round of the call (`input_required`), or a task. On a final one
post hooks run once; their comments replace, withhold or comment on it, and what it brings into the session is labelled
before the agent gets it. What must hold: a response that cannot be read in one way only, or whose labels cannot be
noted, ends the call as failed, and the agent gets none of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..audit.call_record import Record
from ..hooks.evaluate import Hooks
from ..hooks.policy import Policy
from ..jsonrpc import raw_json
from ..model.call_end import Failed, Responded
from ..model.decision import Comments, Proceed, Refuse
from ..model.hooks import Event, EventContext, HookRun, Outcome, Permission
from ..model.settings import Delivery
from ..policy.methods import TOOLS_CALL
from ..policy.shared_state import StoreUnavailable
from ..protocol import elicitations, feedback, input_rounds, request_edits, tool_results
from ..protocol.calls import Call, Progress
from ..protocol.elicitation_messages import result_of
from ..protocol.input_rounds import JudgedInputs
from ..protocol.request_state import CallRound
from ..protocol.tool_results import NO_OUTCOME, ParsedResponse
from .call_context import CallContext, CallServices, Ending

NO_COMMENTS: Final = Comments()


class HandledResponse(Struct, frozen=True):
    """What is done with a response."""

    end: Responded | Failed
    """How the call ends if the agent gets it."""
    max_repeats: int = 0
    """How often the call may be repeated before the agent gets this."""
    next_round: bytes = b""
    """The line with which the call goes on instead, because hooks have answered the server's elicitations."""


async def handle_response(context: CallContext, line: bytes, decision: Proceed, request: bytes) -> HandledResponse:
    """Run post hooks on the response to `request`, which is empty if hooks have answered enough elicitations."""
    call, policy, record = context.call, context.policy, context.record
    try:
        observed = policy.hooks.observes_outcome(call.tool)
        judged = observed and policy.hooks.has_post_hooks_for(call.tool)
        parsed = tool_results.read(call, policy.settings.max_depth if judged else 0, observed=observed)
    except ValueError as problem:
        context.services.report(f"the response to a call of {call.tool} is withheld: {problem}")
        return HandledResponse(Failed(feedback.ambiguous(call.id, str(problem)), str(problem)))
    inputs = context.services.input_requests
    if parsed.final and inputs is not None and call.response is not None and inputs.ask_in(call.response):
        kind = "a final result" if call.response.error is None else "an error"
        why = f"it is {kind}, and asks for something that hooks judge"
        return HandledResponse(Failed(feedback.ambiguous(call.id, why), why))
    if not parsed.final:
        return await _handle_unfinished(context, line, decision, parsed, request)
    if not (observed or decision.feedback):
        return HandledResponse(_responded(call, line, failed=parsed.failed))
    outcome = replace(parsed.outcome, duration_ms=(context.event_context.outcome or NO_OUTCOME).duration_ms)
    runs_before = len(record.hook_runs)
    comments = await run_post_hooks(call, policy, context.services, context.event_context, outcome, record.hook_runs)
    call.output_passes = not comments.takes_output
    edited = _apply_comments(context, outcome, line, comments, decision.feedback)
    if edited is not line:
        record.result_before, record.result_after = line, edited
    if away := await note_reading(context.event_context, policy.hooks, comments, edited, record):
        return HandledResponse(Failed(feedback.unlabelled(call.id, away), away))
    return HandledResponse(_responded(call, edited, failed=parsed.failed), _max_repeats(record.hook_runs[runs_before:]))


async def note_reading(
    event_context: EventContext, hooks: Hooks, comments: Comments, line: bytes, record: Record
) -> str:
    """Note what the message with the result of a call brings into the session, unless it is withheld.

    Returns why that is not possible, so that the agent must not get it.
    """
    if hooks.flow is None or comments.withheld or comments.hidden_by or not line:
        return ""
    try:
        labels = await hooks.note_result(event_context, content_of(line), record.call, comments)
        record.labels = tuple(dict.fromkeys((*record.labels, *labels)))
    except StoreUnavailable as away:
        return str(away)
    return ""


def content_of(line: bytes) -> bytes:
    """What a message says, as a JSON array: without its id, and what else belongs to no content."""
    try:
        members = raw_json.fields(line)
    except raw_json.AMBIGUOUS:
        return line  # whoever reads it finds the same
    return b"[%b]" % b",".join(bytes(members[name]) for name in ("result", "error", "params") if name in members)


def _responded(call: Call, line: bytes, *, failed: bool) -> Responded:
    if not failed:
        return Responded(line)
    ours = call.response.error if call.is_substitute and call.response is not None else None
    reason = raw_json.text(bytes(raw_json.fields(bytes(ours))["message"])) if ours else None
    return Responded(line, "error", reason or "")


async def _handle_unfinished(
    context: CallContext, line: bytes, decision: Proceed, parsed: ParsedResponse, request: bytes
) -> HandledResponse:
    """Handle a response that starts a task, or asks for input in a further round.

    Either hooks give the input, or the agent does: then our request state in the response recognises the next round.
    """
    call, services = context.call, context.services
    if not parsed.needs_input:
        line = services.follow_tasks(call, context.record, context.event_context, decision.feedback, line)
        return HandledResponse(Responded(line, "pending"))
    result = (call.response and call.response.result) or {}
    judged = JudgedInputs(line)
    try:
        if services.input_requests is not None:
            judged = await services.input_requests.judge(call, line, result)
    except ValueError as problem:
        services.report(f"the response to a call of {call.tool} is withheld: {problem}")
        return HandledResponse(Failed(feedback.ambiguous(call.id, str(problem)), str(problem)))
    if judged.line is not line:
        line = judged.line
        result = raw_json.fields(raw_json.fields(line)["result"])
    if judged.none_left and not request:
        why = "the server has asked too often for what is refused"
        return HandledResponse(Failed(feedback.failed_call(call.id, f"The call was ended: {why}."), why))
    elicited = None if judged.none_left or not request else await services.answer_elicitations(result)
    if judged.none_left or elicited is not None:
        answers = judged.refused | {name: result_of(answer) for name, answer in (elicited or {}).items()}
        next_round_line = input_rounds.next_round(request, result, answers)
        return HandledResponse(Responded(line, "pending"), next_round=next_round_line)
    for elicitation in elicitations.in_result(result) if judged.refused else parsed.elicitations:
        services.start_elicitation_hooks(elicitation, only_observers=bool(request))
    return await _asked_by_agent(context, line, decision, judged)


async def _asked_by_agent(
    context: CallContext, line: bytes, decision: Proceed, judged: JudgedInputs
) -> HandledResponse:
    """The agent gets the server's requests, with what it sends back, so that the decision about the call holds then."""
    call = context.call
    if away := await note_reading(context.event_context, context.policy.hooks, NO_COMMENTS, line, context.record):
        return HandledResponse(Failed(feedback.unlabelled(call.id, away), away))
    next_round = CallRound(
        call.tool,
        call.arguments,
        decision.arguments,
        decision.feedback,
        asked=decision.asked,
        state=request_edits.server_state_of(line),
        requested=judged.requested,
        refused=input_rounds.encode(judged.refused) if judged.refused else b"",
        chains=decision.chains,
    )
    edited = request_edits.with_own_state(line, context.services.request_states.to_request_state(next_round))
    return HandledResponse(Responded(edited, "pending"))


async def handle_missing_response(context: CallContext, ending: Ending) -> None:
    """Run PostToolUseFailure hooks on a call that was sent and gets no response."""
    call, interrupted = context.call, ending is Ending.INTERRUPTED
    error = "The call was cancelled."
    if not interrupted:
        call.ended_because = context.services.why_lost()
        error = feedback.ended_early(call.progress, call.ended_because)
    outcome = replace(context.event_context.outcome or NO_OUTCOME, error=error, interrupted=interrupted)
    failed = replace(context.event_context, event=Event.POST_TOOL_USE_FAILURE, outcome=outcome)
    if not interrupted:
        context.services.start_hooks(replace(failed, event=Event.ERROR_OCCURRED, trigger="system", message=error))
    if call.progress is not Progress.NOT_SENT:
        await context.policy.hooks.run_post_hooks(failed, context.record.hook_runs)


async def run_post_hooks(  # the call, and what is known of it
    call: Call,
    policy: Policy,
    services: CallServices,
    event_context: EventContext,
    outcome: Outcome,
    hook_runs: list[HookRun],
) -> Comments:
    """Run the PostToolUse or PostToolUseFailure hooks on an outcome; each run is appended to `hook_runs`."""
    event = Event.POST_TOOL_USE_FAILURE if outcome.error else Event.POST_TOOL_USE
    finished = replace(event_context, event=event, outcome=outcome)
    if outcome.error and not (outcome.has_result or outcome.interrupted):
        error = replace(finished, event=Event.ERROR_OCCURRED, trigger="tool_execution", message=outcome.error)
        services.start_hooks(error)
    runs_before = len(hook_runs)
    comments = await policy.hooks.run_post_hooks(finished, hook_runs)
    stopping = [run.spec.label for run in hook_runs[runs_before:] if run.verdict.stop]
    if stopping:
        services.refuse_other_calls(call, Refuse(by=stopping[0], reason="", stop=True))
    return comments


def _apply_comments(
    context: CallContext, outcome: Outcome, line: bytes, comments: Comments, texts: tuple[str, ...]
) -> bytes:
    """The response after post hooks; `line` itself where they change nothing."""
    call = context.call
    if call.response is not None and call.response.error is not None and not call.response.error:
        if comments.withheld or comments.hidden_by or comments.replacement is not None:
            return feedback.ambiguous(call.id, "it is neither a result nor an error")
        return line  # it has no place for feedback
    delivery = context.policy.settings.feedback
    return add_feedback(call, context.services, line, comments, texts, delivery if outcome.has_result else None)


def add_feedback(
    call: Call,
    services: CallServices,
    line: bytes,
    comments: Comments,
    texts: tuple[str, ...],
    delivery: Delivery | None,
) -> bytes:
    """The response with the hooks' feedback; `line` itself where there is none. `delivery`: None for an error."""
    if delivery is not None and call.mcp_method != TOOLS_CALL:
        from ..protocol import method_results  # most sessions have no such results

        delivered = method_results.deliver(call, line, comments, texts)
    elif delivery is not None:
        delivered = feedback.deliver(line, comments, texts, delivery, services.tool(call.tool))
    else:
        delivered = feedback.deliver_error(line, comments, texts)
    if delivered.note is not None:
        services.report_of_tool(call.tool, delivered.note.value)
    return delivered.line


def _max_repeats(hook_runs: Sequence[HookRun]) -> int:
    """How often the call may be repeated: never if a hook denied it, nor because of a hook that failed."""
    awaited = [run for run in hook_runs if not run.spec.background]
    if any(run.verdict.permission is Permission.DENY or run.verdict.stop for run in awaited):
        return 0
    return max((run.spec.max_retries for run in awaited if run.verdict.retry and not run.verdict.failure), default=0)
