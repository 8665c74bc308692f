"""Long lines of an agent, where several sessions share a process: each is looked at elsewhere before it is read here.

While a line is looked at, nothing after it is read, so that all lines stay in order. What comes all the same waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from ..protocol.actions import Refused
from ..protocol.fast_scan import END_BYTES, request_id
from ..transports.lines import LONG_BYTES

if TYPE_CHECKING:
    from ..transports.lines import Lines


class Look(Protocol):
    """Whoever says whether a long line may be read."""

    @property
    def limit(self) -> int:
        """Bytes of a line that is taken at all."""

    def why_refused(self, pieces: Sequence[bytes]) -> Awaitable[str]:
        """Why a line may not be read, in a sentence without a full stop; empty: it may be read, and now."""

    def note_time(self, size: int, seconds: float) -> None:
        """A line of this size has taken so long of the event loop."""


class LongAgentLines:
    """Holds a long line, and what comes after it."""

    def __init__(  # noqa: PLR0913  # what a relay does with lines
        self,
        look: Look,
        lines: Lines,
        spawn: Callable[[Callable[..., Coroutine[object, object, None]]], None],
        pause: Callable[[str, bool], None],
        feed: Callable[[bytes], None],
        take: Callable[[bytes], None],
        refuse: Callable[[Refused], None],
    ) -> None:
        """`lines` has the beginning of the line; `feed` gets pieces, and `take` a whole line that may be read."""
        self._look, self._lines, self._spawn, self._pause = look, lines, spawn, pause
        self._feed, self._take, self._refuse = feed, take, refuse
        self._parts: list[bytes] = []  # of the line that is looked at
        self._later: list[bytes] = []
        self._on_end: Callable[[], None] | None = None  # the input has ended meanwhile

    def holds(self, piece: bytes) -> bool:
        """True: this piece ends or continues a long line, or comes after one, and is handled here."""
        if self._parts:
            self._later.append(piece)
            return True
        begun = self._lines.begun
        if begun + len(piece) < LONG_BYTES:
            return False
        end = piece.find(b"\n") + 1
        if not end or not LONG_BYTES <= begun + end <= self._look.limit:
            return False  # `lines` keeps the beginning of a line, and drops one that is too long
        self._parts = [*self._lines.take_parts(), piece[:end]]
        self._later = [piece[end:]] if end < len(piece) else []
        self._pause(_LOOKING, True)
        self._spawn(self._look_at_line)
        return True

    def holds_end(self, on_end: Callable[[], None]) -> bool:
        """True: the end of the input comes after a line that is looked at; it is handled then."""
        if self._parts:
            self._on_end = on_end
        return bool(self._parts)

    async def _look_at_line(self) -> None:
        parts = self._parts
        why = await self._look.why_refused(parts)
        self._parts = []
        if why:
            raw_id = request_id(parts[0][:END_BYTES], parts[-1].rjust(END_BYTES)[-END_BYTES:])
            self._refuse(Refused(f"{why}.", raw_id or b"null"))
        else:
            line = b"".join(parts)
            begun = perf_counter()
            self._take(line)
            self._look.note_time(len(line), perf_counter() - begun)
        del parts
        later, self._later = self._later, []
        for piece in later:
            self._feed(piece)
        if self._parts:
            return
        self._pause(_LOOKING, False)
        if self._on_end is not None:
            self._on_end()


_LOOKING = "a long line is looked at"
