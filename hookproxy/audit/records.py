"""Reads audit files line by line; a line that is no record is told with its number, never passed over (law 3)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import BinaryIO, Final, Protocol

import msgspec
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.errors import UserError, file_hint

LONGEST: Final = 160 * 1024 * 1024
"""Bytes of the longest line that is read: the arguments of the longest message by default, twice, and some more."""

_PIECE: Final = 1024 * 1024  # bytes read at a time: enough that few lines come in pieces


class Readable(Protocol):
    """What can be read piece by piece, to its end."""

    def read(self, size: int, /) -> bytes | None:
        """Some bytes; none: it has ended."""


class Line(msgspec.Struct, frozen=True):
    """One line of a file as it stands there."""

    number: int
    """From 1."""
    raw: bytes
    """Without its end; of a line that is too long, its beginning."""
    finished: bool = True
    """It has an end: only the last line of a file can lack it, because its writer was stopped or is still writing."""
    too_long: bool = False


class HookRun(msgspec.Struct, frozen=True):
    """What one hook did at one occasion of a call."""

    source: str = ""
    event: str = ""
    dialect: str = ""
    command: str = ""
    ended: str = ""
    exit: int = 0
    ms: float = 0.0
    outcome: str = ""
    """`success`, `blocking`, `non_blocking_error`, `cancelled`."""
    verdict: str = ""
    """`allow`, `ask`, `deny`, `rewrite`, `replace`, `comment`, `trouble`, `none`."""
    reason: str = ""
    feedback: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    stderr: str = ""


class Written(msgspec.Struct, frozen=True):
    """What each line of an audit has. A member that the line lacks is empty."""

    line: int = 0
    """Where it stands in its file, from 1."""
    v: int = 0
    """The format's number; members that a newer format adds are left out."""
    time: str = ""
    session: str = ""
    server: str = ""
    user: str = ""
    host: str = ""
    pid: int = 0
    previous: str = ""
    """In a chained file: the SHA-256 of the line before."""

    @property
    def at(self) -> datetime | None:
        """`time`, with its zone; None where it is none."""
        return moment(self.time)


class CallRecord(Written, frozen=True):
    """One judged call as the audit has it."""

    tool: str = ""
    alias: str = ""
    """What hooks called the tool, where that is another name."""
    id: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    """JSON, as the agent spelled it."""
    arguments: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    """JSON, as the agent sent them; empty where the audit holds digests."""
    arguments_sha256: str = ""
    rewritten: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    """JSON: the arguments that ran, where hooks rewrote them."""
    rewritten_sha256: str = ""
    hooks: tuple[HookRun, ...] = ()
    changed: tuple[str, ...] = ()
    """`arguments`, `result`."""
    repeats: int = 0
    decision: str = ""
    """`allow`, `deny`, `asked-allow`, `asked-deny`, `asked`; empty if the call ended before."""
    by: str = ""
    """Who refused it: a hook's label, a permission rule, a limit's key."""
    reason: str = ""
    result: str = ""
    """`ok`, `error`, `refused`, `cancelled`, `lost`, `pending`."""
    ms: float = 0.0
    hook_ms: float = 0.0
    agent: str = ""


class NoteRecord(Written, frozen=True):
    """A line about something that belongs to no call."""

    note: str = ""


class NoRecord(msgspec.Struct, frozen=True):
    """A line that cannot be read as a record, and why."""

    line: int
    why: str
    torn: bool = False
    """It is the unfinished last line of the file."""


Entry = CallRecord | NoteRecord | NoRecord


class _Shape(msgspec.Struct, frozen=True):
    """What tells a call's line from a note."""

    v: int = 0
    tool: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    note: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


_SHAPE: Final = msgspec.json.Decoder(_Shape)
_CALL: Final = msgspec.json.Decoder(CallRecord)
_NOTE: Final = msgspec.json.Decoder(NoteRecord)


def moment(time: str) -> datetime | None:
    """An ISO time as a moment, in UTC where it names no zone; None where it is none."""
    try:
        at = datetime.fromisoformat(time)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def open_file(path: str, flags: int = 0) -> BinaryIO:
    """The audit file, to be read from its beginning; `flags` beside those of reading. Raises UserError, naming it."""
    try:
        if os.path.isdir(path):
            raise UserError(f"{path}: is a folder, not a file", "name an audit file in it")
        return open(path, "rb", buffering=0, opener=lambda name, reading: os.open(name, reading | flags))
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file", "an audit begins with the first judged call") from None
    except OSError as problem:
        raise UserError(f"{path}: cannot be read: {problem.strerror}", file_hint(path, problem)) from None
    except ValueError:
        raise UserError(f"{path!r}: is not a path: a NUL character is in it", "take it out") from None


def open_older(path: str) -> BinaryIO:
    """A file that is found beside an audit's, by its name. Raises UserError, also where it is no ordinary one.

    Whoever may create files there may have put a pipe there, or a link to what never ends.
    """
    file = None if _is_special(path) else open_file(path, os.O_NONBLOCK)
    if file is None or not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        raise UserError(f"{path}: is no ordinary file", "the audit wrote no such file: move it away")
    return file


def _is_special(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def unreadable(path: str) -> Iterator[None]:
    """Makes of a failure to read the file an error that names it: raises UserError for OSError."""
    try:
        yield
    except BrokenPipeError:  # of whom the lines are for: no file is read so
        raise
    except OSError as problem:
        raise UserError(f"{path}: cannot be read: {problem.strerror}", file_hint(path, problem)) from None


def read(path: str) -> Iterator[Entry]:
    """The records of an audit file, in its order, one in memory at a time. Raises UserError if it cannot be read."""
    with open_file(path) as file, unreadable(path):
        yield from entries(file)


def entries(file: Readable) -> Iterator[Entry]:
    """The records of an open file from where it stands; empty lines are none. Raises OSError."""
    return (entry(line) for line in lines(file) if line.raw.strip())


def lines(file: Readable, longest: int = LONGEST) -> Iterator[Line]:
    """The lines of an open file, split at `\\n` only; of one over `longest` bytes no more is kept. Raises OSError."""
    number, begun, too_long = 1, bytearray(), False
    while piece := file.read(_PIECE):
        *ends, rest = piece.split(b"\n")
        for end in ends:
            too_long = too_long or len(begun) + len(end) > longest
            yield Line(number, bytes(begun + end[: max(longest - len(begun), 0)]), too_long=too_long)
            number, too_long = number + 1, False
            begun.clear()
        too_long = too_long or len(begun) + len(rest) > longest
        begun += rest[: max(longest - len(begun), 0)]
    if begun:
        yield Line(number, bytes(begun), finished=False, too_long=too_long)


def entry(line: Line) -> Entry:
    """What a line says. A last line that only lacks its end is a record like any other."""
    if line.too_long:
        return NoRecord(line.number, "it is too long to be read", torn=not line.finished)
    try:
        raw_json.check_utf8(line.raw)
        shape = _SHAPE.decode(line.raw)
        if shape.tool:
            return replace(_CALL.decode(line.raw), line=line.number)
        if shape.note:
            return replace(_NOTE.decode(line.raw), line=line.number)
        why = "it names neither a tool nor a note"
    except (ValueError, RecursionError) as problem:  # of msgspec, too
        why = _why(problem)
    if not line.finished:
        why = "it is unfinished: its writer was stopped, or is still writing"
    return NoRecord(line.number, why, torn=not line.finished)


def _why(problem: ValueError | RecursionError) -> str:
    if isinstance(problem, msgspec.ValidationError):
        return f"not as a record is: {problem}"
    return str(problem) if isinstance(problem, raw_json.Unreadable) else "not JSON"
