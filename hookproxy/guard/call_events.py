"""The life of an agent's call: the event before it, the run of the proxy that may get it, the event after it (law 1).

How it works: before a call the hooks and rules decide, limits count it, and its record is in the file before the agent
hears that it may go on; then it is open (`OpenCalls`). Of several parts, none is open if one is refused, or if the
agent cannot express what was decided. A run that claims a call which was judged under its own configuration takes over
everything that is left to do: its hooks after the call see the response itself, and its record is the only one.
Otherwise the event after the call runs these hooks, and completes the record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic, perf_counter
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ..audit.call_record import Record
from ..audit.log import Audit
from ..convert import hook_decision
from ..convert.run_hook import expressible
from ..dialects.agent_side import AgentEvent, AgentSide, HookDecision
from ..dialects.shared.input import result_text
from ..hooks.evaluate import Hooks
from ..jsonrpc import normalize
from ..jsonrpc.raw_json import encode
from ..model.call_end import Failed, Refused, Responded
from ..model.decision import Decision, Proceed, RefusalCause, Refuse
from ..model.hooks import AgentState, Event, EventContext, HookRun, Outcome, Permission
from ..model.reported_call import ReportedCall
from ..model.settings import Settings
from ..processes.ancestry import Process
from ..protocol import feedback
from ..protocol.calls import Call, Phase
from .approvals import GuardApprovals, NativeCall
from .exchange import Request
from .native_session import NativeSession
from .open_calls import Act, Key, OpenCall, OpenCalls
from .run_messages import Claim, Ended, Join
from .seen import digest_of, digest_of_arguments
from .watched import WatchedOwnTools

AFTER: Final = frozenset({Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE})
"""The events after a call."""


class _Part(Struct):
    """One part of a call, and what was decided about it."""

    context: EventContext
    """With the arguments that were decided about."""
    hooks: Hooks
    decision: Decision
    hook_decision: HookDecision
    record: Record | None
    """None: nothing concerns the call."""
    call: Call
    started: float
    seen: str = ""


class CallEvents:
    """The life of all agents' calls under one configuration."""

    def __init__(
        self,
        settings: Settings,
        policy: str,
        audit: Audit,
        approvals: GuardApprovals,
        report: Callable[[str], None],
        watched: WatchedOwnTools,
    ) -> None:
        """`policy` is the digest of the configuration; empty: it counts as the same as no other."""
        self._settings, self._policy = settings, policy
        self._audit, self._approvals, self._report = audit, approvals, report
        self._watched = watched
        self.open = OpenCalls()
        """The calls that may run."""

    def close(self) -> None:
        """The end of open calls will not be known. Write what waits to be recorded."""
        for call in self.open:
            self._lost(call, "the guard was ended before the end of this call was known")
        self._note(self._audit.close())

    # --- before a call ---

    async def before(
        self,
        side: AgentSide,
        session: NativeSession,
        event: AgentEvent,
        contexts: Sequence[EventContext],
        request: Request,
        runs: list[HookRun],
    ) -> tuple[HookDecision, list[str]]:
        """What the agent gets, and sentences about what it cannot express; `contexts` are the parts of the event."""
        alone = len(contexts) == 1
        parts = [await self._judge(side, session, context, request, runs, alone=alone) for context in contexts]
        combined = hook_decision.combined([part.hook_decision for part in parts])
        decision, problems = expressible(combined, side, event.context)
        if decision.permission is not Permission.DENY:
            decision = await self._begin(side, parts, decision, request.process)
        if decision.permission is Permission.DENY:
            self._refuse(side, parts, decision, request.process)
        return decision, problems

    async def _judge(
        self,
        side: AgentSide,
        session: NativeSession,
        context: EventContext,
        request: Request,
        runs: list[HookRun],
        *,
        alone: bool,
    ) -> _Part:
        """Decide about a part; `alone`: it is all that the event is about."""
        started, call = perf_counter(), _call(context, request)
        hooks = session.hooks_for(context, side.name)
        listed = session.listed(context.session.server, context.tool)
        if listed is not None:
            context = replace(context, annotations=listed.annotations)
        seen = digest_of(context, listed)
        watched = self._watched.hooks_for(side.name, context, session)
        if not (self._settings.audit_all_calls or watched or hooks.concerns(context.tool)):
            return _Part(context, hooks, Proceed(), HookDecision(), None, call, started, seen)
        if self._audit.required and (problem := self._audit.failure()):
            return _Part(context, hooks, Refuse("the audit", problem), _unrecorded(problem), None, call, started)
        record = Record(context.session.id, context.session.server, context.tool, call.id, context.arguments)
        record.agent, record.alias = side.name, context.alias.name if context.alias else ""
        own = record.hook_runs
        native = NativeCall(side, hooks, call, record, monotonic(), alone)
        self._audit.begin(record, call)
        given = replace(context, agent=side.name)
        if watched is not None:
            self._watched.begin(watched, given, record)
        try:
            evaluation = await hooks.run_pre_hooks(given, listed, own)
            judged = await self._approvals.decide(native, evaluation.decision, evaluation.context_after(given))
            decision = await hooks.apply_limits(judged.decision, judged.event_context)
        except BaseException as ended:
            record.note_end(Failed(None, f"hookproxy could not judge this call ({type(ended).__name__})"))
            self._write(hooks, record, started)
            raise
        finally:
            runs += own
        for_agent = hook_decision.before_call(decision, own, by_person=bool(record.answered_by))
        return _Part(judged.event_context, hooks, decision, for_agent, record, call, started, seen)

    async def _begin(
        self, side: AgentSide, parts: Sequence[_Part], decision: HookDecision, process: Process | None
    ) -> HookDecision:
        """Let the call begin; the refusal if it must be recorded and cannot be."""
        for part in parts:
            if part.record is None or not isinstance(part.decision, Proceed):
                continue
            part.record.note_allowed(part.decision)
            if part.decision.approval_request is not None:
                part.record.decision = "asked"  # what the person answers in the agent, its hooks do not see
            if (problem := self._audit.write_begun(part.record)) and self._audit.required:
                return _unrecorded(problem)
        for part in parts:
            rewritten = decision.arguments if len(parts) == 1 else None
            await self._open(side, part, rewritten, process)
        return decision

    async def _open(self, side: AgentSide, part: _Part, rewritten: bytes | None, process: Process | None) -> None:
        """A part may run from now on; an event after it and, of a server's tool, a run will be about it."""
        part.call.phase = Phase.FORWARDED
        if part.record is None and not part.context.session.server:
            return
        if part.record is not None and not _hears_of_each_end(side):
            part.record.labels = await part.hooks.note_begun(part.context, part.record.call)
        if oldest := self.open.open_call(self._opened(side, part, rewritten, process)):
            self._lost(oldest, "the agent has not reported how this call ended")

    def _opened(self, side: AgentSide, part: _Part, rewritten: bytes | None, process: Process | None) -> OpenCall:
        assert isinstance(part.decision, Proceed), "none of the parts is refused"
        context = part.context
        if rewritten is not None:
            context = replace(context, arguments=normalize.normalize(rewritten))
        return OpenCall(
            key=_key(side, context),
            act=_act(context),
            process=process,
            context=context,
            hooks=part.hooks,
            decision=part.decision,
            policy=self._policy,
            seen=part.seen,
            record=part.record,
            started=part.started,
            allowed=perf_counter(),
            asked=part.decision.approval_request is not None,
        )

    def _refuse(self, side: AgentSide, parts: Sequence[_Part], decision: HookDecision, process: Process | None) -> None:
        """Record that none of the parts runs, each with why."""
        refusing = next((part.decision for part in parts if isinstance(part.decision, Refuse)), None)
        for part in parts:
            self.open.refused(process, _act(part.context))
            if part.record is None:
                continue
            if isinstance(part.decision, Refuse):
                _note_refusal(part.record, part.decision)
            else:  # another part is refused, or the agent cannot express what was decided
                because = refusing or Refuse(side.name, "", cause=RefusalCause.FAILURE)
                part.record.note_end(Refused(b"", decision.reason, because.cause.value, because.by, because.place))
            self._write(part.hooks, part.record, part.started)

    # --- after a call ---

    async def after(
        self, side: AgentSide, session: NativeSession, context: EventContext, runs: list[HookRun]
    ) -> HookDecision:
        """What the agent gets for the end of a call; nothing if a run has done everything already."""
        hooks = session.hooks_for(context, side.name)
        call = self.open.end_call(_key(side, context), _act(context))
        if call is not None and call.taken_over:
            return HookDecision()
        record = None if call is None else call.record
        _note_end(hooks, context, call)
        own: list[HookRun] = [] if record is None else record.hook_runs
        before = len(own)
        try:
            comments = await hooks.run_post_hooks(context, own)
            if not (comments.withheld or comments.hidden_by):
                labels = await hooks.note_result(context, _output(context), record.call if record else "", comments)
                if record is not None:
                    record.labels = labels
        finally:
            runs += own[before:]
            if call is not None and record is not None:
                failed = context.event is Event.POST_TOOL_USE_FAILURE
                record.note_end(Responded(result="error" if failed else "ok"))
                self._write(hooks, record, call.started)
        return hook_decision.after_call(comments, own[before:])

    # --- a run gets the call ---

    def claim(self, process: Process, run: Join, claim: Claim) -> tuple[OpenCall, ReportedCall] | None:
        """The call that a run gets, as `OpenCalls.claim`; None: nobody has reported it."""
        call = self.open.claim(process, (run.server, claim.tool, claim.arguments), claim.call)
        if call is None:
            return None
        record, context, decision = call.record, call.context, call.decision
        same = (call.act[0], call.policy, call.seen) == (run.server, run.policy, claim.seen)
        call.taken_over = record is not None and bool(run.policy) and same
        reported = ReportedCall(
            session=context.session.id,
            cwd=context.session.cwd,
            project_dir=context.session.project_dir,
            tool_use_id=context.tool_use_id,
            state=context.agent_state or AgentState(),
            record=record.call if record else "",
            asked=call.asked or decision.asked,
            exceeds=decision.exceeds,
            chains=decision.chains if decision.approval_request is None else decision.approval_request.chains,
        )
        if record is None or not call.taken_over:
            return call, reported
        before = record.arguments if record.final else b""
        hooks, ms = self._audit.hooks_of(record), record.own_hook_ms
        asked = (record.asked_by, record.answer, record.answered_by, record.reason)
        self._audit.hand_over(record)
        reported = replace(reported, decided=True, hooks=Raw(hooks), hook_ms=ms, before=before)
        return call, replace(reported, approval=asked, edited=record.edited)

    def ended(self, call: OpenCall, ended: Ended) -> None:
        """The run that has taken a call over has recorded how it ended."""
        if call.record is not None:
            call.record.result, call.record.decision = ended.result, ended.decision
            call.hooks.note_call(call.record)
        call.record = None
        call.hooks.note_end(call.context, ended.size, ended.seconds)

    def lost(self, call: OpenCall) -> None:
        """The run that has taken a call over has gone without a word about how it ended."""
        self._lost(call, "the MCP server's hookproxy has ended before it said how this call ended")
        call.record = None

    def _lost(self, call: OpenCall, why: str) -> None:
        if call.record is not None:
            call.record.note_end(Failed(None, why, "lost"))
            self._note(self._audit.write(call.record))

    def _write(self, hooks: Hooks, record: Record, started: float) -> None:
        record.ms = (perf_counter() - started) * 1000
        self._note(self._audit.write(record))
        hooks.note_call(record)

    def _note(self, problem: str) -> None:
        if problem:
            self._report(f"the audit cannot be written: {problem}")


def _note_refusal(record: Record, refuse: Refuse) -> None:
    record.chains = refuse.chains
    reason = record.reason or refuse.reason  # a person's own words come first
    cause = refuse.cause.value
    record.note_end(Refused(b"", reason, cause, refuse.by, refuse.place, asked=refuse.asked))


def _note_end(hooks: Hooks, context: EventContext, call: OpenCall | None) -> None:
    """Count the result and the time of a call: the time that the agent says, else that since the call could begin."""
    outcome, seconds = context.outcome or Outcome(), 0.0 if call is None else perf_counter() - call.allowed
    size = len(outcome.whole or outcome.content) + len(outcome.error.encode("utf-8", "surrogatepass"))
    hooks.note_end(context, size, outcome.duration_ms / 1000 or seconds)


def _output(context: EventContext) -> bytes:
    """All that the agent reads of a result, as a JSON value; empty if its hooks do not hear what that is."""
    if (end := context.outcome) is None or not (result_text(end) or end.whole):
        return b""
    return b"[%b]" % b",".join(filter(None, (end.content, end.structured, end.more, end.whole, encode(end.error))))


def _hears_of_each_end(side: AgentSide) -> bool:
    """Whether the agent's hooks also learn how a call has failed."""
    return {*side.events.values(), *side.also} >= AFTER


def _key(side: AgentSide, context: EventContext) -> Key:
    return side.name, context.session.id, context.tool_use_id


def _act(context: EventContext) -> Act:
    return context.session.server, context.tool, digest_of_arguments(context.arguments)


def _call(context: EventContext, request: Request) -> Call:
    """The call as the audit knows calls of a proxy."""
    call_id = msgspec.json.encode(context.tool_use_id)
    return Call(call_id, call_id, request.document, context.tool, context.arguments, {}, False, False)


def _unrecorded(problem: str) -> HookDecision:
    return HookDecision(Permission.DENY, f"{feedback.NOT_RECORDED} ({problem})")
