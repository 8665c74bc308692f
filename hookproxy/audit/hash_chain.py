"""What the lines of a file have to do with each other: each names the hash of the one before, across files.

A line is whole if it is a JSON object. What a killed writer left of one is none, and has a hash of its own.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from typing import Final

import msgspec

_PIECE: Final = 64 * 1024  # bytes read at first on the way back to the last whole line
_WAY_BACK: Final = 160 * 1024 * 1024  # bytes: the longest line that readers take (`records.LONGEST`)
_DIGITS: Final = 9  # of the number of a file that has another name by now: no more were ever given
LAST: Final = 10**_DIGITS - 1
"""The highest number that such a file can have."""

_FIRST: Final = 1024  # bytes in which a first line says what it continues: two hashes, and a name of 255 at most
_CONTINUES: Final = re.compile(
    rb'\{"previous":"[0-9a-f]{64}",(?:"torn":"[0-9a-f]{64}",)?"continues":"[^"]{1,600}\.([0-9]{1,9})"'
)
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Tail(msgspec.Struct, frozen=True):
    """What the end of a file says to the next line."""

    previous: str = ""
    """The SHA-256 of the last whole line, in hexadecimal; empty: there is none."""
    torn: str = ""
    """That of all that came after it and is no line, because its writers were stopped; empty: nothing did."""
    continues: str = ""
    """The name of the file in which that last line stands, if it is another one."""


def predecessor(path: str) -> str:
    """The last of the files that once had this name; empty: there is none. Raises OSError."""
    last = max(rotations(path), default=0)
    return f"{path}.{last}" if last else ""


def rotations(path: str) -> Iterator[int]:
    """The numbers N of the files `PATH.N`, which once had this name. Raises OSError."""
    folder, name = os.path.split(path)
    for each in os.listdir(folder or "."):
        ending = each.removeprefix(f"{name}.")
        if ending != each and ending.isascii() and ending.isdecimal() and len(ending) <= _DIGITS:
            yield int(ending)


def continued(fd: int) -> int:
    """The number of the file that an open one continues, as its first line says; 0: it says nothing. Raises OSError."""
    found = _CONTINUES.match(os.pread(fd, _FIRST, 0))
    return int(found[1]) if found else 0


def line_hash(line: bytes) -> str:
    """What the next line calls `previous`; `line` is without its end."""
    from hashlib import sha256  # 2 ms, for those who have a chain

    return sha256(line).hexdigest()


def is_whole(line: bytes) -> bool:
    """True for a JSON object; what is left of one whose writer was stopped is none."""
    try:
        _OBJECT.decode(line)
    except (ValueError, RecursionError):
        return False
    return True


def tail_of(fd: int, size: int) -> Tail:
    """What the first `size` bytes of a file say to the line that comes after them. Raises OSError."""
    torn: list[bytes] = []
    for line in _backwards(fd, size):
        if is_whole(line):
            return Tail(line_hash(line), torn_hash(torn[::-1]))
        torn.append(line)
    return Tail("", torn_hash(torn[::-1]))


def torn_hash(pieces: list[bytes]) -> str:
    """The hash of pieces that are no lines, in their order; empty: there are none."""
    return line_hash(b"\n".join(pieces)) if pieces else ""


def _backwards(fd: int, size: int) -> Iterator[bytes]:
    """The lines of a file from the last to the first, without empty ones."""
    rest, piece = b"", _PIECE
    while size:
        start = max(size - piece, 0)
        first, *others = (os.pread(fd, size - start, start) + rest).split(b"\n")
        yield from filter(None, reversed(others))
        rest, size = first, start
        if len(rest) > _WAY_BACK:
            raise OSError(errno.EFBIG, f"has no line in its last {_WAY_BACK} bytes")
        if not others:
            piece *= 2  # a long line is not put together from many small pieces
    if rest:
        yield rest
