"""Asks a person about an agent's own call, where the agent cannot, or where the configuration prefers a console.

The agent waits for its hook only so long: then the call must be refused, in words that the agent reads (law 3). So a
person is asked for less time than that; whoever answers later learns that it was too late.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ..audit.call_record import Record
from ..audit.log import Audit
from ..dialects.agent_side import AgentSide, Can
from ..hooks import rewrites
from ..hooks.evaluate import Hooks
from ..jsonrpc import raw_json
from ..live.messages import WaitingApproval
from ..model.decision import Decision, Proceed
from ..model.hooks import EventContext
from ..model.settings import Settings
from ..policy import decide
from ..protocol.approval_messages import Approval
from ..protocol.calls import Call
from ..session.approval_answer import AnsweredCall, Judged
from ..session.approval_details import ApprovalDetails, ApprovalResult
from ..session.outside_approval import IN_AGENT, Asked, CheckEdit, OutsideApproval
from .entries import patience

if TYPE_CHECKING:
    import anyio.abc

    from ..session.live_feed import LiveFeed

_SHARE: Final = 0.8  # of the time that the agent waits: its client gives up at 0.9, and the answer must come before
_LEAST_SECONDS: Final = 0.01  # if hooks have taken all of the time: nobody answers so fast


class NativeCall(Struct, frozen=True):
    """A call of an agent that is being judged."""

    side: AgentSide
    hooks: Hooks
    call: Call
    record: Record
    started: float
    """By the monotonic clock."""
    may_be_edited: bool
    """It is all that its event is about."""


class GuardApprovals:
    """The ways to ask, for all sessions under one configuration."""

    def __init__(
        self,
        settings: Settings,
        audit: Audit,
        tasks: anyio.abc.TaskGroup,
        report: Callable[[str], None],
        feed: LiveFeed | None = None,
    ) -> None:
        """`feed` is what consoles see; None: there are none. `tasks` shows notifications of the desktop.

        Raises UserError if a secret that is needed to report approvals to people cannot be read.
        """
        if feed is not None:
            feed.prepare(settings)
        self._settings = settings
        self._tasks = tasks
        self._report = report
        self._outside = OutsideApproval(report)
        if feed is not None:
            from ..session.live_feed import FeedApprovals  # it is there already: the feed is of this module

            self._outside.approvals = FeedApprovals(feed, partial(_named, audit))

    async def decide(self, native: NativeCall, decision: Decision, context: EventContext) -> Judged:
        """The decision with a person's answer, if the agent cannot ask or a console is preferred.

        A decision with an approval request is for the agent to ask. On cancel, the request is withdrawn.
        """
        request = decision.approval_request if isinstance(decision, Proceed) else None
        if not isinstance(decision, Proceed) or request is None:
            return Judged(decision, context)
        can_ask, settings = Can.ASK in native.side.can, self._settings
        decision = decide.without_person(decision, settings, can_ask or self._outside.is_possible(request, settings))
        if not isinstance(decision, Proceed) or decision.approval_request is None:
            return Judged(decision, context)
        native.record.asked_by = request.by
        result = ApprovalResult(Approval.NOT_ASKED)
        if not can_ask or self._outside.waits(request, settings, agent_cannot=False):
            result = await self._ask(native, decision, context)
        if can_ask and result.approval is Approval.NOT_ASKED:
            self._tasks.start_soon(self._outside.tell, self._asked(native, decision, context), IN_AGENT)
            return Judged(decision, context)
        answered = AnsweredCall(native.hooks, native.record, self._report, approvers=settings.approvers)
        return await answered.decide(result, decision, context, partial(self._ask, native))

    async def _ask(self, native: NativeCall, proceed: Proceed, context: EventContext) -> ApprovalResult:
        cannot = Can.ASK not in native.side.can
        return await self._outside.ask(self._asked(native, proceed, context), native.call, agent_cannot=cannot)

    def _asked(self, native: NativeCall, proceed: Proceed, context: EventContext) -> Asked:
        assert proceed.approval_request is not None
        details = ApprovalDetails.of(
            context.session.server, context, proceed.approval_request, native.hooks, self._settings
        )
        left = patience(native.side) * _SHARE - (monotonic() - native.started)
        return Asked(
            details,
            native.hooks,
            self._settings,
            _check_edit(native, context, self._settings),
            max(left, _LEAST_SECONDS),
        )


def _check_edit(native: NativeCall, context: EventContext, settings: Settings) -> CheckEdit | None:
    side = native.side
    if not (native.may_be_edited and Can.REWRITE in side.can):
        return None

    async def check(arguments: bytes) -> None:
        rewrites.check(context, arguments, settings.max_depth)
        removed = raw_json.fields(native.record.arguments).keys() - raw_json.fields(arguments).keys()
        if side.merges and removed:
            raise ValueError(f"{side.name} does not let hooks remove arguments, such as {min(removed)!r}")

    return check


def _named(audit: Audit, approval: WaitingApproval, call: Call | None) -> WaitingApproval:
    """The approval with its call, and with the session and the agent of that."""
    for key, (record, other, _) in audit.in_flight.items() if call is not None else ():
        if other is call:
            return replace(approval, call=key, session=record.session, agent=record.agent)
    return approval
