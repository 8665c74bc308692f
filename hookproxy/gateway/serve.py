"""Runs the gateway: listens, and ends on a signal after the calls in flight."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Final

import anyio

from .gateway import Gateway
from .unix_connections import accept_connections

if TYPE_CHECKING:
    import socket

    from anyio.abc import TaskGroup

    from ..config.gateway import GatewayConfig
    from ..session.proxy import Report

_ENDING: Final = (signal.SIGTERM, signal.SIGINT)


async def serve(config: GatewayConfig, listeners: Sequence[socket.socket], report: Report) -> None:
    """Serve agents until SIGTERM or SIGINT. A second signal ends it without waiting for calls.

    On cancel all servers and hooks are killed.
    """
    gateway = Gateway(config, report)
    async with anyio.create_task_group() as tasks:
        with anyio.open_signal_receiver(*_ENDING) as signals:
            for listener in listeners:
                tasks.start_soon(accept_connections, listener, gateway, report)
            report(f"serves {', '.join(config.servers)} under policy {config.version[:12]}")
            await _until_drained(signals, gateway, tasks, report)


async def _until_drained(
    signals: AsyncIterator[signal.Signals], gateway: Gateway, tasks: TaskGroup, report: Report
) -> None:
    async for _ in signals:
        if gateway.draining:
            break
        tasks.start_soon(_drain, gateway, tasks, report)
    tasks.cancel_scope.cancel()


async def _drain(gateway: Gateway, tasks: TaskGroup, report: Report) -> None:
    report(f"is ending: {len(gateway.sessions)} sessions are open")
    await gateway.drain()
    tasks.cancel_scope.cancel()
