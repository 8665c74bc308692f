"""Ends streams whose token was revoked or has expired. Whoever loses the right to a server loses the whole session.

Requests are checked when they come. A stream stays open for hours, so its token is looked at again meanwhile (law 1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import anyio

from ..session.change_event import ChangeEvent

LOOK_SECONDS: Final = 5.0
"""Between two looks at the tokens of all open streams: a look is one system call and a few microseconds for each."""

_FEW: Final = 16
"""So many streams that have ended may be kept until the next look, or as many as are open: each keeps its session."""


class Stream(Protocol):
    """An open response."""

    @property
    def is_open(self) -> bool:
        """False: it has ended, or its reader is gone."""

    def cut(self) -> None:
        """End it. The agent may open another one with a token that is valid."""


class OpenStreams:
    """The streams of agents that are open, each with a function that says whether it may be."""

    def __init__(self) -> None:
        self._streams: dict[Stream, Callable[[], bool]] = {}
        self._changes = ChangeEvent()
        self._full = _FEW  # streams, at which those that have ended are forgotten

    def __len__(self) -> int:
        """How many streams are kept."""
        return len(self._streams)

    def add(self, stream: Stream, may_stay: Callable[[], bool]) -> None:
        """Look at this stream from now on, until it ends."""
        if len(self._streams) >= self._full:
            self._streams = {stream: may for stream, may in self._streams.items() if stream.is_open}
            self._full = 2 * len(self._streams) + _FEW
        self._streams[stream] = may_stay
        if len(self._streams) == 1:
            self._changes.notify()

    def look(self) -> None:
        """End the streams that may not stay."""
        for stream, may_stay in list(self._streams.items()):
            if stream.is_open and may_stay():
                continue
            del self._streams[stream]
            if stream.is_open:
                stream.cut()

    async def end_forbidden(self) -> None:
        """Look at the streams until it is cancelled. While there are none, nothing wakes up."""
        while True:
            await self._changes.until(lambda: bool(self._streams))
            await anyio.sleep(LOOK_SECONDS)
            self.look()
