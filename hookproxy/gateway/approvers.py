"""Who may answer which approval at a gateway.

Law: nobody approves a call that he has asked for himself, by whatever account or token. A name means the same user
everywhere, so names are compared as well as ids.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ..model.errors import UserError
from ..model.principal import Principal
from .roles import ROOT

if TYPE_CHECKING:
    from ..live.messages import Action, WaitingApproval
    from .gateway import Gateway

_OWN_CALL: Final = "You have asked for this call yourself: somebody else must allow it."


class GatewayApprovers:
    """As Approvers: those of the configuration in force."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def who(self, uid: int) -> Principal:
        """Raises UserError if nobody can say. The administrator is served in any case."""
        try:
            return await self._gateway.accounts.principal(uid)
        except UserError:
            if uid not in (ROOT, os.geteuid()):
                raise
            return Principal(f"uid:{uid}", str(uid), in_doubt=True)

    def why_not(self, person: Principal, approval: WaitingApproval, action: Action) -> str:
        """Whoever has asked for a call may at least deny it."""
        approvers = self._gateway.config.roles.approver
        if not self._gateway.rights_of(person).approves:
            return f"Only these may answer here: {', '.join(approvers) or 'root and the account of the gateway'}."
        asked = approval.user_id == person.id or approval.user == person.name
        return _OWN_CALL if approvers and asked and action != "deny" else ""
