"""The channel to a remote server: lines go in, lines come out.

It is the I/O of `client`, which decides what is sent when. `transfers` has the exchanges that are under way, over the
connections of `pool`; `request_heads` writes their heads, and `silence` gives them up. The channel itself cuts what the
agent's side writes into lines, hands on what the client delivers, and says when the agent's side must wait.
"""

# ruff: noqa: D102  # methods without a docstring are described by Channel and Wire
from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from ...model.errors import printable
from ...protocol import feedback
from ...protocol.fast_scan import ReadCall, request_id
from ..channel import HIGH_WATER, LOW_WATER, EndSignal, OnBytes, OnEnd, OnFull, Passage
from ..lines import Lines, split_lines
from .client import Client
from .pool import Pool, Remote
from .silence import Silence
from .transfers import Transfers


class HttpChannel:
    """A Channel to a remote server."""

    reads_lines = False
    """A message is the body of a POST, whose length is said before it."""

    def __init__(self, remote: Remote, report: Callable[[str], None]) -> None:
        self.remote = remote
        self.secrets = remote.secrets
        self.client = Client(self, remote.max_bytes, remote.silence_seconds)
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._lines = Lines(remote.max_bytes, request_id)
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._pool = Pool(remote, self._spawn, self.report, self._set_full)
        self._transfers = Transfers(remote, self.client, self._pool, self._spawn)
        self._silence = Silence(remote.silence_seconds, self._transfers, self._pool)
        self._transfers.on_sent = self._silence.watch
        self.send, self.close_exchange = self._transfers.send, self._transfers.close
        self.authorize = self._transfers.authorize
        self.same_origin_target = remote.address.same_origin_target
        self.abandon = self.client.abandon
        self._full = False
        self._closed = False
        self.is_substitute = False
        self.on_refused: Callable[[str, bytes, bytes], None] = lambda _why, _id, _line: None
        self.ended = EndSignal()
        """Nothing more comes from the server."""
        self.find_passage: Callable[[bytes], Passage | None] = lambda _id: None
        """Where the long response to a request may go in pieces; None: it must come whole."""
        self.pass_response: Callable[[bytes, bytes], bool] = lambda _id, _line: False

    # --- Channel ---

    def start(self, on_bytes: OnBytes, on_end: OnEnd, on_full: OnFull, on_gone: OnEnd) -> None:
        """`on_gone` is never called: a server that cannot be reached now may be back later."""
        self.deliver, self._on_end, self._on_full = on_bytes, on_end, on_full

    def write(self, piece: bytes) -> None:
        if self._closed:
            return
        block = self._lines.feed(piece)
        for lost in self._lines.lost:
            why = feedback.message_too_long(lost.size, self.remote.max_bytes)
            self.on_refused(why, lost.id or b"null", b"")
            self.deliver(feedback.refused_message(lost.id or b"null", why, unreadable=False))
        self._lines.lost.clear()
        for line in split_lines(block):
            self.client.send_line(line)

    def send_call(self, call: ReadCall) -> None:
        if not self._closed:
            self.client.send_call(call)

    def pause(self) -> None:
        self._pool.pause(True)

    def resume(self) -> None:
        self._pool.pause(False)

    @property
    def gone(self) -> bool:
        return self._closed

    @property
    def queued(self) -> int:
        return self._pool.queued

    def drain(self) -> None:
        """Nothing is kept back: what has come has been delivered."""

    async def flushed(self) -> None:
        """Requests are sent at once, or fail."""

    def end_output(self) -> None:
        """The session ends when everything is answered."""
        if line := self._lines.take():
            self.client.send_line(line)
        self.client.end()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._transfers.is_closed = True
        for task in self._tasks:
            task.cancel()
        for timer in self._timers:
            timer.cancel()
        self._silence.close()
        self._pool.close()
        self._set_full()
        self.ended.set()

    @property
    def is_ending(self) -> bool:
        """The session is being closed."""
        return self.client.is_ending

    # --- Wire ---

    deliver: Callable[[bytes], None]

    def open_passage(self, raw_id: bytes) -> Passage | None:
        """Whoever connects this channel with an agent's may say how."""
        return self.find_passage(raw_id)

    def deliver_response(self, raw_id: bytes, line: bytes) -> None:
        if not self.pass_response(raw_id, line):
            self.deliver(line + b"\n")

    def deliver_failure(self, line: bytes) -> None:
        self.is_substitute = True
        try:
            self.deliver(line)
        finally:
            self.is_substitute = False

    def report(self, text: str) -> None:
        """What the server has sent may be in the text."""
        self._report(printable(self.secrets.removed_from(text)))

    def finished(self) -> None:
        if not self._closed:
            self.close()
            self._on_end()

    def after(self, seconds: float, callback: Callable[[], None]) -> None:

        def call() -> None:
            self._timers.discard(timer)
            if not self._closed:
                callback()

        timer = self._loop.call_later(seconds, call)
        self._timers.add(timer)

    def _spawn(self, coroutine: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _set_full(self) -> None:
        """Stop reading from the agent while the server does not take what it has sent already."""
        queued = self.queued
        if not self._full and queued >= HIGH_WATER and not self._closed:
            self._full = True
            self._on_full(True)
        elif self._full and (queued <= LOW_WATER or self._closed):
            self._full = False
            self._on_full(False)
