"""The server of the pages and of the interceptors over HTTP, for few requests: uvicorn, within our event loop.

No message of an agent or of a server passes through it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import anyio
import uvicorn

if TYPE_CHECKING:
    import socket
    from types import FrameType

    from starlette.types import ASGIApp


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Nothing: no signal comes here."""


@contextlib.asynccontextmanager
async def serving(application: ASGIApp, listener: socket.socket) -> AsyncIterator[None]:
    """Serve requests at this socket until the block is left, or cancelled."""
    config = uvicorn.Config(
        application,
        http="h11",  # it bounds the size of a request's head
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=2,  # seconds: what a peer does not read holds up nothing
    )
    server = _Server(config)

    async def until_exit() -> None:
        with anyio.CancelScope(shield=True):  # it ends by itself soon after `should_exit` is set
            await server.serve([listener])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(until_exit)
        try:
            yield
        finally:
            server.should_exit = True
