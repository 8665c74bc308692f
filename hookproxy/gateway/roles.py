"""What somebody may do at the gateway beside using its servers: the roles, and who may answer which approval.

Law: nobody approves a call that he has asked for himself, by whatever account or token. A name means the same user
everywhere, so names are compared as well as ids.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ..model.errors import UserError
from ..model.principal import Principal

if TYPE_CHECKING:
    from ..config.gateway_models import Roles
    from ..live.messages import Action, WaitingApproval
    from .gateway import Gateway

_ROOT: Final = 0  # the user id
_OWN_CALL: Final = "You have asked for this call yourself: somebody else must allow it."


class Rights(Struct, frozen=True):
    """The roles of one user."""

    operates: bool = False
    """Lists and ends sessions, blocks users, reloads."""
    audits: bool = False
    """Reads the audit, and sees all calls on a console."""
    approves: bool = False
    """Answers approvals: those of others, where the file names approvers."""

    def __bool__(self) -> bool:
        """Whether there is any."""
        return self.operates or self.audits or self.approves


def rights_of(user: Principal, roles: Roles, *, is_blocked: bool) -> Rights:
    """The roles of a user. Root and the gateway's own account have all of them, but approve calls only if they are
    named, where somebody is. Who is blocked has none: else an operator could allow himself again.
    """
    is_administrator = user.id in (f"uid:{_ROOT}", f"uid:{os.geteuid()}")
    may_approve = user.is_among(roles.approver) if roles.approver else is_administrator
    if is_blocked:
        return Rights(is_administrator, is_administrator)
    return Rights(
        is_administrator or user.is_among(roles.operator), is_administrator or user.is_among(roles.auditor), may_approve
    )


class GatewayApprovers:
    """As Approvers: those of the configuration in force."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def who(self, uid: int) -> Principal:
        """Raises UserError if nobody can say. The administrator is served in any case."""
        try:
            return await self._gateway.accounts.principal(uid)
        except UserError:
            if uid not in (_ROOT, os.geteuid()):
                raise
            return Principal(f"uid:{uid}", str(uid), in_doubt=True)

    def why_not(self, person: Principal, approval: WaitingApproval, action: Action) -> str:
        """Whoever has asked for a call may at least deny it."""
        approvers = self._gateway.config.roles.approver
        if not self._gateway.rights_of(person).approves:
            return f"Only these may answer here: {', '.join(approvers) or 'root and the account of the gateway'}."
        asked = approval.user_id == person.id or approval.user == person.name
        return _OWN_CALL if approvers and asked and action != "deny" else ""
