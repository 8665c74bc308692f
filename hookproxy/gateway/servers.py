"""Starts the servers of sessions, with their secrets, and relays what they print on standard error."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import anyio.abc
from msgspec import Struct, field

from ..jsonrpc.known_secrets import PART, known_secrets
from ..model.counts import counted
from ..model.errors import UserError
from ..network.address import parse
from ..processes import service
from ..processes.ending import end_server
from ..protocol.multiplex import Multiplexer
from ..session.allowed_folders import roots_of
from ..session.remote_server import RemoteOptions, headers, open_remote_server
from ..session.server_end import RemoteServer, ServerProcess
from ..transports.line_log import relay_lines
from ..transports.pipe import open_channel
from ..transports.shared_server import SharedServer
from . import server_process
from .secrets import read_secrets, report_without_secrets, secrets_of
from .sharing import untold

if TYPE_CHECKING:
    from ..config.gateway import GatewayServer
    from ..model.principal import Principal
    from ..model.settings import Settings
    from ..session.proxy import Report
    from ..session.server_end import ServerEnd
    from ..transports.channel import Channel
    from .session import GatewaySession

_QUICK_SECONDS: Final = 10.0
"""A server that ends so soon after its start has failed: others would fail in the same way."""

_LONGEST_PAUSE: Final = 60.0
"""Seconds before a server that fails again and again is started once more: people notice a repair within a minute."""

_Key = tuple[str, str, bool]
"""Server, user and "takes requests that stand alone". No user: the process is everybody's. A server that has had a
handshake refuses requests that stand alone, as the MCP SDKs do, so each era has a process."""


OnStart = Callable[["ServerProcess", str, "Principal | None"], None]
"""Gets a process, the name of its server, and whose it is; None: everybody's."""


class Servers:
    """The servers of all sessions: each session's own, and those that several share."""

    def __init__(self, tasks: anyio.abc.TaskGroup, report: Report) -> None:
        self.on_dropped: Callable[[str], None] = lambda _server: None
        """Gets the name of a shared server whose message certainly belonged to no session, and reached none."""
        self._tasks = tasks
        self._report = report
        self.on_start: OnStart = lambda _process, _server, _principal: None
        """Called with each process that was started."""
        self._shared: dict[_Key, _SharedProcess] = {}
        self._failures: dict[_Key, tuple[int, float]] = {}  # how many in a row, and until when none is tried

    def open(self, session: GatewaySession, settings: Settings) -> tuple[Channel, ServerEnd]:
        """Start or reach the server of a session, or join its running process. Raises UserError."""
        server = session.server
        if server.table.from_caller:
            problem = f"the server {server.name} runs as the user, and cannot be reached over HTTP"
            command = f"hookproxy connect {server.name} -- COMMAND"
            raise UserError(f"{problem}; on the gateway's machine `{command}` starts it", "it has from_caller = true")
        if server.table.url is not None:
            return _open_remote(server, settings, session.report)
        if server.table.share == "session":
            return self._own(server, session)
        shared = self._shared_by(server, session, settings)
        channel = shared.server.open_channel(session.identity.principal.id)
        return channel, RemoteServer(channel, shared.why_we_ended_it)

    def starts_process(self, session: GatewaySession) -> bool:
        """Whether `open` would start a process for this session now."""
        table = session.server.table
        if table.command is None or table.from_caller:
            return False
        return table.share == "session" or self._joined(session.server, session) is None

    def _own(self, server: GatewayServer, session: GatewaySession) -> tuple[Channel, ServerEnd]:
        """Start a process for one session. Where requests stand alone, each would start one that dies: they wait."""
        report = report_without_secrets(server, session.report)
        if not session.identity.is_stateless:
            channel, process = _start(server, session.identity.principal.id, report)
            self.on_start(process, server.name, session.identity.principal)
            return channel, process
        key = server.name, session.identity.principal.id, True
        self._check_pause(key)
        channel, process = _start(server, session.identity.principal.id, report)
        self.on_start(process, server.name, session.identity.principal)
        return channel, _NotedProcess(process, partial(self._note_end, key, anyio.current_time()))

    def _shared_by(self, server: GatewayServer, session: GatewaySession, settings: Settings) -> _SharedProcess:
        if (running := self._joined(server, session)) is not None:
            return running
        key = _key(server, session)
        user = key[1]
        self._check_pause(key)
        name = f"{server.name}, {session.identity.principal.name}" if user else server.name

        report = report_without_secrets(server, lambda text: self._report(f"{name}: {text}"))
        channel, started = _start(server, user, report)
        self.on_start(started, server.name, session.identity.principal if user else None)
        roots = roots_of(server.loaded.settings.roots)
        multiplexer = Multiplexer(bool(user), report, lambda: self.on_dropped(server.name), roots)
        shared = SharedServer(channel, multiplexer, settings.max_message_bytes, report)
        self._shared[key] = process = _SharedProcess(server, shared, started)
        self._tasks.start_soon(self._watch, key, process)
        return process

    def _joined(self, server: GatewayServer, session: GatewaySession) -> _SharedProcess | None:
        """The running process that a session joins; None: it needs one."""
        process = self._shared.get(_key(server, session))
        if process is None or not process.is_in_use or process.definition.starts_differently(server):
            return None
        return process

    def look_at_sharing(self, servers: Mapping[str, GatewayServer], before: Mapping[str, GatewayServer]) -> None:
        """Do `report_sharing` in the background for those that are new, or start differently than `before`."""
        known = [
            name for name, server in before.items() if name in servers and not servers[name].starts_differently(server)
        ]
        self._tasks.start_soon(self.report_sharing, [one for name, one in servers.items() if name not in known])

    async def report_sharing(self, servers: Iterable[GatewayServer]) -> None:
        """Report what those that everybody shares say that would reach nobody: each is started once, and asked."""
        for server in servers:
            if server.table.share == "all":
                try:
                    if what := await self._untold(server):
                        hint = f'servers.{server.name}.share = "user" keeps them'
                        self._report(f"{server.name} is for all: once several people use it, {what} ({hint})")
                except (UserError, OSError):
                    pass  # `start_problems` has said why, or the first session will

    async def _untold(self, server: GatewayServer) -> str:
        channel, process = _start(server, "", lambda _text: None)
        try:
            return await untold(channel)
        finally:
            with anyio.CancelScope(shield=True):
                await process.kill()
            channel.close()

    async def _watch(self, key: _Key, shared: _SharedProcess) -> None:
        """Wait for the end of a process, or end it when no session has used it for long enough."""
        started = anyio.current_time()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(shared.wait, tasks.cancel_scope)
                shared.start()
                await shared.unused()
                await shared.end()
        finally:
            await shared.kill()
            if self._shared.get(key) is shared:
                del self._shared[key]
        self._note_end(key, started, shared.ended_by_itself)

    def _check_pause(self, key: _Key) -> None:
        """Raise UserError while a process that has failed must not be started again."""
        count, until = self._failures.get(key, (0, 0.0))
        if (seconds := until - anyio.current_time()) > 0:
            problem = f"the server {key[0]} has ended {counted(count, 'time')} in a row"
            raise UserError(problem, f"it is started again in {seconds:.0f} s; the gateway's log has what it printed")

    def _note_end(self, key: _Key, started: float, by_itself: bool) -> None:
        """A process has ended: if by itself and soon after its start, the next one waits, longer each time."""
        quick = anyio.current_time() - started < _QUICK_SECONDS
        if by_itself and quick:
            count = self._failures.get(key, (0, 0.0))[0] + 1
            self._failures[key] = count, anyio.current_time() + min(2.0 ** (count - 1), _LONGEST_PAUSE)
        else:
            self._failures.pop(key, None)
        if by_itself:
            self._report(f"the server {key[0]} has ended by itself; the next call starts it again")


class _NotedProcess:
    """The process of one session, whose end is noted. As ServerEnd."""

    def __init__(self, process: ServerProcess, note: Callable[[bool], None]) -> None:
        """`note` gets whether it has failed: an end without an error may be the end of the session."""
        self._process = process
        self._note = note
        self._was_signalled = False
        self.kill = process.kill
        self.output_ended = process.output_ended
        self.how_it_ended = process.how_it_ended
        self.why_we_ended_it = process.why_we_ended_it

    def watch(self, tasks: anyio.abc.TaskGroup, on_end: Callable[[int], object]) -> None:

        def note(status: int) -> None:
            self._note(status != 0 and not self._was_signalled)
            on_end(status)

        self._process.watch(tasks, note)

    def signal(self, number: int) -> None:
        self._was_signalled = True
        self._process.signal(number)


class _SharedProcess(Struct, eq=False):
    """A process that several sessions use."""

    definition: GatewayServer
    server: SharedServer
    _process: ServerProcess
    _changes: anyio.Event = field(default_factory=anyio.Event)
    _is_ending: bool = False
    has_ended: bool = False
    ended_by_itself: bool = False

    @property
    def is_in_use(self) -> bool:
        """Further sessions may use it."""
        return not self.has_ended and not self.why_we_ended_it()

    def why_we_ended_it(self) -> str:
        """As in ServerEnd."""
        return self._process.why_we_ended_it()

    def start(self) -> None:
        self.server.on_left = lambda: self._changes.set()
        self.server.start(lambda: None)

    async def wait(self, scope: anyio.CancelScope) -> None:
        """Wait for its end, and cancel the scope then."""
        await self._process.wait()
        self.has_ended, self.ended_by_itself = True, not self._is_ending and not self.why_we_ended_it()
        scope.cancel()

    async def unused(self) -> None:
        """Wait until no session has used it for as long as its server allows."""
        while True:
            self._changes = anyio.Event()
            with anyio.move_on_after(self.definition.table.idle_seconds):
                await self._changes.wait()
                continue
            if not self.server.sessions:
                return

    async def end(self) -> None:
        """Close its input, then send SIGTERM, then SIGKILL."""
        self._is_ending = True
        self.server.server.end_output()
        await end_server(self._ends_within, self._process.signal)

    async def _ends_within(self, seconds: float) -> bool:
        await anyio.sleep(seconds)  # `wait` ends this, if it ends before
        return self.has_ended

    async def kill(self) -> None:
        """End it at once, if it still runs."""
        try:
            if not self.has_ended:
                self.has_ended = True
                await self._process.kill()
        finally:
            self.server.close()


def open_alone(server: GatewayServer, report: Report) -> tuple[Channel, ServerEnd]:
    """Start or reach a server for a question to it, and for no session. Raises UserError."""
    if server.table.url is not None:
        return _open_remote(server, server.loaded.settings, report)
    return _start(server, "", report)


def _key(server: GatewayServer, session: GatewaySession) -> _Key:
    """Which shared process a session uses."""
    user = session.identity.principal.id if server.table.share == "user" else ""
    return server.name, user, session.identity.is_stateless


def _start(server: GatewayServer, user: str, report: Report) -> tuple[Channel, ServerProcess]:
    """Start a process of the server for this user (empty: for all), whose standard error goes to `report`.

    Raises UserError.
    """
    account = service.account_named(server.table.user) if server.table.user else service.own_account()
    secrets = read_secrets(server.credentials)
    values = {**server.table.env, **secrets}
    output, stderr = service.socket_pair() if service.is_other(account) else os.pipe()
    try:
        started = server_process.start(server, user, account, values, stderr)
    except BaseException:
        os.close(output)
        raise
    finally:
        os.close(stderr)
    removed = known_secrets(secrets.values()).removed_from_bytes
    relay_lines(output, lambda line: report(f"the server says: {line}"), removed, PART)
    channel = open_channel(started.server.from_server, started.server.to_server)
    return channel, ServerProcess(started.server, leads_group=True, ended=started.ended, watched=started.watched)


def _open_remote(server: GatewayServer, settings: Settings, report: Report) -> tuple[Channel, ServerEnd]:
    table = server.table
    address = parse(table.url or "", allow_http=table.allow_http)
    written = [f"{name}: {value}" for name, value in table.headers.items()]
    with_values = headers(written, read_secrets(server.credentials), f"servers.{server.name}.headers:")
    options = RemoteOptions(with_values, table.ca, table.cert, table.key, secrets_of(server))
    return open_remote_server(address, options, settings, os.environ, report)
