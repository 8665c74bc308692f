"""Agents over HTTP: who sends a request, to which session it belongs, and what it gets where there is none.

Law: nothing acts on a request before its sender is known and its head and body are checked. A session belongs to the
user who opened it: for all others it does not exist. Its rules are those for the name and the groups that the user had
then, so it does not exist either for a token that gives the same user another name or other groups.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from time import perf_counter
from typing import TYPE_CHECKING, Final

from ..authorization.authenticate import Authenticator, Challenge, bearer_token
from ..authorization.resource_metadata import WELL_KNOWN, ProtectedResource, protected_resource
from ..config.gateway_models import SERVER_NAME
from ..model.credentials import NotReady
from ..model.errors import describe_error
from ..model.principal import Principal
from ..protocol.feedback import failed_call
from ..transports.http.agent_lines import TooManyRequests
from ..transports.http.agent_requests import (
    Accepted,
    Head,
    Rejected,
    Rules,
    allowed_hosts,
    allowed_origins,
    check_body,
    check_call,
    check_head,
    no_server,
    wrong_source,
)
from ..transports.http.agent_stream import JSON_HEADER
from ..transports.http.listener import Admitted
from ..transports.http.peers import network_of
from . import probes
from .gateway import BLOCKED, NotAdmitted
from .http_listeners import networks
from .http_refusals import HttpRefusals
from .http_senders import PREFIX, KnownHead, Senders
from .http_sessions import HttpSessions, NotServed
from .long_requests import Admissions, LongRequests
from .waiting_requests import LONGEST, WaitingRequests

if TYPE_CHECKING:
    import socket

    from anyio.abc import TaskGroup

    from ..session.proxy import Report
    from ..transports.http.listener import Admission
    from ..transports.http.request_reader import Request
    from ..transports.http.responder import Headers, Responder
    from .capacity import Claim
    from .gateway import Gateway
    from .http_listeners import HttpAddress

_NAME: Final = re.compile(SERVER_NAME.encode())
_WELL_KNOWN: Final = WELL_KNOWN.encode()
_TOO_MANY: Final = "Too many requests are in flight."
_TOO_MANY_CONNECTIONS: Final = "Too many connections are open. Use those that are open, or close some."
_RETRY_AFTER: Final = (b"retry-after", b"1")
_NO_ID: Final = b"null"
_MOST_PAGES: Final = 256  # pages of users that are kept: each takes 10 KB and, with many servers, 20 ms to make
_PAGES: Final = (b"/", b"/servers")
"""The landing page, and the same for programs: `landing`, which is imported when somebody asks for it."""


class _Servers:
    """What is at the addresses of the gateway: which requests are taken there, and what OAuth knows of the servers."""

    def __init__(self, gateway: Gateway, addresses: Sequence[HttpAddress]) -> None:
        self._gateway = gateway
        self._addresses = addresses
        self._rules_of: tuple[object, Rules] | None = None
        self._resources: dict[str, ProtectedResource] = {}
        self._pages_of: object = None
        self._pages: dict[tuple[Principal, bool], tuple[Headers, bytes]] = {}
        for name in gateway.config.servers:  # a scope or an address that cannot be in a header is an error now
            self.resource(name)

    @property
    def rules(self) -> Rules:
        """What requests must satisfy under the configuration in force."""
        config = self._gateway.config
        if self._rules_of is None or self._rules_of[0] is not config:
            hosts: set[bytes] = set()
            origins: set[bytes] = set()
            for address in self._addresses:
                hosts |= allowed_hosts(address.port, self._public_url, tls=address.tls)
                origins |= allowed_origins(address.port, self._public_url, tls=address.tls)
                if not address.is_loopback:
                    hosts.add(f"{address.host}:{address.port}".encode().lower())
            self._rules_of = config, Rules(frozenset(config.servers), frozenset(hosts), frozenset(origins))
        return self._rules_of[1]

    @property
    def _public_url(self) -> str:
        return self._gateway.config.gateway.public_url or ""

    @property
    def address(self) -> str:
        """Where agents reach the gateway."""
        return self._public_url or self._addresses[0].url

    def resource(self, name: str) -> ProtectedResource:
        """What OAuth knows of a server; of one that is not there as well, so that nobody learns which ones are."""
        if (known := self._resources.get(name)) is not None:
            return known
        oidc = self._gateway.config.gateway.oidc
        scopes = oidc.required_scopes if oidc is not None else ()
        issuer = oidc.issuer if oidc is not None else ""
        resource = protected_resource(self.address, name, issuer, scopes)
        if name in self._gateway.config.servers:
            self._resources[name] = resource
        return resource

    def page_for(self, user: Principal, accept: bytes) -> tuple[Headers, bytes]:
        """What there is for this user, in the form that the request accepts. It is made once for each policy."""
        from . import landing

        config, html = self._gateway.config, landing.wants_html(accept)
        if self._pages_of is not config or len(self._pages) >= _MOST_PAGES:
            self._pages_of, self._pages = config, {}
        if (page := self._pages.get((user, html))) is None:
            page = self._pages[user, html] = landing.respond(config, self.address, user, html=html)
        return page

    def respond_with_metadata(self, request: Request, responder: Responder) -> None:
        """Tell agents where to log in."""
        name = request.target.rpartition(b"/")[2]
        resource = self.resource(name.decode() if _NAME.fullmatch(name) else "")
        if request.method != b"GET" or not resource.metadata or request.target != resource.metadata_path.encode():
            responder.respond(404, [JSON_HEADER], failed_call(_NO_ID, "There is nothing here."))
        else:
            responder.respond(200, [JSON_HEADER], resource.metadata)


class HttpAgents:
    """Handles the requests of all listeners for HTTP.

    A request passes `handle` (is its way encrypted, and who sends it?), `_checked` (head and body) and `_serve`,
    which gives it to its session in `sessions`; `_refuse` is the way out of both. What a head says is kept beside its
    connection, so that a call with the same head takes the fast path of `_handle_call`.
    """

    def __init__(
        self,
        gateway: Gateway,
        authenticator: Authenticator,
        listening: Sequence[tuple[HttpAddress, socket.socket]],
        tasks: TaskGroup,
        report: Report,
    ) -> None:
        self._gateway = gateway
        self._authenticator = authenticator
        addresses = [address for address, _ in listening]
        self._servers = _Servers(gateway, addresses)
        is_open_to_all = all(address.tls or address.is_loopback for address in addresses)
        trusted = networks(gateway.config)
        self.senders = Senders(authenticator, self._servers.resource, trusted, is_open_to_all=is_open_to_all)
        table = gateway.config.gateway
        self._answers_probes = table.probes is None and not table.trusted_proxies  # else everybody is "this machine"
        self._tasks = tasks
        self._report = report
        self.sessions = HttpSessions(gateway, tasks, report)
        self._waiting = WaitingRequests(gateway, report)
        self.end_unused = self.sessions.end_unused  # both run until they are cancelled
        self.end_forbidden_streams = self.senders.open_streams.end_forbidden
        self.refusals = HttpRefusals(gateway, report, self.sessions.known)
        self._admit = Admissions(authenticator, self.senders, self.refusals, self._rejection_of_head, tasks).admit
        self.long = LongRequests(gateway, tasks, self.handle, self._handle_looked_at, self._refuse_long)

    @property
    def address(self) -> str:
        """Where agents reach the gateway."""
        return self._servers.address

    def admit(self, request: Request, decide: Callable[[Admission], None]) -> Admission | None:
        """As `listener.Admit`. Whoever answers an approval is known by the URL alone."""
        if self._answer_handler(request) is not None and not self.senders.is_in_the_clear(request):
            return Admitted(network_of(request.peer.address))
        return self._admit(request, decide)

    def _answer_handler(self, request: Request) -> Callable[[Request, Responder], None] | None:
        """What responds to the answer to an approval of which a webhook was told; None: it is something else."""
        feed = self._gateway.feed
        handler = None if feed is None else feed.answer_handler
        if handler is None:
            return None
        from ..approvals.answers import is_answer  # for such configurations only

        return handler if is_answer(request.target) else None

    def handle(self, request: Request, responder: Responder) -> None:
        """Handle one request; the response comes now or later."""
        known = request.notes.checked
        if isinstance(known, KnownHead):  # on this connection
            if self._handle_call(known, request.body, responder):
                return
            self._authenticate(known.token, request, responder, known.resource)
            return
        if self.senders.is_in_the_clear(request):
            self.refusals.in_the_clear(request)
            responder.close_after()
            responder.respond(403, [JSON_HEADER], failed_call(_NO_ID, "Use https."))
            return
        if self._respond_to_anybody(request, responder):
            return
        token, resource = self.senders.token_of(request)
        if request.target in _PAGES and self._refuses_page(token, request, responder):
            return
        self._authenticate(token, request, responder, resource)

    def _respond_to_anybody(self, request: Request, responder: Responder) -> bool:
        """Respond to a request that needs no token. False: it needs one."""
        if request.target in probes.PATHS and self._answers_probes and probes.may_ask(request):
            if (rejected := wrong_source(request.headers, self._servers.rules)) is not None:
                responder.respond(rejected.status, rejected.headers, rejected.body)
            else:
                probes.respond(self._gateway, request, responder)
        elif (handler := self._answer_handler(request)) is not None:
            handler(request, responder)
        elif request.target.startswith(_WELL_KNOWN):
            self._servers.respond_with_metadata(request, responder)
        else:
            return False
        return True

    def _refuses_page(self, token: bytes | Challenge, request: Request, responder: Responder) -> bool:
        """Respond to a request for the landing page that needs no look at the token. False: it needs one."""
        from . import landing

        if (rejected := wrong_source(request.headers, self._servers.rules)) is not None:
            responder.respond(rejected.status, rejected.headers, rejected.body)
        elif request.method not in (b"GET", b"HEAD"):
            responder.respond(405, ((b"allow", b"GET, HEAD"), *landing.JSON_HEADERS), b"")
        elif (
            isinstance(token, Challenge)
            and token.status == HTTPStatus.UNAUTHORIZED
            and request.target == landing.FORM_PATH
            and landing.wants_html(_header(request, b"accept"))
        ):
            responder.respond(200, landing.HTML_HEADERS, landing.form())
        else:
            return False
        return True

    def _handle_call(self, known: KnownHead, body: bytes, responder: Responder) -> bool:
        """The fast path for a call that nobody judges. False: nothing was done, and it must go the usual way."""
        head = known.head
        if not (head.is_of_session or head.called) or head.rules is not self._servers.rules:
            return False
        try:
            sender = self._authenticator.check_token_now(known.token, known.resource)
        except NotReady:
            return False
        if isinstance(sender, Challenge):
            return False
        session = self.sessions.session_of(head, sender)
        if session is None or session.load.has_unread:
            return False
        if self.long.waiting and (sender.id, head.session) in self.long.waiting:
            return False
        if session.load.requests >= self._gateway.config.gateway.max_requests:
            return False
        call = check_call(head, body, self._gateway.parameters_of)
        return call is not None and session.channel.post_call(call, responder)

    def _authenticate(
        self,
        token: bytes | Challenge,
        request: Request,
        responder: Responder,
        resource: ProtectedResource,
        *,
        is_looked_at: bool = False,
    ) -> None:
        try:
            sender = token if isinstance(token, Challenge) else self._authenticator.check_token_now(token, resource)
        except NotReady:
            assert isinstance(token, bytes)
            later = partial(self._authenticate_later, token, request, responder, resource, is_looked_at=is_looked_at)
            self._tasks.start_soon(later)
            return
        self._handle_from(sender, request, responder, is_looked_at=is_looked_at)

    async def _authenticate_later(
        self, token: bytes, request: Request, responder: Responder, resource: ProtectedResource, *, is_looked_at: bool
    ) -> None:
        try:
            sender = await self._authenticator.check(token, resource)
            self._handle_from(sender, request, responder, is_looked_at=is_looked_at)
        except Exception as defect:  # the boundary of one request
            self._report(f"a request could not be handled: {describe_error(defect)}")
            responder.respond(500)

    def _handle_from(
        self, sender: Principal | Challenge, request: Request, responder: Responder, *, is_looked_at: bool
    ) -> None:
        if isinstance(sender, Challenge):
            self.refusals.challenged(sender, self.senders.address_of(request))
            if not self.senders.is_proxy(request.peer.address):  # else the connection is that of others, too
                responder.close_after()
            responder.respond(sender.status, (JSON_HEADER, *sender.headers), failed_call(_NO_ID, sender.message))
            return
        if (barred := self._barred(sender, responder)) is not None:
            responder.close_after()
            self.refusals.rejected(sender, barred.reason)
            self._refuse(barred, request, sender, responder)
        elif request.target in _PAGES:
            responder.respond(200, *self._servers.page_for(sender, _header(request, b"accept")))
        elif is_looked_at or not self.long.takes(request, sender, responder):
            begun = perf_counter()
            self._handle_of(sender, request, responder)
            self.long.note_time(sender, len(request.body), perf_counter() - begun)

    def _barred(self, sender: Principal, responder: Responder) -> Rejected | None:
        """Why nothing of a known user is handled, on this connection at least; None: it is."""
        if self._gateway.blocked.blocks(sender):
            return _rejection(NotAdmitted(BLOCKED, "", HTTPStatus.FORBIDDEN), _NO_ID)
        if not responder.sent_by(sender.id):
            return _rejection(TooManyRequests(_TOO_MANY_CONNECTIONS), _NO_ID)
        return None

    def _handle_of(self, sender: Principal, request: Request, responder: Responder) -> None:
        """Handle a request of a known user now."""
        checked = self._checked(request, sender)
        if isinstance(checked, Rejected):
            self.refusals.rejected(sender, checked.reason)
        else:
            self._serve(checked, request, sender, responder)
            return
        self._refuse(checked, request, sender, responder)

    def _serve(
        self,
        accepted: Accepted,
        request: Request,
        sender: Principal,
        responder: Responder,
        claim: Claim | None = None,
        *,
        has_waited: bool = False,
    ) -> None:
        """Give a request to its session, or refuse it. Where there is no room for a new session, it waits once."""

        def refuse(problem: Exception) -> None:
            assert isinstance(problem, NotAdmitted | TooManyRequests | NotServed)
            self._refuse(_rejection(problem, accepted.id or _NO_ID), request, sender, responder)

        try:
            self.sessions.dispatch(accepted, sender, responder, claim)
        except (NotAdmitted, TooManyRequests, NotServed) as problem:
            may_wait = isinstance(problem, NotAdmitted) and problem.may_wait and len(request.body) <= LONGEST
            if not may_wait or has_waited:
                refuse(problem)
                return
            again = partial(self._serve, accepted, request, sender, responder, has_waited=True)
            self._tasks.start_soon(self._waiting.wait, accepted, sender, responder, again, refuse)

    def _rejection_of_head(self, request: Request, sender: Principal) -> Rejected | None:
        """Why the body of a request of a known user is not read. None: it is read."""
        server = self._gateway.config.servers.get(request.target.removeprefix(PREFIX).decode("latin-1"))
        if self._gateway.blocked.blocks(sender):
            rejected: Head | Rejected = _rejection(NotAdmitted(BLOCKED, "", HTTPStatus.FORBIDDEN), _NO_ID)
        elif server is not None and not server.allows(sender):
            rejected = no_server(request.headers, b"")
        elif self.sessions.requests_of(sender) >= self._gateway.config.gateway.max_requests:
            rejected = _rejection(TooManyRequests(), _NO_ID)
        else:
            rejected = check_head(request.method, request.target, request.headers, b"", self._servers.rules)
        return rejected if isinstance(rejected, Rejected) else None

    def _refuse(self, rejected: Rejected, request: Request, sender: Principal, responder: Responder) -> None:
        """The only place where a request of a known user is refused: no refusal leaves without its audit line."""
        self.refusals.write(rejected, request, sender)
        responder.respond(rejected.status, rejected.headers, rejected.body)

    def _checked(self, request: Request, sender: Principal) -> Accepted | Rejected:
        """What the request asks for. A head that was checked before under the same rules is not checked again.

        For those who may not use a server, it is as if the server were not there, whatever else is wrong.
        """
        known, rules = request.notes.checked, self._servers.rules
        server = self._gateway.config.servers.get(request.target.removeprefix(PREFIX).decode("latin-1"))
        if server is not None and not server.allows(sender):
            return no_server(request.headers, request.body)
        if isinstance(known, KnownHead) and known.head.rules is rules:
            return check_body(request.method, known.head, request.body, self._gateway.parameters_of)
        request.notes.checked = None
        head = check_head(request.method, request.target, request.headers, request.body, rules)
        if isinstance(head, Rejected):
            return head
        resource = self._servers.resource(head.server)
        token = bearer_token(request.headers, resource)
        if not isinstance(token, Challenge):
            request.notes.checked = KnownHead(head, resource, token)
        return check_body(request.method, head, request.body, self._gateway.parameters_of)

    # --- long requests ---

    def _handle_looked_at(self, request: Request, responder: Responder) -> None:
        """Handle a request that may be read. Its token may have been revoked while it waited."""
        token, resource = self.senders.token_of(request)
        self._authenticate(token, request, responder, resource, is_looked_at=True)

    def _refuse_long(self, rejected: Rejected, request: Request, sender: Principal, responder: Responder) -> None:
        self.refusals.rejected(sender, rejected.reason)
        self._refuse(rejected, request, sender, responder)


def _rejection(problem: NotAdmitted | TooManyRequests | NotServed, raw_id: bytes) -> Rejected:
    """The response to a request that cannot be served, or not now."""
    if isinstance(problem, NotServed):
        status, text = problem.status, str(problem)
    elif isinstance(problem, NotAdmitted):
        status, text = problem.reason, problem.message
    else:
        status, text = HTTPStatus.TOO_MANY_REQUESTS, str(problem) or _TOO_MANY
    is_for_now = status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
    headers = [JSON_HEADER] + [_RETRY_AFTER] * is_for_now
    return Rejected(status, headers, failed_call(raw_id, text), text, raw_id)


def _header(request: Request, name: bytes) -> bytes:
    return b", ".join(value for key, value in request.headers if key == name)
