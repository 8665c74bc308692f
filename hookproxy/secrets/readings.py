"""Texts as they read once the escapes of JSON in them are undone, and where what is read stands in the text.

Undoing takes as long as a few searches, in the interpreter's own code; the places are only computed when they are
asked for. A character that is not ASCII may be read as one byte of something else: what is looked for has none.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import Final

DEPTH: Final = 4
"""Escapes around escapes: a JSON text in a JSON text in a message has two, and a log of it three."""

_SENTINEL: Final = b"\xff"  # it is in no UTF-8
_OTHER: Final = b"\xfe"
_PLAIN: Final = (
    (rb"\"", b'"'),
    (rb"\n", b"\n"),
    (rb"\/", b"/"),
    (rb"\t", b"\t"),
    (rb"\r", b"\r"),
    (rb"\b", b"\b"),
    (rb"\f", b"\f"),
)
_BY_ESCAPE: Final = {b"\\\\": b"\\", **dict(_PLAIN)}
_UNICODE: Final = re.compile(rb"\\u[0-9A-Fa-f]{4}")
_ESCAPE: Final = re.compile(rb"\\(?:[\"\\/bfnrt]|u[0-9A-Fa-f]{4})")


class Reading:
    """A text as it reads."""

    def __init__(self, text: bytes, of: Reading | None = None) -> None:
        """`of` is the reading whose escapes were undone."""
        self.text = text
        self._of = of

    def deeper(self) -> Reading | None:
        """The reading with its escapes undone; None: it has none."""
        undone = _undone(self.text)
        return None if undone is self.text else Reading(undone, self)

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


def _undone(text: bytes) -> bytes:
    """The text with each escape as one byte; the same object if it has none."""
    if b"\\" not in text:
        return text
    if _SENTINEL in text:
        return _ESCAPE.sub(_one_byte, text)
    undone = text.replace(b"\\\\", _SENTINEL)
    for escape, byte in _PLAIN:
        undone = undone.replace(escape, byte)
    if b"\\u" in undone:
        undone = _UNICODE.sub(_one_byte, undone)
    undone = undone.replace(_SENTINEL, b"\\")
    return text if len(undone) == len(text) else undone


def _one_byte(match: re.Match[bytes]) -> bytes:
    escape = match[0]
    if escape[1:2] != b"u":
        return _BY_ESCAPE[escape]
    code = int(escape[2:], 16)
    return bytes((code,)) if code < 0x80 else _OTHER
