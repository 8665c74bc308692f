"""The sessions of a gateway: who may open one, how many there are, and how they end."""

from __future__ import annotations

import os
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import anyio

from ..model.errors import UserError
from ..model.hooks import Session
from ..model.principal import GROUP_SIGN
from ..network.spare_descriptors import SpareDescriptors
from ..transports.accounts import Accounts
from ..transports.http.mirror_headers import ParameterHeaders, ParameterTable
from ..transports.long_messages import LongMessages
from . import server_process
from .audit_health import AuditHealth
from .between_sessions import BetweenSessions
from .blocked_users import BlockedUsers
from .capacity import Capacity, Claim, Full, Starts
from .log import GatewayLog
from .metrics import OTHER, Metrics
from .pace import Pace
from .roles import Rights, rights_of
from .sealed_values import SealedValues
from .secrets import secrets_of_if_any, secrets_redacted
from .server_memory import ServerMemory
from .session import ENDING, GatewaySession, MeteredAudit, OpenServer, SessionIdentity, SessionPolicy, new_session_id
from .store import Store

if TYPE_CHECKING:
    from ..audit.call_record import RefusedMessage
    from ..authorization.bearer_tokens import BearerTokens
    from ..config.gateway import GatewayConfig, GatewayServer
    from ..model.principal import Principal
    from ..protocol.request_state import SealKey
    from ..session.live_feed import LiveFeed
    from ..transports.channel import Channel
    from .servers import Servers


_SHOWN_OF_ID: Final = 8  # characters of a session's id in the log: enough to tell sessions apart
BLOCKED: Final = "an operator of the gateway has blocked the user"
"""Why there is no session, and why one ends."""

_NO_TOOLS: Final = ParameterTable()


class NotAdmitted(UserError):
    """A session that is not opened; `reason` is what HTTP calls it."""

    def __init__(self, message: str, hint: str, reason: HTTPStatus, *, may_wait: bool = False) -> None:
        """`may_wait`: there may be room soon."""
        super().__init__(message, hint)
        self.reason = reason
        self.may_wait = may_wait


def _no_room(full: Full) -> NotAdmitted:
    status = HTTPStatus.SERVICE_UNAVAILABLE if full.bound.together else HTTPStatus.TOO_MANY_REQUESTS
    return NotAdmitted(str(full), "end a session, or try later", status, may_wait=True)


class Gateway:
    """All sessions, and the policy for new ones."""

    def __init__(self, config: GatewayConfig, servers: Servers, report: GatewayLog, state_folder: str = "") -> None:
        """`state_folder` keeps what must survive a restart; empty: there is none.

        Raises UserError if the store or the folder cannot be used.
        """
        self.config = config
        self.accounts = Accounts(report, self._groups_of_rules)
        self.servers = servers
        self.metrics = Metrics()
        self.metrics.instance = config.gateway.instance
        table, folder = config.gateway.store, os.path.dirname(config.path)
        self.store = Store(table, folder, report, self.metrics) if table is not None else None
        """What other gateways share; None: this one counts and remembers alone."""
        blocked_file = os.path.join(state_folder, "users.json") if state_folder else ""
        self.blocked = BlockedUsers(blocked_file, self.store, SealedValues(lambda: self.seal_keys), report)
        self.blocked.on_change = self.end_blocked
        self.tokens: BearerTokens | None = None
        """Those of the file, as agents over HTTP have them."""
        self.parameters: dict[str, ParameterTable] = {}
        """The arguments with headers of their own of each server's tools."""
        self.sessions: set[GatewaySession] = set()
        self.memory = ServerMemory(report)
        """What the processes of servers use."""
        self.capacity = Capacity(config.bounds, self._expected_memory)
        """How much room there is for further sessions."""
        self.starts = Starts()
        """Whose servers are starting."""
        self.make_room: Callable[[Principal], None] = lambda _principal: None
        """Ends a session of this user that nobody uses, if there is one: a further one needs its room."""
        self.long_messages = LongMessages(report)
        self.pace = Pace()
        """How much of the event loop's time longer messages of each user have taken."""
        self.spare = SpareDescriptors(0)
        """What administrators and probes get when no other descriptors are left: `serve` keeps some."""
        self.leaving = False
        """It ends soon: balancers should send nothing more."""
        self.draining = False
        """No session is opened that is bound to this gateway."""
        self.on_policy_change: Callable[[], None] = lambda: None
        """Called when another configuration is in force, for whatever depends on it besides the sessions."""
        self.feed: LiveFeed | None = None
        """What consoles of the gateway's own account see; None: they see nothing."""
        self.health = AuditHealth(report, self.metrics, instance=config.gateway.instance)
        """Whether the audit can be written."""
        self.health.watch(config.servers.values())
        self._report = report
        self.between = BetweenSessions(lambda: self.config, self.store, self.health, report)
        """What sessions share."""

    @property
    def seal_keys(self) -> Sequence[SealKey]:
        """Those in force: the first one seals, all of them open. None: each gateway stands alone."""
        return self.between.seal_keys

    def admit(
        self,
        principal: Principal,
        server_name: str,
        caller_cwd: str = "",
        *,
        is_stateless: bool = False,
        claim: Claim | None = None,
    ) -> GatewaySession:
        """A new session of this user at a server. Raises NotAdmitted if the user may not open one now.

        Who may not use a server gets the same response as if it were not there. `claim` is the room that
        `wait_for_room` has found.
        """
        try:
            server = self._server_for(principal, server_name, is_stateless)
            if claim is None:
                claim = self._claim(principal, server_name)
        except NotAdmitted as problem:
            if not problem.may_wait:
                self._count_refusal(server_name)
            raise
        claim.is_used = True
        identity = SessionIdentity(new_session_id(), principal, caller_cwd, is_stateless)
        report = self._report.about(server_name, principal.name, identity.id[:_SHOWN_OF_ID])
        open_calls, load = self.between.open_calls_of(principal), self.between.load_of(principal)
        session = GatewaySession(identity, server, self.metrics, report, open_calls, load, self.feed)
        session.on_end = partial(self.capacity.release, claim)
        self.sessions.add(session)
        return session

    async def admit_when_room(self, principal: Principal, server_name: str, caller_cwd: str) -> GatewaySession:
        """As `admit`, which waits until there is room. Raises NotAdmitted."""
        try:
            return self.admit(principal, server_name, caller_cwd)
        except NotAdmitted as problem:
            if not problem.may_wait:
                raise
        claim = await self.wait_for_room(principal, server_name)
        try:
            return self.admit(principal, server_name, caller_cwd, claim=claim)
        finally:
            if not claim.is_used:
                self.capacity.release(claim)

    async def wait_for_room(self, principal: Principal, server_name: str) -> Claim:
        """Room for a session that `admit` has no room for, as soon as there is some. Raises NotAdmitted.

        Whoever does not use it must release it (`capacity`).
        """
        try:
            return await self.capacity.wait(principal, server_name, self.config.gateway.queue_seconds)
        except Full as full:
            self._count_refusal(server_name)
            raise _no_room(full) from None

    def _expected_memory(self, principal: Principal, server_name: str) -> int | None:
        server = self.config.servers.get(server_name)
        starts_a_process = server is not None and server.table.command is not None
        return self.memory.expected(principal, server_name) if starts_a_process else None

    def _claim(self, principal: Principal, server_name: str) -> Claim:
        try:
            return self.capacity.claim(principal, server_name)
        except Full as full:
            self.make_room(principal)
            raise _no_room(full) from None

    def _count_refusal(self, server_name: str) -> None:
        self.metrics.refused_sessions[server_name if server_name in self.config.servers else OTHER] += 1

    def _server_for(self, principal: Principal, server_name: str, is_stateless: bool) -> GatewayServer:
        """The server of this name. Raises NotAdmitted."""
        if self.blocked.blocks(principal):
            raise NotAdmitted(BLOCKED, "ask the gateway's administrator", HTTPStatus.FORBIDDEN)
        if self.config.closed:
            hint = "the gateway's administrator sees in its log why no policy is in force"
            raise NotAdmitted(f"nothing may pass: {self.config.closed}", hint, HTTPStatus.SERVICE_UNAVAILABLE)
        server = self.config.servers.get(server_name)
        if server is None or not server.allows(principal):
            shown = server_name[:64].encode("unicode_escape").decode()
            hint = "ask the gateway's administrator"
            raise NotAdmitted(f"there is no server {shown} for {principal.name}", hint, HTTPStatus.NOT_FOUND)
        if self.draining and not is_stateless:
            raise NotAdmitted(ENDING, "try again in a few seconds", HTTPStatus.SERVICE_UNAVAILABLE)
        return server

    def note_refusal(
        self, principal: Principal, server_name: str, session: GatewaySession | None, refused: RefusedMessage
    ) -> None:
        """Write the audit line of a message that was refused before a proxy could take it; None: it has no session.

        What names no server that its sender may use is in the log alone: no policy says where its line belongs, and
        anybody could fill the file.
        """
        if session is not None and session.note_refusal(refused):
            return
        server = self.config.servers.get(server_name)
        if server is None or not server.allows(principal):
            return
        session_id = "" if session is None else session.identity.id
        settings = secrets_redacted(server, server.settings_for(principal))
        audit = MeteredAudit(settings, principal, self.config.version, self.metrics, self.health)
        refused_in = Session(session_id, server.name, server.cwd, server.cwd, principal=principal)
        audit.note_refusal(refused_in, refused)
        audit.close()

    def rights_of(self, user: Principal) -> Rights:
        """What a user may do here beside using servers."""
        return rights_of(user, self.config.roles, is_blocked=self.blocked.blocks(user))

    def audits(self, by: Principal) -> dict[str, MeteredAudit]:
        """An audit for each file, by its path, whose lines are by this user."""
        found: dict[str, MeteredAudit] = {}
        for server in self.config.servers.values():
            audit = MeteredAudit(
                secrets_redacted(server, server.loaded.settings), by, self.config.version, self.metrics, self.health
            )
            if audit.path:
                found.setdefault(audit.path, audit)
        return found

    def knows(self, name: str) -> bool:
        """Whether a token of the file is for a user of this name."""
        return self.tokens is not None and self.tokens.knows(name)

    def end_blocked(self) -> None:
        """End the sessions of users who are blocked."""
        for session in list(self.sessions):
            if self.blocked.blocks(session.identity.principal):
                session.end(BLOCKED)

    def delay(self, user: str) -> float:
        """Seconds that the next longer message of this user waits, while others use the gateway."""
        others = any(session.identity.principal.id != user for session in self.sessions)
        return self.pace.delay(user) if others else 0.0

    def metrics_text(self) -> str:
        """The metrics, for Prometheus."""
        self.metrics.waiting_sessions = self.capacity.waiting
        self.metrics.server_memory = self.memory.sizes()
        self.metrics.ended_for_memory = self.memory.ended
        sessions = Counter(dict.fromkeys(self.config.servers, 0))
        sessions.update(session.server.name for session in self.sessions)
        self.metrics.sandboxes = server_process.kinds(self.config)
        self.metrics.sandbox_limits = server_process.limits_kind(self.config)
        return self.metrics.text(sessions, self.config.version, draining=self.leaving, bundle=self.config.bundle)

    def note_dropped(self, server: str) -> None:
        """Count a message of a shared server that certainly belonged to no session."""
        self.metrics.dropped_messages[server] += 1

    def parameters_of(self, server: str, tool: str) -> ParameterHeaders | None:
        """The arguments of a tool that have headers of their own; None: the tool is not known."""
        return self.parameters.get(server, _NO_TOOLS).get(tool)

    async def run_session(self, session: GatewaySession, agent: Channel, open_server: OpenServer) -> None:
        """Run a session that was admitted, until it ends. Raises UserError if its server does not start, or it fails.

        What an error says is for its user, too: nothing of a defect, which may show what is another's, and no secret.
        """
        try:
            if self.servers.starts_process(session):
                session.on_started = await self.starts.turn(session.identity.principal.id)
                if self.draining and not session.identity.is_stateless:
                    raise UserError(ENDING, "try again in a few seconds")
            parameters = self.parameters.setdefault(session.server.name, ParameterTable())
            policy, states = self.between.policy_of(session), self.between.request_states(session)
            await session.relay(agent, open_server, policy, parameters, states)
        except UserError as problem:
            removed = secrets_of_if_any(session.server).removed_from
            raise UserError(removed(problem.message), removed(problem.hint), problem.status) from None
        except OSError:
            raise
        except Exception as defect:
            text = "".join(traceback.format_exception(defect)).rstrip()
            session.report(secrets_of_if_any(session.server).removed_from(text))
            raise UserError("the gateway has failed", "its log says how") from None
        finally:
            session.on_started()
            self.forget(session)

    def forget(self, session: GatewaySession) -> None:
        """A session has ended, or was not opened: others have its room."""
        self.sessions.discard(session)
        session.on_end()

    def change_policy(self, config: GatewayConfig) -> None:
        """Put another configuration into force, for new sessions and for new calls of open ones."""
        self.config = config
        self.accounts.forget()
        self.between.change_policy(config)
        self.capacity.change(config.bounds)
        self.health.watch(config.servers.values())
        for session in list(self.sessions):
            user = session.identity.principal
            server = config.servers.get(session.server.name)
            may_use = server is not None and server.allows(user) and not config.closed
            self._change(session, partial(session.change_policy, server if may_use else None))
        self.on_policy_change()

    def change_user(self, user: Principal) -> None:
        """Something else is known of a user than before: it holds for open sessions, too."""
        self.capacity.change_user(user)
        for session in list(self.sessions):
            before = session.identity.principal
            if before.id != user.id or before == user:
                continue
            if before.name != user.name and not (before.in_doubt or user.in_doubt):
                session.end("the session ends, because its account belongs to somebody else now")
            else:
                self._change(session, partial(session.change_user, user))
        self.end_blocked()  # the name may be known only now

    def _change(self, session: GatewaySession, change: Callable[[SessionPolicy], None]) -> None:
        """Change what holds for a session. One for which that is impossible ends."""
        try:
            change(self.between.policy_of(session))
        except UserError as problem:
            self._report(f"{problem.message} ({problem.hint})")
            session.end(f"the session ends, because it cannot go on under the new policy: {problem.message}")
        except Exception as defect:  # it must not go on under the old one, and the others must change
            self._report("".join(traceback.format_exception(defect)).rstrip())
            session.end("the session ends, because the gateway could not put the new policy into force for it")

    def _groups_of_rules(self) -> frozenset[str]:
        return frozenset(who[len(GROUP_SIGN) :] for _, who in self.config.people if who.startswith(GROUP_SIGN))

    async def drain(self, *, stateless: bool) -> None:
        """Let calls in flight end, and end sessions: of stateless requests, or those that are bound to this gateway.

        From now on no session of the latter kind is opened.
        """
        self.draining = True
        async with anyio.create_task_group() as tasks:
            for session in list(self.sessions):
                if session.identity.is_stateless is stateless:
                    tasks.start_soon(session.drain, self.config.gateway.drain_seconds)
