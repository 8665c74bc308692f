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
from ..model.errors import what_ended
from ..model.hooks import Event, Outcome, Permission, Statement
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
from ..protocol.approval_messages import Consent
from ..protocol.calls import Call
from ..protocol.request_state import Round
from ..protocol.tool_results import NO_OUTCOME
from . import post_hooks
from .call_context import Case, Desk, Ending, occasion_of, refusal

_MOST_ROUNDS: Final = 10  # in which hooks answer the server: agents give up after as many, too


async def intercept(call: Call, desk: Desk) -> None:
    """See one call through. On cancel its hooks are ended, nothing is answered, and the record is still written."""
    begun = perf_counter()
    record = Record(desk.session.id, desk.session.server, call.tool, call.id, call.arguments, desk.agent())
    record.result = "cancelled"
    call.trace = desk.audit.begin(record, call)
    answer: bytes | None = None
    try:
        answer = await _judged(call, desk, record)
    except Exception as defect:
        record.result, record.reason = "error", what_ended(defect)
        raise
    finally:
        if call.stopped_by and record.result == "cancelled":
            record.decision, record.result, record.reason = "deny", "refused", call.stopped_by
        record.ms = (perf_counter() - begun) * 1000
        problem = desk.audit.write(record)
        if problem:
            desk.say(f"the audit line of {call.tool} cannot be written: {problem}")
        if answer is not None:
            if problem and desk.audit.required and record.result != "refused":
                ran = record.decision != "asked"  # a person is to be asked first
                answer = feedback.unaudited(call.id, stateless=call.stateless, task=call.task, ran=ran)
            desk.answer(call, answer)


async def _judged(call: Call, desk: Desk, record: Record) -> bytes | None:
    """The call's answer; None where there is to be none."""
    if desk.audit.required and (problem := desk.audit.trouble()):
        return _unrecorded(call, desk, record, problem)
    words = () if desk.silent() else await desk.words()
    case = Case(call, desk, record, occasion_of(call, desk))
    alias = case.occasion.alias
    record.alias = "" if alias is None else alias.name
    case.waiting = desk.seals.open(call.state, call.tool, call.arguments) if call.state else None
    if call.inputs:
        _tell_answers(case)
    if case.waiting is not None:
        return await _resumed(case, replace(case.waiting, feedback=(*words, *case.waiting.feedback)))
    hearing = await desk.hooks.before(case.occasion, desk.tool(call.tool), record.statements)
    decision = hearing.decision if alias is None else _as_sent(hearing.decision, alias)
    if hearing.arguments is not case.occasion.arguments:
        case.occasion = replace(case.occasion, arguments=hearing.arguments)
    if words:
        decision = replace(decision, feedback=(*words, *decision.feedback))
    if isinstance(decision, Proceed) and decision.question:
        settled = await _settled(case, decision)
        if isinstance(settled, bytes):
            return settled
        decision = settled
    return await _decided(case, decision)


def _as_sent(decision: Decision, alias: Alias) -> Decision:
    """The decision with rewritten arguments under the server's names."""
    if isinstance(decision, Proceed) and decision.arguments is not None:
        return replace(decision, arguments=alias.for_server(decision.arguments))
    return decision


def _tell_answers(case: Case) -> None:
    """Tell hooks of the person's answers to the server that the call brings."""
    if not (case.waiting and case.waiting.question):  # else the answer is to us
        for answer in elicitations.in_responses(case.call.inputs):
            case.desk.elicited(answer)


def _unrecorded(call: Call, desk: Desk, record: Record, problem: str) -> bytes:
    desk.say(f"a call of {call.tool} is refused because its audit line cannot be written: {problem}")
    record.decision, record.result = "deny", "refused"
    return feedback.unaudited(call.id, stateless=call.stateless, task=call.task, ran=False)


async def _settled(case: Case, proceed: Proceed) -> Decision | bytes:
    """Have the person asked: gives the decision, or the answer to the call that asks for another round."""
    call, desk, question = case.call, case.desk, proceed.question
    can_ask = desk.asking.may_ask(call)
    decision = decide.unasked(proceed, desk.settings, can_ask or desk.asking.has_prompter(question))
    if question is None or not isinstance(decision, Proceed) or decision.question is None:
        return decision
    arguments = aliases.for_server(case.occasion.alias, case.occasion.arguments)
    message = approval_messages.text(desk.session.server, call.tool, arguments, question)
    asking = replace(case.occasion, occasioned_by="permission_prompt", message=message)
    for event in (Event.NOTIFICATION, Event.USER_INPUT):
        desk.occur(replace(asking, event=event))
    if call.stateless and can_ask:
        waiting = Round(call.tool, call.arguments, proceed.arguments, proceed.feedback, question)
        case.record.decision, case.record.result, case.record.reason = "asked", "pending", question.reason
        return feedback.input_required(call.id, message, desk.seals.seal(waiting))
    asked = approval_messages.document(desk.session.server, call.tool, arguments, question)
    desk.let_go(call)  # a person may take long, and the answer comes the way of all that the agent says
    return _answered(case, proceed, await desk.asking.ask(call, message, asked, question))


def _answered(case: Case, proceed: Proceed, consent: Consent) -> Decision:
    """The decision that the person's answer makes of the question."""
    if consent is Consent.NO:
        return decide.declined(proceed)
    if consent is Consent.SESSION:
        case.desk.hooks.allow_tool(case.call.tool, proceed.question)
    return replace(proceed, question=None, asked=True)


async def _resumed(case: Case, waiting: Round) -> bytes | None:
    """The call goes on in another round: its hooks have been asked, and what they decided holds."""
    proceed = Proceed(waiting.rewritten, waiting.feedback, waiting.question, waiting.asked)
    decision: Decision = proceed
    if waiting.rewritten is not None:
        rewritten = aliases.for_hooks(case.occasion.alias, normalize.normalise(waiting.rewritten))
        case.occasion = replace(case.occasion, arguments=rewritten)
    if waiting.question:
        consent = approval_messages.consent(response_edits.peek(case.call.inputs, approval_messages.MEMBER))
        decision = _answered(case, proceed, consent)
    return await _decided(case, decision)


async def _decided(case: Case, decision: Decision) -> bytes | None:
    """Carry the decision out; gives the call's answer, None where there is to be none."""
    call, desk, record = case.call, case.desk, case.record
    if isinstance(decision, Proceed) and desk.hooks.has_limits and not _is_under_way(case):
        decision = desk.hooks.counted(decision, call.tool)
    asked = "asked-" if decision.asked else ""
    if isinstance(decision, Proceed):
        record.decision, record.final = f"{asked}allow", decision.arguments or b""
        return await _forwarded(case, decision)
    record.decision, record.result, record.reason = f"{asked}deny", "refused", decision.reason
    record.by = decision.by
    desk.occur(replace(case.occasion, event=Event.PERMISSION_DENIED, message=decision.reason))
    if decision.stop:
        desk.stop_others(call, decision)
    return refusal(call, decision)


def _is_under_way(case: Case) -> bool:
    """The server has had an earlier round of this call, which has been counted."""
    return case.waiting is not None and case.waiting.question is None


async def _forwarded(case: Case, decision: Proceed) -> bytes | None:
    """Have the call made, as often as its hooks say, and its answer commented."""
    call, desk = case.call, case.desk
    line = request_edits.to_server(call, decision.arguments, case.waiting)
    read = _is_read(case, decision)
    if not (read or call.task) and desk.let_pass(call, line):
        return None  # its answer needs nobody
    rounds = 0
    while True:
        sent = perf_counter()
        answer = await desk.forward(call, line)
        if isinstance(answer, bytes) and not read:
            return answer  # nobody wants to know what it says
        timed = Outcome(duration_ms=round((perf_counter() - sent) * 1000))
        case.occasion = replace(case.occasion, outcome=timed)
        if isinstance(answer, Ending):
            return await _ended(case, answer)
        delivery = await _commented(case, answer, decision, line if rounds < _MOST_ROUNDS else b"")
        if delivery.next_round:
            rounds, line = rounds + 1, delivery.next_round
        elif delivery.repeats > case.record.repeats and desk.hooks.may_repeat(call.tool):
            case.record.repeats += 1
        else:
            return delivery.line
        again = desk.repeat(call, line)
        if again is None:  # cancelled: hooks hear of it, unless they have heard of an end
            return await _ended(case, Ending.INTERRUPTED) if delivery.next_round else None
        line = again


def _is_read(case: Case, decision: Proceed) -> bool:
    """Somebody wants to know what the answer says, or has to be told with it. Rounds of a call must be followed."""
    desk, call = case.desk, case.call
    return bool(decision.feedback or desk.audit.enabled or call.stateless or desk.hooks.groups.hears_outcome(call.tool))


async def _ended(case: Case, ending: Ending) -> bytes | None:
    """A call without an answer: PostToolUseFailure hooks hear of it; the agent does unless it cancelled."""
    interrupted = ending is Ending.INTERRUPTED
    case.record.result = "cancelled" if interrupted else "lost"
    said = "The call was cancelled." if interrupted else "The server exited before it answered."
    outcome = replace(case.occasion.outcome or NO_OUTCOME, error=said, interrupted=interrupted)
    happened = replace(case.occasion, event=Event.POST_TOOL_USE_FAILURE, outcome=outcome)
    if not interrupted:
        case.desk.occur(replace(happened, event=Event.ERROR_OCCURRED, occasioned_by="system", message=said))
    await case.desk.hooks.after(happened, case.record.statements)
    return None if interrupted else case.desk.lost(case.call)


class _Delivery(Struct, frozen=True):
    """An answer as the agent may get it."""

    line: bytes
    repeats: int = 0
    """How often the call may be repeated before the agent gets this."""
    next_round: bytes = b""
    """The line with which the call goes on instead: hooks have answered what the server asked."""


async def _commented(case: Case, line: bytes, decision: Proceed, asked_by: bytes) -> _Delivery:
    """The server's answer as the agent gets it: with what hooks say, or as it came.

    `asked_by` is the line that it answers; empty: hooks have gone on with the call in the agent's place often enough.
    """
    call, desk, record = case.call, case.desk, case.record
    try:
        reading = tool_results.read(call)
    except ValueError as problem:
        desk.say(f"the answer of {call.tool} is withheld: {problem}")
        record.result, record.reason = "error", str(problem)
        return _Delivery(feedback.ambiguous(call.id, str(problem)))
    if not reading.final:
        record.result = "pending"
        return await _unfinished(case, line, decision, reading, asked_by)
    record.result = "error" if reading.failed else "ok"
    outcome = replace(reading.outcome, duration_ms=(case.occasion.outcome or NO_OUTCOME).duration_ms)
    before = len(record.statements)
    comments = await post_hooks.hear(call, desk, case.occasion, outcome, record.statements)
    delivered = _delivered(case, outcome, line, comments, decision.feedback)
    record.result_changed = delivered is not line
    return _Delivery(delivered, _repeats(record.statements[before:]))


async def _unfinished(
    case: Case, line: bytes, decision: Proceed, reading: tool_results.Reading, asked_by: bytes
) -> _Delivery:
    """The call goes on after this answer: in another round, by hooks or by the agent, whom our seal brings back."""
    call, desk = case.call, case.desk
    if not reading.needs_input:
        return _Delivery(desk.follow(call, case.record, case.occasion, decision.feedback, line))
    result = (call.said and call.said.result) or {}
    given = await desk.answer_all(result) if asked_by else None
    if given is not None:
        return _Delivery(line, next_round=elicitation_messages.next_round(asked_by, result, given))
    for question in reading.questions:
        desk.elicited(question, only_told=bool(asked_by))
    state = request_edits.servers_state(line)
    waiting = Round(call.tool, call.arguments, decision.arguments, decision.feedback, asked=decision.asked, state=state)
    return _Delivery(request_edits.to_agent(line, desk.seals.seal(waiting)))


def _delivered(case: Case, outcome: Outcome, line: bytes, comments: Comments, texts: tuple[str, ...]) -> bytes:
    """The answer with what hooks say; `line` itself where they say nothing."""
    call = case.call
    if call.said is not None and call.said.error is not None and not call.said.error:
        if comments.withheld or comments.hidden_by or comments.replacement is not None:
            return feedback.ambiguous(call.id, "it is neither a result nor an error")
        return line  # there is no place for a word
    return post_hooks.written(call, case.desk, line, comments, texts, result=outcome.has_result)


def _repeats(statements: Sequence[Statement]) -> int:
    """How often the call may be repeated: never what a hook denied, nor because of a hook that failed."""
    judges = [one for one in statements if not one.spec.background]
    if any(one.verdict.permission is Permission.DENY or one.verdict.stop for one in judges):
        return 0
    return max((one.spec.max_retries for one in judges if one.verdict.retry and not one.verdict.trouble), default=0)
