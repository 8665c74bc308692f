"""Follow the nesting of JSON text in pieces, at the speed of bytes' own methods: no value is decoded, none is kept.

It reads text that nobody has checked. What it says holds for every reader that takes the text for JSON.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Final

PIECE_BYTES: Final = 65536  # of a longer text that is looked at together: it limits the memory for what is cut out

_OUTSIDE_STRINGS: Final = b'{}[]:,0123456789+-.eEtrufalsn \t\n"'
"""All bytes that JSON has outside of strings, except the carriage return, at which some readers split lines."""

_STEPS: Final = bytes.maketrans(b"{[}]", b"\x01\x01\xff\xff")
"""As signed numbers, 1 for each bracket that opens and -1 for each that closes."""

_STEPS_AND_COMMAS: Final = bytes.maketrans(b"{[}],", b"\x01\x01\xff\xff\x00")
"""The same, and 0 for each comma."""

_PAIR: Final = b"\x01\xff"
_ROUNDS: Final = 3  # in which pairs are removed: records in an array have two or three levels

_FLAT_LEVELS: Final = 12  # more than nearly all results have; each costs a pass over the brackets that are left
_MIN_SHARE: Final = 8  # a pass that removes less than one in so many brackets is not followed by another one
_FEW_BRACKETS: Final = 4096  # whose passes cost nothing, so that one deep value among few brackets is still flat

_FEW_QUOTES: Final = 20_000  # to cut a text at so many takes a millisecond

_NO_SIGNS: Final = bytes(set(range(256)) - set(b'{}[]"'))
_NO_BEGINS: Final = bytes(set(range(256)) - set(b",{["))
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"{}[]"))
_NO_COMMAS_OR_BRACKETS: Final = bytes(set(range(256)) - set(b",{}[]"))
_SIGN: Final = re.compile(rb'["{}\[\],]')
_STRING_END: Final = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class Nesting:
    """The state of a JSON text after some of its pieces."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        """How many brackets are open."""
        self.is_plain = True
        """False: there was something outside of strings that is not JSON, as a comment, or a carriage return."""
        self._in_string = False
        self._escaped = False  # the last byte is a backslash that belongs to the byte after it

    def outside(self, piece: bytes) -> bytes:
        """Return what `piece` has outside of strings, and go on to its end; `depth` is the caller's to change."""
        if self._in_string and b'"' not in piece:  # most of a long text
            backslashes = len(piece) - len(piece.rstrip(b"\\")) + (self._escaped and not piece.strip(b"\\"))
            self._escaped = backslashes % 2 == 1
            return b""
        if self._escaped:
            piece = b"\\" + piece
        if b"\\" in piece:  # outside of strings, the tildes show that the text is not plain
            piece = piece.replace(b"\\\\", b"~~").replace(b'\\"', b"~~")
        self._escaped = piece.endswith(b"\\")
        parts = piece.split(b'"')
        outside = b"".join(parts[1::2] if self._in_string else parts[::2])
        self._in_string ^= len(parts) % 2 == 0
        if outside.translate(None, _OUTSIDE_STRINGS):
            self.is_plain = False
        return outside

    def find_end(self, piece: bytes) -> int:
        """Return the offset of the comma or bracket after which the text goes on at depth 1; -1: none so far."""
        in_string, escaped = self._in_string, self._escaped
        outside = self.outside(piece)
        if not outside:
            return -1
        steps = _without_pairs(_steps(outside), _ROUNDS)  # a pair more or less does not change how deep the text falls
        depths = [*accumulate(memoryview(steps).cast("b"), initial=self.depth)]
        if min(depths) <= 1 and (end := _end_of_value(piece, self.depth, in_string, escaped)) >= 0:
            return end
        self.depth = depths[-1]
        return -1


def end_of_value(raw: bytes) -> int:
    """Return the offset of the comma or bracket behind a member's value with which `raw` begins; -1: there is none."""
    nesting = Nesting(1)
    for at in range(0, len(raw), PIECE_BYTES):
        if (end := nesting.find_end(raw[at : at + PIECE_BYTES])) >= 0:
            return at + end
    return -1


def is_deeper(raw: bytes, limit: int) -> bool:
    """True if more than `limit` brackets of a JSON text are open at once."""
    if raw.count(b"{") + raw.count(b"[") <= limit or _is_flat(raw, limit):
        return False
    nesting = Nesting(0)
    for at in range(0, len(raw), PIECE_BYTES):
        steps = _steps(nesting.outside(raw[at : at + PIECE_BYTES]))
        left = _without_pairs(steps, _ROUNDS)
        opening = left.count(b"\x01")
        if nesting.depth + opening + _ROUNDS <= limit:  # each round hides a level at most
            nesting.depth += 2 * opening - len(left)
            continue
        depths = [*accumulate(memoryview(steps).cast("b"), initial=nesting.depth)]
        if max(depths) > limit:
            return True
        nesting.depth = depths[-1]
    return False


def _is_flat(raw: bytes, limit: int) -> bool:
    """True if the text is certainly no deeper than a few levels and `limit`: true of nearly every text.

    Few strings are cut out. Of many, only quotes are left, and those of a string without brackets are neighbours.
    """
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    if raw.count(b'"') <= _FEW_QUOTES:
        steps = _steps(b"".join(raw.split(b'"')[::2]))
    else:
        steps = raw.translate(_STEPS, _NO_SIGNS).replace(b'""', b"")
        if b'"' in steps:
            return False
    return not _without_pairs(steps, min(limit, _FLAT_LEVELS))


def _without_pairs(steps: bytes, rounds: int) -> bytes:
    """Remove brackets that close at once, which makes such a pair of the level around them, at most so many times.

    All rounds together read no more than a few times the text: each must be shorter than the last by a share.
    """
    for _ in range(rounds):
        size = len(steps)
        steps = steps.replace(_PAIR, b"")
        if not steps or (size > _FEW_BRACKETS and size - len(steps) < size // _MIN_SHARE):
            break
    return steps


def has_more_values(raw: bytes, limit: int) -> bool:
    """True if a JSON text has certainly more than `limit` values, objects and arrays included."""
    signs = (b",", b"{", b"[")
    if len(raw) <= limit or len(raw.translate(None, _NO_BEGINS)) <= limit:
        return False
    nesting = Nesting(0)
    values = 0
    for at in range(0, len(raw), PIECE_BYTES):
        values += sum(map(nesting.outside(raw[at : at + PIECE_BYTES]).count, signs))
        if values > limit:
            return True
    return False


def has_more_members(raw: bytes, limit: int) -> bool:
    """True if a JSON object has more than `limit` members itself, whatever these have in them."""
    if raw.count(b",") < limit:
        return False
    nesting = Nesting(0)
    members = 1
    for at in range(0, len(raw), PIECE_BYTES):
        outside = nesting.outside(raw[at : at + PIECE_BYTES])
        steps = outside.translate(_STEPS_AND_COMMAS, _NO_COMMAS_OR_BRACKETS)
        depths = [*accumulate(memoryview(steps).cast("b"), initial=nesting.depth)]
        members += sum(not step and depth == 1 for step, depth in zip(steps, depths, strict=False))
        nesting.depth = depths[-1]
        if members > limit:
            return True
    return False


def _steps(outside: bytes) -> bytes:
    return outside.translate(_STEPS, _NO_BRACKETS)


def _end_of_value(  # noqa: C901  # one case for each sign
    piece: bytes, depth: int, in_string: bool, escaped: bool
) -> int:
    """Find the end as `Nesting.find_end` does, sign by sign."""
    at = 1 if escaped else 0
    while True:
        if in_string:
            end = _STRING_END.match(piece, at)
            if end is None:
                return -1
            at = end.end()
            in_string = False
        sign = _SIGN.search(piece, at)
        if sign is None:
            return -1
        at = sign.end()
        if sign[0] == b'"':
            in_string = True
        elif sign[0] == b",":
            if depth == 1:
                return sign.start()
        elif sign[0] in b"{[":
            depth += 1
        elif depth == 1:
            return sign.start()
        else:
            depth -= 1
