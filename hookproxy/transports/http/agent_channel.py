"""The agent's side of a session over HTTP as a channel: POSTs become lines, and lines go to the stream they belong to.

Law: each line goes to exactly one stream. A response goes to the POST that brought its request; what the server sends
by itself goes to the newest POST that waits, else to the GET stream, else it is kept for one.

In the handshake era a lost connection does not end a request: its stream can be resumed.

How a request passes: `post` makes its stream, which waits (`_waiting`) until the response comes. If that is soon, it is
plain JSON; after a second, or if the server sends something before it, it becomes a stream of events, which can be
resumed (`KeptStreams`) until it is forgotten. A long response is sent in pieces instead (`_passages`), and then waits
no longer. Each way out of `_waiting` takes one request off the user's load. What comes from agents while the relay does
not read is in `agent_lines`.
"""

# ruff: noqa: D102  # methods without a docstring are described by Channel
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from ...protocol.calls import Progress, id_key
from ...protocol.fast_scan import ReadCall
from ...protocol.feedback import CLIENT_IS_BUSY, NO_STREAM, error, refused_message, remote_failure, unread_response
from ..channel import Passage
from ..user_load import LONG_BYTES, UserLoad
from . import messages
from .agent_lines import BEAT_SECONDS, ENDED, AgentEnd, KeptLines
from .agent_stream import AgentStream, KeptStreams, StreamHeaders
from .messages import CALL_TOOL, Message, answered_ids
from .responder import Headers, Responder, header_lines

if TYPE_CHECKING:
    import asyncio

_KEPT_SECONDS: Final = 30.0
"""That a request of the server waits for a stream before it gets an error: an agent whose stream has broken off is
back by then, and the person or the call behind the request does not wait longer for nothing."""

_FIRST_STREAM_SECONDS: Final = 10.0
"""That an agent may take for its first stream since the session was opened: agents that listen at all do so right after
the handshake. From then on a request of the server gets its error at once, if the agent has never listened."""

_STREAM_AFTER_SECONDS: Final = 1.0
"""A response that takes longer becomes a stream, which can be resumed. Most come earlier, as plain JSON, which takes
half the time."""

_RESUME_SECONDS: Final = 60.0
"""That a stream that has ended can still be resumed: connections that break are made again within seconds."""

_ID_IN_FLIGHT: Final = "Its id is the id of a request that is in flight."


class AgentChannel(AgentEnd):
    """The agent's side of one session of the handshake era (2025-03-26 to 2025-11-25).

    Two interfaces meet here over one table of what waits: what the gateway does with requests (`post` to `listen`), and
    what a relay does with a Channel (`write` to `close`).
    """

    def __init__(self, max_bytes: int, headers: Headers, load: UserLoad | None = None) -> None:
        """`headers` are for each response, such as the session's id. `load` is that of the user."""
        super().__init__(max_bytes, load)
        self._own_headers = header_lines(headers)
        self._headers = StreamHeaders(headers)
        self._load.keepers.add(self)
        self._waiting: dict[bytes, AgentStream] = {}  # by the key of the request's id, in order of arrival
        self._streams = KeptStreams(self._headers)
        self._listening: AgentStream | None = None
        self._unsent = KeptLines()  # while there is no stream
        self._timers: set[asyncio.TimerHandle] = set()  # for what is kept: they end with the channel
        self._full: set[Responder] = set()
        self._passages: set[AgentStream] = set()  # whose responses are sent in pieces
        self._slow: asyncio.TimerHandle | None = None  # until the oldest request has waited for long
        self._opened = self._loop.time()

    # --- what the listener brings ---

    @property
    def waiting(self) -> list[AgentStream]:
        """The streams of these requests, in order of arrival."""
        return list(self._waiting.values())

    @property
    def in_use(self) -> bool:
        """An agent waits for a response, or listens."""
        streams = (*self._waiting.values(), *self._passages, *([self._listening] if self._listening else []))
        return any(stream.responder is not None for stream in streams)

    @property
    def kept_bytes(self) -> int:
        """Bytes of events that are kept to be resumed, and of a message that has not come whole."""
        return self._streams.kept_bytes + self._output.begun

    def forget_kept(self) -> None:
        self._streams.forget_events()

    def post(self, line: bytes, message: Message, responder: Responder) -> None:
        """A message of the agent. Raises TooManyRequests."""
        self._input.check_room(line)
        if not message.ids or message.is_response:
            responder.respond(202, self._own_headers)
            self._feed(line)
            if message.method == messages.CANCELLED:
                self._end_cancelled(message)
            return
        key = id_key(message.ids[0])
        if key in self._waiting:
            self.on_refused(_ID_IN_FLIGHT, message.ids[0], line)
            text = refused_message(message.ids[0], _ID_IN_FLIGHT, unreadable=False)
            responder.respond(200, self._headers.json, text.rstrip(b"\n"))
            return
        self._await_response(key, message.ids[0], responder, is_call=message.method == CALL_TOOL)
        self._feed(line)

    def post_call(self, call: ReadCall, responder: Responder) -> bool:
        """As `post` for a call that was read already. False: nothing was done, and `post` must have it."""
        if call.id in self._waiting or self._input.waits:
            return False
        stream = self._await_response(call.id, call.id, responder, is_call=True)
        if self.pass_call(call):
            return True
        del self._waiting[call.id]
        self._streams.forget(stream)
        self._load.requests -= 1
        responder.on_gone = responder.on_full = None
        return False

    def _await_response(self, key: bytes, raw_id: bytes, responder: Responder, *, is_call: bool) -> AgentStream:
        """Make the stream of a request, whose id has this key."""
        stream = self._streams.open(responder)
        stream.request_id, stream.is_call = raw_id, is_call
        self._attach(stream, responder)
        self._waiting[key] = stream
        self._load.requests += 1
        self.last_used = stream.opened = self._loop.time()
        if self._slow is None:
            self._slow = self._loop.call_at(stream.opened + _STREAM_AFTER_SECONDS, self._make_streams)
        return stream

    def open_passage(self, raw_id: bytes, on_end: Callable[[], None]) -> Passage | None:
        """A response that has become a stream of events must be kept whole to be resumed."""
        key = id_key(raw_id)
        stream = self._waiting.get(key)
        if stream is None or stream.is_stream or stream.responder is None:
            return None
        del self._waiting[key]
        stream.on_end = partial(self._passage_ended, stream, on_end)
        self._passages.add(stream)
        return stream

    def _passage_ended(self, stream: AgentStream, on_end: Callable[[], None]) -> None:
        self._passages.discard(stream)
        self._load.requests -= 1
        self.last_used = self._loop.time()
        self._streams.forget(stream)
        on_end()

    def _end_cancelled(self, message: Message) -> None:
        """The agent has cancelled a request: there is no response to it. One that comes all the same is dropped."""
        key = id_key(bytes(message.params.request))
        if (stream := self._waiting.pop(key, None)) is not None:
            self._load.requests -= 1
            stream.close()
            self._streams.forget(stream)

    def listen(self, responder: Responder, last_event_id: bytes) -> bool:
        """Open the stream for what the server sends by itself, or resume one. False: it cannot be resumed."""
        if last_event_id:
            resumed = self._streams.find(last_event_id)
            if resumed is None:
                return False
            stream, event = resumed
            self._attach(stream, responder)
            stream.resume(responder, event)
            self._start_beat()
            return True
        former = self._listening
        self._listening = stream = self._streams.open(responder)
        self._attach(stream, responder)
        stream.begin()
        if former is not None:
            former.hand_over(stream)
            self._streams.forget(former)
        for line in self._unsent.take():
            stream.send(line)
        self._start_beat()
        return True

    def _feed(self, line: bytes) -> None:
        self.last_used = self._loop.time()
        self._input.feed(line)

    def _attach(self, stream: AgentStream, responder: Responder) -> None:
        def lost() -> None:
            if stream.responder is responder:
                stream.lose()
                self.last_used = self._loop.time()
                self._streams.forget_oldest()

        responder.on_gone = lost
        responder.on_full = lambda full: self._set_full(responder, full=full)

    def _finish(self, stream: AgentStream, line: bytes) -> None:
        """Send a response. Its stream can be resumed for a while, if it was one."""
        stream.finish(line)
        self.last_used = self._loop.time()
        if stream.can_resume:
            self._streams.forget_oldest()
            self._after(_RESUME_SECONDS, partial(self._streams.forget, stream))
        else:
            self._streams.forget(stream)

    def _set_full(self, responder: Responder, *, full: bool) -> None:
        self._load.note_full(responder, full=full)
        before = bool(self._full)
        (self._full.add if full else self._full.discard)(responder)
        if bool(self._full) != before and self._on_end is not None:
            self._on_full(bool(self._full))

    def _make_streams(self) -> None:
        """Make streams of the responses that take long. One timer is enough: requests wait in the order of arrival."""
        self._slow = None
        for stream in self.waiting:
            if stream.is_stream or stream.responder is None:
                continue
            due = stream.opened + _STREAM_AFTER_SECONDS
            if due > self._loop.time():
                self._slow = self._loop.call_at(due, self._make_streams)
                return
            stream.begin()
            self._start_beat()

    def _start_beat(self) -> None:
        if self._beat is None and not self.gone:
            self._beat = self._loop.call_later(BEAT_SECONDS, self._beat_all)

    def _beat_all(self) -> None:
        self._beat = None
        open_streams = [*self._waiting.values(), *([self._listening] if self._listening else [])]
        for stream in open_streams:
            stream.beat()
        if any(stream.is_stream for stream in open_streams):
            self._start_beat()

    # --- Channel ---

    def write(self, piece: bytes) -> None:
        for line in self._output.feed(piece):
            self._deliver(line)

    def _deliver(self, line: bytes) -> None:
        if ids := answered_ids(line):
            self.deliver_response(id_key(ids[0]), line.rstrip(b"\n"))
        elif len(line) >= LONG_BYTES and not self._load.takes(len(line)):
            for raw_id in messages.read(line).ids:
                self._feed(error(raw_id, CLIENT_IS_BUSY))
        elif (target := self._stream_for_server()) is not None:
            target.send(line)
            self._start_beat()
            if target.responder is None and (requested := messages.read(line).ids):
                self._after(_KEPT_SECONDS, partial(self._withdraw, target, target.last_event, requested[0]))
        else:
            self._keep(line)

    def deliver_response(self, raw_id: bytes, line: bytes) -> None:
        stream = self._waiting.pop(raw_id, None)
        if stream is None:
            return
        self._load.requests -= 1
        if len(line) >= LONG_BYTES and not self._load.takes(len(line)):
            line = unread_response(stream.request_id, len(line), is_call=stream.is_call).rstrip(b"\n")
        if stream.is_stream or stream.responder is None:
            self._finish(stream, line)
            return
        stream.ended = True
        self.last_used = self._loop.time()
        self._streams.forget(stream)
        stream.responder.respond(200, self._headers.json, line)

    def _stream_for_server(self) -> AgentStream | None:
        """Where a message of the server goes that is not a response: a stream that is read, else one to be resumed."""
        newest_first = tuple(reversed(self._waiting.values()))
        here = next((stream for stream in newest_first if stream.responder is not None), None)
        return here or self._listening or next((stream for stream in newest_first if stream.can_resume), None)

    def _keep(self, line: bytes) -> None:
        """Keep a line until the agent listens for the first time. A request of the server does not wait for ever."""
        ids = messages.read(line).ids
        seconds = self._opened + _FIRST_STREAM_SECONDS - self._loop.time()
        if (ids and seconds <= 0) or not self._unsent.add(line):
            if ids:
                self._feed(error(ids[0], NO_STREAM))
        elif ids:
            self._after(seconds, partial(self._give_up, line, ids[0]))

    def _after(self, seconds: float, callback: Callable[[], object]) -> None:
        """Call back later, unless the channel is closed by then."""

        def call() -> None:
            self._timers.discard(timer)
            callback()

        timer = self._loop.call_later(seconds, call)
        self._timers.add(timer)

    def _withdraw(self, stream: AgentStream, event: int, raw_id: bytes) -> None:
        """Give the server an error for a request that has reached no agent, since none has resumed its stream."""
        if stream.withdraw(event):
            self._feed(error(raw_id, NO_STREAM))

    def _give_up(self, line: bytes, raw_id: bytes) -> None:
        if self._unsent.remove(line):
            self._feed(error(raw_id, NO_STREAM))

    def end_output(self) -> None:
        """What still waits gets an error, and all streams end."""
        self.has_ended = True
        self.fail_waiting(self.why_ended() or ENDED)
        if self._listening is not None:
            self._listening.close()
        self._unsent.take()

    def fail_waiting(self, why: str) -> None:
        """Answer all requests that wait with an error that says what is known of them; `why` has no full stop."""
        waiting, self._waiting = self._waiting, {}
        self._load.requests -= len(waiting)
        unsent = {id_key(raw_id) for line in self._input.take() for raw_id in messages.read(line).ids}
        for key, stream in waiting.items():
            progress = Progress.NOT_SENT if key in unsent else Progress.NO_RESPONSE
            self._finish(stream, remote_failure(stream.request_id, why, progress, is_call=stream.is_call))

    def close(self) -> None:
        if not self.gone:
            self.end_output()
        self.gone = True
        for stream in list(self._passages):
            stream.abort()
        for timer in (self._beat, self._slow, *self._timers):
            if timer is not None:
                timer.cancel()
        self._timers.clear()
        self._streams.forget_all()
        self._load.keepers.discard(self)
