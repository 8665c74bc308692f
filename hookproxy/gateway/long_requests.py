"""Requests of agents over HTTP that are long: who may send one is decided by its head, and when it is read, by turns.

Law: of a sender whom nobody knows, nothing is read beyond the head. What is read is counted for the user. A message of
more than 64 KiB is looked at by a process of its own first (`transports/long_messages`), one of each user at a time,
and all others of its session wait until then, so that they stay in order. While others use the gateway, the requests of
one user that are not short take a small part of the event loop's time: beyond it, the next one waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import anyio
import anyio.abc
from msgspec.structs import replace

from ..authorization.authenticate import Authenticator, Challenge
from ..model.credentials import NotReady
from ..model.errors import describe_error
from ..model.principal import Principal
from ..model.settings import MAX_DEPTH
from ..protocol.feedback import failed_call
from ..transports.http.agent_requests import STATELESS_VERSIONS, Rejected, unreadable
from ..transports.http.agent_stream import JSON_HEADER
from ..transports.http.listener import Admission, Admitted, HeadRefused
from ..transports.http.peers import HeldBytes
from ..transports.lines import LONG_BYTES
from . import probes
from .pace import MEDIUM_BYTES

if TYPE_CHECKING:
    from ..authorization.resource_metadata import ProtectedResource
    from ..transports.http.request_reader import Request
    from ..transports.http.responder import Responder
    from .gateway import Gateway
    from .http_refusals import HttpRefusals
    from .http_senders import Senders

_NO_ID: Final = b"null"
_STATELESS: Final = tuple((b"mcp-protocol-version", version.encode()) for version in STATELESS_VERSIONS)

_MOST_WAITING: Final = 64  # requests of a session that wait for a long one before them: agents send a few at once


class Admissions:
    """Decides whether the body of a request is read."""

    def __init__(
        self,
        authenticator: Authenticator,
        senders: Senders,
        refusals: HttpRefusals,
        rejection: Callable[[Request, Principal], Rejected | None],
        tasks: anyio.abc.TaskGroup,
    ) -> None:
        """`rejection` says why the body of a request of a known user is not read."""
        self._authenticator = authenticator
        self._senders = senders
        self._refusals = refusals
        self._rejection = rejection
        self._tasks = tasks

    def admit(self, request: Request, decide: Callable[[Admission], None]) -> Admission | None:
        """As `Admit` of the listener."""
        if self._senders.is_in_the_clear(request):
            self._refusals.in_the_clear(request)
            return _refused(403, "Use https.")
        if request.target in probes.PATHS:
            return _refused(400, "A request for this path has no body.")
        token, resource = self._senders.token_of(request)
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
            self._refusals.challenged(sender, self._senders.address_of(request))
            return HeadRefused(sender.status, (JSON_HEADER, *sender.headers), failed_call(_NO_ID, sender.message))
        if _is_short(request):  # it is refused as if it had come whole, and its connection stays
            return Admitted(sender.id)
        if (rejected := self._rejection(request, sender)) is not None:
            self._refusals.rejected(sender, rejected.reason)
            self._refusals.write(rejected, request, sender)
            return HeadRefused(rejected.status, rejected.headers, rejected.body)
        return Admitted(sender.id)


_Key = tuple[str, str]


class LongRequests:
    """Requests that are not handled at once."""

    def __init__(
        self,
        gateway: Gateway,
        tasks: anyio.abc.TaskGroup,
        begin: Callable[[Request, Responder], None],
        handle: Callable[[Request, Responder], None],
        refuse: Callable[[Rejected, Request, Principal, Responder], None],
    ) -> None:
        """`begin` handles a request as if it had just come, `handle` one that may be read: is its token still valid?"""
        self._gateway = gateway
        self._tasks = tasks
        self._begin = begin
        self._handle = handle
        self._refuse = refuse
        self.held = HeldBytes(0, 0)
        """Where the listener counts what is not handled yet."""
        self.waiting: dict[_Key, deque[tuple[Request, Responder]]] = {}
        """Requests behind a long one, by their sender and the id of the session."""

    def takes(self, request: Request, sender: Principal, responder: Responder) -> bool:
        """True: the request is handled later, because it is long, or comes after one that is."""
        session = next((value for name, value in request.headers if name == b"mcp-session-id"), b"").decode("latin-1")
        key = sender.id, session
        if self.waiting and (queue := self.waiting.get(key)) is not None:
            if len(queue) >= _MOST_WAITING:
                responder.respond(429, [JSON_HEADER, (b"retry-after", b"1")], failed_call(_NO_ID, _TOO_MANY_WAIT))
            else:
                queue.append((request, responder))
            return True
        size = _size(request)
        if not request.pieces and (size < MEDIUM_BYTES or not self._gateway.delay(sender.id)):
            return False
        if session:
            self.waiting[key] = deque()
        self.held.change(sender.id, size)
        self._tasks.start_soon(self._read, key, request, sender, responder)
        return True

    def note_time(self, sender: Principal, size: int, seconds: float) -> None:
        """A request of this size has taken so long of the event loop."""
        if size >= MEDIUM_BYTES:
            self._gateway.pace.spend(sender.id, seconds)

    async def _read(self, key: _Key, request: Request, sender: Principal, responder: Responder) -> None:
        why = ""
        try:
            if request.pieces:
                why = await self._gateway.long_messages.why_refused(sender.id, request.pieces, MAX_DEPTH)
            await anyio.sleep(self._gateway.delay(sender.id))
            if why:
                self._refuse(unreadable(why), request, sender, responder)
            elif responder.is_open or not any(header in request.headers for header in _STATELESS):
                self._handle(_joined(request), responder)  # else it is cancelled: its sender is gone
        except Exception as defect:  # the boundary of one request
            responder.respond(500, [JSON_HEADER], failed_call(_NO_ID, f"hookproxy failed: {describe_error(defect)}"))
        finally:
            self.held.change(sender.id, -_size(request))
            for waiting in self.waiting.pop(key, ()):  # a long one among them lets those after it wait again
                self._begin(*waiting)


def _size(request: Request) -> int:
    return len(request.body) + sum(map(len, request.pieces))


def _joined(request: Request) -> Request:
    return replace(request, body=b"".join(request.pieces), pieces=()) if request.pieces else request


_TOO_MANY_WAIT: Final = "Too many requests of this session wait for a long one."


def _is_short(request: Request) -> bool:
    """Whether its body will be short; one in chunks may be long."""
    length = dict(request.headers).get(b"content-length", b"")
    return length.isdigit() and int(length) < LONG_BYTES


def _refused(status: int, message: str) -> HeadRefused:
    return HeadRefused(status, [JSON_HEADER], failed_call(_NO_ID, message))
