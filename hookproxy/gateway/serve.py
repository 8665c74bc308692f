"""Runs the gateway: listens, reloads its policy on a signal, and ends on one after the calls in flight."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from ..model.errors import UserError
from .gateway import Gateway
from .unix_connections import accept_connections

if TYPE_CHECKING:
    import socket

    from anyio.abc import TaskGroup

    from ..config.gateway import GatewayConfig
    from ..session.proxy import Report

_RELOAD: Final = signal.SIGHUP
_ENDING: Final = (signal.SIGTERM, signal.SIGINT)

Load = Callable[[], "GatewayConfig"]
"""Reads the configuration again. Raises UserError."""


async def serve(config: GatewayConfig, listeners: Sequence[socket.socket], report: Report, load: Load) -> None:
    """Serve agents until SIGTERM or SIGINT. A second one ends it without waiting for calls; SIGHUP reloads.

    On cancel all servers and hooks are killed.
    """
    gateway = Gateway(config, report)
    async with anyio.create_task_group() as tasks:
        with anyio.open_signal_receiver(_RELOAD, *_ENDING) as signals:
            for listener in listeners:
                tasks.start_soon(accept_connections, listener, gateway, report)
            report(f"serves {', '.join(config.servers)} under policy {config.version[:12]}")
            async for number in signals:
                if number == _RELOAD:
                    await _reload(gateway, load, report)
                elif gateway.draining:
                    break
                else:
                    tasks.start_soon(_drain, gateway, tasks, report)
        tasks.cancel_scope.cancel()


async def _reload(gateway: Gateway, load: Load, report: Report) -> None:
    """Put a changed configuration into force. One that cannot be read is refused, and the old one stays."""
    try:
        config = await anyio.to_thread.run_sync(load)
    except UserError as problem:
        report(f"the policy stays {gateway.config.version[:12]}: {problem.message} ({problem.hint})")
        return
    for note in config.notes:
        report(note)
    gateway.change_policy(config)
    report(f"policy {config.version[:12]} is in force")


async def _drain(gateway: Gateway, tasks: TaskGroup, report: Report) -> None:
    report(f"is ending: {len(gateway.sessions)} sessions are open")
    await gateway.drain()
    tasks.cancel_scope.cancel()
