"""One session at the gateway: an agent's channel, a server, and the proxy between them, as under `hookproxy run`."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from time import time
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import Struct, field
from msgspec.structs import replace

from ..audit.call_record import Record
from ..audit.log import Audit
from ..hooks.evaluate import Hooks
from ..model.errors import UserError
from ..processes import service
from ..session.change_event import ChangeEvent
from ..session.lifecycle import Lifecycle
from ..session.proxy import Proxy, Report
from ..transports.channel import FailsWaiting, OffersCalls, OffersPassages, SaysWhyEnded, TakesPassages
from ..transports.shared_server import SessionChannel
from .hooks_account import environment_account
from .secrets import report_without_secrets, secrets_of, secrets_redacted

if TYPE_CHECKING:
    from ..audit.call_record import RefusedMessage
    from ..config.gateway import GatewayServer
    from ..model.principal import Principal
    from ..model.settings import Settings
    from ..policy.shared_state import Shared
    from ..protocol.request_state import RequestStates
    from ..session.hidden_secrets import HiddenSecrets
    from ..session.live_feed import LiveFeed
    from ..session.long_agent_lines import Look
    from ..session.running_calls import OpenCalls
    from ..session.server_end import ServerEnd
    from ..session.watch import WatchedPolicy
    from ..transports.channel import Channel
    from ..transports.http.mirror_headers import ParameterTable
    from ..transports.user_load import UserLoad
    from .audit_health import AuditHealth
    from .metrics import Metrics

OpenServer = Callable[["GatewaySession", "Settings"], "tuple[Channel, ServerEnd]"]
"""Starts or reaches the server of a session that has these settings. Raises UserError."""

_MILLISECONDS: Final = 0.001
_STOPPING: Final = "the session ends"
ENDING: Final = "the gateway is ending"
_NO_LONGER_THERE: Final = "the session ends, because the new policy has another server in its place, or none"
_HIDES: Final = "the session ends, because the new policy hides secrets, and the agent may have seen some"
_HIDES_NOTHING: Final = "the session ends, because the new policy hides no secrets, and the agent has placeholders"
NO_LONGER_ALLOWED: Final = "the session ends, because the user may not use the server any more"


class GatewaySession(Struct, eq=False, weakref=True):
    """A session of one user at one server."""

    identity: SessionIdentity
    server: GatewayServer
    _metrics: Metrics
    report: Report
    _open_calls: OpenCalls  # this and the load are those of the user in all sessions
    _load: UserLoad
    _feed: LiveFeed | None = None  # what consoles see, if any does
    end_reason: str = ""
    """Why the session has ended, for the user, in the words of the log; empty: the agent has ended it."""
    _proxy: Proxy | None = None
    _lifecycle: Lifecycle | None = None
    _has_ended: bool = False
    look: Look | None = None
    """What long lines of the agent go through; None: its channel has done that."""
    _end: ChangeEvent = field(default_factory=ChangeEvent)
    on_end: Callable[[], None] = lambda: None
    """Called when it has ended, or was never run."""
    on_started: Callable[[], None] = lambda: None
    """Called when its server has said something, and when it has ended; it may be called several times."""
    _withdrawn: str = ""  # why it must not begin
    _agent: Channel | None = None
    is_ending: bool = False
    """Nothing of the agent passes any more."""
    since: float = field(default_factory=time)
    """When it was opened, in seconds since 1970."""
    last: float = 0.0
    """When its last call came, as far as `note_use` knows; 0: it had none."""
    _seen_calls: int = 0

    async def relay(
        self,
        agent: Channel,
        open_server: OpenServer,
        policy: SessionPolicy,
        parameters: ParameterTable,
        request_states: RequestStates | None = None,
    ) -> int:
        """Relay until one side ends. Returns the server's exit status. `parameters` gets what its lists of tools say.

        `request_states` are as for Proxy.

        Raises UserError if the server cannot be started; then nothing has been read from the agent. On cancel the
        server is killed and waited for.
        """
        server, principal = self.server, self.identity.principal
        if self._withdrawn:
            raise UserError(self._withdrawn, "ask the gateway's administrator")
        hooks, settings, audit, watched = self._policy(server, policy)  # a hook that cannot be used stops it
        session = server.session(self.identity.id, principal)
        channel, server_end = open_server(self, settings)
        self._proxy = Proxy(
            agent,
            channel,
            hooks,
            settings,
            session,
            audit,
            report_without_secrets(server, self.report),
            may_change=True,
            request_states=request_states,
            watch=None if watched is None else watched.watch,
            secrets=hidden_secrets(server, settings, policy.shared),
        )
        self._agent = agent
        del hooks, settings, audit, watched  # they are kept by the proxy until another policy replaces them
        # Of stateless requests, the agent's channel makes the ids: their session may last for months.
        self._proxy.router.requests.ids_may_repeat = not self.identity.is_stateless
        self._proxy.answers_lost_requests = agent.reads_lines  # over HTTP, the agent's channel does that
        self._proxy.calls.reports_of_tools = policy.reports_of_tools
        self._proxy.use_secrets(secrets_of(server))
        self._proxy.on_tools_listed = lambda line, _tools, _server_name: note_parameters(parameters, line)
        _connect(self._proxy, agent, channel, server_end, self.look)
        self._proxy.calls.on_first_passed = self.on_started
        self._lifecycle = Lifecycle(self._proxy, server_end, forwards_signals=False)
        if self._feed is not None:
            self._feed.add_session(self._proxy, principal.name)
        self._proxy.calls.limit(self._open_calls)
        waiting = _Waiting(agent)
        self._load.keepers.add(waiting)
        if isinstance(channel, SessionChannel):
            channel.takes = self._load.takes
        try:
            status = await self._lifecycle.run_to_end()
            if how_it_ended := self._lifecycle.server_end:
                self.end_reason = how_it_ended
                self.report(how_it_ended)
            return status
        finally:
            if self._feed is not None:
                self._feed.remove_session(self._proxy)
            self._proxy.calls.unlimit()
            self._load.keepers.discard(waiting)
            self._has_ended = True
            self._end.notify()

    def note_refusal(self, refused: RefusedMessage) -> bool:
        """Write the audit line of a message that was refused before it came to the proxy. False: there is no proxy."""
        if self._proxy is None:
            return False
        self._proxy.note_refusal(refused.why, refused.id, refused.line)
        return True

    def _policy(
        self, server: GatewayServer, policy: SessionPolicy
    ) -> tuple[Hooks, Settings, Audit, WatchedPolicy | None]:
        """What judges the calls of this session, and what is only watched. Raises UserError."""
        loaded = server.loaded_for(self.identity.principal)
        settings = secrets_redacted(server, loaded.settings)
        environ = service.environment(environment_account(), {})
        hooks = Hooks(loaded.groups, settings, server.name, environ, loaded.trust, server.command, policy.shared)
        audit = MeteredAudit(settings, self.identity.principal, policy.version, self._metrics, policy.health)
        if loaded.watched is None:
            return hooks, settings, audit, None
        from ..session.watch import WatchedPolicy

        watched = replace(loaded.watched, settings=secrets_redacted(server, loaded.watched.settings))
        shadow = WatchedPolicy(watched, server.name, environ, loaded.trust, server.command, policy.shared)
        return hooks, settings, audit, shadow

    def change_policy(self, server: GatewayServer | None, policy: SessionPolicy) -> None:
        """Judge further calls by the policy of this server; None: the user may not use it any more.

        A session that cannot go on under the new policy ends.
        """
        if server is None or (self._lifecycle is not None and server.starts_differently(self.server)):
            self.end(_NO_LONGER_THERE)
            return
        self.server = server
        if self._proxy is None or self._lifecycle is None:  # it has just been admitted
            return
        hooks, settings, audit, watched = self._policy(server, policy)
        if (self._proxy.secrets is None) is not (settings.secrets is None):
            self.end(_HIDES if settings.secrets else _HIDES_NOTHING)
            return
        if self._proxy.secrets is not None and settings.secrets is not None:
            from .finders import finder_of

            self._proxy.secrets.use(settings.secrets, finder_of(settings.secrets))
        self._proxy.change_policy(hooks, settings, audit)
        if (watch := self._proxy.watch) is not None:  # else what is new is watched in sessions that begin later
            watch.stop() if watched is None else watched.take_over(watch)
        if self._feed is not None:
            self._feed.follow(self._proxy.session.id)

    def change_user(self, principal: Principal, policy: SessionPolicy) -> None:
        """The user has other groups now: judge further calls by the rules for them, or end the session."""
        self.identity = replace(self.identity, principal=principal)
        if self._proxy is not None:
            self._proxy.change_session(replace(self._proxy.session, principal=principal))
        if self.server.allows(principal):
            self.change_policy(self.server, policy)
        else:
            self.end(NO_LONGER_ALLOWED)

    @property
    def is_local(self) -> bool:
        """It came over a Unix socket: only there the kernel names the user."""
        return self.identity.principal.id.startswith("uid:")

    @property
    def calls(self) -> int:
        """How many calls there have been."""
        if self._proxy is None:
            return 0
        return self._proxy.calls.begun + self._proxy.router.requests.unjudged_calls

    def note_use(self, now: float) -> None:
        """Note whether there has been a call since this was asked last."""
        if (calls := self.calls) != self._seen_calls:
            self._seen_calls, self.last = calls, now

    def end(self, why: str, note: str = "", by: str = "") -> None:
        """End it at once: nothing of the agent passes any more, and its server gets SIGTERM.

        `why` is for the user and the log, `note` for the audit, and `by` the id of who wants it.
        """
        if self.is_ending or self._has_ended:
            return
        self.is_ending, self.end_reason = True, why
        self.report(why)
        if self._proxy is None or self._lifecycle is None:  # it has just been admitted
            self._withdrawn = why
            return
        self._proxy.relay.pause_agent(_STOPPING, True)
        if note:
            self._proxy.session_events.note_in_audit(note, by)
        sentence = f"{why[0].upper()}{why[1:]}"
        self._proxy.calls.end_unforwarded(sentence)
        agent: Channel | FailsWaiting | None = self._agent
        if isinstance(agent, FailsWaiting):
            agent.fail_waiting(sentence)
        self._lifecycle.end_by_signal(signal.SIGTERM, sentence)

    async def drain(self, seconds: float) -> None:
        """Read no more calls, give those in flight so many seconds, and end the session. Returns when it has ended."""
        if self._proxy is None or self._lifecycle is None:
            return
        proxy = self._proxy
        proxy.relay.pause_agent(ENDING, True)
        proxy.relay.on_passed = proxy.changes.notify
        with anyio.move_on_after(seconds):
            await proxy.changes.until(lambda: self._has_ended or not (proxy.router.pending or proxy.has_open_calls))
        if not self._has_ended:
            self.end_reason = ENDING
            self._lifecycle.end_by_signal(signal.SIGTERM)
            await self._end.until(lambda: self._has_ended)


def _connect(proxy: Proxy, agent: Channel, server: Channel, server_end: ServerEnd, look: Look | None) -> None:
    """Tell the agent's channel what it can use of the server's, and of the proxy."""
    if isinstance(agent, TakesPassages):
        place = server if isinstance(server, OffersPassages) else proxy.relay.long_line
        place.find_passage = partial(proxy.open_passage, agent)
    if isinstance(agent, OffersCalls):
        proxy.relay.connect_calls(agent)
    elif look is not None:
        proxy.relay.look_at_long_lines(look, proxy.spawn)
    if isinstance(agent, SaysWhyEnded):
        agent.why_ended = server_end.why_we_ended_it


def hidden_secrets(server: GatewayServer, settings: Settings, shared: Shared) -> HiddenSecrets | None:
    """What these settings hide in a session of this server; None: nothing. Raises UserError."""
    if settings.secrets is None:
        return None
    from ..session.hidden_secrets import HiddenSecrets
    from .finders import finder_of

    return HiddenSecrets(settings.secrets, finder_of(settings.secrets), server.name, shared.secrets)


class MeteredAudit(Audit):
    """The audit of one session, which also counts each call for the metrics."""

    def __init__(
        self, settings: Settings, principal: Principal, policy: str, metrics: Metrics, health: AuditHealth
    ) -> None:
        super().__init__(settings, principal, policy, health, health.instance)
        self._metrics = metrics
        self.needs_results = True  # else nobody would know how a call ended, and how long it took

    def write(self, record: Record) -> str:
        """Count the call, and write its line."""
        hook_ms = record.own_hook_ms
        seconds, hook_seconds = record.ms * _MILLISECONDS, min(hook_ms, record.ms) * _MILLISECONDS
        if record.cause == "audit":
            self._metrics.audit_refused += 1
        self._metrics.note_call(record.server, record.tool, record.decision, record.result, seconds, hook_seconds)
        return super().write(record)


class _Waiting:
    """As Keeper: what the channel of an agent has not sent yet. (Over HTTP it is counted where it is sent.)"""

    def __init__(self, agent: Channel) -> None:
        self._agent = agent

    @property
    def kept_bytes(self) -> int:
        return self._agent.queued

    def forget_kept(self) -> None:
        """Nothing of it was sent."""


class SessionPolicy(Struct, frozen=True):
    """What holds for a session beside its server's configuration."""

    version: str
    """The policy's, for the audit."""
    shared: Shared
    """What the session shares with others."""
    reports_of_tools: dict[str, None]
    """What was reported about tools, in all sessions."""
    health: AuditHealth


class SessionIdentity(Struct, frozen=True):
    """Which session it is, and whose."""

    id: str
    principal: Principal
    caller_cwd: str = ""
    """The folder in which the agent runs, as it says itself."""
    is_stateless: bool = False
    """It is of requests that stand alone (2026-07-28)."""


def note_parameters(parameters: ParameterTable, line: bytes) -> None:
    """Note the annotated arguments in a tools/list response."""
    if b"x-mcp-header" in line:
        parameters.note(line)


def new_session_id() -> str:
    """An id that nobody can guess."""
    return os.urandom(16).hex()
