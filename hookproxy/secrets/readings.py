"""Texts as they read once the escapes of JSON in them are undone, and where what is read stands in the text.

Each escape is read as one byte, so that its place is known by counting; places are only computed when they are asked
for. An escape of a character that is not ASCII is read as one byte of something else: no rule asks for such characters.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import Final

DEPTH: Final = 4
"""Escapes around escapes: a JSON text in a JSON text in a message has two, and a log of it three."""

_ESCAPE: Final = re.compile(rb"\\(?:[\"\\/bfnrt]|u[0-9A-Fa-f]{4})")
_OTHER: Final = b"\xfe"  # it is in no UTF-8


class _Bytes(dict[bytes, bytes]):
    """What each escape is read as."""

    def __missing__(self, escape: bytes) -> bytes:
        code = int(escape[2:], 16)
        return bytes((code,)) if code < 0x80 else _OTHER


_BYTES: Final = _Bytes(
    {
        rb"\\": b"\\",
        rb"\"": b'"',
        rb"\/": b"/",
        rb"\b": b"\b",
        rb"\f": b"\f",
        rb"\n": b"\n",
        rb"\r": b"\r",
        rb"\t": b"\t",
    }
)


class Reading:
    """A text as it reads."""

    def __init__(self, text: bytes, of: Reading | None = None) -> None:
        """`of` is the reading whose escapes were undone."""
        self.text = text
        self._of = of

    def deeper(self) -> Reading | None:
        """The reading with its escapes undone; None: it has none."""
        if b"\\" not in self.text:
            return None
        text, number = _ESCAPE.subn(lambda escape: _BYTES[escape[0]], self.text)
        return Reading(text, self) if number else None

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where what is read from `start` to `end` stands in the text: whole escapes."""
        if self._of is None:
            return start, end
        return self._of.place(self._before(start), self._before(end))

    def _before(self, at: int) -> int:
        """The place in the reading before this one."""
        read, written = self._places
        number = bisect_right(read, at) - 1
        return written[number] + at - read[number]

    @cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        """Where each piece without an escape begins, as it is read and as it is written."""
        assert self._of is not None
        read, written = [0], [0]
        shorter = 0
        for match in _ESCAPE.finditer(self._of.text):
            shorter += match.end() - match.start() - 1
            read.append(match.end() - shorter)
            written.append(match.end())
        return read, written


def readings(text: bytes) -> Iterator[Reading]:
    """The text as it is, and after each round of undoing its escapes."""
    reading: Reading | None = Reading(text)
    for _ in range(DEPTH):
        if reading is None:
            return
        yield reading
        reading = reading.deeper()
