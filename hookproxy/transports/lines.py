"""Cuts a byte stream into lines at `\\n` and nothing else; keeps every byte (law 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from ..protocol.fast_scan import END_BYTES, response_id

CRUMB: Final = 4096  # bytes below which a piece is put to the one before it: many small ones would cost much memory


class TooLong(Struct, frozen=True):
    """In place of a line beyond the limit, which is lost; `id` is that of its message, where it can be told."""

    id: bytes | None
    size: int
    """Bytes."""


class Lines:
    """Whole lines of one stream. `limit` is in bytes; of a longer line only a TooLong comes out, at its end.

    `told_id` finds the id of a message of which there are both ends.
    """

    def __init__(self, limit: int, told_id: Callable[[bytes, bytes], bytes | None]) -> None:
        self._limit = limit
        self._told_id = told_id
        self._parts: list[bytes] = []  # of the unfinished line
        self._size = 0  # bytes in them
        self._head = b""
        self._cut = 0  # bytes of the unfinished line that are lost already
        self.lost: list[TooLong] = []
        """Lines beyond the limit that have come to their end; whoever deals with them clears the list."""

    def feed(self, piece: bytes) -> bytes:
        """All lines that `piece` completes, in one block."""
        end = piece.rfind(b"\n") + 1
        if end == len(piece) <= self._limit and not self._parts:
            return piece
        if not end:
            self._keep(piece)
            return b""
        rest, piece = piece[end:], piece[:end]
        if self._cut:
            first = piece.find(b"\n") + 1
            self._keep(piece[:first])
            self._lose()
            piece = piece[first:]
        elif self._parts:
            piece = b"".join((*self._parts, piece))
        self._parts, self._size = [], 0
        if rest:
            self._keep(rest)
        return piece if len(piece) <= self._limit else self._within_limit(piece)

    def _within_limit(self, block: bytes) -> bytes:
        """The block without the lines that are too long."""
        lines = [line + b"\n" for line in block[:-1].split(b"\n")]
        for line in lines:
            if len(line) > self._limit:
                self.lost.append(TooLong(self._told_id(line[:END_BYTES], line[-END_BYTES:]), len(line)))
        return b"".join(line for line in lines if len(line) <= self._limit)

    def _keep(self, piece: bytes) -> None:
        if self._parts and len(self._parts[-1]) < CRUMB:
            self._parts[-1] += piece
        else:
            self._parts.append(piece)
        self._size += len(piece)
        if self._size > self._limit:
            whole = b"".join(self._parts)
            self._head = self._head or whole[:END_BYTES]
            self._parts = [whole[-END_BYTES:]]
            self._cut += len(whole) - END_BYTES
            self._size = END_BYTES

    def _lose(self) -> None:
        tail = b"".join(self._parts)[-END_BYTES:]
        self.lost.append(TooLong(self._told_id(self._head, tail), self._cut + self._size))
        self._cut, self._head = 0, b""

    @property
    def begun(self) -> int:
        """Bytes of the line that has begun and not ended."""
        return self._cut + self._size

    @property
    def head(self) -> bytes:
        """How that line begins; nothing if it is too long."""
        return b"" if self._cut or not self._parts else self._parts[0][:END_BYTES]  # CRUMB is more than ENDS

    def take(self) -> bytes:
        """The line that has begun, out of here: for passing it on in pieces, or at the end of the stream.

        Nothing if it is too long: then `lost` has it.
        """
        if self._cut:
            self._lose()
            self._parts = []
        line = b"".join(self._parts)
        self._parts, self._size, self._cut, self._head = [], 0, 0, b""
        return line


class Passage:
    """A long line on its way through in pieces, because nobody has to see it whole."""

    def __init__(self, head: bytes) -> None:
        self._head = head[:END_BYTES]
        self.last = head[-END_BYTES:]
        """The last bytes that have come."""
        self.waiting = b""
        """Those of them that have not gone."""

    def split(self, piece: bytes, keep_end: bool = False) -> tuple[bytes, bytes, bool]:
        """What of the line may go now, what comes after the line, and whether it is at its end.

        With `keep_end` the line's end waits: whoever asks so decides about `waiting`.
        """
        end = piece.find(b"\n") + 1
        mine, rest = (piece[:end], piece[end:]) if end else (piece, b"")
        self.last = (self.last + mine[-END_BYTES:])[-END_BYTES:]
        mine = self.waiting + mine
        cut = max(len(mine) - END_BYTES, 0) if keep_end else len(mine)
        self.waiting = mine[cut:]
        return mine[:cut], rest, bool(end)

    @property
    def id(self) -> bytes | None:
        """The message's id, once the line is at its end."""
        return response_id(self._head, self.last)
