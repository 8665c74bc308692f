"""One HTTP response to an agent: a JSON body, or a stream of server-sent events if there is more than the response.

A stream that can be resumed (`KeptStreams`) has events with ids: the number of the stream and that of the event in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from .responder import Headers, Responder, header_lines

JSON_HEADER: Final = (b"content-type", b"application/json")
_STREAM_HEADERS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # else nginx in front keeps events until its buffer is full
)

MAX_KEPT_BYTES: Final = 1024 * 1024
"""Bytes of events that are kept so that a stream can be resumed. What was lost beyond it cannot be had again."""

RESUMABLE: Final = 64
"""Streams that have ended, or lost their agent, and are kept to be resumed: an agent resumes at once, or never."""

_NOTHING: Final[deque[tuple[int, bytes]]] = deque()
"""The events of a stream without any, as nearly all are: a deque takes 600 bytes. It stays empty."""

_RETRY: Final = b"retry: 1000\n"
"""Milliseconds before an agent opens a broken stream again: a gateway that starts anew is ready by then."""


class StreamHeaders:
    """The headers of each response of a session."""

    __slots__ = ("json", "stream")

    def __init__(self, headers: Headers = ()) -> None:
        """`headers` are those of the session itself."""
        self.json = header_lines((JSON_HEADER, *headers))
        self.stream = header_lines((*_STREAM_HEADERS, *headers))


_NO_SESSION: Final = StreamHeaders()


class AgentStream:
    """The response to a POST or a GET. With a `number` it can be resumed on another connection."""

    def __init__(self, responder: Responder, headers: StreamHeaders = _NO_SESSION, number: int = 0) -> None:
        self.responder: Responder | None = responder
        self.number = number
        self.is_stream = False
        self._has_begun = False  # a part of a response that is not a stream was sent
        self.size: int | None = None
        """Of a response that is sent in pieces, if it is known."""
        self.on_end: Callable[[], None] | None = None
        """Called once at the end of such a response."""
        self._headers = headers
        self._events = _NOTHING  # the last ones without their ids, to resume
        self.kept_bytes = 0
        """Bytes of the events that are kept."""
        self._next = 1  # the number of the next event
        self._unsent_from = 1  # the number of the first event that has reached no connection
        self.request_id = b""
        """As spelled; empty: it is the stream of no request."""
        self.is_call = False
        """It is the response to a tools/call."""
        self.ended = False
        self.opened = 0.0
        """When it was opened, in seconds of the loop's clock, for those who need to know."""

    @property
    def can_resume(self) -> bool:
        """The agent knows the id of an event of this stream."""
        return self.is_stream and bool(self.number)

    def begin(self) -> None:
        """Make it a stream of events now. The agent can resume it from here on."""
        if self.is_stream or self.responder is None:
            return
        self.is_stream = True
        self.responder.start(200, self._headers.stream, is_stream=True)
        self._write(self._id(0) + _RETRY + b"data: \n\n" if self.number else b": \n\n")

    def send(self, line: bytes) -> None:
        """Send a message that is not the response."""
        self.begin()
        # In a message, a CR is a blank between tokens; in a stream it ends a line, and what follows it is a new field.
        self._event(b"data: " + line.rstrip(b"\r\n").replace(b"\r", b" ") + b"\n\n")

    def finish(self, line: bytes, status: int = 200) -> None:
        """Send the response, and end. `status` is for a response that is not a stream."""
        self.ended = True
        if self.is_stream:
            self.send(line)
            self.close()
        elif self.responder is not None:
            self.responder.respond(status, self._headers.json, line.rstrip(b"\n"))

    # --- as Passage: the response is sent in pieces, and is not a stream of events ---

    def write(self, piece: bytes) -> None:
        """Send a part of the response."""
        if self.responder is None:
            return
        if self._has_begun:
            self.responder.write(piece)
        else:
            self._has_begun = True
            self.responder.start(200, self._headers.json, piece, self.size)

    def end(self) -> None:
        """All parts are sent."""
        self.ended = True
        if self.responder is not None:
            self.responder.end()
        self._end_passage()

    def abort(self) -> None:
        """The other parts do not come."""
        self.ended = True
        if self.responder is not None:
            self.responder.abort()
        self._end_passage()

    def _end_passage(self) -> None:
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end()

    # --- a stream of events ---

    def beat(self) -> None:
        """Send a comment, so that nobody between takes the stream for dead."""
        if self.is_stream:
            self._write(b": \n\n")

    def close(self) -> None:
        """End it as it is."""
        self.ended = True
        if self.responder is not None and self.responder.is_open:
            if not self.is_stream:
                self.responder.start(200, self._headers.stream)
            self.responder.end()

    def lose(self) -> None:
        """The agent has disconnected: what comes from now on is kept until it resumes."""
        self.responder = None
        self._unsent_from = self._next

    def resume(self, responder: Responder, after: int) -> None:
        """Go on with another connection, with all kept events after this one."""
        if self.responder is not None:  # the agent has given it up, and we have not noticed
            self.responder.abort()
        self.responder = responder
        responder.start(200, self._headers.stream, is_stream=True)
        for number, event in list(self._events):
            if number > after:
                responder.write(self._id(number) + event)
        if self.ended:
            responder.end()

    @property
    def last_event(self) -> int:
        """The number of the newest event."""
        return self._next - 1

    def withdraw(self, event: int) -> bool:
        """Remove this event, if it has reached no connection. True: it is removed."""
        if self.responder is not None or event < self._unsent_from:
            return False
        for kept in self._events:
            if kept[0] == event:
                self._events.remove(kept)
                self.kept_bytes -= len(kept[1])
                return True
        return False

    def forget_events(self) -> None:
        """Keep no event that was sent: none can be sent again."""
        self._events.clear()
        self.kept_bytes = 0

    def hand_over(self, to: AgentStream) -> None:
        """End it, and give the events that have reached no connection to another stream."""
        self.close()
        if self.responder is None:
            for number, event in self._events:
                if number >= self._unsent_from:
                    to._event(event)
        self.forget_events()

    def _event(self, event: bytes) -> None:
        if not self.number:
            self._write(event)
            return
        if self._events is _NOTHING:
            self._events = deque()
        self._events.append((self._next, event))
        self.kept_bytes += len(event)
        while self.kept_bytes > MAX_KEPT_BYTES and len(self._events) > 1:
            self.kept_bytes -= len(self._events.popleft()[1])
        self._write(self._id(self._next) + event)
        self._next += 1

    def _id(self, event: int) -> bytes:
        return b"id: %d-%d\n" % (self.number, event)

    def _write(self, piece: bytes) -> None:
        if self.responder is not None:
            self.responder.write(piece)


def stream_and_event(last_event_id: bytes) -> tuple[int, int] | None:
    """The numbers in the id of an event; None: it is not one of ours."""
    stream, dash, event = last_event_id.partition(b"-")
    if not dash or not (stream.isdigit() and event.isdigit()) or len(last_event_id) > 40:
        return None
    return int(stream), int(event)


class KeptStreams:
    """The streams of one session, by their numbers.

    A stream can be resumed while it is open, and for a while after its end or the loss of its agent: within the limits
    of all such streams together, the oldest of which is forgotten first.
    """

    def __init__(self, headers: StreamHeaders) -> None:
        self._headers = headers
        self._streams: dict[int, AgentStream] = {}
        self._numbers = 0

    def __len__(self) -> int:
        return len(self._streams)

    def open(self, responder: Responder) -> AgentStream:
        """A new stream."""
        self._numbers += 1
        stream = self._streams[self._numbers] = AgentStream(responder, self._headers, self._numbers)
        return stream

    def find(self, last_event_id: bytes) -> tuple[AgentStream, int] | None:
        """The stream to which this event belongs, with the event's number; None: it cannot be resumed."""
        numbers = stream_and_event(last_event_id)
        stream = self._streams.get(numbers[0]) if numbers else None
        return (stream, numbers[1]) if stream is not None and numbers is not None and stream.can_resume else None

    def forget(self, stream: AgentStream) -> None:
        """It cannot be resumed any more."""
        self._streams.pop(stream.number, None)

    def forget_all(self) -> None:
        """The session has ended."""
        self._streams.clear()

    def forget_oldest(self) -> None:
        """Keep what can be resumed within its limits, the newest stream in any case."""
        idle = [stream for stream in self._streams.values() if stream.ended or stream.responder is None]
        size = sum(stream.kept_bytes for stream in idle)
        for count, oldest in zip(range(len(idle), 1, -1), idle, strict=False):
            if count <= RESUMABLE and size <= MAX_KEPT_BYTES:
                break
            size -= oldest.kept_bytes
            self.forget(oldest)

    def forget_events(self) -> None:
        """Keep no event, and no stream that has ended."""
        for stream in list(self._streams.values()):
            stream.forget_events()
            if stream.ended:
                self.forget(stream)

    @property
    def kept_bytes(self) -> int:
        """Bytes of events that are kept."""
        return sum(stream.kept_bytes for stream in self._streams.values())
