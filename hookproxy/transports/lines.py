"""Cuts a byte stream into lines at `\\n` and nothing else; keeps every byte (law 2)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_ID: Final = rb'"id"\s*:\s*(-?[0-9]+|"[^"\\]*")'
_HEAD_ID: Final = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID + rb'\s*,\s*"(?:result|error|jsonrpc)"'
)
_TAIL_ID: Final = re.compile(rb"[,{]\s*" + _ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')
_TAIL: Final = 512  # bytes kept of a line's end: the members after a result, where JavaScript servers write the id


def outer_id(head: bytes, tail: bytes) -> bytes | None:
    """The id of a message of which only both ends are known, where real servers write it; None: cannot be told."""
    found = _HEAD_ID.match(head) or _TAIL_ID.search(tail)
    return found[1] if found else None


@dataclass(frozen=True, slots=True)
class TooLong:
    """In place of a line beyond the limit, which is lost; `id` is that of its message, where it can be told."""

    id: bytes | None
    size: int
    """Bytes."""


class Lines:
    """Whole lines of one stream. `limit` is in bytes; of a longer line only a TooLong comes out, at its end."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []  # of the unfinished line
        self._size = 0  # bytes in them
        self._head = b""
        self._cut = 0  # bytes of the unfinished line that are lost already
        self.lost: list[TooLong] = []
        """Lines beyond the limit that have come to their end; whoever deals with them clears the list."""

    def feed(self, piece: bytes) -> bytes:
        """All lines that `piece` completes, in one block."""
        end = piece.rfind(b"\n") + 1
        if end == len(piece) and not self._parts:
            return piece
        if not end:
            self._keep(piece)
            return b""
        rest, piece = piece[end:], piece[:end]
        if self._parts:
            first = piece.find(b"\n") + 1
            if self._cut or self._size + first > self._limit:
                self._keep(piece[:first])
                self._lose()
                piece = piece[first:]
            else:
                piece = b"".join((*self._parts, piece))
            self._parts, self._size = [], 0
        if rest:
            self._keep(rest)
        return piece

    def _keep(self, piece: bytes) -> None:
        self._parts.append(piece)
        self._size += len(piece)
        if self._size > self._limit:
            whole = b"".join(self._parts)
            self._head = self._head or whole[:_TAIL]
            self._parts = [whole[-_TAIL:]]
            self._cut += len(whole) - _TAIL
            self._size = _TAIL

    def _lose(self) -> None:
        tail = b"".join(self._parts)[-_TAIL:]
        self.lost.append(TooLong(outer_id(self._head, tail), self._cut + self._size))
        self._cut, self._head = 0, b""

    @property
    def begun(self) -> int:
        """Bytes of the line that has begun and not ended."""
        return self._cut + self._size

    @property
    def begins_object(self) -> bool:
        """That line begins as a JSON object does, and all of it is here."""
        return not self._cut and bool(self._parts) and self._parts[0][:1] == b"{"

    def take(self) -> bytes:
        """The line that has begun, out of here: for passing it on in pieces, or at the end of the stream."""
        line = b"" if self._cut else b"".join(self._parts)
        self._parts, self._size, self._cut, self._head = [], 0, 0, b""
        return line


class Passage:
    """A long line on its way through in pieces, because nobody has to see it whole."""

    def __init__(self, head: bytes) -> None:
        self._head = head[:_TAIL]
        self._tail = head[-_TAIL:]

    def split(self, piece: bytes) -> tuple[bytes, bytes, bool]:
        """What of `piece` belongs to the line, what comes after it, and whether the line is at its end."""
        end = piece.find(b"\n") + 1
        mine, rest = (piece[:end], piece[end:]) if end else (piece, b"")
        self._tail = (self._tail + mine[-_TAIL:])[-_TAIL:]
        return mine, rest, bool(end)

    @property
    def id(self) -> bytes | None:
        """The message's id, once the line is at its end."""
        return outer_id(self._head, self._tail)
