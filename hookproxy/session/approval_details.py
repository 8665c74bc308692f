"""A call that needs a person's approval, as each way of asking shows it, and what became of the approval."""

from __future__ import annotations

from time import time
from typing import Final

from msgspec import Raw, Struct

from ..hooks.evaluate import Hooks
from ..live.messages import Action, GivenAnswer, WaitingApproval
from ..model.decision import ApprovalRequest
from ..model.hooks import EventContext
from ..model.settings import Settings
from ..policy import decide
from ..protocol import approval_messages
from ..protocol.approval_messages import Approval

_APPROVALS: Final[dict[Action, Approval]] = {
    "allow": Approval.ONCE,
    "allow_similar": Approval.SIMILAR,
    "allow_session": Approval.SESSION,
    "deny": Approval.NO,
}
_ACTIONS: Final = {approval: action for action, approval in _APPROVALS.items()}


class ApprovalResult(Struct, frozen=True):
    """What became of an approval request."""

    approval: Approval
    by: str = ""
    """Who has answered, and from where; empty: nobody has."""
    reason: str = ""
    """What the person says to the model."""
    arguments: bytes = b""
    """The arguments that the person allows in place of the call's own, normalised; empty: its own."""

    @property
    def action(self) -> str:
        """What was answered, as the audit has it; empty: nothing."""
        return _ACTIONS.get(self.approval, "") if self.by else ""

    @classmethod
    def of(cls, given: GivenAnswer | None) -> ApprovalResult:
        """What an answer means; None: nobody has answered in time."""
        if given is None:
            return cls(Approval.NOT_ANSWERED)
        answer = given.answer
        return cls(_APPROVALS[answer.action], given.by, answer.reason.strip(), given.arguments)


class ApprovalDetails(Struct, frozen=True):
    """All that can be said to a person about a call that needs approval."""

    server: str
    tool: str
    arguments: bytes
    """Normalised, as they will run; with placeholders for what the session hides."""
    request: ApprovalRequest
    similar: str = ""
    """The calls like this one, as a permission rule; empty: they are not offered."""
    place: str = ""
    """Where the rule that requires it is configured; empty: a hook does, or it is not known."""
    alias: str = ""
    """The tool's name for hooks, if it has an alias."""
    own_arguments: bytes = b""
    """As they will run, if something of them is hidden in `arguments`."""

    @classmethod
    def of(
        cls, server: str, context: EventContext, request: ApprovalRequest, hooks: Hooks, settings: Settings
    ) -> ApprovalDetails:
        """What can be said about a call before its event, for which somebody requires an approval."""
        places = decide.settings_for(settings, request).rule_places
        return cls(
            server,
            context.tool,
            context.arguments,
            request,
            "" if request.chains else hooks.similar_calls(context, request),
            places.get(f"ask {request.rule}", "") if request.rule else "",
            "" if context.alias is None else context.alias.name,
        )

    @property
    def message(self) -> str:
        """What an agent shows."""
        return approval_messages.message(self.server, self.tool, self.arguments, self.request, self.similar)

    @property
    def document(self) -> dict[str, object]:
        """What a prompter reads."""
        return approval_messages.prompter_document(self.server, self.tool, self.arguments, self.request)

    def waiting(self, seconds: float, *, masked: bool) -> WaitingApproval:
        """What people outside of the agent are shown for so many seconds. Whose call it is, others add.

        If it is masked, what could make an interpreter do something stays visible all the same: a person decides on it.
        """
        now, by, reason, arguments = time(), self.request.by, self.request.reason, self.arguments
        if masked:
            from ..secrets.mask import Masking

            masking = Masking(careful=True)
            arguments, reason = masking.json(arguments), masking.text(reason)
        named = ("", "", "", self.server, self.tool, Raw(arguments))
        more = (reason, by, now, now + seconds, self.alias, self.place)
        return WaitingApproval(*named, *more, similar=self.similar)
