"""The limits of calls in one layer: whether a call exceeds one, what follows, and counting it.

A call is counted when it is about to be forwarded, by this process or, where limits are shared, by a store for several.
In between other calls are counted, so a person who was asked because of a limit may still be too late: such a call is
refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..model.decision import ApprovalRequest, Decision, Proceed, RefusalCause, Refuse
from ..model.hooks import EventContext
from ..model.limits import Beyond, CountedCall, Measure
from ..model.settings import Settings
from ..policy import same_calls
from ..policy.rate_limits import RateLimits
from ..policy.shared_state import Shared, StoreUnavailable
from ..protocol import feedback
from .select import HookGroups

if TYPE_CHECKING:
    from ..policy.rate_limits import LimitReached


class CallLimits:
    """The configured limits of one layer, by the names that these groups know the server's tools by."""

    def __init__(self, settings: Settings, groups: HookGroups, where: str, shared: Shared) -> None:
        self.table = RateLimits(settings.limits, window_of=shared.window_of)
        """The limits, and the counts of this process."""
        self.counted_together = shared.limits
        """Counts them for several processes together; None: they are counted here."""
        self._groups = groups
        self._where = where

    def applied(self, proceed: Proceed, context: EventContext) -> Decision:
        """What follows for a call from the limits that it exceeds, as far as this process knows."""
        shared = self.counted_together is not None
        exceeded = self.table.exceeded(_names(self._groups, context), counted_call(context), known_after=shared)
        return self._beyond_limits(exceeded, proceed) if exceeded else proceed

    async def count_call(self, proceed: Proceed, context: EventContext, *, count: bool = True) -> Decision:
        """Count a call that is about to be forwarded against its tool's limits; refuse it beyond one that refuses, and
        beyond one that asks unless a person was asked.

        Without `count` it is only looked what would follow. On cancel, the call may have been counted.
        """
        names, call, size = _names(self._groups, context), counted_call(context), len(context.arguments)
        if self.counted_together is None:
            if not count:
                return self._beyond_limits(self.table.exceeded(names, call), proceed)
            reached = self.table.count(names, size, call, proceed.exceeds)
            return proceed if reached is None else self._refuse_over_limit(reached, proceed)
        try:
            limits = self.table.applicable(names)
            if not count:
                return self._beyond_limits(
                    await self.counted_together.exceeded(limits, call) if limits else (), proceed
                )
            reached = await self.counted_together.count(limits, call, proceed.exceeds) if limits else None
        except StoreUnavailable as problem:
            return _refuse_without_store("the count of calls for a rate limit", problem, proceed)
        if reached is None:
            self.table.note_size(names, size, call)  # each process counts them alone
        return proceed if reached is None else self._refuse_over_limit(reached, proceed)

    @property
    def must_ask_store(self) -> bool:
        """Some limits ask or comment, and only `count_call` knows whether they are exceeded."""
        return self.counted_together is not None and not self.table.only_denies

    def _beyond_limits(self, exceeded: Sequence[LimitReached], proceed: Proceed) -> Decision:
        """What follows from the limits that a call exceeds: a refusal, an approval, or feedback."""
        denying = [reached for reached in exceeded if reached.limit.beyond is Beyond.DENY]
        if denying:
            longest = max(denying, key=lambda reached: reached.retry_after or inf)
            return self._refuse_over_limit(longest, proceed)
        limits = [reached.limit for reached in exceeded if reached.limit.key not in proceed.exceeds]
        asking = [limit for limit in limits if limit.beyond is Beyond.ASK]
        comments = [feedback.beyond_limit(limit, self._where) for limit in limits if limit.beyond is Beyond.COMMENT]
        request = proceed.approval_request
        if asking:
            why = [f"more than {limit}" for limit in asking]
            why += [] if request is None else [request.reason or request.by]
            request = ApprovalRequest(
                f"{asking[0].by} of {self._where}",
                "; ".join(why),
                limits=tuple(limit.key for limit in asking),
                else_asked=request is not None,
            )
        return replace(
            proceed,
            approval_request=request,
            feedback=(*proceed.feedback, *comments),
            exceeds=(*proceed.exceeds, *(limit.key for limit in limits)),
        )

    def _refuse_over_limit(self, reached: LimitReached, proceed: Proceed) -> Refuse:
        limit = reached.limit
        asks = limit.beyond is Beyond.ASK
        return Refuse(
            limit.by,
            f"no more than {limit}" + asks * ", beyond which the user is asked, and other calls came first",
            asked=proceed.asked,
            cause=RefusalCause.LIMIT,
            feedback=proceed.feedback,
            retry_after=1 if asks else reached.retry_after,  # then it is seen before it is to be counted
            repeated=limit.measure is Measure.SAME,
            where=self._where,
            place=limit.place,
        )

    def note_end(self, context: EventContext, size: int, seconds: float) -> None:
        """Count the bytes of the response to a call, and how long it took."""
        self.table.note_end(_names(self._groups, context), size, seconds, counted_call(context))


def counted_call(context: EventContext) -> CountedCall:
    """The call as limits tell it from others."""
    subagent = context.agent_state.agent_id if context.agent_state is not None else ""
    arguments = same_calls.compared(context.alias, context.arguments)
    return CountedCall(f"{context.session.server}/{context.tool}", arguments, subagent)


def _names(groups: HookGroups, context: EventContext) -> tuple[str, ...]:
    """All names of the tool in this call."""
    names = groups.own_names(context.tool)
    return (*names, *context.alias.names) if context.alias is not None else names


def _refuse_without_store(what: str, problem: StoreUnavailable, proceed: Proceed) -> Refuse:
    feedback = proceed.feedback
    return Refuse(what, str(problem), asked=proceed.asked, cause=RefusalCause.STORE_AWAY, feedback=feedback)
