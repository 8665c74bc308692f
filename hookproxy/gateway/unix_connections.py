"""Serves connections of `hookproxy connect`: each one is a session, and what happens to it concerns it alone."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
import traceback
from typing import TYPE_CHECKING, Final, Self

import anyio
import anyio.to_thread

from ..model.errors import UserError, describe_error
from ..processes.process import close_all
from ..session.server_end import ForeignServer
from ..transports import unix_socket
from ..transports.pipe import open_channel
from . import preamble

if TYPE_CHECKING:
    from ..model.settings import Settings
    from ..session.proxy import Report
    from ..session.server_end import ServerEnd
    from ..transports.channel import Channel
    from .gateway import Gateway
    from .session import GatewaySession

_DESCRIPTOR: Final = struct.Struct("i")  # of SCM_RIGHTS

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
            refusal = f"{problem.message}\t{problem.hint}"
        except Exception as defect:  # the boundary of one session: the others go on
            report("".join(traceback.format_exception(defect)).rstrip())
            refusal = f"the gateway has failed: {describe_error(defect)}"
        if refusal:
            report(f"a connection was refused: {refusal.replace(chr(9), '; ')}")
            _send(connection, preamble.error(refusal))


async def _run_session(connection: socket.socket, gateway: Gateway) -> None:
    account = unix_socket.account_of_peer(connection)
    with anyio.fail_after(_PREAMBLE_SECONDS):
        principal = await anyio.to_thread.run_sync(unix_socket.principal_of, *account)
        wanted, pipes = await _read_preamble(connection)
    with pipes:
        session = gateway.admit(principal, wanted.server, wanted.cwd)

        def open_and_confirm(opened_for: GatewaySession, settings: Settings) -> tuple[Channel, ServerEnd]:
            server = opened_for.server
            if pipes.descriptors and not server.table.from_caller:
                raise UserError(f"the server {server.name} is started by the gateway", "leave out the command")
            opened = pipes.open() if server.table.from_caller else gateway.servers.open(opened_for, settings)
            _send(connection, preamble.OK)
            return opened

        agent = open_channel(os.dup(connection.fileno()), os.dup(connection.fileno()))
        await gateway.run(session, agent, open_and_confirm)


class _CallerPipes:
    """The descriptors that came with a preamble: what a server of the caller prints, and what it reads."""

    def __init__(self, descriptors: list[int]) -> None:
        self.descriptors = descriptors

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        close_all(self.descriptors)
        self.descriptors = []

    def open(self) -> tuple[Channel, ServerEnd]:
        """The channel to the caller's server, which owns the descriptors from now on. Raises UserError.

        Only pipes and sockets can be waited for: a device would be read for ever.
        """
        if len(self.descriptors) != 2:
            raise UserError("this server runs as the user", "hookproxy connect NAME -- COMMAND starts it")
        modes = [os.fstat(one).st_mode for one in self.descriptors]
        if not all(stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) for mode in modes):
            raise UserError("the server's input and output are no pipes", "use hookproxy connect NAME -- COMMAND")
        (source, sink), self.descriptors = self.descriptors, []
        channel = open_channel(source, sink)
        return channel, ForeignServer(channel.close)


async def _read_preamble(connection: socket.socket) -> tuple[preamble.Preamble, _CallerPipes]:
    """Read what comes before the agent's bytes, and nothing of those. Raises NotAPreamble, OSError."""
    while True:
        await anyio.wait_readable(connection)
        received = connection.recv(preamble.MAX_BYTES + 2, socket.MSG_PEEK)
        if not received:
            raise preamble.NotAPreamble("it ended before it said which server is wanted")
        if (end := preamble.end_of(received)) >= 0:
            message, pipes = _receive(connection, end)
            try:
                return preamble.read(message), pipes
            except BaseException:
                close_all(pipes.descriptors)
                raise


def _receive(connection: socket.socket, size: int) -> tuple[bytes, _CallerPipes]:
    """Read so many bytes, which are there, and the descriptors that come with them."""
    message, ancillary, flags, _ = connection.recvmsg(size, socket.CMSG_SPACE(_DESCRIPTOR.size * 2))
    data = b"".join(
        piece for level, kind, piece in ancillary if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS
    )
    found = [number for (number,) in _DESCRIPTOR.iter_unpack(data[: len(data) // _DESCRIPTOR.size * _DESCRIPTOR.size])]
    for one in found:
        os.set_inheritable(one, False)
    if flags & socket.MSG_CTRUNC:
        close_all(found)
        raise preamble.NotAPreamble("it came with more descriptors than a server has")
    return message, _CallerPipes(found)


def _send(connection: socket.socket, reply: bytes) -> None:
    """Send a short reply to a peer that may be gone."""
    with contextlib.suppress(OSError):
        connection.send(reply)
