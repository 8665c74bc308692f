"""Texts as they read once the escapes of JSON in them are undone, and where what is read stands in the text.

Each escape is read as one byte, so that its place is known by counting: that of what was found, within its block. An
escape of a character that is not ASCII is read as a byte of something else: no rule asks for such characters.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

DEPTH: Final = 3
"""Escapes around escapes: a JSON text in a JSON text in a message has two, and a log of it three."""

_ESCAPE: Final = re.compile(rb"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_BETWEEN: Final = re.compile(rb"[^\\]{6}")  # behind so many bytes without a backslash, no escape goes on
_BLOCK: Final = 8 * 1024
"""Bytes that are read at once: places are counted within one block, and all pieces of a long text would take memory."""


class _Bytes(dict[bytes, bytes]):
    """What an escape is read as, by what stands behind its backslash. Everything else stays."""

    def __missing__(self, behind: bytes) -> bytes:
        if len(behind) == 1:
            return b"\\" + behind
        code = int(behind[1:], 16)
        return bytes((code,)) if code < 0x80 else _OTHER


_OTHER: Final = b"\xfe"  # it is in no UTF-8
_BYTES: Final = _Bytes(
    {b"\\": b"\\", b'"': b'"', b"/": b"/", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
)


class _Block(NamedTuple):
    """A part of a text in which escapes begin and end."""

    read: int
    """Where it begins in what the text reads."""
    start: int
    """Where it begins in the text."""


class Reading:
    """A text as it reads."""

    def __init__(self, text: bytes, of: Reading | None = None, blocks: Sequence[_Block] = ()) -> None:
        """`of` is the reading whose escapes were undone; `blocks` are those of its text."""
        self.text = text
        self._of = of
        self._blocks = blocks

    def deeper(self) -> Reading | None:
        """The reading with its escapes undone; None: it has none."""
        if b"\\" not in self.text:
            return None
        blocks: list[_Block] = []
        read = bytearray()
        for start, end in _blocks_of(self.text):
            blocks.append(_Block(len(read), start))
            read += _read(self.text[start:end])
        return Reading(bytes(read), self, blocks) if len(read) < len(self.text) else None

    def written(self, offsets: Iterable[int]) -> Mapping[int, int]:
        """Where in the text these places of the reading are: before the escape of what is read there."""
        read = sorted(set(offsets))
        places: list[int] = read
        reading = self
        while reading._of is not None:
            places = _before_escapes(reading._of.text, reading._blocks, places)
            reading = reading._of
        return dict(zip(read, places, strict=True))


def readings(text: bytes) -> Iterator[Reading]:
    """What the text reads after each round of undoing its escapes."""
    reading = Reading(text).deeper()
    for _ in range(DEPTH):
        if reading is None:
            return
        yield reading
        reading = reading.deeper()


def _blocks_of(text: bytes) -> Iterator[tuple[int, int]]:
    """Where the blocks of a text begin and end."""
    start = 0
    while start < len(text):
        between = _BETWEEN.search(text, start + _BLOCK)
        end = between.end() if between else len(text)
        yield start, end
        start = end


def _read(text: bytes) -> bytes:
    """The text with each escape as one byte."""
    pieces = _ESCAPE.split(text)  # each second one is what stands behind a backslash
    pieces[1::2] = [_BYTES[behind] for behind in pieces[1::2]]
    return b"".join(pieces)


def _before_escapes(text: bytes, blocks: Sequence[_Block], offsets: Sequence[int]) -> list[int]:
    """Where in a text with escapes these places are, which are those in what it reads, in order."""
    places: list[int] = []
    while len(places) < len(offsets):
        number = bisect_right(blocks, offsets[len(places)], key=_begins)
        last = bisect_left(offsets, blocks[number].read) if number < len(blocks) else len(offsets)
        places += _in_block(text, blocks[number - 1], offsets[len(places) : last])
    return places


def _begins(block: _Block) -> int:
    return block.read


def _in_block(text: bytes, block: _Block, offsets: Sequence[int]) -> list[int]:
    """As `_before_escapes`, for places in one block."""
    places: list[int] = []
    longer = block.start - block.read  # how much longer the text is than what it reads, up to here
    for escape in _ESCAPE.finditer(text, block.start):
        while len(places) < len(offsets) and offsets[len(places)] + longer <= escape.start():
            places.append(offsets[len(places)] + longer)
        if len(places) == len(offsets):
            return places
        longer += len(escape[0]) - len(_BYTES[escape[1]])
    return places + [offset + longer for offset in offsets[len(places) :]]
