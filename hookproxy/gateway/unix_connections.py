"""Serves connections of `hookproxy connect`: each one is a session, and what happens to it concerns it alone."""

from __future__ import annotations

import contextlib
import os
import socket
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import Struct

from ..model.errors import UserError
from ..processes import service, spawn
from ..processes.process import close_all
from ..session.server_end import ForeignServer
from ..transports import unix_socket
from ..transports.pipe import open_channel
from . import preamble
from .accepting import connections
from .gateway import NotAdmitted
from .long_lines import LongLook
from .refusal_log import RefusalLog

if TYPE_CHECKING:
    from ..model.principal import Principal
    from ..model.settings import Settings
    from ..session.proxy import Report
    from ..session.server_end import ServerEnd
    from ..transports.channel import Channel
    from .gateway import Gateway
    from .session import GatewaySession

_PREAMBLE_SECONDS: Final = 10.0
"""How long a connection may take to say what it wants: `connect` does it at once."""

_MOST_WITHOUT_PREAMBLE: Final = 64
"""Connections of one user that have not said what they want: more than all servers of several agents that start
together, and few enough that one user cannot use up the gateway's descriptors."""

_MOST_WHILE_SHORT: Final = 4
"""The same while descriptors are short, for all but administrators: those that are kept would be used up else."""

_LENT: Final = 16  # descriptors for what an administrator wants then: a reload opens some files, one after another

_LONGEST_NAME_SHOWN: Final = 64  # characters of the name of a server, which an agent may make as long as it likes
_LONGEST_REPORT: Final = 32_768
"""Characters of what a reload says: they fit into the empty buffer of a socket."""


class Reloaded(Struct, frozen=True):
    """What became of a reload."""

    done: bool
    says: Sequence[str]
    """Sentences for people."""


Reload = Callable[[], Awaitable[Reloaded]]


async def accept_connections(  # what its connections need
    listener: socket.socket,
    gateway: Gateway,
    report: Report,
    refusals: RefusalLog,
    reload: Reload,
    accepting: anyio.CancelScope,
) -> None:
    """Accept connections until `accepting` is cancelled, and serve them. If this is cancelled, their sessions end too.

    `reload` reads the configuration again.
    """
    without_preamble = Counter[int]()
    failures = _AcceptFailures(report)
    async with anyio.create_task_group() as tasks:
        with accepting:
            async for connection in connections(listener, gateway.spare, failures.note):
                if not (is_short := gateway.spare.is_short):  # else it has one of those that are kept
                    failures.note_success()
                new = _Connection(connection, gateway, report, refusals, without_preamble, reload, is_short)
                tasks.start_soon(new.serve)


class _AcceptFailures:
    """Reports why no connection is accepted: once, and not at each attempt."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._why = ""

    def note(self, error: OSError) -> None:
        if (why := error.strerror or str(error)) != self._why:
            self._report(f"a connection cannot be accepted: {why}")
        self._why = why

    def note_success(self) -> None:
        if self._why:
            self._why = ""
            self._report("connections are accepted again")


class _Connection(Struct, eq=False):
    """A connection, which is refused in a sentence or becomes a session."""

    _peer: socket.socket
    _gateway: Gateway
    _report: Report
    _refusals: RefusalLog
    _without_preamble: Counter[int]  # how many connections each user has that have not said what they want
    _reload: Reload
    _is_short: bool  # descriptors are, so it has one of those that are kept for administrators
    _confirmed: bool = False
    _end_reason: socket.socket | None = None  # where the peer reads why its session has ended
    _whose: str = "a connection"
    _sender: str = ""
    """Who has connected, as far as is known: of its refusals for one reason, one is reported."""

    async def serve(self) -> None:
        """Serve it to its end. What goes wrong concerns nothing else."""
        with self._peer:
            try:
                await self._handle()
            finally:
                self._gateway.spare.refill()
                if self._end_reason is not None:
                    self._end_reason.close()

    async def _handle(self) -> None:
        refusal = kind = server = ""
        try:
            principal, wanted = await self._read()
            self._whose = f"a connection of {principal.name}"
            if wanted.server and self._is_short:
                raise UserError("the gateway has no descriptors left", "try again later, or ask its administrator")
            server = wanted.server if wanted.server in self._gateway.config.servers else ""
            if wanted.server:
                self._whose += f" to {wanted.server[:_LONGEST_NAME_SHOWN]}"
                await self._run_session(principal, wanted)
            else:
                await self._run_reload(principal)
        except (preamble.NotAPreamble, OSError) as problem:
            refusal, kind = str(problem) or "it took too long to say which server is wanted", type(problem).__name__
        except UserError as problem:
            refusal, kind = f"{problem.message}\t{problem.hint}", _kind(problem)
        except Exception as defect:  # the boundary of one session: the others go on
            self._report("".join(traceback.format_exception(defect)).rstrip())
            refusal, kind = "the gateway has failed\tits log says how", type(defect).__name__
        if refusal:
            on_a_line = refusal.replace("\t", "; ")
            what = "a session has ended" if self._confirmed else f"{self._whose} was refused"
            reason = f"{self._confirmed} {kind} {server}"  # nothing that an agent can choose
            self._refusals.note(self._sender, reason, f"{what}: {on_a_line}")
            if self._confirmed:
                self._send_end_reason(on_a_line)
            else:  # afterwards only the agent's server speaks on it
                with contextlib.suppress(OSError):  # the peer is gone
                    self._peer.send(preamble.error(refusal))

    def _send_end_reason(self, text: str) -> None:
        if self._end_reason is not None:
            with contextlib.suppress(OSError):  # the peer is gone, or does not want to know
                self._end_reason.send(preamble.end_reason(text))

    async def _read(self) -> tuple[Principal, preamble.Preamble]:
        """Who has connected, and what it wants. Raises NotAPreamble, OSError, UserError."""
        uid = unix_socket.uid_of_peer(self._peer)
        self._sender = str(uid)
        if (hooks := spawn.hooks_account()) is not None and uid == hooks.uid:
            raise preamble.NotAPreamble(f"the account of the hooks, {hooks.name}, is not a user of the gateway")
        most = _MOST_WITHOUT_PREAMBLE
        if self._is_short and uid not in (0, os.geteuid()):
            most = _MOST_WHILE_SHORT
        if self._without_preamble[uid] >= most:
            raise preamble.NotAPreamble(f"too many connections of user {uid} do not say which server they want")
        self._without_preamble[uid] += 1
        try:
            with anyio.fail_after(_PREAMBLE_SECONDS):
                wanted = await _read_preamble(self._peer)
            lent = _LENT if uid in (0, os.geteuid()) else 0
            with self._gateway.spare.lent(lent):
                return await self._gateway.accounts.principal(uid), wanted
        finally:
            self._without_preamble[uid] -= 1
            if not self._without_preamble[uid]:
                del self._without_preamble[uid]

    async def _run_reload(self, principal: Principal) -> None:
        """Read the configuration again, and say what has changed, or why it stays. Raises UserError."""
        if not self._gateway.rights_of(principal).operates:
            raise UserError("only root, the account of the gateway and its operators may reload it", "ask one of them")
        with self._gateway.spare.lent(_LENT):
            reloaded = await self._reload()
        if not reloaded.done:  # which the log has already
            self._peer.send(preamble.error(f"{reloaded.says[0]}\tcorrect it, and reload again"))
            return
        text = "".join(f"{sentence}\n" for sentence in reloaded.says)[:_LONGEST_REPORT]
        self._peer.send(preamble.OK + text.encode(errors="replace"))

    async def _run_session(self, principal: Principal, wanted: preamble.Preamble) -> None:
        source, sink = os.dup(self._peer.fileno()), -1
        try:
            sink = os.dup(source)
            session = await self._gateway.admit_when_room(principal, wanted.server, wanted.cwd)
            session.look = LongLook(self._gateway, principal.id)
        except BaseException:
            close_all([fd for fd in (source, sink) if fd >= 0])
            raise
        agent = open_channel(source, sink)
        try:
            await self._gateway.run_session(session, agent, partial(self._open_server, wanted))
            if session.end_reason:
                self._send_end_reason(session.end_reason)
        finally:
            agent.close()

    def _open_server(
        self, wanted: preamble.Preamble, session: GatewaySession, settings: Settings
    ) -> tuple[Channel, ServerEnd]:
        """Start the session's server, and say that it is there. Raises UserError, OSError."""
        server = session.server
        if wanted.pipes and not server.table.from_caller:
            raise UserError(f"the server {server.name} is started by the gateway", "leave out the command")
        if server.table.from_caller and not wanted.pipes:
            hint = f"hookproxy connect {server.name} -- COMMAND starts it"
            raise UserError(f"the server {server.name} runs as the user", hint)
        if server.table.from_caller:
            opened = self._open_pipes()
        else:
            opened = self._gateway.servers.open(session, settings)
            try:
                self._confirm()
            except OSError:  # the peer is gone, which the session sees too, or descriptors are short
                with contextlib.suppress(OSError):
                    self._peer.send(preamble.OK)
        self._confirmed = True
        return opened

    def _confirm(self, *descriptors: int) -> None:
        """Say that the server is there, and send these descriptors with it. Raises OSError.

        The first one that is sent is where the peer reads why its session has ended.
        """
        self._end_reason, theirs = socket.socketpair()
        self._end_reason.setblocking(False)
        with theirs:
            socket.send_fds(self._peer, [preamble.OK], [theirs.fileno(), *descriptors])

    def _open_pipes(self) -> tuple[Channel, ServerEnd]:
        """Make the sockets of a server that the peer starts, and send their far ends with `ok`. Raises OSError.

        They are ours and not the peer's: whoever shares an open file with us could make it blocking, and to close a
        file of a user's own file system could take for ever.
        """
        ends: list[int] = []
        try:
            ends += service.socket_pair()
            ends += service.socket_pair()
            stdin, to_server, from_server, stdout = ends
            self._confirm(stdin, stdout)
        except BaseException:
            close_all(ends)
            raise
        close_all((stdin, stdout))
        channel = open_channel(from_server, to_server)
        return channel, ForeignServer(channel.close)


def _kind(problem: UserError) -> str:
    """What sort of refusal it is, whatever names its text has."""
    return problem.reason.phrase if isinstance(problem, NotAdmitted) else type(problem).__name__


async def _read_preamble(peer: socket.socket) -> preamble.Preamble:
    """Read what comes before the agent's bytes, and nothing of those. Raises NotAPreamble, OSError.

    Descriptors that come along are dropped by the kernel.
    """
    received = b""
    while (end := preamble.end_of(received)) < 0:
        await anyio.wait_readable(peer)
        seen = received + peer.recv(preamble.MAX_BYTES + 2, socket.MSG_PEEK)
        if seen == received:
            raise preamble.NotAPreamble("it ended before it said which server is wanted")
        end = preamble.end_of(seen)
        received += peer.recv((end if end >= 0 else len(seen)) - len(received))
    return preamble.read(received)
