"""Asks a person to approve a call: through the agent, or outside of it.

Law 1: only an explicit yes is an approval; silence, a failure or a late answer is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio
from msgspec import Struct, field
from msgspec.structs import replace

from ..hooks.session_events import SessionContext
from ..model.decision import ApprovalRequest
from ..model.settings import Settings
from ..protocol import approval_messages, calls, feedback
from ..protocol.actions import ApprovalAnswered
from ..protocol.approval_messages import Approval
from ..protocol.calls import Call
from ..protocol.handshake import Handshake, supports_forms
from .approval_details import ApprovalDetails, ApprovalResult
from .outside_approval import IN_AGENT, Asked, OutsideApproval

_MAX_PENDING: Final = 512  # requests at a time: nobody answers so many, and each keeps its call in memory
BY_AGENT: Final = "the agent's dialog (elicitation)"
"""Who has answered, if the agent has asked: nobody else knows."""


class _PendingApproval(Struct):
    call: Call
    answered: anyio.Event = field(default_factory=anyio.Event)
    result: bytes = b""


class Approvals:
    """Asks about calls; in the handshake era with a request of ours to the agent, which is kept while it is pending."""

    def __init__(self, session_context: SessionContext, handshake: Handshake) -> None:
        self._context = session_context
        self._handshake = handshake
        self._pending: dict[bytes, _PendingApproval] = {}
        principal = session_context.session.principal
        self.outside = OutsideApproval(session_context.report, "" if principal is None else principal.name)
        """The ways to ask without the agent."""

    def shown(self, approval: ApprovalDetails) -> ApprovalDetails:
        """The same without the secrets that the session hides: a person decides about where they go, not about them."""
        masks = self._context.masks
        if masks is None:
            return approval
        request = replace(approval.request, reason=masks.text(approval.request.reason))
        own, tool, similar = approval.arguments, masks.text(approval.tool), masks.text(approval.similar)
        return replace(
            approval, tool=tool, arguments=masks.json(own), own_arguments=own, request=request, similar=similar
        )

    def may_ask(self, call: Call, settings: Settings) -> bool:
        """The agent can ask the person about this call: the user, who may not approve it where others do."""
        if settings.approvers:
            return False
        if call.stateless:
            return supports_forms(call.meta.get(calls.CAPABILITIES_KEY))
        return self._handshake.supports_elicitation

    def has_fallback(self, request: ApprovalRequest | None, settings: Settings) -> bool:
        """The operator has a way to ask if the agent cannot; for a managed request, the administrator."""
        return self.outside.is_possible(request, settings)

    def waits_outside(self, request: ApprovalRequest | None, settings: Settings, *, agent_cannot: bool) -> bool:
        """As `OutsideApproval.waits`."""
        return self.outside.waits(request, settings, agent_cannot=agent_cannot)

    async def ask(self, call: Call, asked: Asked) -> ApprovalResult:
        """Ask outside of the agent or through it, and wait. On cancel, the request is withdrawn.

        A stateless call is never asked about through the agent here: its response asks.
        """
        request, settings = asked.details.request, asked.settings
        can_ask = self.may_ask(call, settings)
        if not can_ask or self.waits_outside(request, settings, agent_cannot=False):
            result = await self.outside.ask(asked, call, agent_cannot=not can_ask)
            if call.stateless or not can_ask or result.approval is not Approval.NOT_ASKED:
                return result
        self.tell(asked)
        details = asked.details
        return await self._ask_agent(call, details.message, bool(details.similar))

    def tell(self, asked: Asked) -> None:
        """Show a notification, if one is configured, that the agent asks."""
        if asked.layer.approvals.desktop:
            self._context.spawn(self.outside.tell, asked, IN_AGENT)

    async def _ask_agent(self, call: Call, message: str, offers_similar: bool) -> ApprovalResult:
        """`offers_similar`: the person may allow calls like this one."""
        if len(self._pending) >= _MAX_PENDING:
            self._context.report(f"a call is denied because {_MAX_PENDING} approval requests wait for the person")
            return ApprovalResult(Approval.NOT_ASKED)
        raw_id = calls.new_id()
        key, pending = calls.id_key(raw_id), _PendingApproval(call)
        self._pending[key] = pending
        self._context.to_agent(feedback.approval_elicitation(raw_id, message, offers_similar))
        try:
            await pending.answered.wait()
        except anyio.get_cancelled_exc_class():
            self._context.to_agent(feedback.approval_cancelled(raw_id))
            raise
        finally:
            del self._pending[key]
        return by_agent(approval_messages.read_approval(pending.result))

    @property
    def waiting_calls(self) -> list[Call]:
        """The calls that wait for an answer of the agent: none will come when its input has ended."""
        return [pending.call for pending in self._pending.values() if not pending.answered.is_set()]

    def give_up(self, waiting: Sequence[Call]) -> None:
        """Nobody will answer about these."""
        for pending in self._pending.values():
            if pending.call in waiting:
                pending.answered.set()

    def resolve(self, answer: ApprovalAnswered) -> None:
        """Take the agent's answer; one that comes too late, or again, has no effect."""
        pending = self._pending.get(answer.key)
        if pending is not None and not pending.answered.is_set():
            pending.result = answer.result
            pending.answered.set()


def by_agent(approval: Approval) -> ApprovalResult:
    """What the agent has brought back from the person."""
    return ApprovalResult(approval, "" if approval is Approval.NOT_ANSWERED else BY_AGENT)
