"""The server as the end of a run sees it: a process that must be ended, or a remote session that must be closed."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import anyio

from ..processes import process
from ..processes.process import Server
from ..transports.channel import EndSignal

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from ..sandbox.table import Sandbox


class ServerEnd(Protocol):
    """What `lifecycle` needs to know of the server, besides its channel."""

    def watch(self, tasks: TaskGroup, on_end: Callable[[int], object]) -> None:
        """Call `on_end` when it has ended, with its exit status, negative for a signal; until then `tasks` go on."""

    def signal(self, number: int) -> None:
        """Pass a signal on, as long as it has not ended."""

    async def kill(self) -> None:
        """End it at once; afterwards nothing of it is left, unless a stuck disk holds it up. On cancel it goes on."""

    def output_ended(self) -> None:
        """Its output has ended."""

    def how_it_ended(self, status: int) -> str:
        """Return why it no longer answers: a sentence without a full stop."""

    def why_we_ended_it(self) -> str:
        """Return why we have ended it although it was used, as `how_it_ended`; empty: we have not."""


class ServerProcess:
    """A server that we have started."""

    def __init__(
        self,
        server: Server,
        *,
        leads_group: bool = False,
        ended: Callable[[], str] = lambda: "",
        watched: Sandbox | None = None,
    ) -> None:
        """`leads_group`: it leads a process group of its own, and signals are for all of it.

        `ended` is called when it has ended, and may say why: a sentence without a full stop.
        """
        self._pid = server.pid
        self._ended = ended
        self.watched = watched
        """The sandbox whose limits only hold if somebody watches them."""
        self._leads_group = leads_group
        self._status: int | None = None
        """Its exit status, once it has been reaped: from then on, another process may have its number."""
        self._ended_because = ""

    @property
    def pid(self) -> int | None:
        """Its number; None: it has ended, and another process may have it."""
        return self._pid if self._status is None else None

    def watch(self, tasks: TaskGroup, on_end: Callable[[int], object]) -> None:
        """As in ServerEnd."""

        async def wait() -> None:
            on_end(await self.wait())

        tasks.start_soon(wait)

    async def wait(self) -> int:
        """Wait until it has ended; return its status, negative for a signal; end what it left in its own group."""
        if self._status is None:
            exit_fd = process.open_exit_fd(self._pid)
            try:
                await anyio.wait_readable(exit_fd)
            finally:
                os.close(exit_fd)
        return self._reap()

    def _reap(self) -> int:
        """Return its exit status. It has ended."""
        if self._status is None:
            if self._leads_group:  # before it is reaped: no other group can have its number yet
                self.signal(signal.SIGKILL)
            self._status = process.reap(self._pid)
            self._ended_because = self._ended() or self._ended_because
        return self._status

    def signal(self, number: int) -> None:
        """As in ServerEnd."""
        if self._status is None:
            with contextlib.suppress(PermissionError):  # it runs as another user; its input has ended
                (os.killpg if self._leads_group else os.kill)(self._pid, number)

    def end_because(self, why: str) -> None:
        """End it at once. Whoever uses it reads this sentence, which has no full stop."""
        self._ended_because = why
        self.signal(signal.SIGKILL)

    async def kill(self) -> None:
        """As in ServerEnd."""
        self.signal(signal.SIGKILL)
        with anyio.move_on_after(process.REAP_LIMIT, shield=True):
            try:
                await self.wait()
            except OSError:  # descriptors are short
                process.reap_killed(self._pid)

    def output_ended(self) -> None:
        """As in ServerEnd. It may still run, and what its end is like is not known yet."""

    def why_we_ended_it(self) -> str:
        """As in ServerEnd."""
        return f"The gateway has ended the MCP server: {self._ended_because}" if self._ended_because else ""

    def how_it_ended(self, status: int) -> str:
        """As in ServerEnd."""
        if why := self.why_we_ended_it():
            return why
        how = f"was ended by signal {-status}" if status < 0 else f"exited with status {status}"
        return f"The MCP server has ended ({how})"


class RemoteChannel(Protocol):
    """The part of a channel to a remote server that ends its session."""

    ended: EndSignal

    @property
    def is_ending(self) -> bool:
        """The session is being closed."""

    def abandon(self) -> None:
        """End the session without waiting for responses."""

    def close(self) -> None:
        """As in Channel."""


class RemoteServer:
    """A server that is reached at its address: its session ends with us."""

    def __init__(self, channel: RemoteChannel, why_we_ended_it: Callable[[], str] = lambda: "") -> None:
        """`why_we_ended_it` is as in ServerEnd, of a process behind the channel."""
        self._channel = channel
        self._signal = 0
        self.why_we_ended_it = why_we_ended_it

    def watch(self, tasks: TaskGroup, on_end: Callable[[int], object]) -> None:
        """As in ServerEnd. The status is 0, or that of the signal that has ended us."""
        self._channel.ended.tell(lambda: on_end(-self._signal))

    def signal(self, number: int) -> None:
        """As in ServerEnd: the session is closed, at SIGKILL without telling the server."""
        if not self._channel.is_ending:
            self._signal = self._signal or number
        if number == signal.SIGKILL:
            self._channel.close()
        else:
            self._channel.abandon()

    async def kill(self) -> None:
        """As in ServerEnd."""
        self._channel.close()

    def output_ended(self) -> None:
        """As in ServerEnd."""

    def how_it_ended(self, status: int) -> str:
        """As in ServerEnd."""
        return self.why_we_ended_it() or "The session with the MCP server has ended"


class ForeignServer:
    """A server that somebody else has started, and ends: only its pipes are known here."""

    def __init__(self, close: Callable[[], None]) -> None:
        """`close` closes its pipes."""
        self._close = close
        self._ended = EndSignal()

    def watch(self, tasks: TaskGroup, on_end: Callable[[int], object]) -> None:
        """As in ServerEnd. It has ended when its output has, or when its pipes are closed."""
        self._ended.tell(lambda: on_end(0))

    def signal(self, number: int) -> None:
        """As in ServerEnd: its pipes are closed, which whoever started it takes for the end."""
        self._close()
        self._ended.set()

    async def kill(self) -> None:
        """As in ServerEnd."""
        self.signal(signal.SIGKILL)

    def output_ended(self) -> None:
        """As in ServerEnd."""
        self._ended.set()

    def how_it_ended(self, status: int) -> str:
        """As in ServerEnd."""
        return "The MCP server has ended"

    def why_we_ended_it(self) -> str:
        """As in ServerEnd."""
        return ""
