"""The life of one tools/call, from top to bottom.

PreToolUse hooks run and a decision is made; a person may be asked to approve it; the call is refused or forwarded;
PostToolUse hooks see the response (`post_hooks`); the audit record is written (law 1). It ends in one value, a
`CallEnd`: what the agent gets, what the audit records and what consoles show are all derived from it.
"""

from __future__ import annotations

from time import perf_counter
from typing import Final

import anyio
from msgspec.structs import replace

from ..audit.call_record import Record, WatchedCall
from ..hooks import rewrites
from ..hooks.policy import Policy
from ..jsonrpc import normalize, raw_json
from ..model.call_end import CallEnd, Cancelled, Refused, Responded
from ..model.decision import Decision, Proceed, RefusalCause, Refuse
from ..model.hooks import Event, EventContext, Outcome
from ..policy import decide, methods
from ..policy.shared_state import StoreUnavailable
from ..protocol import approval_messages, elicitations, feedback, request_edits, response_edits
from ..protocol.approval_messages import Approval
from ..protocol.calls import Call, Phase, Progress
from ..protocol.request_state import CallRound
from . import native_event
from .approval import by_agent
from .approval_answer import AnsweredCall
from .approval_details import ApprovalDetails, ApprovalResult
from .call_context import CallContext, CallServices, Ending, ended_early, event_context_of, refusal
from .outside_approval import Asked, CheckEdit
from .post_hooks import HandledResponse, handle_missing_response, handle_response

_MAX_ROUNDS: Final = 10  # rounds in which hooks answer the server's elicitations: agents give up after as many


async def handle_call(call: Call, services: CallServices) -> CallEnd:
    """Handle one call until its response is sent; return how it has ended. The policy of its beginning judges it.

    If the call is cancelled, its hooks are ended, no response is sent, and the audit record is still written.
    """
    started, policy = perf_counter(), services.policy
    audit = policy.audit
    record = Record(services.session.id, services.session.server, call.tool, call.id, call.arguments, services.agent())
    record.protocol, record.method = services.protocol_version(), call.mcp_method
    call.trace = audit.begin(record, call)
    end: CallEnd = Cancelled()
    defective = False
    try:
        end = await _process(call, policy, services, record)
        if audit.required and record.watched is not None:  # its line must say all, and be there before the response
            await _wait_for_watched(record.watched, end)
    except Exception as defect:
        defective = True
        call.ended_because = f"hookproxy could not complete this call ({services.describe_error(defect)})"
        raise
    finally:
        end = _final_end(call, services, end, defective)
        record.note_end(end)
        record.ms = (perf_counter() - started) * 1000
        if audit.path or audit.on_ended is not None:
            record.skipped = policy.skipped_hooks.of(record, call.alias)
        services.report_unwritten(problem := audit.write(record))
        policy.hooks.note_call(record)
        if call.reported is not None and policy.hooks.native is not None:
            size, decided = len(call.response_line), (record.decision, record.result)
            policy.hooks.native.note_end(call.reported, *decided, size, call.seconds)
        if end.line is not None:
            line = end.line
            if problem and audit.required and not (isinstance(end, Refused) or call.ended_because):
                call.output_passes = False
                ran = record.decision != "asked"  # "asked": a person must approve the call before it runs
                line = feedback.unaudited(call.id, stateless=call.stateless, task=call.fails_by_error, ran=ran)
            services.respond(call, line)
    return end


async def _wait_for_watched(watched: WatchedCall, end: CallEnd) -> None:
    """Wait until it is known what a policy would have done that is only watched."""
    ended = anyio.Event()
    watched.on_end = ended.set
    if watched.on_decided is not None:
        watched.on_decided(end.result)
    if not watched.ended:
        await ended.wait()


def _final_end(call: Call, services: CallServices, end: CallEnd, defective: bool) -> CallEnd:
    """How the call has ended, if something else than its hooks and its response has ended it: else `end`."""
    if call.phase is Phase.CANCELLED:
        return Cancelled(feedback.ended_early(call.progress, "The agent cancelled this call"))
    if call.ended_because:
        return ended_early(call, services, defect=defective)
    if call.stopped_by is not None and isinstance(end, Cancelled):
        stop = call.stopped_by
        return Refused(refusal(call, stop), f"{stop.by} stopped all calls: {stop.reason}", "stopped")
    return end


async def _process(call: Call, policy: Policy, services: CallServices, record: Record) -> CallEnd:
    """Run the hooks, carry out what they decide, and return how the call has ended."""
    if policy.audit.required and (problem := policy.audit.failure()):
        return _refuse_without_audit(call, policy, services, problem)
    session_feedback = await services.take_feedback() if services.may_have_feedback() else ()
    context = CallContext(call, policy, services, record, event_context_of(call, policy, services))
    alias = context.event_context.alias
    record.alias = "" if alias is None else alias.name
    try:
        earlier = await services.request_states.take(call.state, call.tool, call.arguments) if call.state else None
    except StoreUnavailable as problem:
        return await _carry_out(context, _refuse_without_store(problem))
    context.earlier_round = earlier
    if call.inputs:
        _start_elicitation_result_hooks(context)
    if earlier is not None:
        return await _resume(context, replace(earlier, feedback=(*session_feedback, *earlier.feedback)))
    decision = await _judge(context)
    if session_feedback:
        decision = replace(decision, feedback=(*session_feedback, *decision.feedback))
    if isinstance(decision, Proceed) and decision.approval_request:
        approved = await request_approval(context, decision)
        if isinstance(approved, Responded):
            return approved
        decision = approved
    return await _carry_out(context, decision)


async def _judge(context: CallContext) -> Decision:
    """What hooks and rules decide, here or already for the agent's own event."""
    policy = context.policy
    listed = context.services.tool(context.call.tool)
    reported = None if policy.hooks.native is None else await native_event.claim(context, listed)
    if reported is not None and reported.decided:
        decision = await policy.hooks.judge_again(context.event_context, listed, reported)
    else:
        evaluation = await policy.hooks.run_pre_hooks(context.event_context, listed, context.record.hook_runs)
        decision = evaluation.decision
        context.event_context = evaluation.context_after(context.event_context)
    return native_event.without_answered_request(decision, reported)


def _refuse_without_audit(call: Call, policy: Policy, services: CallServices, problem: str) -> Refused:
    if not policy.audit.reports_failures:
        services.report(f"a call of {call.tool} is refused because its audit line cannot be written: {problem}")
    line = feedback.unaudited(call.id, stateless=call.stateless, task=call.fails_by_error, ran=False)
    return Refused(line, problem, "audit")


def _start_elicitation_result_hooks(context: CallContext) -> None:
    """Start the hooks that observe the person's answers to the server, which the call brings in a further round."""
    if context.earlier_round is None or context.was_forwarded:  # else the answer is to our own request
        for answer in elicitations.in_responses(context.call.inputs):
            context.services.start_elicitation_hooks(answer)


async def request_approval(context: CallContext, proceed: Proceed) -> Decision | Responded:
    """Ask a person to approve the call, or decide as the configuration says.

    Returns the decision; or, for a stateless call, the response with which the agent asks, and then sends it again.
    """
    result = await _ask(context, proceed)
    return await _decide(context, proceed, result) if isinstance(result, ApprovalResult) else result


async def _decide(context: CallContext, proceed: Proceed, result: ApprovalResult) -> Decision | Responded:
    """The decision after a person's answer. Where the person is asked again, `context` has the arguments of then."""
    call, policy, services = context.call, context.policy, context.services
    other: Decision | Responded | None = None

    async def ask_again(proceed: Proceed, event_context: EventContext) -> ApprovalResult:
        nonlocal other
        context.event_context = event_context
        result = await _ask(context, proceed)
        if isinstance(result, ApprovalResult):
            return result
        other = result
        return ApprovalResult(Approval.NOT_ASKED)

    answered = AnsweredCall(
        policy.hooks, context.record, services.report, services.tool(call.tool), policy.settings.approvers
    )
    judged = await answered.decide(result, proceed, context.event_context, ask_again)
    context.event_context = judged.event_context
    return judged.decision if other is None else other


async def _ask(context: CallContext, proceed: Proceed) -> ApprovalResult | Decision | Responded:
    """What a person says; or what is decided without one, and as `request_approval`."""
    call, policy, services, request = context.call, context.policy, context.services, proceed.approval_request
    settings, approvals = policy.settings, services.approvals
    can_ask = approvals.may_ask(call, settings)
    decision = decide.without_person(proceed, settings, can_ask or approvals.has_fallback(request, settings))
    if request is None or not isinstance(decision, Proceed) or decision.approval_request is None:
        return decision
    context.record.asked_by, context.record.chains = request.by, request.chains
    details = approvals.shown(
        ApprovalDetails.of(services.session.server, context.event_context, request, policy.hooks, settings)
    )
    prompt_context = replace(context.event_context, trigger="permission_prompt", message=details.message)
    for event in (Event.NOTIFICATION, Event.USER_INPUT):
        services.start_hooks(replace(prompt_context, event=event))
    asked = Asked(details, policy.hooks, settings, _check_edit(context))
    asks_by_response = call.stateless and can_ask
    if not asks_by_response or approvals.waits_outside(request, settings, agent_cannot=False):
        services.release_backpressure(call)  # a person may take long, and the answer comes on the agent's own channel
        result = await approvals.ask(call, asked)
        if services.policy.settings.approvers and not settings.approvers:  # since the user was asked
            return decide.declined(proceed, RefusalCause.ASK_UNAVAILABLE, services.policy.settings.approvers)
        if not asks_by_response or result.approval is not Approval.NOT_ASKED:
            return result
    if problem := services.request_states.failure:
        return replace(_refuse_without_store(StoreUnavailable(problem)), feedback=proceed.feedback)
    decided = (proceed.arguments, proceed.feedback, request)
    next_round = CallRound(call.tool, call.arguments, *decided, chains=proceed.chains)
    state = services.request_states.to_request_state(next_round)
    line = feedback.input_required(call.id, details.message, state, offers_similar=bool(details.similar))
    return Responded(line, "pending", request.reason, asks=True)


def _check_edit(context: CallContext) -> CheckEdit | None:
    """Checks arguments that a person has changed; None: they cannot be changed.

    Only those of a tool's call can, and only by the user: an approver would act with the rights of somebody else.
    """
    call, services = context.call, context.services
    if call.tool in methods.JUDGED or context.policy.settings.approvers:
        return None

    async def check(arguments: bytes) -> None:
        rewrites.check(context.event_context, arguments, context.policy.settings.max_depth)
        if problem := await rewrites.mismatch(services.tool(call.tool), arguments):
            raise ValueError(problem)

    return check


def _refuse_without_store(problem: StoreUnavailable) -> Refuse:
    return Refuse("which approvals were used before", str(problem), cause=RefusalCause.STORE_AWAY)


async def _resume(context: CallContext, earlier: CallRound) -> CallEnd:
    """Go on with a call that the agent sends again in a further round: its hooks' earlier decision holds."""
    exceeds = earlier.approval_request.limits if earlier.approval_request else ()
    proceed = Proceed(
        earlier.rewritten,
        earlier.feedback,
        earlier.approval_request,
        earlier.asked,
        exceeds=exceeds,
        chains=earlier.chains,
    )
    decision: Decision = proceed
    if earlier.rewritten is not None:
        context.event_context = replace(context.event_context, arguments=normalize.normalize(earlier.rewritten))
    context.event_context = context.policy.hooks.keep_managed_alias(context.event_context)
    if earlier.approval_request:
        if context.policy.settings.approvers:  # since the user was asked
            asked = await request_approval(context, proceed)
            if isinstance(asked, Responded):
                return asked
            return await _carry_out(context, asked)
        response = response_edits.member_or_empty(context.call.inputs, approval_messages.MEMBER)
        context.record.asked_by = earlier.approval_request.by
        decided = await _decide(context, proceed, by_agent(approval_messages.read_approval(response)))
        assert not isinstance(decided, Responded), "an agent's answer changes no arguments"
        decision = decided
    return await _carry_out(context, decision)


async def _judge_inputs(context: CallContext, proceed: Proceed) -> Decision:
    """The decision about a further round, in which the agent answers the server: nobody is asked about that."""
    decision = await context.policy.hooks.judge_answer(proceed, context.event_context, context.call.inputs)
    if isinstance(decision, Proceed) and decision.approval_request is not None:
        return decide.declined(decision, RefusalCause.ASK_UNAVAILABLE, context.policy.settings.approvers)
    return decision


async def _carry_out(context: CallContext, decision: Decision) -> CallEnd:
    call, services, record, hooks = context.call, context.services, context.record, context.policy.hooks
    if isinstance(decision, Proceed) and hooks.groups.has_hooks_for(Event.PRE_MCP_TOOL_CALL):
        decision = await _with_meta(context, decision)
    if isinstance(decision, Proceed) and call.inputs and hooks.flow is not None:
        decision = await _judge_inputs(context, decision)
    counted = context.was_forwarded or (call.reported is not None and call.reported.decided)
    if isinstance(decision, Proceed) and hooks.has_limits and not counted:
        decision = await hooks.apply_limits(decision, context.event_context)
    if isinstance(decision, Proceed):
        final = record.final  # what was reported has been rewritten already
        record.note_allowed(decision)
        record.final = record.final or final
        if problem := context.policy.audit.write_begun(record):
            return _refuse_without_audit(call, context.policy, services, problem)
        return await _forward(context, decision)
    record.chains = decision.chains
    services.start_hooks(replace(context.event_context, event=Event.PERMISSION_DENIED, message=decision.reason))
    if decision.stop:
        services.refuse_other_calls(call, decision)
    reason = record.reason or decision.reason  # a person's own words come first
    return Refused(
        refusal(call, decision), reason, decision.cause.value, decision.by, decision.place, asked=decision.asked
    )


async def _with_meta(context: CallContext, proceed: Proceed) -> Decision:
    """The decision with the `_meta` that PreMcpToolCall hooks choose, or the refusal that follows from a failure."""
    call = context.call
    try:
        seen = normalize.normalize(raw_json.encode(call.meta)) if call.meta else b""
    except ValueError as unreadable:  # hooks and the server might read it differently
        by, why = "the preMcpToolCall hooks", f"its _meta cannot be judged: {unreadable}"
        return Refuse(by, why, asked=proceed.asked, cause=RefusalCause.FAILURE, feedback=proceed.feedback)
    event_context = replace(
        context.event_context,
        event=Event.PRE_MCP_TOOL_CALL,
        arguments=call.arguments if proceed.arguments is None else normalize.normalize(proceed.arguments),
        meta=seen,
    )
    chosen = await context.policy.hooks.run_meta_hooks(event_context, context.record.hook_runs)
    if isinstance(chosen, Refuse):
        return replace(chosen, feedback=proceed.feedback, asked=proceed.asked)
    return replace(proceed, meta=chosen)


async def _forward(context: CallContext, decision: Proceed) -> CallEnd:
    """Forward the call and run the hooks on its response; repeat it as often as its hooks want."""
    call, services, policy = context.call, context.services, context.policy
    inputs = await _judged_answers(context)
    line = request_edits.line_for_server(call, decision.arguments, context.earlier_round, decision.meta, inputs)
    must_read = _must_read_response(context, decision)
    is_source, holds = policy.hooks.has_source(call.tool), policy.settings.hold_notifications
    call.holds_notifications = is_source or (holds and policy.hooks.has_post_hooks_for(call.tool))
    call.final_arguments, call.progress_passes = context.event_context.arguments, not holds
    if not (must_read or call.task) and services.forward_without_waiting(call, line):
        return Responded(result="sent")
    rounds = 0
    while True:
        response = await _exchange(context, line)
        if isinstance(response, bytes) and not must_read:
            return Responded(response, "sent")
        if isinstance(response, Ending):
            await handle_missing_response(context, response)
            return Cancelled()
        handled = await handle_response(context, response, decision, line if rounds < _MAX_ROUNDS else b"")
        if handled.next_round:
            rounds, line = rounds + 1, handled.next_round
        elif handled.max_repeats > context.record.repeats and await policy.hooks.may_repeat(context.event_context):
            context.record.repeats += 1
        else:
            return handled.end
        if (next_line := await _prepare_to_send_again(context, line, handled)) is None:
            return Cancelled()
        line = next_line


async def _exchange(context: CallContext, line: bytes) -> bytes | Ending:
    """Send the call, and return its response. Limits count how long both take."""
    sent = perf_counter()
    response = await context.services.forward(context.call, line)
    seconds = perf_counter() - sent
    context.call.seconds += seconds
    context.event_context = replace(context.event_context, outcome=Outcome(duration_ms=round(seconds * 1000)))
    if context.call.progress is not Progress.NOT_SENT:
        size = len(response) if isinstance(response, bytes) else 0
        context.policy.hooks.note_end(context.event_context, size, seconds)
    return response


async def _judged_answers(context: CallContext) -> bytes | None:
    """The agent's answers to the server's requests as the server gets them; None: as the agent has sent them."""
    judge, earlier = context.services.input_requests, context.earlier_round
    if judge is None or not (context.call.inputs or (earlier is not None and earlier.refused)):
        return None
    return await judge.judge_answers(context.call, earlier)


async def _prepare_to_send_again(context: CallContext, line: bytes, handled: HandledResponse) -> bytes | None:
    """The line to send; None if the agent has cancelled the call. Hooks run on that, unless they ran on a response."""
    next_line = context.services.prepare_repeat(context.call, line)
    if next_line is None and handled.next_round:
        await handle_missing_response(context, Ending.INTERRUPTED)
    return next_line


def _must_read_response(context: CallContext, decision: Proceed) -> bool:
    """Hooks or the audit need the response, feedback goes with it, or it may start a further round of the call."""
    policy, call = context.policy, context.call
    if call.listens:  # its response says nothing but that it has ended, perhaps after days
        return False
    needed = policy.audit.needs_results or policy.hooks.needs_outcome(call.tool)
    return bool(decision.feedback or call.stateless or needed)
