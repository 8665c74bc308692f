"""One request of the server that rules, limits or hooks of calls are about: it is judged as a tool call is.

PreToolUse hooks and rules see its params, PostToolUse hooks the agent's answer, which is its result. The method stands
in the place of the tool's name. Whoever handles the request sends what follows from it.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from msgspec.structs import replace

from ..audit.call_record import Record
from ..model.call_end import CallEnd, Refused, Responded
from ..model.decision import Comments, Decision, Proceed, RefusalCause, Refuse
from ..model.hooks import Event, HookRun, Outcome
from ..protocol.calls import Call, id_key
from .call import request_approval
from .call_context import CallContext, CallServices, event_context_of
from .post_hooks import NO_COMMENTS, note_reading, run_post_hooks

KeepFeedback = Callable[[list[HookRun]], None]
"""Keeps the feedback of post hooks for the agent's model."""


class JudgesRequests:
    """Makes a judged request of each request of the server."""

    def __init__(self, services: CallServices, keep_feedback: KeepFeedback) -> None:
        self._services = services
        self._keep_feedback = keep_feedback

    def request(self, method: str, raw_id: bytes, arguments: bytes, line: bytes) -> JudgedRequest:
        """A request with these params; `line` has it as the server has spelled it."""
        return JudgedRequest(self._services, self._keep_feedback, method, raw_id, arguments, line)


class JudgedRequest:
    """The decision about one request, the judgement of its answer, and the record of both."""

    def __init__(  # the request, and what judging needs
        self,
        services: CallServices,
        keep_feedback: KeepFeedback,
        method: str,
        raw_id: bytes,
        arguments: bytes,
        line: bytes,
    ) -> None:
        self._services = services
        self._keep_feedback = keep_feedback
        self._started = perf_counter()
        self.policy = policy = services.policy
        call = Call(id_key(raw_id), raw_id, line, method, arguments, {}, stateless=False, task=False)
        session = services.session
        self.record = Record(session.id, session.server, method, raw_id, arguments, services.agent())
        self.record.protocol, self.record.method = services.protocol_version(), method
        call.trace = policy.audit.begin(self.record, call)
        self._decided = Proceed()
        self._context = CallContext(call, policy, services, self.record, event_context_of(call, policy, services))

    async def decide(self) -> Decision:
        """Whether the agent may see the request, and with which params. On cancel, its hooks are ended."""
        context, policy = self._context, self.policy
        if policy.audit.required and (problem := policy.audit.failure()):
            return _refuse_without_audit(problem)
        evaluation = await policy.hooks.run_pre_hooks(context.event_context, None, self.record.hook_runs)
        decision = evaluation.decision
        context.event_context = evaluation.context_after(context.event_context)
        if isinstance(decision, Proceed) and decision.approval_request:
            approved = await request_approval(context, decision)
            assert not isinstance(approved, Responded), "only a call of 2026-07-28 asks by its response"
            decision = approved
        if isinstance(decision, Proceed) and policy.hooks.has_limits:
            decision = await policy.hooks.apply_limits(decision, context.event_context)
        if isinstance(decision, Proceed):
            decision = await self._allow(decision)
        if isinstance(decision, Refuse):
            self.record.chains = decision.chains
            denied = replace(context.event_context, event=Event.PERMISSION_DENIED, message=decision.reason)
            self._services.start_hooks(denied)
            if decision.stop:
                self._services.refuse_other_calls(context.call, decision)
        return decision

    async def _allow(self, proceed: Proceed) -> Decision:
        """The agent may see the request, and reads it now; unless one of both cannot be noted."""
        context, policy = self._context, self.policy
        self._decided = proceed
        self.record.note_allowed(proceed)
        if problem := policy.audit.write_begun(self.record):
            return _refuse_without_audit(problem)
        event_context = context.event_context
        params = b'{"params":%b}' % event_context.arguments
        for read in (event_context, *self._services.sources_in_flight()):  # it may say what their results will say
            if away := await note_reading(read, policy.hooks, NO_COMMENTS, params, self.record):
                return Refuse("what the session has read", away, cause=RefusalCause.STORE_AWAY)
        return proceed

    async def refuse_answer(self, answer: bytes) -> Refuse | None:
        """The refusal of the agent's answer, a JSON value, if it must not reach the server; None: it may.

        It is refused where it would carry data that the server must not get, unless a person approves it.
        """
        decision = await self.policy.hooks.judge_answer(self._decided, self._context.event_context, answer)
        if isinstance(decision, Proceed) and decision.approval_request:
            approved = await request_approval(self._context, decision)
            assert not isinstance(approved, Responded), "only a call of 2026-07-28 asks by its response"
            decision = approved
        if isinstance(decision, Proceed):
            self.record.note_allowed(decision)
            return None
        self.record.chains = decision.chains
        return decision

    def refused(self, decision: Refuse, line: bytes) -> Refused:
        """How the request ends that is refused by `line`."""
        reason = self.record.reason or decision.reason
        why = f"{decision.by} ({decision.cause.value})" + (f": {reason}" if reason else "")
        self._services.report(f"refused the server's {self._context.call.tool}: {why}")
        return Refused(line, reason, decision.cause.value, decision.by, decision.place, asked=decision.asked)

    @property
    def judges_answer(self) -> bool:
        """Hooks may change the answer."""
        return self.policy.hooks.has_post_hooks_for(self._context.call.tool)

    async def judge_answer(self, outcome: Outcome) -> Comments:
        """What post hooks do to the answer. Their feedback goes to the agent's model with its next result."""
        runs_before = len(self.record.hook_runs)
        context = self._context
        comments = await run_post_hooks(
            context.call, self.policy, self._services, context.event_context, outcome, self.record.hook_runs
        )
        self._keep_feedback(self.record.hook_runs[runs_before:])
        return comments

    def close(self, end: CallEnd) -> bool:
        """Write the record. False: it cannot be written although it is required, so nothing may pass."""
        record, audit = self.record, self.policy.audit
        record.note_end(end)
        record.ms = (perf_counter() - self._started) * 1000
        self._services.report_unwritten(problem := audit.write(record))
        return not (problem and audit.required)


def _refuse_without_audit(problem: str) -> Refuse:
    return Refuse("the audit", problem, cause=RefusalCause.FAILURE)
