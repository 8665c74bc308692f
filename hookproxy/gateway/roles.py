"""What somebody may do at the gateway beside using its servers. Pure."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ..model.principal import Principal

if TYPE_CHECKING:
    from ..config.gateway_models import Roles

ROOT: Final = 0
"""Its user id."""


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
    is_administrator = user.id in (f"uid:{ROOT}", f"uid:{os.geteuid()}")
    may_approve = user.is_among(roles.approver) if roles.approver else is_administrator
    if is_blocked:
        return Rights(is_administrator, is_administrator)
    return Rights(
        is_administrator or user.is_among(roles.operator), is_administrator or user.is_among(roles.auditor), may_approve
    )
