"""The life of one tools/call, top to bottom: asked, refused or forwarded, answered, commented, recorded (law 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import count
from time import perf_counter, time
from typing import Final, Protocol

from . import elicitations, feedback, outcomes, wire
from .audit import Audit, Record
from .calls import Call
from .decision import Comments, Proceed, Refuse
from .effects import Elicited
from .hooks import Hooks
from .model import Event, Occasion, Outcome, Permission, Session, Statement, Tool
from .outcomes import NO_OUTCOME
from .settings import Settings

_ID_IN_META: Final = ("claudecode/toolUseId", "callId")
"""Where agents name their own call: Claude Code, Codex."""


class Ending(Enum):
    """How a forwarded call can end without an answer."""

    LOST = auto()  # the server is gone
    INTERRUPTED = auto()  # the agent cancelled it


class Desk(Protocol):
    """What a call needs of the proxy that holds it."""

    hooks: Hooks
    settings: Settings
    session: Session
    audit: Audit

    def agent(self) -> str:
        """Name and version as the agent gave them, else nothing."""

    def tool(self, name: str) -> Tool | None:
        """What a listing told of the tool."""

    async def words(self) -> tuple[str, ...]:
        """Wait until SessionStart hooks are done; gives what hooks beside calls said and nobody has delivered yet."""

    async def forward(self, call: Call, line: bytes) -> bytes | Ending:
        """Send the call to the server and wait for its answer."""

    def answer(self, call: Call, line: bytes) -> None:
        """Send the call's answer to the agent, unless it cancelled the call."""

    def stop_others(self, call: Call, refuse: Refuse) -> None:
        """Refuse all other calls that the server does not know yet."""

    def repeat(self, call: Call, line: bytes) -> bytes | None:
        """Take back an answered call, to make it again: gives its line with a new id, or None if it is cancelled."""

    def follow(self, call: Call, record: Record, occasion: Occasion, texts: tuple[str, ...], line: bytes) -> bytes:
        """Follow the tasks that an answer hands over; gives the answer as the agent may have it."""

    def occur(self, occasion: Occasion) -> None:
        """Tell hooks of something, and wait for none of them."""

    def elicited(self, elicited: Elicited) -> None:
        """Tell hooks of a question of the server to the person, or of its answer."""

    def say(self, text: str) -> None:
        """Tell people."""

    def say_once(self, text: str) -> None:
        """Tell people, unless they have been told."""

    def lost(self, call: Call) -> bytes:
        """The line that tells the agent that the server is gone."""


@dataclass(frozen=True, slots=True)
class _Delivery:
    """An answer as the agent may get it."""

    line: bytes
    repeats: int = 0
    """How often the call may be repeated before the agent gets this."""


async def intercept(call: Call, desk: Desk) -> None:
    """See one call through. On cancel its hooks are ended, nothing is answered, and the record is still written."""
    begun = perf_counter()
    record = Record(desk.session.id, desk.session.server, call.tool, call.id, call.arguments, desk.agent())
    record.result = "cancelled"
    answer: bytes | None = None
    try:
        answer = await _judged(call, desk, record)
    except Exception as defect:
        record.result, record.reason = "error", f"a defect of hookproxy: {defect!r}"
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
                answer = feedback.unaudited(call.id, stateless=call.stateless, task=call.task, ran=True)
            desk.answer(call, answer)


async def _judged(call: Call, desk: Desk, record: Record) -> bytes | None:
    """The call's answer; None where there is to be none."""
    if desk.audit.required and (problem := desk.audit.trouble()):
        desk.say(f"a call of {call.tool} is refused because its audit line cannot be written: {problem}")
        record.decision, record.result = "deny", "refused"
        return feedback.unaudited(call.id, stateless=call.stateless, task=call.task, ran=False)
    words = await desk.words()
    for answer in elicitations.in_responses(call.inputs):
        desk.elicited(answer)
    occasion = occasion_of(call, desk)
    hearing = await desk.hooks.before(occasion, desk.tool(call.tool), record.statements)
    decision = hearing.decision
    asked = "asked-" if decision.asked else ""
    if isinstance(decision, Refuse):
        record.decision, record.result, record.reason = f"{asked}deny", "refused", decision.reason
        desk.occur(replace(occasion, event=Event.PERMISSION_DENIED, message=decision.reason))
        if decision.stop:
            desk.stop_others(call, decision)
        return refusal(call, replace(decision, feedback=(*words, *decision.feedback)))
    record.decision, record.final = f"{asked}allow", decision.arguments or b""
    occasion = replace(occasion, arguments=hearing.arguments)
    return await _forwarded(call, desk, record, occasion, decision, (*words, *decision.feedback))


async def _forwarded(  # what is known of the call by now
    call: Call, desk: Desk, record: Record, occasion: Occasion, decision: Proceed, texts: tuple[str, ...]
) -> bytes | None:
    """Have the call made, as often as its hooks say, and its answer commented."""
    line = _line(call, decision)
    for record.repeats in count():
        sent = perf_counter()
        answer = await desk.forward(call, line)
        if isinstance(answer, bytes) and not (texts or desk.audit.path or desk.hooks.groups.hears_outcome(call.tool)):
            return answer  # nobody wants to know what it says
        timed = Outcome(duration_ms=round((perf_counter() - sent) * 1000))
        occasion = replace(occasion, outcome=timed)
        if isinstance(answer, Ending):
            return await _ended(call, desk, record, occasion, answer)
        delivery = await _commented(call, desk, record, occasion, answer, texts)
        if delivery.repeats <= record.repeats:
            return delivery.line
        again = desk.repeat(call, line)
        if again is None:
            return None
        line = again
    raise AssertionError("count() has no end")


def refusal(call: Call, refuse: Refuse) -> bytes:
    """The line that tells the agent, and its model, that the call is refused and why."""
    return feedback.refusal(call.id, refuse, Event.PRE_TOOL_USE, stateless=call.stateless, task=call.task)


def occasion_of(call: Call, desk: Desk) -> Occasion:
    """The moment before a call, as its hooks are told."""
    listed = desk.tool(call.tool)
    return Occasion(
        event=Event.PRE_TOOL_USE,
        session=desk.session,
        tool=call.tool,
        tool_name=desk.hooks.groups.first_name(call.tool),
        tool_use_id=_told_id(call) or f"call_{call.key.decode(errors='replace')}",
        arguments=call.arguments,
        annotations=listed.annotations if listed else b"",
        request_id=call.key.decode(errors="replace"),
        at=time(),
    )


def _told_id(call: Call) -> str:
    """What the agent itself calls the call; empty where it does not tell."""
    for key in _ID_IN_META:
        if key in call.meta and (name := wire.text(bytes(call.meta[key]))):
            return name
    return ""


def _line(call: Call, decision: Proceed) -> bytes:
    """The agent's own bytes, or the same with only `params.arguments` replaced."""
    if decision.arguments is None:
        return call.line
    start, end = wire.members(call.line)["params"]
    params = call.line[start:end]
    rewritten = wire.with_member(params, "arguments", wire.one_line(decision.arguments.replace(b"\n", b" ")))
    return wire.splice(call.line, [((start, end), rewritten)])


async def _ended(call: Call, desk: Desk, record: Record, occasion: Occasion, ending: Ending) -> bytes | None:
    """A call without an answer: PostToolUseFailure hooks hear of it; the agent does unless it cancelled."""
    interrupted = ending is Ending.INTERRUPTED
    record.result = "cancelled" if interrupted else "lost"
    said = "The call was cancelled." if interrupted else "The server exited before it answered."
    outcome = replace(occasion.outcome or NO_OUTCOME, error=said, interrupted=interrupted)
    happened = replace(occasion, event=Event.POST_TOOL_USE_FAILURE, outcome=outcome)
    if not interrupted:
        desk.occur(replace(happened, event=Event.ERROR_OCCURRED, occasioned_by="system", message=said))
    await desk.hooks.after(happened, record.statements)
    return None if interrupted else desk.lost(call)


async def _commented(  # what is known of the call by now
    call: Call, desk: Desk, record: Record, occasion: Occasion, line: bytes, texts: tuple[str, ...]
) -> _Delivery:
    """The server's answer as the agent gets it: with what hooks say, or as it came."""
    try:
        reading = outcomes.read(call)
    except ValueError as problem:
        desk.say(f"the answer of {call.tool} is withheld: {problem}")
        record.result, record.reason = "error", str(problem)
        return _Delivery(feedback.ambiguous(call.id, str(problem)))
    if not reading.final:
        record.result = "pending"
        for question in reading.questions:
            desk.elicited(question)
        return _Delivery(desk.follow(call, record, occasion, texts, line))
    record.result = "error" if reading.failed else "ok"
    outcome = replace(reading.outcome, duration_ms=(occasion.outcome or NO_OUTCOME).duration_ms)
    event = Event.POST_TOOL_USE_FAILURE if reading.failed else Event.POST_TOOL_USE
    happened = replace(occasion, event=event, outcome=outcome)
    if not outcome.has_result:
        told = replace(happened, event=Event.ERROR_OCCURRED, occasioned_by="tool_execution", message=outcome.error)
        desk.occur(told)
    before = len(record.statements)
    comments = await desk.hooks.after(happened, record.statements)
    said = record.statements[before:]
    if any(one.verdict.stop for one in said):
        desk.stop_others(call, Refuse(by=_stopping(said), reason="", stop=True))
    delivered = _delivered(call, desk, outcome, line, comments, texts)
    record.result_changed = delivered is not line
    return _Delivery(delivered, _repeats(said))


def _delivered(  # an answer, and what is to go with it
    call: Call, desk: Desk, outcome: Outcome, line: bytes, comments: Comments, texts: tuple[str, ...]
) -> bytes:
    """The answer with what hooks say; `line` itself where they say nothing."""
    if call.said is not None and call.said.error is not None and not call.said.error:
        return line  # there is nothing to withhold in it, and no place for a word
    if outcome.has_result:
        delivered = feedback.deliver(line, comments, texts, desk.settings.feedback, desk.tool(call.tool))
    else:
        delivered = feedback.deliver_error(line, comments, texts)
    if delivered.note is not None:
        desk.say_once(f"{call.tool}: {delivered.note.value}")
    return delivered.line


def _repeats(statements: Sequence[Statement]) -> int:
    """How often the call may be repeated: never what a hook denied, nor because of a hook that failed."""
    judges = [one for one in statements if not one.spec.background]
    if any(one.verdict.permission is Permission.DENY or one.verdict.stop for one in judges):
        return 0
    return max((one.spec.max_retries for one in judges if one.verdict.retry and not one.verdict.trouble), default=0)


def _stopping(statements: Sequence[Statement]) -> str:
    return next(one.spec.label for one in statements if one.verdict.stop)
