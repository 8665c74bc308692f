"""Serves connections of `hookproxy connect`: each one is a session, and what happens to it concerns it alone."""

from __future__ import annotations

import contextlib
import os
import socket
import traceback
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from ..model.errors import UserError, describe_error
from ..transports import unix_socket
from ..transports.pipe import open_channel
from . import preamble
from .servers import open_server

if TYPE_CHECKING:
    from ..config.gateway import GatewayServer
    from ..session.proxy import Report
    from ..session.server_end import ServerEnd
    from ..transports.channel import Channel
    from .gateway import Gateway

_PREAMBLE_SECONDS: Final = 10.0
"""How long a connection may take to say what it wants: `connect` does it at once."""

_ACCEPT_AGAIN_SECONDS: Final = 0.1
"""After an error in accepting, mostly because there are no more descriptors: connections wait in the queue."""


async def accept_connections(listener: socket.socket, gateway: Gateway, report: Report) -> None:
    """Accept connections and serve them, until it is cancelled; their sessions go on to their end."""
    async with anyio.create_task_group() as tasks:
        while True:
            await anyio.wait_readable(listener)
            try:
                connection, _ = listener.accept()
            except BlockingIOError:
                continue
            except OSError as error:
                report(f"a connection cannot be accepted: {error.strerror}")
                await anyio.sleep(_ACCEPT_AGAIN_SECONDS)
                continue
            connection.setblocking(False)
            tasks.start_soon(_serve, connection, gateway, report)


async def _serve(connection: socket.socket, gateway: Gateway, report: Report) -> None:
    with connection:
        refusal = ""
        try:
            await _run_session(connection, gateway)
        except (preamble.NotAPreamble, OSError) as problem:
            refusal = str(problem) or "it took too long to say which server is wanted"
        except UserError as problem:
            refusal = f"{problem.message} ({problem.hint})"
        except Exception as defect:  # the boundary of one session: the others go on
            report("".join(traceback.format_exception(defect)).rstrip())
            refusal = f"the gateway has failed: {describe_error(defect)}"
        if refusal:
            report(f"a connection was refused: {refusal}")
            _send(connection, preamble.error(refusal))


async def _run_session(connection: socket.socket, gateway: Gateway) -> None:
    account = unix_socket.account_of_peer(connection)
    with anyio.fail_after(_PREAMBLE_SECONDS):
        principal = await anyio.to_thread.run_sync(unix_socket.principal_of, *account)
        wanted = await _read_preamble(connection)
    session = gateway.admit(principal, wanted.server, wanted.cwd)

    def open_and_confirm(server: GatewayServer, report: Report) -> tuple[Channel, ServerEnd]:
        opened = open_server(server, report)
        _send(connection, preamble.OK)
        return opened

    agent = open_channel(os.dup(connection.fileno()), os.dup(connection.fileno()))
    await gateway.run(session, agent, open_and_confirm)


async def _read_preamble(connection: socket.socket) -> preamble.Preamble:
    """Read what comes before the agent's bytes, and nothing of those. Raises NotAPreamble, OSError."""
    while True:
        await anyio.wait_readable(connection)
        received = connection.recv(preamble.MAX_BYTES + 2, socket.MSG_PEEK)
        if not received:
            raise preamble.NotAPreamble("it ended before it said which server is wanted")
        if (end := preamble.end_of(received)) >= 0:
            return preamble.read(connection.recv(end))


def _send(connection: socket.socket, reply: bytes) -> None:
    """Send a short reply to a peer that may be gone."""
    with contextlib.suppress(OSError):
        connection.send(reply)
