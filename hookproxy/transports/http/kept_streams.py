"""What an agent's session keeps for agents that are not there: streams to be resumed, and lines for the first stream.

A stream can be resumed while it is open, and for a while after its end or the loss of its agent: within the limits of
all such streams together, the oldest of which is forgotten first. Lines of the server wait here only as long as the
agent has opened no stream.
"""

from __future__ import annotations

from typing import Final

from .agent_stream import MAX_KEPT_BYTES, AgentStream, StreamHeaders, stream_and_event
from .responder import Responder

RESUMABLE: Final = 64
"""Streams that have ended, or lost their agent, and are kept to be resumed: an agent resumes at once, or never."""

MAX_KEPT_LINES: Final = 256
"""Lines of the server that are kept while no stream is open: more than a server sends before its agent listens."""


class KeptStreams:
    """The streams of one session, by their numbers."""

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


class KeptLines:
    """Lines of the server for an agent that has no stream yet."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._bytes = 0

    def add(self, line: bytes) -> bool:
        """Keep a line. False: too much is kept already."""
        if len(self._lines) >= MAX_KEPT_LINES or self._bytes + len(line) > MAX_KEPT_BYTES:
            return False
        self._lines.append(line)
        self._bytes += len(line)
        return True

    def remove(self, line: bytes) -> bool:
        """Remove this very line. False: it is not here any more."""
        for number, kept in enumerate(self._lines):
            if kept is line:
                del self._lines[number]
                self._bytes -= len(line)
                return True
        return False

    def take(self) -> list[bytes]:
        """All lines, which are kept no longer."""
        lines, self._lines, self._bytes = self._lines, [], 0
        return lines
