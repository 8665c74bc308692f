"""Runs the gateway: listens, reloads its policy on a signal, and ends on one after the calls in flight."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread
from msgspec import Struct

from ..authorization.access_tokens import IssuerSettings
from ..authorization.authenticate import Authenticator
from ..authorization.bearer_tokens import BearerTokens
from ..model.counts import counted
from ..model.errors import UserError, describe_error
from .gateway import Gateway
from .log import GatewayLog
from .servers import Servers
from .unix_connections import accept_connections

if TYPE_CHECKING:
    import socket
    import ssl

    from anyio.abc import TaskGroup

    from ..config.gateway import GatewayConfig
    from ..session.proxy import Report
    from ..transports.http.listener import Listener
    from .http_listeners import HttpAddress

_RELOAD: Final = signal.SIGHUP
_ENDING: Final = (signal.SIGTERM, signal.SIGINT)

Load = Callable[[], "GatewayConfig"]
"""Reads the configuration again. Raises UserError."""


class Listening(Struct, frozen=True):
    """All sockets at which the gateway listens."""

    unix: Sequence[socket.socket]
    http: Sequence[tuple[HttpAddress, socket.socket]]
    tls: ssl.SSLContext | None
    probes: socket.socket | None


async def serve(config: GatewayConfig, listening: Listening, report: GatewayLog, load: Load) -> None:
    """Serve agents until SIGTERM or SIGINT. A second one ends it without waiting for calls; SIGHUP reloads.

    On cancel all servers and hooks are killed.
    """
    async with anyio.create_task_group() as tasks:
        gateway = Gateway(config, Servers(tasks, report), report)
        with anyio.open_signal_receiver(_RELOAD, *_ENDING) as signals:
            for listener in listening.unix:
                tasks.start_soon(accept_connections, listener, gateway, report)
            if listening.probes is not None:
                await _serve_probes(gateway, listening.probes)
            web = await _serve_http(gateway, listening, tasks, report) if listening.http else None
            report(f"serves {', '.join(config.servers)} under policy {config.version[:12]}")
            async for number in signals:
                if number == _RELOAD:
                    await _reload(gateway, load, report)
                elif gateway.draining:
                    break
                else:
                    tasks.start_soon(_drain, gateway, web, tasks, report)
        tasks.cancel_scope.cancel()


async def _serve_http(gateway: Gateway, listening: Listening, tasks: TaskGroup, report: Report) -> Listener:
    """Accept connections of agents that speak HTTP. Raises UserError."""
    from ..transports.http.listener import Listener, ListenerLimits, serve_sockets
    from .http_agents import HttpAgents

    config = gateway.config
    authenticator = _authenticator(config, report)
    tasks.start_soon(authenticator.prepare)
    agents = HttpAgents(gateway, authenticator, listening.http, tasks, report)
    limits = ListenerLimits(body_bytes=max(one.loaded.settings.max_message_bytes for one in config.servers.values()))
    listener = Listener(
        agents.handle, limits, lambda peer, status, why: report(f"{peer.address}: refused with {status}: {why}")
    )
    for address, listening_socket in listening.http:
        await serve_sockets(listener, listening_socket, listening.tls if address.tls else None)
    tasks.start_soon(agents.end_unused)
    return listener


async def _serve_probes(gateway: Gateway, listening: socket.socket) -> None:
    from ..transports.http.listener import Listener, serve_sockets
    from .probes import respond

    await serve_sockets(Listener(partial(respond, gateway)), listening, None)


def _authenticator(config: GatewayConfig, report: Report) -> Authenticator:
    """Whose tokens are accepted. Raises UserError."""
    folder = os.path.dirname(config.path)
    tokens = config.gateway.tokens
    known = BearerTokens(os.path.join(folder, tokens), report) if tokens is not None else None
    table = config.gateway.oidc
    if table is None:
        return Authenticator(known, None)
    from ..authorization.token_issuer import TokenIssuer

    settings = IssuerSettings(
        table.issuer,
        table.audience,
        table.user_claim,
        table.groups_claim,
        tuple(table.required_scopes),
        table.any_type,
        os.path.join(folder, table.ca) if table.ca else "",
    )
    return Authenticator(known, TokenIssuer(settings, report))


async def _reload(gateway: Gateway, load: Load, report: Report) -> None:
    """Put a changed configuration into force. One that cannot be read is refused, and the old one stays."""
    try:
        config = await anyio.to_thread.run_sync(load)
    except UserError as problem:
        why = f"{problem.message} ({problem.hint})"
    except Exception as defect:  # the gateway must not end because of a file
        why = describe_error(defect)
    else:
        why = ""
    if why:
        gateway.metrics.reloads["error"] += 1
        report(f"the policy stays {gateway.config.version[:12]}: {why}")
        return
    for note in config.notes:
        report(note)
    if config.gateway != gateway.config.gateway:
        report("[gateway] has changed: its limits are in force, its addresses and tokens only after a restart")
    gateway.change_policy(config)
    gateway.metrics.reloads["ok"] += 1
    report(f"policy {config.version[:12]} is in force")


async def _drain(gateway: Gateway, web: Listener | None, tasks: TaskGroup, report: Report) -> None:
    report(f"is ending: {counted(len(gateway.sessions), 'session')} open")
    if web is not None:
        web.close_when_idle()
    await gateway.drain()
    tasks.cancel_scope.cancel()
