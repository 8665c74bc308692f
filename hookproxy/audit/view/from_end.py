"""The lines of an audit file and its rotated files from the newest to the oldest, and those since a time.

A long audit is not read whole: the newest lines are at the end, and lines are nearly in the order of their times.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import BinaryIO, Final

import msgspec

from ...model.errors import UserError
from ..hash_chain import backwards
from ..records import Line, lines, open_file, open_older, parse_time, user_errors
from .files import rotated_numbers

_PIECE: Final = 65_536  # bytes read to find a line's time: more than nearly all lines have
_SLACK: Final = timedelta(minutes=1)
"""A line may be written so much later than its time: a record is kept while the file cannot be written."""

_TIME: Final = re.compile(rb'"time": ?"([^"\\]{10,40})"')


class Place(msgspec.Struct, frozen=True):
    """Where a line begins. It stays the same when the file is rotated."""

    file: int
    """The inode of the file."""
    offset: int

    def __str__(self) -> str:
        return f"{self.file}-{self.offset}"


def place(text: str) -> Place | None:
    """The place that this text names; None if it is not one."""
    match = re.fullmatch(r"([0-9]{1,20})-([0-9]{1,18})", text)
    return Place(int(match[1]), int(match[2])) if match else None


def _files(path: str) -> Iterator[tuple[str, BinaryIO]]:
    """The files, the newest first, each closed after use. Raises UserError."""
    with open_file(path) as last:
        numbers = rotated_numbers(path)
        yield path, last
        seen = os.fstat(last.fileno())
    for number in reversed(numbers):
        name = f"{path}.{number}"
        with open_older(name) as file:
            if not os.path.samestat(os.fstat(file.fileno()), seen):  # else it was rotated just now
                yield name, file


def newest_first(path: str, before: Place | None = None) -> Iterator[tuple[Place, bytes]]:
    """The lines from the newest to the oldest, or from the one before that place. Raises UserError.

    If there is no such place any more, from the newest. A line that is being written counts as one.
    """
    if before is not None and all(os.fstat(file.fileno()).st_ino != before.file for _, file in _files(path)):
        before = None
    reached = before is None
    for name, file in _files(path):
        status = os.fstat(file.fileno())
        if not reached and before is not None and status.st_ino != before.file:
            continue
        size = status.st_size if reached or before is None else min(before.offset, status.st_size)
        reached = True
        with user_errors(name):
            for offset, line in backwards(file.fileno(), size):
                yield Place(status.st_ino, offset), line


def lines_since(path: str, since: datetime) -> Iterator[Line]:
    """The lines from about that time on, the oldest first; some may be a little older. Raises UserError.

    The beginning is found by halving, so that what is older is not read.
    """
    since -= _SLACK
    wanted: list[tuple[str, int]] = []
    for name, file in _files(path):
        with user_errors(name):
            start = _first_since(file.fileno(), os.fstat(file.fileno()).st_size, since)
            _, first = _line_after(file.fileno(), -1, _PIECE)
        wanted.append((name, start))
        if start or (first is not None and first < since):
            break
    for name, start in reversed(wanted):
        try:
            file = open_file(name) if name == path else open_older(name)
        except UserError:
            if name == path:
                raise
            continue  # it was removed as too old meanwhile
        with file, user_errors(name):
            file.seek(start)
            yield from (line for line in lines(file) if line.raw)


def _first_since(fd: int, size: int, since: datetime) -> int:
    """The beginning of a line that is not later than the first one of that time; 0: the whole file."""
    low, high = 0, size  # the lines that begin before `low` are older
    while high - low > _PIECE:
        middle = (low + high) // 2
        begin, at = _line_after(fd, middle, high)
        if at is None:
            high = middle
        elif at < since:
            low = begin
        else:
            high = middle
    return low


def _line_after(fd: int, offset: int, end: int) -> tuple[int, datetime | None]:
    """The beginning and the time of the first line that begins after `offset` and has a time; None if there is none.

    -1 stands for a line feed before the file.
    """
    piece = b"\n" if offset < 0 else b""
    piece += os.pread(fd, min(_PIECE, end - offset), max(offset, 0))
    feed = piece.find(b"\n")
    while feed >= 0:
        match = _TIME.search(piece, feed, feed + 1024)
        if match and (at := parse_time(match[1].decode(errors="replace"))):
            return offset + feed + 1, at
        feed = piece.find(b"\n", feed + 1)
    return 0, None
