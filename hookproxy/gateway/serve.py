"""Runs the gateway: listens, reloads its policy on a signal, and ends on one after the calls in flight."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from time import time
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
from msgspec import Struct

from ..checks.startup_notes import with_lines
from ..live import messages, registry
from ..model.counts import counted
from ..model.errors import UserError, describe_error
from ..network.spare_descriptors import SpareDescriptors
from ..session.change_event import ChangeEvent
from ..session.live_feed import LiveFeed, open_feed
from ..transports.event_loop import contain_failures
from .administration import Administration
from .approvers import GatewayApprovers
from .audit_signing import AuditSigning
from .authentication import authenticator, tokens_of_file
from .gateway import Gateway
from .log import GatewayLog
from .policy_watch import PolicyWatch
from .refusal_log import RefusalLog
from .revocations import Revocations
from .servers import Servers
from .shared_approvals import SharedApprovals
from .unix_connections import Reloaded, accept_connections
from .unix_listeners import change_admin_mode
from .user_watch import UserWatch

if TYPE_CHECKING:
    import socket
    import ssl

    from anyio.abc import TaskGroup

    from ..config.gateway import GatewayConfig
    from ..session.proxy import Report
    from ..transports.http.accepting import Accepting
    from ..transports.http.listener import Listener
    from .http_listeners import HttpAddress
    from .service_manager import ServiceManager

_RELOAD: Final = signal.SIGHUP
_ENDING: Final = (signal.SIGTERM, signal.SIGINT)

_AFTER_IDLE_SECONDS: Final = 2.0
"""That connections without a request may take to be closed, after their time is over: it is looked at each second."""

Load = Callable[[str], "GatewayConfig"]
"""Reads the configuration again; with the signed policy in this folder, if it is not empty. Raises UserError."""


class Listening(Struct, frozen=True):
    """All sockets at which the gateway listens."""

    unix: Sequence[socket.socket]
    unix_stays: bool
    """The Unix sockets are systemd's: who connects while this gateway ends waits there for the next one."""
    http: Sequence[tuple[HttpAddress, socket.socket]]
    tls: ssl.SSLContext | None
    probes: socket.socket | None
    admin: socket.socket | None
    """For administrators."""
    state_folder: str
    """Of what must survive a restart; empty: there is none."""

    def addresses(self) -> Iterator[str]:
        """The addresses for agents, as `gateway.listen` has them."""
        for listener in self.unix:
            yield f"unix:{listener.getsockname()}"
        for address, _ in self.http:
            yield address.url


async def serve(
    config: GatewayConfig, listening: Listening, report: GatewayLog, load: Load, manager: ServiceManager
) -> None:
    """Serve agents until SIGTERM or SIGINT. A second one ends it without waiting for calls; SIGHUP reloads.

    On cancel all servers and hooks are killed.
    """
    run = messages.Run(
        messages.VERSION,
        registry.new_name(),
        os.getpid(),
        round(time(), 3),
        ("hookproxy", "serve"),
        cwd=os.path.dirname(config.path),
        config=config.path,
    )
    uses_console = any(server.loaded.settings.uses_console for server in config.servers.values())
    with closing(open_feed(run, report, needed=uses_console)) as feed:
        await _serve(config, listening, report, load, feed, manager)


async def _serve(
    config: GatewayConfig,
    listening: Listening,
    report: GatewayLog,
    load: Load,
    feed: LiveFeed,
    manager: ServiceManager,
) -> None:
    contain_failures(report)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(feed.serve)
        gateway = Gateway(config, Servers(tasks, report), report, listening.state_folder)
        gateway.servers.on_dropped = gateway.note_dropped
        gateway.servers.on_start = gateway.memory.add
        tasks.start_soon(gateway.memory.watch, gateway.capacity)
        gateway.feed, feed.approvals.approvers = feed, GatewayApprovers(gateway)
        gateway.spare = SpareDescriptors()
        tasks.start_soon(UserWatch(gateway, report).watch)
        if gateway.store is not None:
            tasks.start_soon(gateway.store.keep_in_touch)
            await gateway.store.look()  # before the first call needs it
            tasks.start_soon(SharedApprovals(gateway.store, feed, lambda: gateway.seal_keys, report).share)
        tasks.start_soon(PolicyWatch(gateway, report).watch)
        signing = await _begin_signing(gateway, report, tasks)
        await gateway.blocked.look()  # before the first session
        tasks.start_soon(gateway.blocked.share)
        if config.gateway.audit_export is not None:
            from .audit_export import AuditExport

            tasks.start_soon(AuditExport(config, report, gateway.metrics).send_audit)
        with anyio.open_signal_receiver(_RELOAD, *_ENDING) as signals:
            reloads = _Reloads(partial(_reload, gateway, load, report, manager, listening.admin))
            reload = reloads.reload
            tasks.start_soon(_keep_policy_current, gateway, load, report, reloads)
            refusals = RefusalLog(report)  # of the Unix sockets
            tasks.start_soon(refusals.keep_reporting)
            accepting = [anyio.CancelScope() for _ in listening.unix]
            for number, listener in enumerate(listening.unix):
                tasks.start_soon(accept_connections, listener, gateway, report, refusals, reload, accepting[number])
            administration = Administration(gateway, report, reload, feed.serve_console)
            administration.share_sessions(feed.run.run, tasks)
            tasks.start_soon(administration.accept, listening.admin)
            if listening.probes is not None:
                await _serve_probes(gateway, listening.probes)
            web = await _serve_http(gateway, listening, tasks, report) if listening.http else None
            _prepare_approvals(feed, config)
            report(f"listens at {', '.join(listening.addresses())}")
            report(serves := _what_it_serves(config))
            manager.ready(serves)
            gateway.servers.look_at_sharing(config.servers, {})
            async for number in signals:
                if number == _RELOAD:
                    await reload()
                elif gateway.leaving:
                    break
                else:
                    manager.stopping()
                    stops = accepting if listening.unix_stays else []
                    tasks.start_soon(_drain, gateway, web, stops, tasks, report, signing.sign_now)
        gateway.long_messages.close()
        tasks.cancel_scope.cancel()
    gateway.health.watch(())
    signing.close()


def _prepare_approvals(feed: LiveFeed, config: GatewayConfig) -> None:
    """Read the secrets of webhooks. Raises UserError."""
    for server in config.servers.values():
        feed.prepare(server.loaded.settings)


async def _begin_signing(gateway: Gateway, report: GatewayLog, tasks: TaskGroup) -> AuditSigning:
    signing = AuditSigning(gateway, report)
    await signing.begin()
    tasks.start_soon(signing.keep_copies)
    return signing


class _Reloads:
    """Reads the configuration again, and wakes who waits for what may be in it then."""

    def __init__(self, reload: Callable[[], Awaitable[Reloaded]]) -> None:
        self._reload = reload
        self.changes = ChangeEvent()

    async def reload(self) -> Reloaded:
        """Put a changed configuration into force."""
        reloaded = await self._reload()
        self.changes.notify()
        return reloaded


async def _keep_policy_current(gateway: Gateway, load: Load, report: GatewayLog, reloads: _Reloads) -> None:
    """Ask the source of the signed policy whenever the configuration names one. Never returns."""
    while True:
        await reloads.changes.until(lambda: gateway.config.source is not None)
        from .policy_updates import PolicyUpdates

        await PolicyUpdates(gateway, load, report, reloads.reload).keep_current()


class _Web(Struct, frozen=True):
    """The listeners for agents that speak HTTP."""

    listener: Listener
    accepting: Sequence[Accepting]

    async def drain(self) -> None:
        """Accept no more connections, and wait until those that are open have had their last response.

        A connection that stays longer has a response that does not end by itself.
        """
        for accepting in self.accepting:
            await accepting.stop()
        self.listener.close_when_idle()
        with anyio.move_on_after(self.listener.limits.drain_idle_seconds + _AFTER_IDLE_SECONDS):
            await self.listener.closed()


async def _serve_http(gateway: Gateway, listening: Listening, tasks: TaskGroup, report: Report) -> _Web:
    """Accept connections of agents that speak HTTP. Raises UserError."""
    from ..transports.http.accepting import serve_sockets
    from ..transports.http.listener import Listener
    from .http_agents import HttpAgents
    from .http_listeners import listener_limits

    config = gateway.config
    tokens = gateway.tokens = tokens_of_file(config, report)
    if gateway.store is not None and tokens is not None:
        revocations = Revocations(gateway.store, tokens)
        await revocations.look()  # before the first request
        tasks.start_soon(revocations.share)
    users = authenticator(config, tokens, report)
    tasks.start_soon(users.prepare)
    agents = HttpAgents(gateway, users, listening.http, tasks, report)
    if gateway.feed is not None:
        gateway.feed.answers_at = agents.address
    longest = max(server.loaded.settings.max_message_bytes for server in config.servers.values())
    listener = Listener(
        agents.handle,
        listener_limits(config, longest),
        lambda peer, status, why: agents.refusals.unread(peer, status, why),
        agents.admit,
    )
    listener.is_proxy = agents.senders.is_proxy
    agents.long.held = listener.held
    listener.on_stream = agents.senders.watch
    accepting = [
        await serve_sockets(
            listener,
            listening_socket,
            listening.tls if address.tls else None,
            is_busy=gateway.spare.are_needed,  # by an administrator
        )
        for address, listening_socket in listening.http
    ]
    tasks.start_soon(agents.end_unused)
    tasks.start_soon(agents.end_forbidden_streams)
    tasks.start_soon(agents.refusals.keep_reporting)
    return _Web(listener, accepting)


async def _serve_probes(gateway: Gateway, listening: socket.socket) -> None:
    """Answer probes, for which descriptors are kept: they tell what is wrong when all others are in use."""
    from ..transports.http.accepting import serve_sockets
    from ..transports.http.listener import Listener
    from .probes import LIMITS, respond_at_own_address

    listener = Listener(partial(respond_at_own_address, gateway), LIMITS)

    def make_room() -> bool:
        return gateway.spare.give() or listener.make_room()

    await serve_sockets(listener, listening, None, make_room)


def _what_it_serves(config: GatewayConfig) -> str:
    if config.closed:
        return f"lets nothing pass: {config.closed}"
    signed = f" with {config.bundle.shown}" if config.bundle is not None else ""
    return f"serves {', '.join(config.servers)} under policy {config.version[:12]}{signed}"


async def _reload(
    gateway: Gateway, load: Load, report: Report, manager: ServiceManager, admin: socket.socket | None
) -> Reloaded:
    """Put a changed configuration into force. One that cannot be read is refused, and the old one stays."""
    manager.reloading()
    before = gateway.config
    says: list[str] = []
    try:
        config = await anyio.to_thread.run_sync(load, "")
        says += map(with_lines, config.notes)
        says += _changes(gateway.config, config)
        gateway.change_policy(config)
        if admin is not None:
            change_admin_mode(admin, config, report)
        gateway.servers.look_at_sharing(config.servers, before.servers)
        why = ""
    except UserError as problem:
        why = f"{with_lines(problem.message)} ({problem.hint})"
    except Exception as defect:  # the gateway must not end because of a file, nor of what follows from it
        why = describe_error(defect)
    if why:
        gateway.metrics.reloads["error"] += 1
        says = [_why_not_reloaded(gateway, before, why)]
    else:
        gateway.metrics.reloads["ok"] += 1
    for text in says:
        report(text)
    manager.ready(_what_it_serves(gateway.config))
    return Reloaded(not why, says)


def _why_not_reloaded(gateway: Gateway, before: GatewayConfig, why: str) -> str:
    if gateway.config is before:
        return f"the policy stays {before.version[:12]}: {why}"
    return f"policy {gateway.config.version[:12]} is in force, but not all of it, until the next reload: {why}"


def _changes(before: GatewayConfig, config: GatewayConfig) -> Iterator[str]:
    """What a reload changes, and what it does not."""
    from ..config.policy_digest import changed_keys, changed_parts

    if config.gateway != before.gateway:
        yield "[gateway] has changed: its limits and seal keys are in force, the rest only after a restart"
    yield from changed_keys(before.tables, config.tables)
    yield from changed_parts(before.parts, config.parts, config.path)
    yield f"policy {config.version[:12]} is in force{' as before' if config.version == before.version else ''}"
    if config.closed or config.bundle != before.bundle:
        yield _what_it_serves(config)


async def _drain(
    gateway: Gateway,
    web: _Web | None,
    accepting: Sequence[anyio.CancelScope],
    tasks: TaskGroup,
    report: Report,
    sign_audit: Callable[[], Awaitable[None]],
) -> None:
    """End so that no call is lost: what comes on open connections is handled, and others go to another gateway.

    Those of `accepting` are ended at once.
    """
    for scope in accepting:
        scope.cancel()
    report(f"is ending: {counted(len(gateway.sessions), 'session')} open")
    gateway.leaving = True
    await anyio.sleep(gateway.config.gateway.drain_delay_seconds)
    async with anyio.create_task_group() as drains:
        drains.start_soon(partial(gateway.drain, stateless=False))
        if web is not None:
            await web.drain()
    await gateway.drain(stateless=True)
    await sign_audit()
    tasks.cancel_scope.cancel()
