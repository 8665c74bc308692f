"""Reads an audit file for a collector: what has been sent is noted on disk, so the file itself is the queue.

Law: a line is forgotten only after the collector has taken it, or has refused it for good, or its file was removed. A
line may be sent twice: after a crash between sending and noting it.
Source: OTLP 1.10, its JSON encoding of logs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct

from .. import __version__
from ..files.replace import replace_file
from .hash_chain import rotations

SENT: Final = ".sent"
"""The ending of the file beside the audit file that says how far it was sent."""

_BATCH_BYTES: Final = 1024 * 1024  # of lines in one request: a quarter of what collectors accept at least
_BATCH_LINES: Final = 512  # as in OpenTelemetry's own SDKs
_READ_BYTES: Final = 16 * 1024 * 1024  # of a line that is longer than a batch, at a time
_MICROSECONDS: Final = 1_000_000
_INFO: Final = 9  # SeverityNumber of OTLP
_ATTRIBUTES: Final = {
    "tool": "gen_ai.tool.name",
    "session": "mcp.session.id",
    "server": "hookproxy.server",
    "decision": "hookproxy.decision",
    "result": "hookproxy.result",
    "call": "hookproxy.call",
    "policy": "hookproxy.policy",
    "user": "user.name",
    "user_id": "user.id",
}
_END_USER: Final = "enduser.id"  # as spans have it; a line of a gateway has it only if it is of a user
"""Members of a line that are attributes of its log record, too: by these people search."""


class Position(Struct, frozen=True):
    """How far the lines were sent."""

    file: int
    """The number that the file has, or will get when it is rotated."""
    offset: int
    """Of the first line in it that was not sent."""
    inode: int = 0
    """The file's, once it was read: another program may put an empty file in its place."""


class Batch(Struct, frozen=True):
    """Lines that come next."""

    lines: Sequence[bytes]
    """Without their line feeds."""
    after: Position
    """The position after them."""


class AuditReader:
    """The lines of an audit file, and of the files to which it was rotated, one after another."""

    def __init__(self, path: str) -> None:
        """Go on where it was left, or else begin with the next line. Raises OSError."""
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
        self.path = path
        self.removed = 0
        """How many files were removed before all of their lines were sent."""
        noted = self._noted()
        self.position = self._end() if noted is None else noted
        if noted is None:
            self.note(self.position)

    def _noted(self) -> Position | None:
        try:
            with open(self.path + SENT, "rb") as file:
                return msgspec.json.decode(file.read(), type=Position)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError:  # the machine has stopped before it was on the disk: rather send too much
            return Position(min(rotations(self.path), default=1), 0)

    def _end(self) -> Position:
        with suppress(FileNotFoundError):
            state = os.stat(self.path)
            return Position(self._current(), state.st_size, state.st_ino)
        return Position(self._current(), 0)

    def note(self, position: Position) -> None:
        """Note that everything before this position was sent. Raises OSError."""
        replace_file(self.path + SENT, msgspec.json.encode(position), durable=False)  # a line may be sent twice
        self.position = position

    def read(self, most: int = _BATCH_LINES) -> Batch | None:
        """The next whole lines, at most so many; None: there are none now. Raises OSError."""
        while True:
            current = self._current()
            position = self._existing(current)
            name = self.path if position.file == current else f"{self.path}.{position.file}"
            try:
                lines, state = _lines_at(name, position.offset, most)
            except FileNotFoundError:
                if position.file != self._current():
                    continue  # it was rotated, or removed, just now
                return None
            if position.offset and (position.offset > state.st_size or position.inode != state.st_ino):
                self.position = Position(position.file, 0, state.st_ino)  # another file, or an emptied one
                continue
            if lines:
                end = position.offset + sum(map(len, lines)) + len(lines)
                return Batch(lines, Position(position.file, end, state.st_ino))
            if position.file == current:
                return None
            self.position = Position(position.file + 1, 0)  # a torn last line ends with the next line of its file

    def _existing(self, current: int) -> Position:
        """The position, or the beginning of the first file after it that is there."""
        number = self.position.file
        if number == current or number in (numbers := set(rotations(self.path))):
            return self.position
        if number > current:  # the rotated files were moved away, and numbers begin anew
            self.position = Position(current, self.position.offset, self.position.inode)
            return self.position
        self.removed += 1
        self.position = Position(min([later for later in numbers if later > number], default=current), 0)
        return self.position

    def _current(self) -> int:
        """The number that the file will get."""
        return max(rotations(self.path), default=0) + 1

    @property
    def unsent_bytes(self) -> int:
        """How many bytes of lines were not sent."""
        total = 0
        with suppress(OSError):
            current = self._current()
            for number in (*sorted(set(rotations(self.path))), current):
                if number >= self.position.file:
                    name = self.path if number == current else f"{self.path}.{number}"
                    start = self.position.offset if number == self.position.file else 0
                    total += max(os.stat(name).st_size - start, 0)
        return total


def _lines_at(path: str, offset: int, most: int) -> tuple[list[bytes], os.stat_result]:
    """The whole lines from an offset on, as many as one batch takes, and the state of the file. Raises OSError."""
    with open(path, "rb") as file:
        state = os.fstat(file.fileno())
        file.seek(offset)
        data = file.read(_BATCH_BYTES)
        while data and b"\n" not in data and (more := file.read(_READ_BYTES)):
            data += more
    whole, end, _ = data.rpartition(b"\n")
    return (whole.split(b"\n")[:most] if end else []), state


def logs_request(lines: Sequence[bytes], resource: dict[str, str], now: float) -> bytes:
    """The body of a request to a collector with these lines. `now` is in seconds since 1970."""
    observed = str(_nanoseconds(now))
    scope = {"name": "hookproxy", "version": __version__}
    records = [_record(line, observed) for line in lines if line]
    return msgspec.json.encode(
        {
            "resourceLogs": [
                {
                    "resource": {"attributes": _attributes(resource)},
                    "scopeLogs": [{"scope": scope, "logRecords": records}],
                }
            ]
        }
    )


def _record(line: bytes, observed: str) -> dict[str, object]:
    """A line as a log record: its text is the body."""
    try:
        members = msgspec.json.decode(line, type=dict[str, object])
    except (msgspec.MsgspecError, RecursionError):  # a torn line
        members = {}
    attributes = {name: str(members[key]) for key, name in _ATTRIBUTES.items() if members.get(key)}
    if members.get("user_id") and members.get("user"):
        attributes[_END_USER] = str(members["user"])
    time = observed
    with suppress(ValueError):
        time = str(_nanoseconds(datetime.fromisoformat(str(members.get("time", ""))).timestamp()))
    return {
        "timeUnixNano": time,
        "observedTimeUnixNano": observed,
        "severityNumber": _INFO,
        "severityText": "INFO",
        "eventName": "hookproxy.audit",
        "body": {"stringValue": line.decode(errors="replace")},
        "attributes": _attributes(attributes),
    }


def _nanoseconds(seconds: float) -> int:
    """Exact to the microsecond, as floating point is for times of this century."""
    return round(seconds * _MICROSECONDS) * 1000


def _attributes(texts: dict[str, str]) -> list[dict[str, object]]:
    return [{"key": name, "value": {"stringValue": text}} for name, text in texts.items()]
