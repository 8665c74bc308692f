"""Cuts a byte stream into lines at `\\n` and nothing else; keeps every byte (law 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from ..protocol.fast_scan import END_BYTES, Envelope, response_id

LONG_BYTES: Final = 64 * 1024
"""Of a message that is looked at elsewhere first where several sessions share a process (`long_messages`): in a shorter
one the worst that can be written takes five milliseconds."""

SMALL_PIECE: Final = 4096  # bytes: a piece is appended to a smaller one, because many small pieces cost much memory


def split_lines(block: bytes) -> list[bytes]:
    """The lines of a block that ends with a line end, each with its `\\n`. (`bytes.splitlines` also splits at CR.)"""
    if block.find(b"\n") == len(block) - 1:  # nearly always, and a long line is not copied
        return [block] if block else []
    return [line + b"\n" for line in block[:-1].split(b"\n")]


class TooLong(Struct, frozen=True):
    """In the place of a line over the limit, which was dropped; `id` is that of its message, if it could be found."""

    id: bytes | None
    size: int
    """Bytes."""


class Lines:
    """Assembles the lines of one stream. A line of more than `limit` bytes is dropped, and becomes a TooLong.

    `find_id` finds the id of a message from the first and the last bytes of its line.
    """

    def __init__(self, limit: int, find_id: Callable[[bytes, bytes], bytes | None]) -> None:
        self._limit = limit
        self._find_id = find_id
        self._parts: list[bytes] = []  # of the unfinished line
        self._size = 0  # bytes in them
        self._head = b""
        self._cut = 0  # bytes of the unfinished line that are dropped already
        self.lost: list[TooLong] = []
        """Lines over the limit that have ended; whoever handles them clears the list."""

    def feed(self, piece: bytes) -> bytes:
        """All lines that `piece` completes, as one block of bytes."""
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
            self._drop_line()
            piece = piece[first:]
        elif self._parts:
            piece = self._joined(piece)
        self._parts, self._size = [], 0
        if rest:
            self._keep(rest)
        return piece if len(piece) <= self._limit else self._within_limit(piece)

    def _joined(self, piece: bytes) -> bytes:
        """The unfinished line with the piece that ends it; without the line if there is not enough memory for it."""
        try:
            return b"".join((*self._parts, piece))
        except MemoryError:
            first = piece.find(b"\n") + 1
            head, tail, size = self.head, (self._parts[-1] + piece[:first])[-END_BYTES:], self._size + first
            self._parts = []
            self.lost.append(TooLong(self._find_id(head, tail), size))
            return piece[first:]

    def _within_limit(self, block: bytes) -> bytes:
        """The block without the lines that are too long."""
        lines = split_lines(block)
        for line in lines:
            if len(line) > self._limit:
                self.lost.append(TooLong(self._find_id(line[:END_BYTES], line[-END_BYTES:]), len(line)))
        return b"".join(line for line in lines if len(line) <= self._limit)

    def _keep(self, piece: bytes) -> None:
        if self._parts and len(self._parts[-1]) < SMALL_PIECE:
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

    def _drop_line(self) -> None:
        tail = b"".join(self._parts)[-END_BYTES:]
        self.lost.append(TooLong(self._find_id(self._head, tail), self._cut + self._size))
        self._cut, self._head = 0, b""

    @property
    def begun(self) -> int:
        """Bytes of the unfinished line so far."""
        return self._cut + self._size

    @property
    def head(self) -> bytes:
        """The beginning of the unfinished line; empty if it is too long."""
        return b"" if self._cut or not self._parts else self._parts[0][:END_BYTES]  # ENDS is less than SMALL_PIECE

    def take(self) -> bytes:
        """Remove and return the unfinished line: to stream it in pieces, or at the end of the stream.

        Returns nothing if it is too long: then it is in `lost`.
        """
        if self._cut:
            self._drop_line()
            self._parts = []
        return b"".join(self.take_parts())

    def take_parts(self) -> list[bytes]:
        """As `take`, without putting them together. The line must not be too long."""
        parts, self._parts = self._parts, []
        self._size, self._cut, self._head = 0, 0, b""
        return parts

    def limit_to(self, limit: int) -> None:
        """Drop shorter lines from now on, too."""
        self._limit = min(self._limit, limit)


def split_line(piece: bytes) -> tuple[bytes, bytes, bool]:
    """The bytes of the line that has begun before, the bytes after the line, and whether the line has ended."""
    end = piece.find(b"\n") + 1
    return (piece[:end], piece[end:], True) if end else (piece, b"", False)


class StreamedLine:
    """A long line that is forwarded in pieces, because nothing needs it as a whole.

    With `follow`, its end is kept back until the line has ended, and `clear_id` says whose response it is.
    """

    def __init__(self, follow: bool, head: bytes) -> None:
        self._head = head[:END_BYTES]
        self._last = b""
        self._envelope = Envelope(self._head) if follow else None
        self._kept: list[bytes] = []
        self.kept_bytes = 0
        """Bytes that are not forwarded yet."""

    def drop(self, part: bytes) -> None:
        """Take note of the line's next bytes, which are not forwarded."""
        self._last = (self._last + part[-END_BYTES:])[-END_BYTES:]

    def add(self, part: bytes, hold: bool = False) -> bytes:
        """Add the line's next bytes; return those that are forwarded now: none with `hold`."""
        self.drop(part)
        ready = len(part) if self._envelope is None else self._envelope.add_piece(part)
        if ready == len(part) and not (hold or self._kept):
            return part
        if hold or not ready:
            self._keep(part)
            return b""
        piece = self.take() + part[:ready]
        self._keep(part[ready:])
        return piece

    def _keep(self, part: bytes) -> None:
        if part:
            self._kept.append(part)
            self.kept_bytes += len(part)

    def take(self) -> bytes:
        """Return the bytes that are not forwarded yet, for forwarding."""
        kept = b"".join(self._kept)
        self._kept, self.kept_bytes = [], 0
        return kept

    def clear_id(self) -> bytes | None:
        """Return the id of the response, once the line has ended: empty if it is none; None if it is unclear."""
        return None if self._envelope is None else self._envelope.clear_id()

    @property
    def id(self) -> bytes | None:
        """The message's id, once the line has ended, where servers write it."""
        return response_id(self._head, self._last)
