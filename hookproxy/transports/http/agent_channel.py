"""The agent's side of a session over HTTP as a channel: POSTs become lines, and lines go to the stream they belong to.

Law: each line goes to exactly one stream. A response goes to the POST that brought its request; what the server sends
by itself goes to the newest POST that waits, else to the GET stream, else it is kept for one.

In the handshake era a lost connection does not end a request: its stream can be resumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ...protocol.calls import Progress, id_key
from ...protocol.fast_scan import response_id
from ...protocol.feedback import remote_failure
from ..lines import Lines
from . import messages
from .agent_stream import AgentStream, stream_and_event
from .listener import Headers, Responder
from .messages import CALL_TOOL, Message, answered_ids

MAX_KEPT_LINES: Final = 256
"""Lines of the server that are kept while no stream is open: more than a server sends before its agent listens."""

_STREAM_AFTER_SECONDS: Final = 1.0
"""A response that takes longer becomes a stream, which can be resumed. Most come earlier, as plain JSON, which takes
half the time."""

_BEAT_SECONDS: Final = 25.0
"""Between comments on a silent stream: below the 30 s after which the strictest of usual balancers close it."""

RESUMABLE: Final = 64
"""Streams that have ended, or lost their agent, and are kept to be resumed: an agent resumes at once, or never."""


_ENDED: Final = "The session with the MCP server has ended"


class AgentChannel:
    """The agent's side of one session of the handshake era (2025-03-26 to 2025-11-25)."""

    is_substitute = False
    """As in Channel."""

    def __init__(self, max_bytes: int, headers: Headers) -> None:
        """`headers` are for each response, such as the session's id."""
        self._headers = headers
        self._lines = Lines(max_bytes, response_id)
        self._waiting: dict[bytes, AgentStream] = {}  # by the key of the request's id, in order of arrival
        self._ids: dict[bytes, bytes] = {}  # the ids of these requests as spelled, by key
        self._streams: dict[int, AgentStream] = {}  # those that can be resumed
        self._listening: AgentStream | None = None
        self._unsent: list[bytes] = []
        self._numbers = 0
        self._is_paused = True  # until it is started
        self._unread: list[bytes] = []  # lines that came while it was paused
        self._full: set[AgentStream] = set()
        self._loop = asyncio.get_running_loop()
        self._beat: asyncio.TimerHandle | None = None
        self._on_end: Callable[[], None] | None = None  # it is not started yet
        self.last_used = self._loop.time()
        """When the last request has ended, in seconds of the loop's clock."""
        self.gone = False
        self.queued = 0

    # --- what the listener brings ---

    @property
    def requests(self) -> int:
        """How many requests are in flight."""
        return len(self._waiting)

    @property
    def in_use(self) -> bool:
        """A request is in flight, or the agent listens."""
        return bool(self._waiting) or (self._listening is not None and self._listening.responder is not None)

    def post(self, line: bytes, message: Message, responder: Responder) -> None:
        """A message of the agent."""
        if not message.ids or message.is_response:
            responder.respond(202, self._headers, b"")
            self._feed(line)
            return
        self._numbers += 1
        stream = AgentStream(responder, self._headers, self._numbers)
        stream.is_call = message.method == CALL_TOOL
        key = id_key(message.ids[0])
        self._attach(stream, responder)
        if key in self._waiting:  # the router refuses the second one; its error is the response to the newer POST
            self._waiting.pop(key).close()
        self._waiting[key], self._ids[key] = stream, message.ids[0]
        self._loop.call_later(_STREAM_AFTER_SECONDS, self._make_stream, stream)
        self._feed(line)

    def listen(self, responder: Responder, last_event_id: bytes) -> bool:
        """Open the stream for what the server sends by itself, or resume one. False: it cannot be resumed."""
        if last_event_id:
            numbers = stream_and_event(last_event_id)
            stream = self._streams.get(numbers[0]) if numbers else None
            if stream is None or numbers is None:
                return False
            self._attach(stream, responder)
            stream.resume(responder, numbers[1], self._headers)
            return True
        if self._listening is not None:
            self._listening.close()
        self._numbers += 1
        self._listening = stream = AgentStream(responder, self._headers, self._numbers)
        self._attach(stream, responder)
        stream.begin()
        unsent, self._unsent = self._unsent, []
        for line in unsent:
            stream.send(line)
        self._start_beat()
        return True

    def end(self) -> None:
        """The agent has ended the session, or it was unused for too long."""
        if self._on_end is not None:
            self._on_end()

    def _feed(self, line: bytes) -> None:
        self.last_used = self._loop.time()
        if self._is_paused:
            self._unread.append(line)
        else:
            self._on_bytes(line)

    def _attach(self, stream: AgentStream, responder: Responder) -> None:
        self._streams[stream.number] = stream
        while len(self._streams) > RESUMABLE + len(self._waiting) + 1:
            oldest = next((one for one in self._streams.values() if one.ended or one.responder is None), None)
            if oldest is None:
                break
            del self._streams[oldest.number]

        def lost() -> None:
            self._set_full(stream, full=False)
            if stream.responder is responder:
                stream.lose()

        responder.on_gone = lost
        responder.on_full = lambda full: self._set_full(stream, full=full)

    def _set_full(self, stream: AgentStream, *, full: bool) -> None:
        before = bool(self._full)
        (self._full.add if full else self._full.discard)(stream)
        if bool(self._full) != before:
            self._on_full(bool(self._full))

    def _make_stream(self, stream: AgentStream) -> None:
        if not stream.ended and stream.responder is not None:
            stream.begin()
            self._start_beat()

    def _start_beat(self) -> None:
        if self._beat is None and not self.gone:
            self._beat = self._loop.call_later(_BEAT_SECONDS, self._beat_all)

    def _beat_all(self) -> None:
        self._beat = None
        open_streams = [*self._waiting.values(), *([self._listening] if self._listening else [])]
        for stream in open_streams:
            stream.beat()
        if any(one.is_stream for one in open_streams):
            self._start_beat()

    # --- Channel ---

    def start(
        self,
        on_bytes: Callable[[bytes], None],
        on_end: Callable[[], None],
        on_full: Callable[[bool], None],
        on_gone: Callable[[], None],
    ) -> None:
        """As in Channel."""
        self._on_bytes, self._on_end, self._on_full, self._on_gone = on_bytes, on_end, on_full, on_gone
        self.resume()

    def write(self, piece: bytes) -> None:
        """As in Channel."""
        block = self._lines.feed(piece)
        self._lines.lost.clear()  # the relay has replaced what is too long
        for line in block.splitlines(keepends=True) if block.count(b"\n") > 1 else [block] if block else []:
            self._deliver(line)

    def _deliver(self, line: bytes) -> None:
        if ids := answered_ids(line):
            key = id_key(ids[0])
            stream = self._waiting.pop(key, None)
            self._ids.pop(key, None)
            if stream is not None:
                stream.finish(line)
                self.last_used = self._loop.time()
            return
        newest = next(reversed(self._waiting.values()), None)
        if newest is not None and (newest.responder is not None or self._listening is None):
            newest.send(line)
        elif self._listening is not None:
            self._listening.send(line)
        elif len(self._unsent) < MAX_KEPT_LINES:
            self._unsent.append(line)

    def pause(self) -> None:
        """As in Channel: what comes is kept, and no more of it than requests may be in flight."""
        self._is_paused = True

    def resume(self) -> None:
        """As in Channel."""
        self._is_paused = False
        unread, self._unread = self._unread, []
        for line in unread:
            self._feed(line)

    def drain(self) -> None:
        """As in Channel: nothing is left unread."""

    async def flushed(self) -> None:
        """As in Channel: the listener sends what it has got, also after the session."""

    def end_output(self) -> None:
        """As in Channel: what still waits gets an error, and all streams end."""
        self.fail(_ENDED)
        if self._listening is not None:
            self._listening.close()

    def fail(self, why: str) -> None:
        """Answer all requests that wait with an error that says what is known of them; `why` has no full stop."""
        waiting, ids = self._waiting, self._ids
        self._waiting, self._ids = {}, {}
        unsent = {key for line in self._unread for raw_id in messages.read(line).ids if (key := id_key(raw_id))}
        self._unread.clear()
        for key, stream in waiting.items():
            progress = Progress.NOT_SENT if key in unsent else Progress.NO_ANSWER
            stream.finish(remote_failure(ids[key], why, progress, is_call=stream.is_call))

    def close(self) -> None:
        """As in Channel."""
        if not self.gone:
            self.end_output()
        self.gone = True
        if self._beat is not None:
            self._beat.cancel()
