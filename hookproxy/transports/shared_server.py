"""One server process for several sessions: each session gets a channel of its own to it.

The multiplexer decides where each line goes. A session that does not read holds up no other: beyond a limit it is
ended. A server that does not read pauses all sessions.
"""

# ruff: noqa: D102  # methods without a docstring are described by Channel
from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from ..protocol import feedback
from ..protocol.fast_scan import END_BYTES, request_id, response_id
from ..protocol.multiplex import SERVER, Multiplexer, Send
from .channel import Channel, EndSignal, OnBytes, OnEnd, OnFull
from .lines import Lines, split_lines
from .user_load import LONG_BYTES

MAX_QUEUED_BYTES: Final = 4 * 1024 * 1024
"""Bytes that wait for one session that does not read, besides the oldest line; at more, the session is ended. A client
that reads at all never has so many: one message of this size is already more than a model can use."""


class SharedServer:
    """A server that several sessions use. `limit` is the length of the longest line, in bytes."""

    def __init__(
        self,
        server: Channel,
        multiplexer: Multiplexer,
        limit: int,
        report: Callable[[str], None],
        max_queued: int = MAX_QUEUED_BYTES,
    ) -> None:
        self.server = server
        self.multiplexer = multiplexer
        self.limit = limit
        self.report = report
        self.max_queued = max_queued
        self._lines = Lines(limit, response_id)
        self._channels: dict[int, SessionChannel] = {}
        self._is_full = False
        self._has_ended = False
        self._on_end: Callable[[], None] = _nothing
        self.on_left: Callable[[], None] = _nothing
        """Called when a session has left."""

    def start(self, on_end: Callable[[], None]) -> None:
        """Start to read from the server. `on_end` is called when its output has ended and every session knows."""
        self._on_end = on_end
        self.server.start(self._bytes_from_server, self._server_ended, self._server_is_full, _nothing)

    def open_channel(self, owner: str = "") -> SessionChannel:
        """Return a channel to the server for one more session. If the server has ended, so has the channel's input.

        `owner`: as in `Multiplexer.attach`.
        """
        channel = SessionChannel(self, self.multiplexer.attach(owner), paused=self._is_full)
        if self._has_ended:
            self.multiplexer.detach(channel.client)
            channel.end()
        else:
            self._channels[channel.client] = channel
        return channel

    @property
    def sessions(self) -> int:
        """How many sessions use the server now; the caller may end the server when there are none."""
        return len(self._channels)

    def leave(self, client: int) -> None:
        """Forget a session: the server gets what ends its requests."""
        if self._channels.pop(client, None) is not None:
            self.dispatch(self.multiplexer.detach(client))
            self.on_left()

    def dispatch(self, sends: list[Send]) -> None:
        """Send each line to whom it is for."""
        for_server = [send.line for send in sends if send.to == SERVER]
        if for_server:
            self.server.write(for_server[0] if len(for_server) == 1 else b"".join(for_server))
        for send in sends:
            if (channel := self._channels.get(send.to)) is not None:
                if send.refused is not None:
                    channel.on_refused(*send.refused)
                channel.deliver(send.line)

    def _bytes_from_server(self, piece: bytes) -> None:
        block = self._lines.feed(piece)
        self._report_lost()
        if block:
            self._lines_from_server(block)

    def _report_lost(self) -> None:
        lost, self._lines.lost = self._lines.lost, []
        for too_long in lost:
            self.report(f"the server wrote a line of {too_long.size} bytes, which is more than {self.limit}")
            self.dispatch(self.multiplexer.lost_from_server(too_long.id or b"null", too_long.size, self.limit))

    def _lines_from_server(self, block: bytes) -> None:
        for line in split_lines(block):
            self.dispatch(self.multiplexer.from_server(line))

    def _server_is_full(self, full: bool) -> None:
        self._is_full = full
        for channel in list(self._channels.values()):
            channel.server_is_full(full)

    def close(self) -> None:
        """The process has ended. Every session sees that, although another process may still hold its output."""
        self.server.drain()
        if not self._has_ended:
            self._server_ended()
        self.server.close()

    def _server_ended(self) -> None:
        """Every session sees the end, after the last line. Many readers take text without a line end for a line."""
        last = self._lines.take()
        self._report_lost()
        if last:
            self._lines_from_server(last + b"\n")
        self._has_ended = True
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            self.multiplexer.detach(channel.client)
            channel.end()
        self._on_end()


_NOTHING: Final[deque[bytes]] = deque()
"""The inbox of a session for which nothing waits, as for nearly all: a deque takes 600 bytes. It stays empty."""


class SessionChannel:
    """A Channel to a shared server, for one session. It is also a `session.server_end.RemoteChannel`.

    Its output (`_output_ended`) and its input (`_input_ended`, then `_end_told`) end on their own, as those of a pipe:
    the output when the session ends, the input when the server ends or nothing is awaited any more. Lines that come
    while the session does not read, or writes itself, wait in `_inbox`, and so does the end of the input. `abandon`
    ends both.
    """

    reads_lines = True
    is_substitute = False

    def __init__(self, shared: SharedServer, client: int, paused: bool) -> None:
        self.client = client
        self.ended = EndSignal()
        """The server has ended, or the session's part in it; `drain` hands over what is left."""
        self._shared = shared
        self._loop = asyncio.get_running_loop()
        self._lines = Lines(shared.limit, request_id)
        self._inbox = _NOTHING
        self._inbox_bytes = 0
        self._started = False
        self._paused = False
        self._server_is_full = paused
        self._is_writing = False
        self._input_ended = False  # on_end is to come, or has come
        self._end_told = False
        self._is_abandoned = False
        self._output_ended = False
        self._scheduled = False
        self.on_refused: Callable[[str, bytes, bytes], None] = lambda _why, _id, _line: None
        self.takes: Callable[[int], bool] = lambda _size: True
        """Whether a long message may wait for the agent."""

    def start(self, on_bytes: OnBytes, on_end: OnEnd, on_full: OnFull, on_gone: OnEnd) -> None:
        self._on_bytes, self._on_end, self._on_full, self._on_gone = on_bytes, on_end, on_full, on_gone
        self._started = True
        if self._server_is_full:
            self._on_full(True)
        self._schedule()

    # --- from the session ---

    def write(self, piece: bytes) -> None:
        if self.gone or self._output_ended:
            return
        block = self._lines.feed(piece)
        self._is_writing = True  # what the session gets now must not come while it writes
        try:
            self._refuse_lost()
            from_client = self._shared.multiplexer.from_client
            self._shared.dispatch([send for line in split_lines(block) for send in from_client(self.client, line)])
        finally:
            self._is_writing = False

    def _refuse_lost(self) -> None:
        lost, self._lines.lost = self._lines.lost, []
        for too_long in lost:
            why = feedback.message_too_long(too_long.size, self._shared.limit)
            self.on_refused(why, too_long.id or b"null", b"")
            self.deliver(feedback.refused_message(too_long.id or b"null", why, unreadable=False))

    def end_output(self) -> None:
        """The session ends when the last request in flight is answered."""
        if self._output_ended:
            return
        last = self._lines.take()
        if last:
            self.write(last + b"\n")
        self._output_ended = True
        self._end_if_done()

    def _end_if_done(self) -> None:
        if self._output_ended and not self.gone and not self._shared.multiplexer.awaits_response(self.client):
            self.abandon()

    # --- to the session ---

    def deliver(self, line: bytes) -> None:
        """Hand a line to the session, or keep it while the session does not read. It is ended if too much is kept."""
        if len(line) >= LONG_BYTES and not self.takes(len(line)):
            raw_id = response_id(line[:END_BYTES], line[-END_BYTES:])
            if raw_id is None:
                return
            line = feedback.unread_response(raw_id, len(line), is_call=False)
        if self._started and not (self._inbox or self._paused or self._is_writing or self._input_ended):
            self._on_bytes(line)
            self._end_if_done()
            return
        waiting = self._inbox_bytes - len(self._inbox[0]) + len(line) if self._inbox else 0
        if waiting > self._shared.max_queued:
            self._shared.report("a session that does not read its messages was ended")
            self._drop_inbox()
            self.abandon()
            return
        if self._inbox is _NOTHING:
            self._inbox = deque()
        self._inbox.append(line)
        self._inbox_bytes += len(line)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled and self._started and not self._paused and (self._inbox or self._input_ended):
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        while self._inbox and not self._paused:
            self._deliver_oldest()
        if not self._inbox:
            self._inbox = _NOTHING
        self._tell_end()

    def _deliver_oldest(self) -> None:
        line = self._inbox.popleft()
        self._inbox_bytes -= len(line)
        self._on_bytes(line)
        self._end_if_done()

    def _drop_inbox(self) -> None:
        self._inbox.clear()
        self._inbox_bytes = 0

    def end(self) -> None:
        """There is no more input: the server has ended, or the session."""
        if not self._input_ended:
            self._input_ended = True
            self.ended.set()
            self._schedule()

    def _tell_end(self) -> None:
        if self._input_ended and self._started and not self._inbox and not self._paused and not self._end_told:
            self._end_told = True
            self._on_gone()
            self._on_end()

    def pause(self) -> None:
        """A session that was ended gets the end all the same."""
        self._paused = not self._is_abandoned

    def resume(self) -> None:
        self._paused = False
        self._schedule()

    def drain(self) -> None:
        while self._inbox:
            self._deliver_oldest()
        self._paused = False
        self._tell_end()

    def server_is_full(self, full: bool) -> None:
        """The server does not read, or reads again."""
        if full != self._server_is_full:
            self._server_is_full = full
            if self._started:
                self._on_full(full)

    # --- the end ---

    @property
    def gone(self) -> bool:
        return self._input_ended

    @property
    def is_ending(self) -> bool:
        """The session takes no more part in the server."""
        return self._output_ended or self._input_ended

    @property
    def queued(self) -> int:
        """Bytes that the server has not taken yet, of all sessions: nobody can tell whose they are."""
        return self._shared.server.queued

    async def flushed(self) -> None:
        if not self.gone:
            await self._shared.server.flushed()

    def abandon(self) -> None:
        """End the session without waiting for responses: its requests are cancelled."""
        self._output_ended = self._is_abandoned = True
        self._paused = False
        self._shared.leave(self.client)
        self.end()

    def close(self) -> None:
        """Nothing is called any more."""
        self._drop_inbox()
        self._end_told = True
        self.abandon()
        self.ended.set()


def _nothing() -> None:
    pass
