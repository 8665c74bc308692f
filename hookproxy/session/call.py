"""The life of one tools/call, top to bottom: asked, refused or forwarded, answered, commented, recorded (law 1)."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..audit.log import Record
from ..jsonrpc import normalize
from ..model import aliases
from ..model.aliases import Alias
from ..model.decision import Comments, Decision, Proceed
from ..model.errors import describe_error
from ..model.hooks import Event, HookRun, Outcome, Permission
from ..policy import decide
from ..protocol import (
    approval_messages,
    elicitation_messages,
    elicitations,
    feedback,
    request_edits,
    response_edits,
    tool_results,
)
from ..protocol.approval_messages import Approval
from ..protocol.calls import Call
from ..protocol.request_state import CallRound
from ..protocol.tool_results import NO_OUTCOME
from . import post_hooks
from .call_context import CallContext, CallServices, Ending, event_context_of, refusal

_MOST_ROUNDS: Final = 10  # in which hooks answer the server: agents give up after as many, too


async def handle_call(call: Call, services: CallServices) -> None:
    """See one call through. On cancel its hooks are ended, nothing is answered, and the record is still written."""
    begun = perf_counter()
    record = Record(services.session.id, services.session.server, call.tool, call.id, call.arguments, services.agent())
    record.result = "cancelled"
    call.trace = services.audit.begin(record, call)
    answer: bytes | None = None
    try:
        answer = await _judged(call, services, record)
    except Exception as defect:
        record.result, record.reason = "error", describe_error(defect)
        raise
    finally:
        if call.stopped_by and record.result == "cancelled":
            record.decision, record.result, record.reason = "deny", "refused", call.stopped_by
        record.ms = (perf_counter() - begun) * 1000
        problem = services.audit.write(record)
        if problem:
            services.report(f"the audit line of {call.tool} cannot be written: {problem}")
        if answer is not None:
            if problem and services.audit.required and record.result != "refused":
                ran = record.decision != "asked"  # a person is to be asked first
                answer = feedback.unaudited(call.id, stateless=call.stateless, task=call.task, ran=ran)
            services.respond(call, answer)


async def _judged(call: Call, services: CallServices, record: Record) -> bytes | None:
    """The call's answer; None where there is to be none."""
    if services.audit.required and (problem := services.audit.failure()):
        return _unrecorded(call, services, record, problem)
    words = () if services.silent() else await services.take_feedback()
    context = CallContext(call, services, record, event_context_of(call, services))
    alias = context.event_context.alias
    record.alias = "" if alias is None else alias.name
    context.waiting = services.state_sealer.open(call.state, call.tool, call.arguments) if call.state else None
    if call.inputs:
        _tell_answers(context)
    if context.waiting is not None:
        return await _resumed(context, replace(context.waiting, feedback=(*words, *context.waiting.feedback)))
    evaluation = await services.hooks.run_pre_hooks(context.event_context, services.tool(call.tool), record.hook_runs)
    decision = evaluation.decision if alias is None else _as_sent(evaluation.decision, alias)
    if evaluation.arguments is not context.event_context.arguments:
        context.event_context = replace(context.event_context, arguments=evaluation.arguments)
    if words:
        decision = replace(decision, feedback=(*words, *decision.feedback))
    if isinstance(decision, Proceed) and decision.question:
        settled = await _settled(context, decision)
        if isinstance(settled, bytes):
            return settled
        decision = settled
    return await _decided(context, decision)


def _as_sent(decision: Decision, alias: Alias) -> Decision:
    """The decision with rewritten arguments under the server's names."""
    if isinstance(decision, Proceed) and decision.arguments is not None:
        return replace(decision, arguments=alias.for_server(decision.arguments))
    return decision


def _tell_answers(context: CallContext) -> None:
    """Tell hooks of the person's answers to the server that the call brings."""
    if not (context.waiting and context.waiting.question):  # else the answer is to us
        for answer in elicitations.in_responses(context.call.inputs):
            context.services.start_elicitation_hooks(answer)


def _unrecorded(call: Call, services: CallServices, record: Record, problem: str) -> bytes:
    services.report(f"a call of {call.tool} is refused because its audit line cannot be written: {problem}")
    record.decision, record.result = "deny", "refused"
    return feedback.unaudited(call.id, stateless=call.stateless, task=call.task, ran=False)


async def _settled(context: CallContext, proceed: Proceed) -> Decision | bytes:
    """Have the person asked: gives the decision, or the answer to the call that asks for another round."""
    call, services, question = context.call, context.services, proceed.question
    can_ask = services.approvals.may_ask(call)
    decision = decide.without_person(proceed, services.settings, can_ask or services.approvals.has_prompter(question))
    if question is None or not isinstance(decision, Proceed) or decision.question is None:
        return decision
    arguments = aliases.for_server(context.event_context.alias, context.event_context.arguments)
    message = approval_messages.text(services.session.server, call.tool, arguments, question)
    asking = replace(context.event_context, trigger="permission_prompt", message=message)
    for event in (Event.NOTIFICATION, Event.USER_INPUT):
        services.start_hooks(replace(asking, event=event))
    if call.stateless and can_ask:
        waiting = CallRound(call.tool, call.arguments, proceed.arguments, proceed.feedback, question)
        context.record.decision, context.record.result, context.record.reason = "asked", "pending", question.reason
        return feedback.input_required(call.id, message, services.state_sealer.seal(waiting))
    asked = approval_messages.document(services.session.server, call.tool, arguments, question)
    services.release_backpressure(
        call
    )  # a person may take long, and the answer comes the way of all that the agent says
    return _answered(context, proceed, await services.approvals.ask(call, message, asked, question))


def _answered(context: CallContext, proceed: Proceed, approval: Approval) -> Decision:
    """The decision that the person's answer makes of the question."""
    if approval is Approval.NO:
        return decide.declined(proceed)
    if approval is Approval.SESSION:
        context.services.hooks.allow_tool(context.call.tool, proceed.question)
    return replace(proceed, question=None, asked=True)


async def _resumed(context: CallContext, waiting: CallRound) -> bytes | None:
    """The call goes on in another round: its hooks have been asked, and what they decided holds."""
    proceed = Proceed(waiting.rewritten, waiting.feedback, waiting.question, waiting.asked)
    decision: Decision = proceed
    if waiting.rewritten is not None:
        rewritten = aliases.for_hooks(context.event_context.alias, normalize.normalise(waiting.rewritten))
        context.event_context = replace(context.event_context, arguments=rewritten)
    if waiting.question:
        approval = approval_messages.approval(response_edits.peek(context.call.inputs, approval_messages.MEMBER))
        decision = _answered(context, proceed, approval)
    return await _decided(context, decision)


async def _decided(context: CallContext, decision: Decision) -> bytes | None:
    """Carry the decision out; gives the call's answer, None where there is to be none."""
    call, services, record = context.call, context.services, context.record
    if isinstance(decision, Proceed) and services.hooks.has_limits and not _is_under_way(context):
        decision = services.hooks.apply_limits(decision, call.tool)
    asked = "asked-" if decision.asked else ""
    if isinstance(decision, Proceed):
        record.decision, record.final = f"{asked}allow", decision.arguments or b""
        return await _forwarded(context, decision)
    record.decision, record.result, record.reason = f"{asked}deny", "refused", decision.reason
    record.by = decision.by
    services.start_hooks(replace(context.event_context, event=Event.PERMISSION_DENIED, message=decision.reason))
    if decision.stop:
        services.refuse_other_calls(call, decision)
    return refusal(call, decision)


def _is_under_way(context: CallContext) -> bool:
    """The server has had an earlier round of this call, which has been counted."""
    return context.waiting is not None and context.waiting.question is None


async def _forwarded(context: CallContext, decision: Proceed) -> bytes | None:
    """Have the call made, as often as its hooks say, and its answer commented."""
    call, services = context.call, context.services
    line = request_edits.to_server(call, decision.arguments, context.waiting)
    read = _is_read(context, decision)
    if not (read or call.task) and services.forward_without_waiting(call, line):
        return None  # its answer needs nobody
    rounds = 0
    while True:
        sent = perf_counter()
        answer = await services.forward(call, line)
        if isinstance(answer, bytes) and not read:
            return answer  # nobody wants to know what it says
        timed = Outcome(duration_ms=round((perf_counter() - sent) * 1000))
        context.event_context = replace(context.event_context, outcome=timed)
        if isinstance(answer, Ending):
            return await _ended(context, answer)
        delivery = await _commented(context, answer, decision, line if rounds < _MOST_ROUNDS else b"")
        if delivery.next_round:
            rounds, line = rounds + 1, delivery.next_round
        elif delivery.repeats > context.record.repeats and services.hooks.may_repeat(call.tool):
            context.record.repeats += 1
        else:
            return delivery.line
        again = services.prepare_repeat(call, line)
        if again is None:  # cancelled: hooks hear of it, unless they have heard of an end
            return await _ended(context, Ending.INTERRUPTED) if delivery.next_round else None
        line = again


def _is_read(context: CallContext, decision: Proceed) -> bool:
    """Somebody wants to know what the answer says, or has to be told with it. Rounds of a call must be followed."""
    services, call = context.services, context.call
    return bool(
        decision.feedback
        or services.audit.enabled
        or call.stateless
        or services.hooks.groups.observes_outcome(call.tool)
    )


async def _ended(context: CallContext, ending: Ending) -> bytes | None:
    """A call without an answer: PostToolUseFailure hooks hear of it; the agent does unless it cancelled."""
    interrupted = ending is Ending.INTERRUPTED
    context.record.result = "cancelled" if interrupted else "lost"
    said = "The call was cancelled." if interrupted else "The server exited before it answered."
    outcome = replace(context.event_context.outcome or NO_OUTCOME, error=said, interrupted=interrupted)
    happened = replace(context.event_context, event=Event.POST_TOOL_USE_FAILURE, outcome=outcome)
    if not interrupted:
        context.services.start_hooks(replace(happened, event=Event.ERROR_OCCURRED, trigger="system", message=said))
    await context.services.hooks.run_post_hooks(happened, context.record.hook_runs)
    return None if interrupted else context.services.lost_response(context.call)


class _Delivery(Struct, frozen=True):
    """An answer as the agent may get it."""

    line: bytes
    repeats: int = 0
    """How often the call may be repeated before the agent gets this."""
    next_round: bytes = b""
    """The line with which the call goes on instead: hooks have answered what the server asked."""


async def _commented(context: CallContext, line: bytes, decision: Proceed, asked_by: bytes) -> _Delivery:
    """The server's answer as the agent gets it: with what hooks say, or as it came.

    `asked_by` is the line that it answers; empty: hooks have gone on with the call in the agent's place often enough.
    """
    call, services, record = context.call, context.services, context.record
    try:
        reading = tool_results.read(call)
    except ValueError as problem:
        services.report(f"the answer of {call.tool} is withheld: {problem}")
        record.result, record.reason = "error", str(problem)
        return _Delivery(feedback.ambiguous(call.id, str(problem)))
    if not reading.final:
        record.result = "pending"
        return await _unfinished(context, line, decision, reading, asked_by)
    record.result = "error" if reading.failed else "ok"
    outcome = replace(reading.outcome, duration_ms=(context.event_context.outcome or NO_OUTCOME).duration_ms)
    before = len(record.hook_runs)
    comments = await post_hooks.run_post_hooks(call, services, context.event_context, outcome, record.hook_runs)
    delivered = _delivered(context, outcome, line, comments, decision.feedback)
    record.result_changed = delivered is not line
    return _Delivery(delivered, _repeats(record.hook_runs[before:]))


async def _unfinished(
    context: CallContext, line: bytes, decision: Proceed, reading: tool_results.Reading, asked_by: bytes
) -> _Delivery:
    """The call goes on after this answer: in another round, by hooks or by the agent, whom our seal brings back."""
    call, services = context.call, context.services
    if not reading.needs_input:
        return _Delivery(services.follow_tasks(call, context.record, context.event_context, decision.feedback, line))
    result = (call.response and call.response.result) or {}
    given = await services.answer_elicitations(result) if asked_by else None
    if given is not None:
        return _Delivery(line, next_round=elicitation_messages.next_round(asked_by, result, given))
    for question in reading.questions:
        services.start_elicitation_hooks(question, only_observers=bool(asked_by))
    state = request_edits.servers_state(line)
    waiting = CallRound(
        call.tool, call.arguments, decision.arguments, decision.feedback, asked=decision.asked, state=state
    )
    return _Delivery(request_edits.to_agent(line, services.state_sealer.seal(waiting)))


def _delivered(
    context: CallContext, outcome: Outcome, line: bytes, comments: Comments, texts: tuple[str, ...]
) -> bytes:
    """The answer with what hooks say; `line` itself where they say nothing."""
    call = context.call
    if call.response is not None and call.response.error is not None and not call.response.error:
        if comments.withheld or comments.hidden_by or comments.replacement is not None:
            return feedback.ambiguous(call.id, "it is neither a result nor an error")
        return line  # there is no place for a word
    return post_hooks.add_feedback(call, context.services, line, comments, texts, result=outcome.has_result)


def _repeats(hook_runs: Sequence[HookRun]) -> int:
    """How often the call may be repeated: never what a hook denied, nor because of a hook that failed."""
    judges = [one for one in hook_runs if not one.spec.background]
    if any(one.verdict.permission is Permission.DENY or one.verdict.stop for one in judges):
        return 0
    return max((one.spec.max_retries for one in judges if one.verdict.retry and not one.verdict.failure), default=0)
