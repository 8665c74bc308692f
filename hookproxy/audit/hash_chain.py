"""The hash chain of audit lines: each line has the hash of the line before it, across rotated files.

A line is whole if it is a JSON object. A *torn* line is what a killed writer left of a line; the next line has its hash
as the member `torn`.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from .key_file import read_private

_READ_SIZE: Final = 64 * 1024  # bytes read at first in the search for the last whole line
_LONGEST_LINE: Final = 160 * 1024 * 1024  # bytes: the longest line that readers accept (`records.LONGEST`)
_DIGITS: Final = 9  # digits of a rotated file's number
LAST: Final = 10**_DIGITS - 1
"""The highest number of a rotated file."""

_FIRST_BYTES: Final = 1024  # of a first line: they hold two hashes and the name of the file that it continues
_CONTINUES: Final = re.compile(
    rb'\{"previous":"[0-9a-f]{64}",(?:"torn":"[0-9a-f]{64}",)?"continues":"[^"]{1,600}\.([0-9]{1,9})"'
)
_MAC: Final = re.compile(
    rb'(\{"previous":"[0-9a-f]*",(?:"torn":"[0-9a-f]{64}",)?(?:"continues":"[^"]{1,600}",)?"n":([0-9]{1,18}),)'
    rb'"mac":"([0-9a-f]{64})",'
)
"""The beginning of a line of a keyed chain."""

CHECKPOINT: Final = ".checkpoint"
"""The suffix of the checkpoint, a file that says how many lines a keyed file has."""

CHECKPOINT_LINES: Final = 100
"""Lines between two checkpoints: writing one takes 0.1 ms."""

SHORTEST_KEY: Final = 32
"""Bytes of the shortest key: as many as HMAC-SHA256 has."""

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Tail(msgspec.Struct, frozen=True):
    """What the next line must record about the end of a file."""

    previous: str = ""
    """The SHA-256 of the last whole line, in hexadecimal; empty if there is none."""
    torn: str = ""
    """The SHA-256 of the torn lines after it; empty if there are none."""
    continues: str = ""
    """The name of the file that holds the last whole line, if it is an earlier file."""
    count: int = 0
    """The number of the last whole line in a keyed chain; 0 if it has none."""


def predecessor(path: str) -> str:
    """The latest rotated file of this path; empty if there is none. Raises OSError."""
    last = max(rotations(path), default=0)
    return f"{path}.{last}" if last else ""


def rotations(path: str) -> Iterator[int]:
    """The numbers N of the rotated files `PATH.N`. Raises OSError."""
    folder, name = os.path.split(path)
    for file in os.listdir(folder or "."):
        ending = file.removeprefix(f"{name}.")
        if ending != file and ending.isascii() and ending.isdecimal() and len(ending) <= _DIGITS:
            yield int(ending)


def continued(fd: int) -> int:
    """The number of the file that an open file continues, from its first line; 0 if it names none. Raises OSError."""
    match = _CONTINUES.match(os.pread(fd, _FIRST_BYTES, 0))
    return int(match[1]) if match else 0


def line_hash(line: bytes) -> str:
    """The hash that the next line has as `previous`; `line` is without its line feed."""
    from hashlib import sha256  # importing it takes 2 ms: only with a chain

    return sha256(line).hexdigest()


def with_mac(head: bytes, members: bytes, count: int, key: bytes) -> bytes:
    """A line of a keyed chain: `head` opens the object, `members` closes it. Both are covered by its `mac`."""
    numbered = b'%b"n":%d,' % (head, count)
    return b'%b"mac":"%b",%b' % (numbered, _mac(key, numbered + members.rstrip(b"\n")).encode(), members)


def checkpoint_of(tail: Tail, key: bytes) -> bytes:
    """The content of a checkpoint: the hash and the number of the last line, and a mac."""
    return with_mac(b'{"previous":"%b",' % tail.previous.encode(), b'"checkpoint":true}\n', tail.count, key)


def mac_fits(line: bytes, key: bytes) -> bool | None:
    """True if the line, without its line feed, has the mac that this key gives it; None if it has none."""
    match = _MAC.match(line)
    if match is None:
        return None
    import hmac  # as in `line_hash`

    return hmac.compare_digest(_mac(key, match[1] + line[match.end() :]), match[3].decode())


def count_of(line: bytes) -> int:
    """The number of a line in a keyed chain; 0 if it has none."""
    match = _MAC.match(line)
    return int(match[2]) if match else 0


def _mac(key: bytes, text: bytes) -> str:
    import hmac  # as in `line_hash`

    return hmac.digest(key, text, "sha256").hex()


def read_key(path: str) -> bytes:
    """The key of a keyed chain. Raises OSError, also if others may read the file, or if it is too short to be a key."""
    key = read_private(path).strip(b"\n")
    if len(key) < SHORTEST_KEY:
        raise OSError(errno.EINVAL, f"has fewer than {SHORTEST_KEY} bytes: it is not a key", path)
    return key


def is_whole(line: bytes) -> bool:
    """True for a JSON object; a torn line is not one."""
    try:
        _OBJECT.decode(line)
    except (ValueError, RecursionError):
        return False
    return True


def tail_of(fd: int, size: int) -> Tail:
    """The tail of the first `size` bytes of a file. Raises OSError."""
    torn: list[bytes] = []
    for _, line in backwards(fd, size):
        if is_whole(line):
            return Tail(line_hash(line), torn_hash(torn[::-1]), count=count_of(line))
        torn.append(line)
    return Tail("", torn_hash(torn[::-1]))


def torn_hash(pieces: list[bytes]) -> str:
    """The hash of torn lines, in their order; empty if there are none."""
    return line_hash(b"\n".join(pieces)) if pieces else ""


def backwards(fd: int, size: int) -> Iterator[tuple[int, bytes]]:
    """The lines in the first `size` bytes of a file from the last to the first, without empty ones, with their places.

    A place is the number of bytes before the line. Raises OSError.
    """
    rest, piece = b"", _READ_SIZE
    while size:
        start = max(size - piece, 0)
        first, *others = (os.pread(fd, size - start, start) + rest).split(b"\n")
        end = size + len(rest)
        for line in reversed(others):
            if line:
                yield end - len(line), line
            end -= len(line) + 1
        rest, size = first, start
        if len(rest) > _LONGEST_LINE:
            raise OSError(errno.EFBIG, f"has no line in its last {_LONGEST_LINE} bytes")
        if not others:
            piece *= 2  # a long line is read in few large pieces
    if rest:
        yield 0, rest
