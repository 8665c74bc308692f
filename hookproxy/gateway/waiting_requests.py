"""Requests over HTTP that open a session, and wait until there is room for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import Struct, field

from ..model.errors import describe_error
from ..transports.http.agent_lines import TooManyRequests
from ..transports.http.agent_requests import Era
from .gateway import NotAdmitted

if TYPE_CHECKING:
    from ..model.principal import Principal
    from ..session.proxy import Report
    from ..transports.http.agent_requests import Accepted
    from ..transports.http.responder import Responder
    from .capacity import Claim
    from .gateway import Gateway

LONGEST: Final = 64 * 1024
"""Bytes of a request that waits for room: `initialize` has some hundreds, and many may wait."""

_MOST_FOLLOWERS: Final = 31  # requests that wait for the session that another one opens; with it 2 MB

Dispatch = Callable[["Claim | None"], None]
"""Gives the request to its session, for which there is this room, or refuses it."""
Refuse = Callable[[Exception], None]
"""Refuses the request, because of NotAdmitted or TooManyRequests."""


class _Opening(Struct, eq=False):
    """A session of requests that stand alone, which waits for room."""

    over: anyio.Event = field(default_factory=anyio.Event)
    """It is opened, or refused."""
    followers: int = 0
    """Further requests that wait for it."""


class WaitingRequests:
    """Those of all users. Of the requests that stand alone of one user at one server, one waits for all."""

    def __init__(self, gateway: Gateway, report: Report) -> None:
        self._gateway = gateway
        self._report = report
        self._opening: dict[tuple[Principal, str], _Opening] = {}

    async def wait(
        self, accepted: Accepted, sender: Principal, responder: Responder, dispatch: Dispatch, refuse: Refuse
    ) -> None:
        """Wait with a request, and do what comes of it. It ends early if the agent is gone."""
        claim = None
        try:
            with anyio.CancelScope() as scope:
                responder.on_gone = scope.cancel
                try:
                    claim = await self._room(accepted, sender)
                except (NotAdmitted, TooManyRequests) as problem:
                    responder.on_gone = None
                    refuse(problem)
                    return
                responder.on_gone = None
                dispatch(claim)
        except Exception as defect:  # the boundary of one request
            self._report(f"a request could not be handled: {describe_error(defect)}")
            responder.respond(500)
        finally:
            if claim is not None and not claim.is_used:
                self._gateway.capacity.release(claim)

    async def _room(self, accepted: Accepted, sender: Principal) -> Claim | None:
        """Room for the session of a request; None: it may be there already. Raises NotAdmitted, TooManyRequests."""
        if accepted.era is not Era.STATELESS:
            return await self._gateway.wait_for_room(sender, accepted.server)
        key = sender, accepted.server
        if (opening := self._opening.get(key)) is not None:
            if opening.followers >= _MOST_FOLLOWERS:
                raise TooManyRequests
            opening.followers += 1
            await opening.over.wait()
            return None
        self._opening[key] = opening = _Opening()
        try:
            return await self._gateway.wait_for_room(sender, accepted.server)
        finally:
            del self._opening[key]
            opening.over.set()  # the others go on after this one, which opens the session without a pause
