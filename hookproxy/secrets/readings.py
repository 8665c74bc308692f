"""Texts as they read once the escapes of JSON in them are undone, and where what is read stands in the text.

Each escape is read as one byte, so that its place is known by counting: that of what was found, in one more pass. An
escape of a character that is not ASCII is read as a byte of something else: no rule asks for such characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

DEPTH: Final = 3
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
        text = _read(self.text)
        return Reading(text, self) if len(text) < len(self.text) else None

    def written(self, offsets: Iterable[int]) -> Mapping[int, int]:
        """Where in the text these places of the reading are: before the escape of what is read there."""
        read = sorted(set(offsets))
        places: list[int] = read
        reading = self
        while reading._of is not None:
            reading = reading._of
            places = _before_escapes(reading.text, places)
        return dict(zip(read, places, strict=True))


def readings(text: bytes) -> Iterator[Reading]:
    """What the text reads after each round of undoing its escapes."""
    reading = Reading(text).deeper()
    for _ in range(DEPTH):
        if reading is None:
            return
        yield reading
        reading = reading.deeper()


def _read(text: bytes) -> bytes:
    """The text with each escape as one byte."""
    read, at = bytearray(), 0
    for escape in _ESCAPE.finditer(text):  # not `sub`, which would make an object of each piece before it joins them
        start, end = escape.span()
        read += text[at:start]
        read += _BYTES[text[start:end]]
        at = end
    read += text[at:]
    return bytes(read)


def _before_escapes(text: bytes, offsets: Sequence[int]) -> list[int]:
    """Where in a text with escapes these places are, which are those in what it reads, in order."""
    places: list[int] = []
    longer = number = 0  # how much longer the text is than what it reads, up to here; the next offset
    for escape in _ESCAPE.finditer(text):
        start = escape.start()
        while number < len(offsets) and offsets[number] + longer <= start:
            places.append(offsets[number] + longer)
            number += 1
        if number == len(offsets):
            break
        longer += escape.end() - start - 1
    return places + [offset + longer for offset in offsets[number:]]
