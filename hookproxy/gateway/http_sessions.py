"""The sessions of agents over HTTP: whose each one is, which requests belong to it, and how it begins and ends.

Law: a session belongs to the user who opened it, with the name and the groups that the user had then: for all others it
does not exist. All requests of one user to one server that stand alone are one session, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import Struct

from ..audit.call_record import RefusedMessage
from ..model.errors import UserError
from ..model.principal import Principal
from ..transports.http import messages
from ..transports.http.agent_channel import AgentChannel
from ..transports.http.agent_lines import TooManyRequests
from ..transports.http.agent_requests import Accepted, Era, Head, Kind
from ..transports.http.stateless_channel import StatelessChannel
from ..transports.user_load import UserLoad
from .session import GatewaySession, new_session_id
from .unused_sessions import UnusedSessions

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from ..session.proxy import Report
    from ..transports.http.responder import Responder
    from .capacity import Claim
    from .gateway import Gateway

_NO_SESSION: Final = "There is no such session. Initialize a new one."
_MISSING_SESSION: Final = "The header Mcp-Session-Id is missing. Initialize a session first."
_UNREAD: Final = "Too much waits that your agents do not read. Read the responses to earlier requests first."
_UNUSED_SECONDS: Final = 30.0
"""After which a session that is not used makes room for another one of its user: an agent that lives comes back before,
or opens it again when it reads that it is gone."""


class NotServed(Exception):
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


class HttpSession(Struct, eq=False):
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
        """How long it may be unused."""
        return self.session.server.table.idle_seconds

    @property
    def unused_since(self) -> float | None:
        """Since when nobody uses it; None: it is used."""
        return None if self.channel.in_use else self.channel.last_used


class HttpSessions:
    """All of them, by their ids, and by user and server where requests stand alone."""

    def __init__(self, gateway: Gateway, tasks: TaskGroup, report: Report) -> None:
        self._gateway = gateway
        self._tasks = tasks
        self._report = report
        self._sessions: dict[_Key, HttpSession] = {}
        self._users: dict[str, _User] = {}
        self._unused = UnusedSessions(self._end_unused)
        self.end_unused = self._unused.end_unused  # runs until it is cancelled
        gateway.on_policy_change = self._unused.look_again
        gateway.make_room = self._make_room

    @property
    def are_none(self) -> bool:
        """Nothing is open, and nothing is kept of anybody."""
        return not (self._sessions or self._users)

    def requests_of(self, user: Principal) -> int:
        """How many requests of a user are in flight."""
        known = self._users.get(user.id)
        return 0 if known is None else known.requests

    def session_of(self, head: Head, sender: Principal) -> HttpSession | None:
        """The session to which a request with this head belongs; None: there is none that the sender may use."""
        if not head.called:
            return self._find(head.session or "", sender, head.server)
        is_allowed = self._gateway.config.servers[head.server].allows(sender)
        return self._find((sender, head.server), sender, head.server) if is_allowed else None

    def _find(self, key: _Key, sender: Principal, server: str) -> HttpSession | None:
        session = self._sessions.get(key)
        if session is None or not session.belongs_to(sender, server):
            return None
        if session.channel.has_ended or session.session.is_ending:  # it is about to be forgotten
            return None
        return session

    def known(self, session_id: str, sender: Principal, server: str) -> GatewaySession | None:
        """The session that a request names, or that of the stateless requests of its sender."""
        session = self._sessions.get(session_id) or self._sessions.get((sender, server))
        return session.session if session is not None and session.belongs_to(sender, server) else None

    # --- requests ---

    def dispatch(self, accepted: Accepted, sender: Principal, responder: Responder, claim: Claim | None = None) -> None:
        """Give a request to its session. `claim` is room for a new one.

        Raises NotAdmitted, TooManyRequests, NotServed.
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
            raise NotServed(HTTPStatus.BAD_REQUEST, _MISSING_SESSION)

    def _in_session(self, accepted: Accepted, sender: Principal, responder: Responder) -> None:
        session = self._find(accepted.session, sender, accepted.server)
        if session is None:
            raise NotServed(HTTPStatus.NOT_FOUND, _NO_SESSION)
        channel = session.channel
        assert isinstance(channel, AgentChannel)
        match accepted.kind:
            case Kind.MESSAGE:
                channel.post(accepted.line + b"\n", _message(accepted), responder)
            case Kind.STREAM:
                if not channel.listen(responder, accepted.last_event):
                    raise NotServed(HTTPStatus.BAD_REQUEST, "This stream cannot be resumed.")
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
        self._sessions[session_id] = opened = HttpSession(session_id, session, channel, user)
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
            self._sessions[key] = known = HttpSession(key, session, opened, user)
            self._tasks.start_soon(self._run, known)
        channel = known.channel
        assert isinstance(channel, StatelessChannel)
        channel.post(accepted.line + b"\n", _message(accepted), responder)

    def _forget(self, session: HttpSession) -> None:
        """No further request comes to this session."""
        if self._sessions.get(session.key) is session:
            del self._sessions[session.key]

    async def _run(self, opened: HttpSession) -> None:
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

    def _end_unused(self, session: HttpSession) -> None:
        self._forget(session)
        session.channel.end()

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


def _message(accepted: Accepted) -> messages.Message:
    """The message of a request. What the check has read of a request is not read again."""
    if accepted.method and accepted.id:
        return messages.Message(accepted.line, (accepted.id,), accepted.method)
    return messages.read(accepted.line)
