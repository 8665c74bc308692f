"""Looks again and again at the users of open sessions: whoever has other groups, or no token any more, notices soon."""

from __future__ import annotations

import traceback
from time import time
from typing import TYPE_CHECKING, Final

import anyio

from ..model.errors import UserError
from ..model.principal import Principal
from .approvers import GatewayApprovers

if TYPE_CHECKING:
    from ..authorization.bearer_tokens import BearerTokens
    from ..session.live_feed import Viewer
    from ..session.proxy import Report
    from .gateway import Gateway

_LOOK_SECONDS: Final = 2.5
"""Between two looks: with a look-up that takes long (3 seconds), and one whose answer still counts (2), a change is in
force within 10 seconds."""

_ACCOUNT: Final = "uid:"  # before the number in the id of a principal that the kernel names
_NO_TOKEN: Final = "the session ends, because no token in force is this user's with these groups"


class UserWatch:
    """The users of all open sessions."""

    def __init__(self, gateway: Gateway, report: Report) -> None:
        self._gateway = gateway
        self._report = report

    async def watch(self) -> None:
        """Look again and again. Runs until it is cancelled."""
        while True:
            await anyio.sleep(_LOOK_SECONDS)
            try:
                await self.look()
            except Exception as defect:  # the sessions go on, and the next look comes
                self._report("".join(traceback.format_exception(defect)).rstrip())

    async def look(self) -> None:
        """Let what has changed hold for open sessions."""
        users = {session.identity.principal.id: session.identity.principal for session in self._gateway.sessions}
        async with anyio.create_task_group() as tasks:
            for user in users.values():
                if user.id.startswith(_ACCOUNT):
                    tasks.start_soon(self._look_at_account, user)
            if (feed := self._gateway.feed) is not None:
                tasks.start_soon(feed.end_forbidden, self._may_look)
        if (tokens := self._gateway.tokens) is not None:
            tokens.refresh()
            self._end_without_token(tokens)
        now = time()
        for session in self._gateway.sessions:
            session.note_use(now)

    async def _look_at_account(self, user: Principal) -> None:
        try:
            now = await self._gateway.accounts.principal(int(user.id.removeprefix(_ACCOUNT)))
        except UserError:  # nobody can say now, and nothing is known from before
            now = Principal(user.id, user.name, user.groups, in_doubt=True)
        self._gateway.change_user(now)

    async def _may_look(self, viewer: Viewer) -> bool:
        """Whether somebody who has a console open may still see what it shows."""
        try:
            rights = self._gateway.rights_of(await GatewayApprovers(self._gateway).who(viewer.uid))
        except UserError:
            return False
        return rights.audits if viewer.sees_calls else rights.audits or rights.approves

    def _end_without_token(self, tokens: BearerTokens) -> None:
        """End the sessions of users whose tokens were revoked, or have other groups now."""
        in_force = tokens.users_in_force()
        for session in list(self._gateway.sessions):
            user = session.identity.principal
            if tokens.knows_users_like(user) and user not in in_force:
                session.end(_NO_TOKEN)
