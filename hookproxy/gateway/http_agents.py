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

import anyio
from msgspec import Struct

from ..audit.call_record import RefusedMessage
from ..authorization.authenticate import Authenticator, Challenge, bearer_token
from ..authorization.resource_metadata import WELL_KNOWN, ProtectedResource, protected_resource
from ..config.gateway_models import SERVER_NAME
from ..model.credentials import NotReady
from ..model.errors import UserError, describe_error
from ..model.principal import Principal
from ..protocol.feedback import failed_call
from ..transports.http import messages
from ..transports.http.agent_channel import AgentChannel
from ..transports.http.agent_lines import TooManyRequests
from ..transports.http.agent_requests import (
    Accepted,
    Era,
    Head,
    Kind,
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
from ..transports.http.stateless_channel import StatelessChannel
from ..transports.user_load import UserLoad
from . import probes
from .gateway import BLOCKED, NotAdmitted
from .http_listeners import networks
from .http_refusals import HttpRefusals
from .http_senders import PREFIX, KnownHead, Senders
from .long_requests import Admissions, LongRequests
from .session import GatewaySession, new_session_id
from .unused_sessions import UnusedSessions
from .waiting_requests import LONGEST, WaitingRequests

if TYPE_CHECKING:
    import socket

    from anyio.abc import TaskGroup

    from ..session.proxy import Report
    from ..transports.http.request_reader import Request
    from ..transports.http.responder import Headers, Responder
    from .capacity import Claim
    from .gateway import Gateway
    from .http_listeners import HttpAddress

_NAME: Final = re.compile(SERVER_NAME.encode())
_WELL_KNOWN: Final = WELL_KNOWN.encode()
_NO_SESSION: Final = "There is no such session. Initialize a new one."
_MISSING_SESSION: Final = "The header Mcp-Session-Id is missing. Initialize a session first."
_TOO_MANY: Final = "Too many requests are in flight."
_TOO_MANY_CONNECTIONS: Final = "Too many connections are open. Use those that are open, or close some."
_UNREAD: Final = "Too much waits that your agents do not read. Read the responses to earlier requests first."
_RETRY_AFTER: Final = (b"retry-after", b"1")
_NO_ID: Final = b"null"
_MOST_PAGES: Final = 256  # pages of users that are kept: each takes 10 KB and, with many servers, 20 ms to make
_PAGES: Final = (b"/", b"/servers")
"""The landing page, and the same for programs: `landing`, which is imported when somebody asks for it."""
_UNUSED_SECONDS: Final = 30.0
"""After which a session that is not used makes room for another one of its user: an agent that lives comes back before,
or opens it again when it reads that it is gone."""


class _NotServed(Exception):
    """A request that is as it must be, and for which there is no session or no stream."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class _User(UserLoad):
    """What one user has open here."""

    __slots__ = ("sessions",)

    def __init__(self, most_unread: Callable[[], int], report: Callable[[str], None]) -> None:
        super().__init__(most_unread, report)
        self.sessions = 0


_Key = str | tuple[Principal, str]
"""The id of a session; or user and server, for all stateless requests of one user to one server."""


class _HttpSession(Struct, eq=False):
    """A session over HTTP, or all stateless requests of one user to one server."""

    key: _Key
    session: GatewaySession
    channel: AgentChannel | StatelessChannel
    load: UserLoad  # of the user

    def belongs_to(self, sender: Principal, server: str) -> bool:
        """For all others it does not exist. Other tokens of the user may have other groups, and so other rules."""
        return self.session.identity.principal == sender and self.session.server.name == server

    @property
    def idle_seconds(self) -> float:
        return self.session.server.table.idle_seconds

    @property
    def unused_since(self) -> float | None:
        return None if self.channel.in_use else self.channel.last_used


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

    A request passes `handle` (is its way encrypted, and who sends it?), `_checked` (head and body) and `_dispatch`,
    which gives it to its session in `_sessions`; `_refuse` is the way out of both. What a head says is kept beside its
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
        self._sessions: dict[_Key, _HttpSession] = {}
        self._users: dict[str, _User] = {}
        self._waiting = WaitingRequests(gateway, report)
        self._unused = UnusedSessions(self._end_unused)
        self.end_unused = self._unused.end_unused  # both run until they are cancelled
        self.end_forbidden_streams = self.senders.open_streams.end_forbidden
        self.refusals = HttpRefusals(gateway, report, self._known_session)
        self.admit = Admissions(authenticator, self.senders, self.refusals, self._rejection_of_head, tasks).admit
        self.long = LongRequests(gateway, tasks, self.handle, self._handle_looked_at, self._refuse_long)
        gateway.on_policy_change = self._unused.look_again
        gateway.make_room = self._make_room

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
        if request.target in probes.PATHS and self._answers_probes and probes.may_ask(request):
            if (rejected := wrong_source(request.headers, self._servers.rules)) is not None:
                responder.respond(rejected.status, rejected.headers, rejected.body)
            else:
                probes.respond(self._gateway, request, responder)
            return
        if request.target.startswith(_WELL_KNOWN):
            self._servers.respond_with_metadata(request, responder)
            return
        token, resource = self.senders.token_of(request)
        if request.target in _PAGES and self._refuses_page(token, request, responder):
            return
        self._authenticate(token, request, responder, resource)

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
        session = self._session_of(head, sender)
        if session is None or session.load.has_unread:
            return False
        if self.long.waiting and (sender.id, head.session) in self.long.waiting:
            return False
        if session.load.requests >= self._gateway.config.gateway.max_requests:
            return False
        call = check_call(head, body, self._gateway.parameters_of)
        return call is not None and session.channel.post_call(call, responder)

    def _session_of(self, head: Head, sender: Principal) -> _HttpSession | None:
        """The session to which a request with this head belongs; None: there is none that the sender may use."""
        if not head.called:
            return self._find(head.session or "", sender, head.server)
        is_allowed = self._gateway.config.servers[head.server].allows(sender)
        return self._find((sender, head.server), sender, head.server) if is_allowed else None

    def _find(self, key: _Key, sender: Principal, server: str) -> _HttpSession | None:
        session = self._sessions.get(key)
        if session is None or not session.belongs_to(sender, server):
            return None
        if session.channel.has_ended or session.session.is_ending:  # it is about to be forgotten
            return None
        return session

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
            assert isinstance(problem, NotAdmitted | TooManyRequests | _NotServed)
            self._refuse(_rejection(problem, accepted.id or _NO_ID), request, sender, responder)

        try:
            self._dispatch(accepted, sender, responder, claim)
        except (NotAdmitted, TooManyRequests, _NotServed) as problem:
            may_wait = isinstance(problem, NotAdmitted) and problem.may_wait and len(request.body) <= LONGEST
            if not may_wait or has_waited:
                refuse(problem)
                return
            again = partial(self._serve, accepted, request, sender, responder, has_waited=True)
            self._tasks.start_soon(self._waiting.wait, accepted, sender, responder, again, refuse)

    def _make_room(self, user: Principal) -> None:
        """End the session of this user that was not used for the longest time."""
        now = anyio.current_time()
        unused = [
            (since, session)
            for session in self._sessions.values()
            if session.session.identity.principal.id == user.id and (since := session.unused_since) is not None
        ]
        since, longest = min(unused, key=lambda one: one[0], default=(now, None))
        if longest is not None and now - since >= _UNUSED_SECONDS:
            longest.session.report("the session ends: nobody has used it, and its user needs room for another one")
            self._unused.discard(longest)
            self._end_unused(longest)

    def _rejection_of_head(self, request: Request, sender: Principal) -> Rejected | None:
        """Why the body of a request of a known user is not read. None: it is read."""
        server = self._gateway.config.servers.get(request.target.removeprefix(PREFIX).decode("latin-1"))
        user = self._users.get(sender.id)
        if self._gateway.blocked.blocks(sender):
            rejected: Head | Rejected = _rejection(NotAdmitted(BLOCKED, "", HTTPStatus.FORBIDDEN), _NO_ID)
        elif server is not None and not server.allows(sender):
            rejected = no_server(request.headers, b"")
        elif user is not None and user.requests >= self._gateway.config.gateway.max_requests:
            rejected = _rejection(TooManyRequests(), _NO_ID)
        else:
            rejected = check_head(request.method, request.target, request.headers, b"", self._servers.rules)
        return rejected if isinstance(rejected, Rejected) else None

    def _refuse(self, rejected: Rejected, request: Request, sender: Principal, responder: Responder) -> None:
        """The only place where a request of a known user is refused: no refusal leaves without its audit line."""
        self.refusals.write(rejected, request, sender)
        responder.respond(rejected.status, rejected.headers, rejected.body)

    def _known_session(self, session_id: str, sender: Principal, server: str) -> GatewaySession | None:
        """The session that a request names, or that of the stateless requests of its sender."""
        session = self._sessions.get(session_id) or self._sessions.get((sender, server))
        return session.session if session is not None and session.belongs_to(sender, server) else None

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

    # --- sessions ---

    def _dispatch(
        self, accepted: Accepted, sender: Principal, responder: Responder, claim: Claim | None = None
    ) -> None:
        """Give a request to its session. `claim` is room for a new one.

        Raises NotAdmitted, TooManyRequests, _NotServed.
        """
        user = self._users.get(sender.id)
        if user is not None and accepted.id and accepted.method:
            if user.requests >= self._gateway.config.gateway.max_requests:
                raise TooManyRequests
            if not user.may_ask:
                raise TooManyRequests(_UNREAD)
        if accepted.era is Era.STATELESS:
            self._post_stateless(accepted, sender, responder, claim)
        elif accepted.session:
            self._in_session(accepted, sender, responder)
        elif accepted.kind is Kind.MESSAGE and accepted.method == "initialize":
            self._open_session(accepted, sender, responder, claim)
        else:
            raise _NotServed(HTTPStatus.BAD_REQUEST, _MISSING_SESSION)

    def _in_session(self, accepted: Accepted, sender: Principal, responder: Responder) -> None:
        session = self._find(accepted.session, sender, accepted.server)
        if session is None:
            raise _NotServed(HTTPStatus.NOT_FOUND, _NO_SESSION)
        channel = session.channel
        assert isinstance(channel, AgentChannel)
        match accepted.kind:
            case Kind.MESSAGE:
                channel.post(accepted.line + b"\n", _message(accepted), responder)
            case Kind.STREAM:
                if not channel.listen(responder, accepted.last_event):
                    raise _NotServed(HTTPStatus.BAD_REQUEST, "This stream cannot be resumed.")
            case Kind.END:
                del self._sessions[accepted.session]  # from now on it does not exist for the agent
                channel.end()
                responder.respond(200)

    def _open_session(self, accepted: Accepted, sender: Principal, responder: Responder, claim: Claim | None) -> None:
        session = self._gateway.admit(sender, accepted.server, claim=claim)
        session_id = f"{self._gateway.config.gateway.instance}.{new_session_id()}"
        limits = session.server.loaded.settings
        headers = ((b"mcp-session-id", session_id.encode()),)
        user = self._user(sender)
        channel = AgentChannel(limits.max_message_bytes, headers, user)
        channel.on_refused = partial(self._note_refusal, session)
        self._sessions[session_id] = opened = _HttpSession(session_id, session, channel, user)
        self._tasks.start_soon(self._run, opened)
        channel.post(accepted.line + b"\n", _message(accepted), responder)

    def _note_refusal(self, session: GatewaySession, why: str, raw_id: bytes, line: bytes) -> None:
        """As Refuses, until the session's proxy is there."""
        refused = RefusedMessage(why, raw_id, line)
        self._gateway.note_refusal(session.identity.principal, session.server.name, session, refused)

    def _user(self, sender: Principal) -> _User:
        """The user of one more session, which `_run` closes."""
        user = self._users.get(sender.id)
        if user is None:
            name = sender.name
            user = _User(self._most_unread, lambda text: self._report(f"{name}: {text}"))
            self._users[sender.id] = user
        user.sessions += 1
        return user

    def _most_unread(self) -> int:
        """As for UserLoad: the configuration in force says it."""
        return self._gateway.config.gateway.max_unread_bytes

    def _post_stateless(self, accepted: Accepted, sender: Principal, responder: Responder, claim: Claim | None) -> None:
        key = sender, accepted.server
        known = self._find(key, sender, accepted.server)
        if known is None:
            session = self._gateway.admit(sender, accepted.server, is_stateless=True, claim=claim)
            most = session.server.loaded.settings.max_message_bytes
            user = self._user(sender)
            opened = StatelessChannel(most, session.report, user)
            opened.on_refused = partial(self._note_refusal, session)
            self._sessions[key] = known = _HttpSession(key, session, opened, user)
            self._tasks.start_soon(self._run, known)
        channel = known.channel
        assert isinstance(channel, StatelessChannel)
        channel.post(accepted.line + b"\n", _message(accepted), responder)

    def _forget(self, session: _HttpSession) -> None:
        """No further request comes to this session."""
        if self._sessions.get(session.key) is session:
            del self._sessions[session.key]

    async def _run(self, opened: _HttpSession) -> None:
        """Run a session. Whatever happens concerns it alone."""
        why = ""
        self._unused.add(opened)
        try:
            await self._gateway.run_session(opened.session, opened.channel, self._gateway.servers.open)
        except UserError as problem:
            opened.session.report(f"{problem.message} ({problem.hint})")
            why = f"The gateway cannot reach this server: {problem.message}"
        except Exception as defect:
            opened.session.report(f"the session has failed: {type(defect).__name__}")
            why = "The gateway has failed"
        finally:
            self._forget(opened)
            self._unused.discard(opened)
            if why:
                opened.channel.fail_waiting(why)
            opened.channel.close()
            user_id = opened.session.identity.principal.id
            self._users[user_id].sessions -= 1
            if not self._users[user_id].sessions:
                del self._users[user_id]

    def _end_unused(self, session: _HttpSession) -> None:
        self._forget(session)
        session.channel.end()


def _rejection(problem: NotAdmitted | TooManyRequests | _NotServed, raw_id: bytes) -> Rejected:
    """The response to a request that cannot be served, or not now."""
    if isinstance(problem, _NotServed):
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


def _message(accepted: Accepted) -> messages.Message:
    """The message of a request. What the check has read of a request is not read again."""
    if accepted.method and accepted.id:
        return messages.Message(accepted.line, (accepted.id,), accepted.method)
    return messages.read(accepted.line)
