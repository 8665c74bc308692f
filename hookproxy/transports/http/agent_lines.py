"""What both channels of agents over HTTP share: what waits until the relay reads, and the lines that it writes."""

# ruff: noqa: D102  # methods without a docstring are described by Channel
from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ...protocol.fast_scan import ReadCall, response_id
from ..channel import OnBytes, OnEnd, OnFull
from ..lines import Lines, split_lines
from ..user_load import UserLoad
from .agent_stream import MAX_KEPT_BYTES

MAX_UNREAD_LINES: Final = 1000
"""Messages of agents that wait while a session does not read: as many as one client of a shared server may send."""

MAX_UNREAD_BYTES: Final = 16 * 1024 * 1024
"""Of these messages: four of the longest that the listener takes."""

MAX_KEPT_LINES: Final = 256
"""Lines of the server that are kept while no stream is open: more than a server sends before its agent listens."""

BEAT_SECONDS: Final = 25.0
"""Between comments on a silent stream: below the 30 s after which the strictest of usual balancers close it."""

ENDED: Final = "The session with the MCP server has ended"
"""Why requests get no response, without a full stop."""


class TooManyRequests(Exception):
    """More messages have come than may wait."""


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
        """Remove and return the lines that wait."""
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
        return split_lines(block)


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


class AgentEnd:
    """The part of a Channel that is the same for both: how the relay reads the agent's messages."""

    reads_lines = False
    """A message is a body, or an event."""
    is_substitute = False

    def __init__(self, max_bytes: int, load: UserLoad | None) -> None:
        """`load` is that of the user."""
        self._load = load or UserLoad()
        self._output = AgentOutput(max_bytes)
        self._input = AgentInput()
        self._loop = asyncio.get_running_loop()
        self._beat: asyncio.TimerHandle | None = None
        self._on_end: Callable[[], None] | None = None  # it is not started yet
        self._is_ending = False
        self.last_used = self._loop.time()
        """When the last request has ended, in seconds of the loop's clock."""
        self.has_ended = False
        """Nothing is answered any more: requests belong to another channel."""
        self.gone = False
        self.queued = 0
        self.on_refused: Callable[[str, bytes, bytes], None] = lambda _why, _id, _line: None
        """As in Refuses."""
        self.why_ended: Callable[[], str] = lambda: ""
        """As in SaysWhyEnded."""
        self.pass_call: Callable[[ReadCall], bool] = lambda _call: False
        """As in OffersCalls."""

    def start(self, on_bytes: OnBytes, on_end: OnEnd, on_full: OnFull, on_gone: OnEnd) -> None:
        self._on_end, self._on_full = on_end, on_full
        self._input.start(on_bytes)
        if self._is_ending:
            on_end()

    def pause(self) -> None:
        """What comes is kept, and no more of it than requests may be in flight."""
        self._input.pause()

    def resume(self) -> None:
        self._input.resume()

    def drain(self) -> None:
        """Nothing is left unread."""

    async def flushed(self) -> None:
        """The listener sends what it has got, also after the session."""

    def end(self) -> None:
        """The agent has ended the session, or it was unused for too long."""
        if self._on_end is not None and not self._is_ending:
            self._on_end()
        self._is_ending = True
