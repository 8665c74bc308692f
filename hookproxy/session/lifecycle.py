"""How a run begins and ends: whoever ends first, nothing is left behind, and we end as the server did (law 2)."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from typing import Final

import anyio

from ..model.hooks import Event
from ..processes import process
from ..processes.process import Server
from ..protocol import feedback
from .proxy import Proxy

HANG: Final = 5.0  # seconds that hooks get once the agent has no more to say and still reads (design section 11)
LEAVE: Final = 1.0  # seconds a server gets to leave after its input has ended, or after a signal that was passed on
COMPLY: Final = 0.5  # seconds a server gets after TERM; with LEAVE below the two seconds agents wait before they kill
REST: Final = 0.3  # seconds for what is left to do after a signal: hooks of finished calls, the agent's last bytes
FAREWELL: Final = 1.5  # seconds that SessionEnd hooks share, as in Claude Code
STALL: Final = 5.0  # seconds without the agent taking a byte, after which what is left for it is given up

_PASSED_ON: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Lifecycle:
    """One run of a proxy over a started server."""

    def __init__(self, proxy: Proxy, server: Server) -> None:
        self._proxy = proxy
        self._server = server
        self._code = 0  # as `process.reap` gives it
        self._exited = anyio.Event()
        self._signalled = False
        self._agent_ended = False
        self._server_ended = False

    async def live(self) -> int:
        """Relay until one side ends, then see the rest through; gives the exit status, 128+n for a signal.

        On cancel the server is killed and waited for.
        """
        async with self._proxy.hooks.runners, anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_server)
            tasks.start_soon(self._pass_signals_on)
            self._proxy.open(tasks)
            self._proxy.relay.start(self._agent_end, self._tell, self._server_end)
            try:
                await self._proxy.events.until(lambda: self._over)
                await self._wind_down()
            finally:
                self._close()
            tasks.cancel_scope.cancel()
        return self._code if self._code >= 0 else 128 - self._code

    # --- what happens ---

    def _tell(self) -> None:
        """Something has happened to the run."""
        self._proxy.events.tell()
        self._proxy.changes.tell()

    def _agent_end(self) -> None:
        self._agent_ended = True
        self._tell()

    def _server_end(self) -> None:
        self._server_ended = True
        self._tell()

    async def _watch_server(self) -> None:
        exit_fd = process.open_exit_fd(self._server.pid)
        try:
            await anyio.wait_readable(exit_fd)
        finally:
            os.close(exit_fd)
        self._code = process.reap(self._server.pid)
        self._exited.set()
        self._tell()

    async def _pass_signals_on(self) -> None:
        with anyio.open_signal_receiver(*_PASSED_ON) as signals:
            async for number in signals:
                self._signalled = True
                self._kill(number)
                self._tell()

    @property
    def _agent_gone(self) -> bool:
        return self._proxy.relay.agent.gone

    @property
    def _over(self) -> bool:
        return self._agent_ended or self._agent_gone or self._hurried

    @property
    def _hurried(self) -> bool:
        """Waiting for the server's answers makes no sense any more."""
        return self._server_ended or self._exited.is_set() or self._signalled

    # --- the end, in order ---

    async def _wind_down(self) -> None:
        proxy = self._proxy
        async with anyio.create_task_group() as farewell:
            if not self._hurried:
                proxy.approvals.end()
                await self._let_hooks_decide()
            if not (self._server_ended or self._exited.is_set()):  # else they are told that it is gone
                proxy.end_held(lambda call: feedback.ended_early(call.id))
            if proxy.hooks.groups.asks_server(Event.SESSION_END) and not self._hurried:
                await self._end_session()  # which some of its hooks can do only as long as the server listens
            else:
                farewell.start_soon(self._end_session)
            proxy.hook_tool_calls.close()
            proxy.relay.server.end_output()
            proxy.relay.on_passed = proxy.changes.tell  # now somebody waits for the last answer
            await proxy.changes.until(lambda: self._hurried or self._agent_gone or not proxy.router.pending)
            proxy.relay.on_passed = proxy.passed.tell
            await self._see_server_off()
            proxy.relay.server.drain()
            proxy.lose_server(self._last_status())
            await self._within(REST if self._signalled else HANG, lambda: not proxy.busy)
            proxy.end_all(lambda call: feedback.ended_early(call.id))
            await self._within(process.REAP_LIMIT, lambda: not proxy.busy)
            await self._within(REST if self._signalled else COMPLY, lambda: not proxy.aside)
            await self._hand_over()

    async def _let_hooks_decide(self) -> None:
        """Calls that came before the end of input still get their hooks' decision; nobody reads it: at once no more."""
        await self._within(HANG, lambda: not self._proxy.holding or self._hurried)

    async def _within(self, seconds: float, condition: Callable[[], bool]) -> None:
        """Wait for a condition, but not longer than this, and not when the agent does not listen any more."""
        with anyio.move_on_after(seconds):
            await self._proxy.changes.until(lambda: condition() or self._agent_gone)

    async def _see_server_off(self) -> None:
        """Wait for the server to leave, ask it to, make it: it has been waited for when this is over."""
        for patience, insist in ((LEAVE, signal.SIGTERM), (COMPLY, signal.SIGKILL)):
            with anyio.move_on_after(patience):
                await self._exited.wait()
            if self._exited.is_set():
                return
            self._kill(insist)
        with anyio.move_on_after(process.REAP_LIMIT):
            await self._exited.wait()

    def _kill(self, number: int) -> None:
        if not self._exited.is_set():  # after that the number may be another's
            with contextlib.suppress(PermissionError):  # it runs as somebody else: it has its end of input
                os.kill(self._server.pid, number)

    def _last_status(self) -> str:
        if self._code < 0:
            return f"was ended by signal {-self._code}"
        return f"exited with status {self._code}"

    async def _end_session(self) -> None:
        if self._proxy.router.handshake.opened and self._proxy.hooks.groups.has_hooks_for(Event.SESSION_END):
            with anyio.move_on_after(FAREWELL):
                await self._proxy.session_events.end_session()

    async def _hand_over(self) -> None:
        """Give the agent what is queued for it, as long as it takes any."""
        agent = self._proxy.relay.agent
        left = -1
        while agent.queued and agent.queued != left and not self._agent_gone:
            left = agent.queued
            with anyio.move_on_after(REST if self._signalled else STALL):
                await agent.flushed()
        agent.end_output()

    def _close(self) -> None:
        """Nothing outlives this: both channels closed, the server killed and reaped if it still runs."""
        if not self._exited.is_set():
            self._kill(signal.SIGKILL)
            process.reap_killed(self._server.pid)
        self._proxy.relay.server.close()
        self._proxy.relay.agent.close()
        self._proxy.audit.close()
