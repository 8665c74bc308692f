"""One session at the gateway: an agent's channel, a server, and the proxy between them, as under `hookproxy run`."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio
from msgspec import Struct

from ..audit.log import Audit
from ..hooks.evaluate import Hooks
from ..model.hooks import Session
from ..processes import service
from ..session.lifecycle import Lifecycle
from ..session.proxy import Proxy, Report

if TYPE_CHECKING:
    from ..config.gateway import GatewayServer
    from ..model.principal import Principal
    from ..policy.rate_limits import WindowOf
    from ..session.server_end import ServerEnd
    from ..transports.channel import Channel

OpenServer = Callable[["GatewayServer", Report], "tuple[Channel, ServerEnd]"]
"""Starts or reaches the server of a session. Raises UserError."""

_DRAINING = "the gateway is ending"


class GatewaySession:
    """A session of one user at one server."""

    def __init__(self, identity: SessionIdentity, server: GatewayServer, report: Report) -> None:
        self.identity = identity
        self.server = server
        self._report = report
        self._proxy: Proxy | None = None
        self._lifecycle: Lifecycle | None = None
        self._ended = anyio.Event()

    async def run(self, agent: Channel, open_server: OpenServer, policy: str, window_of: WindowOf) -> int:
        """Relay until one side ends. Returns the server's exit status.

        Raises UserError if the server cannot be started; then nothing has been read from the agent. On cancel the
        server is killed and waited for.
        """
        server, principal = self.server, self.identity.principal
        settings = server.settings_for(principal)
        command = tuple(server.table.command or ())
        environ = service.environment(service.own_account(), {})
        hooks = Hooks(
            server.loaded.groups, settings, server.name, environ, server.loaded.trust, command, window_of
        )  # before the server starts: a hook that cannot be used must stop it
        session = Session(
            id=self.identity.id,
            server=server.name,
            cwd=server.cwd,
            project_dir=server.cwd,
            command=command,
            url=server.table.url or "",
            principal=principal,
        )
        channel, server_end = open_server(server, self._report)
        audit = Audit(settings, principal, policy)
        self._proxy = Proxy(agent, channel, hooks, settings, session, audit, self._report)
        self._lifecycle = Lifecycle(self._proxy, server_end, forwards_signals=False)
        try:
            return await self._lifecycle.run()
        finally:
            self._ended.set()

    async def drain(self, seconds: float) -> None:
        """Read no more calls, give those in flight so many seconds, and end the session. Returns when it has ended."""
        if self._proxy is None or self._lifecycle is None:
            return
        proxy = self._proxy
        proxy.relay.pause_agent(_DRAINING, True)
        proxy.relay.on_passed = proxy.changes.notify
        with anyio.move_on_after(seconds):
            await proxy.changes.until(
                lambda: self._ended.is_set() or not (proxy.router.pending or proxy.has_open_calls)
            )
        if not self._ended.is_set():
            self._lifecycle.end(signal.SIGTERM)
            await self._ended.wait()


class SessionIdentity(Struct, frozen=True):
    """Which session it is, and whose."""

    id: str
    principal: Principal
    caller_cwd: str = ""
    """The folder in which the agent runs, as it says itself."""


def new_session_id() -> str:
    """An id that nobody can guess."""
    return os.urandom(16).hex()
