"""The lines of an audit, through all files that have had its name; and those that are still to come."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import BinaryIO, Final

import msgspec

from ...model.errors import UserError
from ..hash_chain import rotations
from ..records import CallRecord, Entry, Line, NoteRecord, lines, open_file, open_older, unreadable

DECISIONS: Final = ("allow", "deny", "asked-allow", "asked-deny", "asked")
"""The words of a record's `decision`."""

_AGO: Final = re.compile(r"([0-9]{1,6})([smhdw])")
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}  # seconds
_HINT: Final = "a date (2026-11-01), a time (2026-11-01T10:30), or how long ago: 90m, 2h, 7d"


class Wanted(msgspec.Struct, frozen=True):
    """What is looked for; what is empty does not matter."""

    tool: str = ""
    """A glob pattern, tried on the tool's name and on mcp__SERVER__TOOL."""
    decision: str = ""
    """A word of DECISIONS, or a glob pattern over them."""
    since: datetime | None = None
    session: str = ""
    """How the session's id begins."""

    def fits(self, entry: Entry) -> bool:
        """True if the record is looked for; one that cannot be read may be."""
        if not isinstance(entry, CallRecord | NoteRecord):
            return True
        if self.since is not None and entry.at is not None and entry.at < self.since:
            return False
        if not entry.session.startswith(self.session):
            return False
        if isinstance(entry, NoteRecord):
            return not (self.tool or self.decision)
        names = (entry.tool, f"mcp__{entry.server}__{entry.tool}")
        if self.tool and not any(fnmatchcase(name, self.tool) for name in names):
            return False
        return not self.decision or fnmatchcase(entry.decision, self.decision)


def decision(word: str) -> str:
    """What `--decision` names. Raises UserError if no record can have it."""
    if any(fnmatchcase(each, word) for each in DECISIONS):
        return word
    raise UserError(
        f"--decision {word!r}: no call is decided so", f"one of {', '.join(DECISIONS)}; or '*deny' for both"
    )


def since(text: str, now: datetime) -> datetime:
    """The moment that `--since` names; a time without a zone is the zone's of this machine. Raises UserError."""
    try:
        if ago := _AGO.fullmatch(text):
            return now - timedelta(seconds=int(ago[1]) * _UNITS[ago[2]])
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise UserError(f"--since {text!r}: is no time", _HINT) from None


def now() -> datetime:
    """This moment."""
    return datetime.now(UTC)


Wait = Callable[[], None]
"""Waits a moment for more. Raises what ends the whole reading, such as BrokenPipeError when nobody reads any more."""


def _after(done: int, path: str) -> list[int]:
    return [number for number in _numbers(path) if number > done]


def _numbers(path: str) -> list[int]:
    try:
        return sorted(rotations(path))
    except OSError:
        return []  # what is wrong with the folder, reading the file will tell


def read_all(path: str) -> Iterator[tuple[str, Line]]:
    """The lines of all files, the oldest first, each with its file. Raises UserError for one that cannot be read."""
    with open_file(path) as last:  # before the others are counted: it may become one of them
        for number in _numbers(path):
            name = f"{path}.{number}"
            if _is_at(last, name):
                break
            with open_older(name) as file, unreadable(name):
                yield from ((name, line) for line in lines(file))
        with unreadable(path):
            yield from ((path, line) for line in lines(last))


def follow(path: str, wait: Wait) -> Iterator[tuple[str, Line]]:
    """As `read_all`, and then what comes, for ever: over rotation, from the beginning of a file that is cut to nothing.

    A file that is not there yet is waited for. Raises UserError, and what `wait` raises.
    """
    done = 0
    while True:
        for number in _after(done, path):
            with open_older(f"{path}.{number}") as old, unreadable(old.name):
                yield from ((path, line) for line in lines(old))
            done = number
        if not os.path.exists(path):
            wait()
            continue
        with open_file(path) as file, unreadable(path):
            if _after(done, path):
                continue  # the file that was there a moment ago has been rotated
            yield from ((path, line) for line in lines(_Growing(file, path, wait)))
            done = max(done, _number_of(file, path))


def _number_of(file: BinaryIO, path: str) -> int:
    """Under which number an open file lies now that its name is another's; 0: under none."""
    for number in _numbers(path):
        if _is_at(file, f"{path}.{number}"):
            return number
    return 0


def _is_at(file: BinaryIO, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        return False


class _Growing:
    """A file that ends when its path has become another's, and not before; what is unfinished is waited for."""

    def __init__(self, file: BinaryIO, path: str, wait: Wait) -> None:
        self._file = file
        self._path = path
        self._wait = wait
        self._at = 0

    def read(self, size: int, /) -> bytes:
        """At least one byte, unless the file is over."""
        while True:
            over = not _is_at(self._file, self._path)  # before it is read: what was written until then is all there is
            if os.fstat(self._file.fileno()).st_size < self._at:
                self._file.seek(0)
                self._at = 0
            if piece := self._file.read(size):
                self._at += len(piece)
                return piece
            if over:
                return b""
            self._wait()
