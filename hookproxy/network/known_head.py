"""Heads of HTTP messages that the parser has read already: peers send the same one again and again, but for its length.

Law: the same bytes mean the same. Only the digits of the length may differ, and heads that change how a body comes, or
what comes after it, are never kept.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

_MAX_DIGITS: Final = 18  # of a length, as in the listener
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,%d})[ \t]*(?=\r\n)" % _MAX_DIGITS, re.IGNORECASE)
_HAS_OWN_FRAMING: Final = frozenset({b"transfer-encoding", b"expect", b"connection", b"upgrade"})


class KnownHead:
    """One head."""

    __slots__ = ("_end", "_last", "_size", "_start", "_total")

    def __init__(self, start: bytes, end: bytes) -> None:
        """`start` is what comes before the digits of the length; `end` is what comes after, to the end of the head."""
        self._start = start
        self._end = end
        self._last, self._size, self._total = b"\0", 0, 0  # with the last length, which the next message often has too

    def body_in(self, data: bytes) -> bytes | None:
        """The body in `data`, if this is one whole message with this head; None: it is not."""
        if len(data) == self._total and data.startswith(self._last):
            return data[self._size :]
        digits = self.length_in(data)
        size = len(self._start) + len(digits) + len(self._end)
        if not digits or int(digits) != len(data) - size:
            return None
        self._last, self._size, self._total = data[:size], size, len(data)
        return data[size:]

    def length_in(self, data: bytes) -> bytes:
        """The digits of the length if `data` begins with this head; empty: with another one, or with a part of it."""
        if not data.startswith(self._start):
            return b""
        start = len(self._start)
        end = data.find(b"\r", start, start + _MAX_DIGITS + 1)
        digits = data[start:end] if end > 0 else b""
        return digits if digits.isdigit() and data.startswith(self._end, end) else b""

    def after(self, data: bytes, digits: bytes) -> bytes:
        """What comes after this head, which has a length of these digits."""
        return data[len(self._start) + len(digits) + len(self._end) :]


def known_head(head: bytes, names: Collection[bytes], length: int) -> KnownHead | None:
    """What is kept of a head that the parser has read; None: it must read such a head each time.

    `names` are those of all headers, in lower case, and `length` is that of the body.
    """
    lengths = [*_LENGTH.finditer(head)]
    if len(lengths) != 1 or int(lengths[0][1]) != length or not _HAS_OWN_FRAMING.isdisjoint(names):
        return None
    return KnownHead(head[: lengths[0].start(1)], head[lengths[0].end(1) :])
