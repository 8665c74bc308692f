"""Starts and ends a run: whichever side ends first, no process is left, and we exit as the server did (law 2).

How it works: the run relays until the agent's input or the server's output ends, the server exits, or we get a signal.
Then it ends in steps. Their limits are short after a signal; only step 3 lasts as long as the server responds:

    1. calls that wait for a person or for hooks are decided or refused     5. the other calls end, with their hooks
    2. SessionEnd hooks run; where they are tools of the server, before 3   6. background hooks get a moment
    3. the server's input ends, and its last responses pass                 7. the agent gets what is queued for it
    4. the server exits, or gets SIGTERM and then SIGKILL, and is reaped    8. both channels are closed

What must hold: a step is left early when nobody waits for its outcome any more (`_must_not_wait`, `_agent_gone`), and
the last step happens in any case, also on cancel.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from typing import Final

import anyio

from ..model.hooks import Event
from ..processes import process
from ..processes.ending import end_server
from ..runners.event_watch import settle, time_limit
from .proxy import Proxy
from .server_end import ServerEnd
from .tap import Watching

HOOKS_AT_END_SECONDS: Final = 5.0
"""How long hooks may run on after the agent's input has ended, while it still reads (design section 11)."""

BACKGROUND_HOOKS_SECONDS: Final = 0.5
"""How long background hooks may run on after the last call."""

AFTER_SIGNAL_SECONDS: Final = 0.3
"""After a signal: how long each remaining step may take, such as hooks of finished calls and the agent's last bytes."""

SESSION_END_HOOKS_SECONDS: Final = 1.5
"""How long SessionEnd hooks may take together, as in Claude Code."""

AGENT_STALLED_SECONDS: Final = 5.0
"""How long the agent may take no byte before the output that is left for it is dropped."""

_UNANSWERED: Final = "The session has ended before the user has answered whether the call is allowed"

_FORWARDED_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Lifecycle:
    """One run of a proxy over a server that is started, or reached at its address."""

    def __init__(self, proxy: Proxy, server: ServerEnd, *, forwards_signals: bool = True) -> None:
        """With `forwards_signals` the run ends when this process gets a signal, else when `end` is called."""
        self._forwards_signals = forwards_signals
        self._proxy = proxy
        self._server = server
        self._status = 0  # as `ServerEnd.watch` gives it
        self._exited = False
        self._signal = 0  # the first one that we got
        self._why_signalled = ""
        self._server_killed = False  # it has not exited by itself
        self._agent_ended = False
        self._agent_was_first = False
        self._server_ended = False

    async def run_to_end(self) -> int:
        """Relay until one side ends; return the exit status, 128+n for a signal. On cancel the server is killed."""
        try:
            await self._relay_until_end()
        finally:
            with anyio.CancelScope(shield=True):  # it is bounded by itself
                self._proxy.session_events.report_unwritten(await self._proxy.aclose())
        return self._status if self._status >= 0 else 128 - self._status

    async def _relay_until_end(self) -> None:
        async with anyio.create_task_group() as tasks:
            self._server.watch(tasks, self._server_exited)
            if self._forwards_signals:
                tasks.start_soon(self._forward_signals)
            self._proxy.open(tasks)
            self._proxy.relay.start(self._agent_end, self._notify, self._server_end)
            try:
                await self._proxy.run_changes.until(lambda: self._ending_by_agent or self._must_not_wait)
                await self._shut_down()
            finally:
                await self._close()
            tasks.cancel_scope.cancel()

    # --- events of the run ---

    def _notify(self) -> None:
        self._proxy.run_changes.notify()
        self._proxy.changes.notify()

    def _agent_end(self) -> None:
        self._agent_ended = True
        self._notify()

    def _server_end(self) -> None:
        self._server_ended = True
        self._server.output_ended()
        self._notify()

    def _server_exited(self, status: int) -> None:
        self._status = status
        self._exited = True
        self._notify()

    async def _forward_signals(self) -> None:
        with anyio.open_signal_receiver(*_FORWARDED_SIGNALS) as signals:
            async for number in signals:
                self.end_by_signal(number)

    def end_by_signal(self, number: int, why: str = "") -> None:
        """End the run as on this signal, which the server gets too; `why` is a sentence without a full stop."""
        self._signal = self._signal or number
        self._why_signalled = self._why_signalled or why
        self._signal_server(number)
        self._notify()

    @property
    def _agent_gone(self) -> bool:
        return self._proxy.relay.agent.gone

    @property
    def _ending_by_agent(self) -> bool:
        return self._agent_ended or self._agent_gone

    @property
    def _must_not_wait(self) -> bool:
        """The server sends no more responses, or we got a signal: waiting for it is useless."""
        return self._server_ended or self._exited or self._signal != 0

    @property
    def server_end(self) -> str:
        """How the server ended, if it did so by itself while the agent was there; else empty."""
        return "" if self._agent_was_first or self._signal else self._why_server_lost()

    # --- the end, in order ---

    async def _shut_down(self) -> None:
        proxy = self._proxy
        self._agent_was_first = self._ending_by_agent
        await settle()  # a signal to our whole group also ends the server: then the signal is the reason
        async with anyio.create_task_group() as session_end:
            if not self._must_not_wait:
                proxy.calls.end_waiting(_UNANSWERED)
                await self._within(HOOKS_AT_END_SECONDS, lambda: not proxy.has_undecided or self._must_not_wait)
            if self._signal or not (self._server_ended or self._exited):  # else handle_server_exit ends them
                proxy.calls.end_unforwarded(self._why_ended())
            if proxy.policy.hooks.groups.has_mcp_tool_hooks_for(Event.SESSION_END) and not self._must_not_wait:
                await self._end_session()  # some of its hooks are tools of the server, so it must still read
            else:
                session_end.start_soon(self._end_session)
            if proxy.watch is not None:
                session_end.start_soon(self._end_watched_session, proxy.watch)
            proxy.hook_tool_calls.close()
            proxy.relay.server.end_output()
            proxy.relay.on_passed = proxy.changes.notify  # now we wait for the last response
            await proxy.changes.until(lambda: self._must_not_wait or self._agent_gone or not proxy.router.pending)
            proxy.relay.on_passed = proxy.calls.passed.notify
            await self._end_server()
            proxy.relay.server.drain()
            proxy.handle_server_exit(self._why_server_lost())
            if why := self.server_end:
                proxy.handle_failed_start(why)
            await self._within(self._or_less(HOOKS_AT_END_SECONDS), lambda: not proxy.has_open_calls)
            proxy.calls.end_all(self._why_ended())
            await self._within(process.REAP_LIMIT, lambda: not proxy.has_open_calls)
            await self._within(self._or_less(BACKGROUND_HOOKS_SECONDS), lambda: not proxy.has_background_hooks)
            await self._flush_agent()
            if proxy.watch is not None:
                await self._end_watch(proxy.watch)

    async def _end_watched_session(self, watch: Watching) -> None:
        with contextlib.suppress(TimeoutError), time_limit(SESSION_END_HOOKS_SECONDS):
            await watch.end_session()

    async def _end_watch(self, watch: Watching) -> None:
        """Let hooks end that are only watched: the agent has everything, and does not wait for them."""
        with anyio.move_on_after(self._or_less(HOOKS_AT_END_SECONDS)):
            await watch.wait()
        watch.end_all(self._why_ended())
        with anyio.move_on_after(process.REAP_LIMIT):
            await watch.wait()

    def _or_less(self, seconds: float) -> float:
        """So many seconds, or fewer after a signal."""
        return AFTER_SIGNAL_SECONDS if self._signal else seconds

    async def _within(self, seconds: float, condition: Callable[[], bool]) -> None:
        """Wait for a condition, but no longer than this, and only while the agent still reads."""
        with anyio.move_on_after(seconds) as time:
            await self._proxy.changes.until(lambda: condition() or self._agent_gone)
        if time.cancelled_caught:
            await settle()

    async def _end_server(self) -> None:
        """Wait for the server to exit, then send SIGTERM, then SIGKILL; afterwards it has been reaped."""
        await end_server(self._server_exits_within, self._end_server_by)
        with anyio.move_on_after(process.REAP_LIMIT):
            await self._proxy.run_changes.until(lambda: self._exited)

    async def _server_exits_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds) as time:
            await self._proxy.run_changes.until(lambda: self._exited)
        if time.cancelled_caught:
            await settle()
        return self._exited

    def _end_server_by(self, number: int) -> None:
        self._server_killed = True
        self._signal_server(number)

    def _signal_server(self, number: int) -> None:
        if not self._exited:  # afterwards another process may have its id
            self._server.signal(number)

    def _why_ended(self) -> str:
        """Why calls end that still wait for hooks."""
        if self._why_signalled:
            return self._why_signalled
        if self._signal:
            return f"hookproxy was ended by {signal.Signals(self._signal).name}"
        return "The session has ended before hooks or a person had decided"

    def _why_server_lost(self) -> str:
        """Why calls end that still wait for the server."""
        if self._signal:
            return self._why_ended()
        if self._server_killed:
            return "The MCP server has closed its output" if self._server_ended else "The MCP server had to be ended"
        return self._server.how_it_ended(self._status)

    async def _end_session(self) -> None:
        if self._proxy.router.handshake.opened and self._proxy.policy.hooks.groups.has_hooks_for(Event.SESSION_END):
            with contextlib.suppress(TimeoutError), time_limit(SESSION_END_HOOKS_SECONDS):
                await self._proxy.session_events.end_session()

    async def _flush_agent(self) -> None:
        """Send the agent what is queued for it, as long as it reads."""
        agent = self._proxy.relay.agent
        queued = -1
        while agent.queued and agent.queued != queued and not self._agent_gone:
            queued = agent.queued
            with anyio.move_on_after(self._or_less(AGENT_STALLED_SECONDS)):
                await agent.flushed()
        agent.end_output()

    async def _close(self) -> None:
        """Close both channels; kill and reap the server if it still runs."""
        try:
            if not self._exited:
                await self._server.kill()
        finally:
            self._proxy.relay.server.close()
            self._proxy.relay.agent.close()
