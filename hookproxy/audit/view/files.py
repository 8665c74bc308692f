"""The lines of an audit file and its rotated files, also while they grow; and the filter for records."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import BinaryIO, Final

import msgspec

from ...dialects.shared.hook_file import suggestion
from ...model.errors import UserError
from ..hash_chain import rotations
from ..records import CallRecord, Entry, Line, NoteRecord, lines, open_file, open_older, user_errors

DECISIONS: Final = ("allow", "deny", "asked-allow", "asked-deny", "asked")
"""The values of a record's `decision`."""

_REFUSED: Final = ("refused", "rejected", "blocked")
"""Words for both kinds of denial."""
_DURATION: Final = re.compile(r"([0-9]{1,6})([smhdw])")
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}  # seconds
_HINT: Final = "a date (2026-11-01), a time (2026-11-01T10:30), or how long ago: 90m, 2h, 7d"


class Filter(msgspec.Struct, frozen=True):
    """Which records to show. An empty member matches everything."""

    tool: str = ""
    """A glob pattern, tried on the tool's name, on SERVER/TOOL as the table shows it, and on mcp__SERVER__TOOL."""
    decision: str = ""
    """One of DECISIONS, or a glob pattern for them."""
    since: datetime | None = None
    session: str = ""
    """The beginning of the session's id."""
    user: str = ""
    """A glob pattern for the user's name or id."""
    server: str = ""
    """A glob pattern."""
    group: str = ""
    """A glob pattern for one of the user's groups."""

    def matches(self, entry: Entry) -> bool:
        """True if the record is to be shown; a line that is not a record always is."""
        if not isinstance(entry, CallRecord | NoteRecord):
            return True
        if self.since is not None and entry.at is not None and entry.at < self.since:
            return False
        if not (entry.session.startswith(self.session) and self._is_of(entry)):
            return False
        if isinstance(entry, NoteRecord):
            return not self.tool and (not self.decision or fnmatchcase(entry.decision, self.decision))
        names = (entry.tool, f"{entry.server}/{entry.tool}", f"mcp__{entry.server}__{entry.tool}")
        if self.tool and not any(fnmatchcase(name, self.tool) for name in names):
            return False
        return not self.decision or fnmatchcase(entry.decision, self.decision)

    def _is_of(self, entry: CallRecord | NoteRecord) -> bool:
        """It is of the user, the server and the group that are looked for."""
        return (
            (not self.user or any(fnmatchcase(name, self.user) for name in (entry.user, entry.user_id) if name))
            and (not self.server or fnmatchcase(entry.server, self.server))
            and (not self.group or any(fnmatchcase(group, self.group) for group in entry.groups))
        )


def is_checkpoint(entry: Entry) -> bool:
    """It is a signed checkpoint that has found the audit whole: nothing that people look for."""
    return isinstance(entry, NoteRecord) and bool(entry.checkpoint) and b'"lost"' not in bytes(entry.checkpoint)


def decision(pattern: str) -> str:
    """Check the value of `--decision`. Raises UserError if no record can match it."""
    if any(fnmatchcase(name, pattern) for name in DECISIONS):
        return pattern
    near = "did you mean '*deny'?" if pattern in _REFUSED else suggestion(pattern, DECISIONS)
    hint = near or f"one of {', '.join(DECISIONS)}; or '*deny' for both"
    raise UserError(f"--decision {pattern!r}: there is no such decision", hint)


def since(text: str, now: datetime) -> datetime:
    """Parse the value of `--since`; a time without a zone is local time. Raises UserError."""
    try:
        if ago := _DURATION.fullmatch(text):
            time = now - timedelta(seconds=int(ago[1]) * _UNITS[ago[2]])
        else:
            time = datetime.fromisoformat(text).astimezone()
        if not datetime.min.year + 1 < time.year < datetime.max.year:  # nearer ones overflow
            raise ValueError
        return time
    except (ValueError, OverflowError):
        raise UserError(f"--since {text!r}: is not a time", _HINT) from None


def now() -> datetime:
    """The current time."""
    return datetime.now(UTC)


Wait = Callable[[], None]
"""Waits shortly for more lines. Raises what ends the reading, such as BrokenPipeError if nobody reads the output."""


def rotated_numbers(path: str) -> list[int]:
    """The numbers of the rotated files, the oldest first; none if the folder cannot be read."""
    try:
        return sorted(rotations(path))
    except OSError:
        return []  # opening the file reports what is wrong with the folder


def read_all(path: str) -> Iterator[tuple[str, Line]]:
    """The lines of all files, the oldest file first, each with its file's name. Raises UserError."""
    with open_file(path) as last:  # opened before the others are listed: it may be rotated meanwhile
        for number in rotated_numbers(path):
            name = f"{path}.{number}"
            if _names_open_file(last, name):
                break
            with open_older(name) as file, user_errors(name):
                yield from ((name, line) for line in lines(file))
        with user_errors(path):
            yield from ((path, line) for line in lines(last))


def follow(path: str, wait: Wait) -> Iterator[tuple[str, Line]]:
    """As `read_all`, and then new lines for ever, through rotation; a truncated file is read from its beginning.

    If the file does not exist yet, it is waited for. Raises UserError, and what `wait` raises.
    """
    done = 0
    while True:
        for number in [number for number in rotated_numbers(path) if number > done]:
            with open_older(f"{path}.{number}") as old, user_errors(old.name):
                yield from ((path, line) for line in lines(old))
            done = number
        if not os.path.exists(path):
            wait()
            continue
        with open_file(path) as file, user_errors(path):
            if any(number > done for number in rotated_numbers(path)):
                continue  # the file has just been rotated
            yield from ((path, line) for line in lines(_FollowedFile(file, path, wait)))
            done = max(done, _number_of(file, path))


def _number_of(file: BinaryIO, path: str) -> int:
    """The number of an open file that has been rotated; 0 if it has none."""
    for number in rotated_numbers(path):
        if _names_open_file(file, f"{path}.{number}"):
            return number
    return 0


def _names_open_file(file: BinaryIO, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        return False


class _FollowedFile:
    """A growing file, which ends only when its path names another file."""

    def __init__(self, file: BinaryIO, path: str, wait: Wait) -> None:
        self._file = file
        self._path = path
        self._wait = wait
        self._position = 0

    def read(self, size: int, /) -> bytes:
        """Wait for at least one byte; none if the file has ended."""
        while True:
            over = not _names_open_file(self._file, self._path)  # first: nothing is written after a rotation
            if os.fstat(self._file.fileno()).st_size < self._position:
                self._file.seek(0)
                self._position = 0
            if piece := self._file.read(size):
                self._position += len(piece)
                return piece
            if over:
                return b""
            self._wait()
