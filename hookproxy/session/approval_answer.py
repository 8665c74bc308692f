"""What follows from a person's answer about a call that needs approval (law 1).

Only a yes approves. Arguments that the person has changed are judged by all hooks and rules, as if the agent had sent
them; where somebody asks about what came of that, it is asked about again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..audit.call_record import Record
from ..hooks.evaluate import Hooks
from ..model.decision import ApprovalRequest, Decision, Proceed, RefusalCause, Refuse
from ..model.hooks import Event, EventContext, Tool
from ..policy import decide
from ..policy.shared_state import StoreUnavailable
from ..protocol import feedback
from ..protocol.approval_messages import Approval
from .approval_details import ApprovalResult

_REFUSALS: Final = {
    Approval.NO: RefusalCause.DECLINED,
    Approval.NOT_ANSWERED: RefusalCause.NOT_ANSWERED,
    Approval.NOT_ASKED: RefusalCause.ASK_UNAVAILABLE,
}
"""The approvals that are none, each with why its call is refused."""

_MAX_EDITS: Final = 10  # of the arguments of one call by people: hooks that change each edit would make them go on

Ask = Callable[[Proceed, EventContext], Awaitable[ApprovalResult]]
"""Asks a person about a call with an approval request."""


class Judged(Struct, frozen=True):
    """A call as it was decided about."""

    decision: Decision
    event_context: EventContext
    """With the arguments that the decision is about."""


class AnsweredCall(Struct, frozen=True):
    """The call about which a person is asked."""

    hooks: Hooks
    record: Record
    report: Callable[[str], None]
    listed: Tool | None = None
    """The tool's entry in `tools/list`."""
    approvers: tuple[str, ...] = ()
    """Those of the settings."""

    async def decide(self, result: ApprovalResult, proceed: Proceed, context: EventContext, ask: Ask) -> Judged:
        """The decision about a call after a first answer; as often as needed, `ask` asks again."""
        for _ in range(_MAX_EDITS):
            self.note(result)
            if not result.arguments:
                return Judged(await self._decided(result, proceed, context), context)
            judged = await self._judge_edit(result.arguments, proceed, context)
            if not isinstance(judged.decision, Proceed) or judged.decision.approval_request is None:
                return judged
            proceed, context = judged.decision, judged.event_context
            result = await ask(proceed, context)
        return Judged(decide.declined(proceed, RefusalCause.NOT_ANSWERED, self.approvers), context)

    def note(self, result: ApprovalResult) -> None:
        """Record an answer."""
        record = self.record
        record.answer, record.answered_by, record.reason = result.action, result.by, result.reason

    async def _decided(self, result: ApprovalResult, proceed: Proceed, context: EventContext) -> Decision:
        """What follows for the call as it is."""
        if result.approval in _REFUSALS:
            refuse = decide.declined(proceed, _REFUSALS[result.approval], self.approvers)
            words = (feedback.REASON_OF_PERSON.format(result.reason),) if result.reason else ()
            return replace(refuse, feedback=(*refuse.feedback, *words))
        try:
            if result.approval is Approval.SIMILAR and proceed.approval_request is not None:
                await self.hooks.allow_similar(context, proceed.approval_request)
            if result.approval is Approval.SESSION:
                await self.hooks.allow_tool(context.tool, proceed.approval_request)
        except StoreUnavailable as problem:
            self.report(f"an approval for the session holds for one call only: {problem}")
        return _approved(proceed)

    async def _judge_edit(self, edited: bytes, proceed: Proceed, context: EventContext) -> Judged:
        """The call with the arguments that a person has written and allowed.

        It needs another approval if somebody asks and hooks have changed them again, or if it is about something else.
        """
        self.record.edited = True
        given = replace(context, event=Event.PRE_TOOL_USE, arguments=edited)
        evaluation = await self.hooks.run_pre_hooks(given, self.listed, self.record.hook_runs)
        decision, after = evaluation.decision, evaluation.context_after(given)
        texts = (*proceed.feedback, feedback.edited_by_person(edited), *decision.feedback)
        decision = replace(decision, feedback=tuple(dict.fromkeys(texts)))
        if isinstance(decision, Refuse):
            return Judged(replace(decision, asked=True), after)
        decision = replace(decision, arguments=edited if decision.arguments is None else decision.arguments)
        before, now = proceed.approval_request, decision.approval_request
        if now is None:
            return Judged(replace(decision, asked=True), after)
        answered = evaluation.arguments == edited and before is not None and _covers(before, now)
        return Judged(_approved(decision) if answered else decision, after)


def _covers(request: ApprovalRequest, other: ApprovalRequest) -> bool:
    """True if whoever has approved the one has approved the other as well."""
    same = set(other.chains) <= set(request.chains) and set(other.limits) <= set(request.limits)
    return same and (request.managed or not other.managed)


def _approved(proceed: Proceed) -> Proceed:
    request = proceed.approval_request
    chains = (*proceed.chains, *(() if request is None else request.chains))
    return replace(proceed, approval_request=None, asked=True, chains=chains)
