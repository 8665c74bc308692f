"""Who has sent a request over HTTP: whether its way was encrypted, its token, and whether that is in force still."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ..authorization.authenticate import Authenticator, Challenge, bearer_token
from ..authorization.resource_metadata import ProtectedResource
from ..config.gateway_models import SERVER_NAME
from ..model.credentials import NotReady
from ..model.principal import Principal
from ..transports.http.agent_requests import Head
from .http_listeners import Network, client_address, is_proxy, is_trusted
from .open_streams import OpenStreams

if TYPE_CHECKING:
    from ..transports.http.request_reader import HeadNotes, Request
    from ..transports.http.responder import Responder

PREFIX: Final = b"/mcp/"
_NAME: Final = re.compile(SERVER_NAME.encode())


class KnownHead(Struct, frozen=True):
    """What a head says that was checked. Its token must be in force at each request."""

    head: Head
    resource: ProtectedResource
    token: bytes


class Senders:
    """Finds out who sends requests, and ends the streams of those who may not have them any more."""

    def __init__(
        self,
        authenticator: Authenticator,
        resource: Callable[[str], ProtectedResource],
        trusted: Sequence[Network],
        *,
        is_open_to_all: bool,
    ) -> None:
        """`resource` says what OAuth knows of a server. `is_open_to_all`: none is for proxies that encrypt alone."""
        self._authenticator = authenticator
        self._resource = resource
        self._trusted = trusted
        self._is_open_to_all = is_open_to_all
        self.open_streams = OpenStreams()

    def is_in_the_clear(self, request: Request) -> bool:
        """Whether others could have read the request: it came neither with TLS nor through a proxy that has TLS."""
        is_safe = self._is_open_to_all or request.peer.is_tls or is_trusted(request.peer.address, self._trusted)
        return not is_safe

    def is_proxy(self, address: str) -> bool:
        """Whether connections from there bring the requests of many."""
        return bool(self._trusted) and is_proxy(address, self._trusted)

    def address_of(self, request: Request) -> str:
        """Who has sent it, as far as addresses say."""
        return client_address(request, self._trusted)

    def token_of(self, request: Request) -> tuple[bytes | Challenge, ProtectedResource]:
        """The token of a request, or what its sender must do, and the server that it is for."""
        known = request.notes.checked
        if isinstance(known, KnownHead):
            return known.token, known.resource
        before, prefix, name = request.target.partition(PREFIX)
        resource = self._resource(name.decode() if prefix and not before and _NAME.fullmatch(name) else "")
        return bearer_token(request.headers, resource), resource

    def watch(self, notes: HeadNotes, responder: Responder) -> None:
        """A stream has begun: end it when the token of its request is no longer in force."""
        known = notes.checked
        if isinstance(known, KnownHead):
            try:
                sender = self._authenticator.check_token_now(known.token, known.resource)
            except NotReady:
                sender = None
            user = sender if isinstance(sender, Principal) else None
            self.open_streams.add(responder, partial(self._may_stay, known.token, known.resource, user))

    def _may_stay(self, token: bytes, resource: ProtectedResource, user: Principal | None) -> bool:
        """Whether a stream may stay open. What cannot be known now ends nothing."""
        try:
            sender = self._authenticator.check_token_now(token, resource)
        except NotReady:
            return True
        if isinstance(sender, Challenge):
            return sender.status == HTTPStatus.SERVICE_UNAVAILABLE
        return user is None or sender == user
