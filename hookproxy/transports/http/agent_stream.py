"""One HTTP response to an agent: a JSON body, or a stream of server-sent events if there is more than the response.

An event has an id if the stream can be resumed: the number of the stream and the number of the event in it.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from .listener import Headers, Responder

JSON_HEADER: Final = (b"content-type", b"application/json")
_STREAM_HEADERS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # else nginx in front keeps events until its buffer is full
)

MAX_KEPT_BYTES: Final = 1024 * 1024
"""Bytes of events that are kept so that a stream can be resumed. What was lost beyond it cannot be had again."""


class AgentStream:
    """The response to a POST or a GET. With a `number` it can be resumed on another connection."""

    def __init__(self, responder: Responder, headers: Headers = (), number: int = 0) -> None:
        self.responder: Responder | None = responder
        self.number = number
        self.is_stream = False
        self._headers = headers
        self._events: deque[tuple[int, bytes]] = deque()  # the last ones, to resume
        self._kept = 0  # bytes in them
        self._next = 1  # the number of the next event
        self.is_call = False
        """It is the response to a tools/call."""
        self.ended = False

    def begin(self) -> None:
        """Make it a stream of events now. The agent can resume it from here on."""
        if self.is_stream:
            return
        self.is_stream = True
        if self.responder is not None and self.responder.is_open:
            self.responder.start(200, (*_STREAM_HEADERS, *self._headers))
            self._write(self._id(0) + b"data: \n\n" if self.number else b": \n\n")

    def send(self, line: bytes) -> None:
        """Send a message that is not the response."""
        self.begin()
        self._event(line)

    def finish(self, line: bytes) -> None:
        """Send the response, and end."""
        self.ended = True
        if not self.is_stream and self.responder is not None and self.responder.is_open:
            self.responder.respond(200, (JSON_HEADER, *self._headers), line.rstrip(b"\n"))
            return
        self.begin()
        self._event(line)
        self.close()

    def beat(self) -> None:
        """Send a comment, so that nobody between takes the stream for dead."""
        if self.is_stream:
            self._write(b": \n\n")

    def close(self) -> None:
        """End it as it is."""
        self.ended = True
        if self.responder is not None and self.responder.is_open:
            self.begin()
            self.responder.end()

    def lose(self) -> None:
        """The agent has disconnected: what comes from now on is kept until it resumes."""
        self.responder = None

    def resume(self, responder: Responder, after: int, headers: Headers) -> None:
        """Go on with another connection, with all kept events after this one."""
        if self.responder is not None and self.responder.is_open:  # the agent has given it up, and we have not noticed
            self.responder.end()
        self.responder, self._headers = responder, headers
        self.is_stream = True
        responder.start(200, (*_STREAM_HEADERS, *headers))
        for number, event in list(self._events):
            if number > after:
                responder.write(event)
        if self.ended:
            responder.end()

    def _event(self, line: bytes) -> None:
        # In a message, a CR is a blank between tokens; in a stream it ends a line, and what follows it is a new field.
        event = b"data: " + line.rstrip(b"\r\n").replace(b"\r", b" ") + b"\n\n"
        if self.number:
            event = self._id(self._next) + event
            self._events.append((self._next, event))
            self._kept += len(event)
            while self._kept > MAX_KEPT_BYTES and len(self._events) > 1:
                self._kept -= len(self._events.popleft()[1])
            self._next += 1
        self._write(event)

    def _id(self, event: int) -> bytes:
        return b"id: %d-%d\n" % (self.number, event)

    def _write(self, piece: bytes) -> None:
        if self.responder is not None and self.responder.is_open:
            self.responder.write(piece)


def stream_and_event(last_event_id: bytes) -> tuple[int, int] | None:
    """The numbers in the id of an event; None: it is not one of ours."""
    stream, dash, event = last_event_id.partition(b"-")
    if not dash or not (stream.isdigit() and event.isdigit()) or len(last_event_id) > 40:
        return None
    return int(stream), int(event)
