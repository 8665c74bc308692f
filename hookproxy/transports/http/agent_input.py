"""What both channels of agents over HTTP share: messages that wait until the relay reads, and lines that it writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...protocol.fast_scan import response_id
from ..lines import Lines
from .agent_stream import MAX_UNREAD_BYTES, MAX_UNREAD_LINES, TooManyRequests

BEAT_SECONDS: Final = 25.0
"""Between comments on a silent stream: below the 30 s after which the strictest of usual balancers close it."""

ENDED: Final = "The session with the MCP server has ended"
"""Why requests get no response, without a full stop."""


class AgentInput:
    """The agent's messages, in order. They wait until the relay has started, and while it is paused."""

    def __init__(self) -> None:
        self._on_line: Callable[[bytes], None] | None = None  # None: it is paused
        self._reader: Callable[[bytes], None] | None = None
        self._lines: list[bytes] = []
        self._bytes = 0

    @property
    def waits(self) -> bool:
        """What comes waits."""
        return self._on_line is None

    def check_room(self, line: bytes) -> None:
        """Raise TooManyRequests if the line would wait, and as much waits as may."""
        if self._on_line is None and (
            len(self._lines) >= MAX_UNREAD_LINES or self._bytes + len(line) > MAX_UNREAD_BYTES
        ):
            raise TooManyRequests

    def feed(self, line: bytes) -> None:
        """Give a line to the relay, or keep it until the relay reads."""
        if self._on_line is None:
            self._lines.append(line)
            self._bytes += len(line)
        else:
            self._on_line(line)

    def start(self, reader: Callable[[bytes], None]) -> None:
        """The relay reads from now on."""
        self._reader = reader
        self.resume()

    def pause(self) -> None:
        """Keep what comes."""
        self._on_line = None

    def resume(self) -> None:
        """Give the relay what waits, and what comes. It may pause again meanwhile."""
        self._on_line = self._reader
        for line in self.take():
            self.feed(line)

    def take(self) -> list[bytes]:
        """The lines that wait, which then wait no more."""
        lines, self._lines, self._bytes = self._lines, [], 0
        return lines


class AgentOutput:
    """The whole lines in what the relay writes to an agent."""

    def __init__(self, max_bytes: int) -> None:
        self._lines = Lines(max_bytes, response_id)

    @property
    def begun(self) -> int:
        """Bytes of a line that is not complete."""
        return self._lines.begun

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that this piece completes."""
        block = self._lines.feed(piece)
        self._lines.lost.clear()  # the relay has replaced what is too long
        if block.count(b"\n") > 1:  # bytes.splitlines would split at CR as well
            return [line + b"\n" for line in block[:-1].split(b"\n")]
        return [block] if block else []
