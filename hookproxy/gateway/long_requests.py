"""Requests of agents over HTTP that are too long to come whole at once: who may send one is decided by its head.

Law: of a sender whom nobody knows, nothing is read beyond the head. What is read is counted for the user.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from ..authorization.authenticate import Authenticator, Challenge
from ..model.credentials import NotReady
from ..model.errors import describe_error
from ..model.principal import Principal
from ..protocol.feedback import failed_call
from ..transports.http.agent_stream import JSON_HEADER
from ..transports.http.listener import Admission, Admitted, HeadRefused
from . import probes

if TYPE_CHECKING:
    import anyio.abc

    from ..authorization.resource_metadata import ProtectedResource
    from ..transports.http.agent_requests import Rejected
    from ..transports.http.request_reader import Request
    from .gateway import Gateway

_NO_ID: Final = b"null"


class _Agents(Protocol):
    """What is known of requests by their heads."""

    def is_in_the_clear(self, request: Request) -> bool: ...
    def token_of(self, request: Request) -> tuple[bytes | Challenge, ProtectedResource]: ...
    def note_challenge(self, challenge: Challenge, request: Request) -> None: ...
    def rejected_head(self, request: Request, sender: Principal) -> Rejected | None: ...


class Admissions:
    """Decides whether the body of a request is read."""

    def __init__(
        self, gateway: Gateway, authenticator: Authenticator, agents: _Agents, tasks: anyio.abc.TaskGroup
    ) -> None:
        self._gateway = gateway
        self._authenticator = authenticator
        self._agents = agents
        self._tasks = tasks

    def admit(self, request: Request, decide: Callable[[Admission], None]) -> Admission | None:
        """As `Admit` of the listener."""
        if self._agents.is_in_the_clear(request):
            return _refused(403, "Use https.")
        if request.target in probes.PATHS:
            return _refused(400, "A request for this path has no body.")
        token, resource = self._agents.token_of(request)
        if isinstance(token, Challenge):
            return self._decision(token, request)
        try:
            return self._decision(self._authenticator.check_token_now(token, resource), request)
        except NotReady:
            self._tasks.start_soon(self._decide_later, token, resource, request, decide)
            return None

    async def _decide_later(
        self, token: bytes, resource: ProtectedResource, request: Request, decide: Callable[[Admission], None]
    ) -> None:
        try:
            decide(self._decision(await self._authenticator.check(token, resource), request))
        except Exception as defect:  # the boundary of one request
            decide(_refused(500, f"The gateway has failed: {describe_error(defect)}"))

    def _decision(self, sender: Principal | Challenge, request: Request) -> Admission:
        if isinstance(sender, Challenge):
            self._agents.note_challenge(sender, request)
            return HeadRefused(sender.status, (JSON_HEADER, *sender.headers), failed_call(_NO_ID, sender.message))
        if (rejected := self._agents.rejected_head(request, sender)) is not None:
            return HeadRefused(rejected.status, rejected.headers, rejected.body)
        return Admitted(sender.id)


def _refused(status: int, message: str) -> HeadRefused:
    return HeadRefused(status, [JSON_HEADER], failed_call(_NO_ID, message))
