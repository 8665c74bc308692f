"""Reads audit files line by line; a line that is not a record is reported with its number, never skipped (law 3)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import BinaryIO, Final, Protocol

import msgspec
from msgspec.structs import replace

from ..jsonrpc import raw_json
from ..model.errors import UserError, file_hint
from ..model.flow import Chain
from ..model.similar_names import similar_file
from .opened_file import is_special

LONGEST: Final = 160 * 1024 * 1024
"""Bytes of the longest line that is read: the arguments of the longest default message, twice, and some more."""

_READ_SIZE: Final = 1024 * 1024  # bytes per read: more than most lines have


class Readable(Protocol):
    """An open file or something like it."""

    def read(self, size: int, /) -> bytes | None:
        """Up to `size` bytes; none at its end."""


class Line(msgspec.Struct, frozen=True):
    """One line of a file, exactly as it is there."""

    number: int
    """From 1."""
    raw: bytes
    """Without its line feed; of a line that is too long, only the beginning."""
    finished: bool = True
    """It ends with a line feed. Only a file's last line may lack it: its writer was stopped, or is still writing."""
    too_long: bool = False


class HookRun(msgspec.Struct, frozen=True):
    """One hook's run at one event of a call."""

    source: str = ""
    event: str = ""
    dialect: str = ""
    command: str = ""
    tool_name: str = ""
    """The tool's name as the hook got it, if it differs from the server's."""
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
    unread: tuple[str, ...] = ()
    """What is wrong with what it printed: members that its system does not read."""
    input: str = ""
    """The document that it got; empty if the line has a digest or nothing."""
    input_sha256: str = ""
    stdout: str = ""
    stdout_sha256: str = ""
    stderr: str = ""

    @property
    def how_it_ended(self) -> str:
        """`ended`, with the status of a hook that has exited."""
        return f"{self.ended} with status {self.exit}" if self.ended == "exited" else self.ended

    @property
    def verdict_word(self) -> str:
        """The verdict for people: lines say `trouble` for a failure."""
        return "failure" if self.verdict == "trouble" else self.verdict


class Monitor(msgspec.Struct, frozen=True):
    """What a policy would have done with a call that is only watched."""

    policy: str = ""
    """The file that is watched in place of the policy in force; empty: parts of that."""
    would: tuple[str, ...] = ()
    """What would have been changed, after "would have been": `refused`, `asked about`, `allowed`, `rewritten`,
    `replaced`, `withheld`, `commented on`, `repeated`; none: nothing."""
    decision: str = ""
    """`allow`, `ask`, `deny`; empty: the call ended before."""
    cause: str = ""
    by: str = ""
    place: str = ""
    reason: str = ""
    hooks: tuple[HookRun, ...] = ()
    rewritten: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    rewritten_sha256: str = ""
    hook_ms: float = 0.0

    @property
    def decided_by(self) -> str:
        """Who would have decided: the rule, limit or hook; the hooks that would have changed something; or empty."""
        if self.by or not self.would:
            return self.by
        changing = [run.command for run in self.hooks if run.verdict not in ("", "none", "allow")]
        return ", ".join(dict.fromkeys(changing))

    @property
    def sentence(self) -> str:
        """What would have been changed, for people; empty: nothing."""
        return sentence(self.would, self.decided_by, self.reason)


def sentence(words: Sequence[str], by: str = "", reason: str = "") -> str:
    """What would have been changed, for people: `would have been refused by deny write_*`; empty: nothing."""
    if not words:
        return ""
    said = f"would have been {' and '.join(words)}"
    return f"{said} by {by}" + (f": {reason}" if reason else "") if by else said


class SkippedHook(msgspec.Struct, frozen=True):
    """A configured hook that did not run for a call."""

    source: str = ""
    event: str = ""
    command: str = ""
    why: str = ""


class LineMembers(msgspec.Struct, frozen=True):
    """The members that each audit line has. A member that the line lacks is empty."""

    line: int = 0
    """Its number in the file, from 1."""
    v: int = 0
    """The format's number; members of newer formats are ignored."""
    time: str = ""
    session: str = ""
    server: str = ""
    user: str = ""
    user_id: str = ""
    """At a gateway: the user's id, such as `uid:1000`."""
    groups: tuple[str, ...] = ()
    """At a gateway: the user's groups."""
    host: str = ""
    pid: int = 0
    previous: str = ""
    """In a chained file: the SHA-256 of the line before it."""

    @property
    def at(self) -> datetime | None:
        """`time` with its zone; None if it is invalid."""
        return parse_time(self.time)


class CallRecord(LineMembers, frozen=True):
    """A line about a judged call: what `call_record.Record` knows of it, or digests of that."""

    call: str = ""
    """Older records have none."""
    tool: str = ""
    method: str = ""
    """Empty: it is `tools/call`."""
    alias: str = ""
    id: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    arguments: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    """As they were recorded: perhaps masked or cut. Empty if the line has only a digest."""
    arguments_sha256: str = ""
    """Of all arguments; empty: they are recorded whole, or a masked part could be found by it."""
    masked: tuple[str, ...] = ()
    """The ids of the rules by which parts of the arguments are masked."""
    left_out: int = 0
    """Bytes of the arguments that are not recorded."""
    rewritten: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    """The arguments that ran, if hooks rewrote them."""
    rewritten_sha256: str = ""
    hooks: tuple[HookRun, ...] = ()
    skipped: tuple[SkippedHook, ...] = ()
    changed: tuple[str, ...] = ()
    """`arguments`, `result`."""
    result_before: str = ""
    result_before_sha256: str = ""
    result_after: str = ""
    result_after_sha256: str = ""
    repeats: int = 0
    decision: str = ""
    cause: str = ""
    by: str = ""
    place: str = ""
    exceeds: tuple[str, ...] = ()
    """The limits beyond which it ran: a person allowed it, or the model read of it."""
    reason: str = ""
    labels: tuple[str, ...] = ()
    """What its result has brought into the session."""
    chains: tuple[Chain, ...] = ()
    """What it has carried to sinks of data, or would have."""
    asked_by: str = ""
    """Which hook or rule a person was asked for."""
    answered: str = ""
    """What was answered, and by whom."""
    answered_by: str = ""
    """Who has answered, and from where. Older records have only `answered`."""
    edited: bool = False
    """The person has changed the arguments before allowing the call."""
    result: str = ""
    ms: float = 0.0
    hook_ms: float = 0.0
    agent: str = ""
    monitor: Monitor | None = None
    """What a policy would have done that is only watched; None: there was none, or it was not about this call."""

    @property
    def key(self) -> tuple[str, str, int]:
        """The same for all lines about one call, and no other."""
        return self.call, self.session, self.pid

    @property
    def full_name(self) -> str:
        """The tool with its server; an agent's own tool has none."""
        return f"{self.server}/{self.tool}" if self.server else self.tool

    @property
    def is_partial(self) -> bool:
        """Parts of the arguments are masked or left out."""
        return bool(self.masked or self.left_out)

    @property
    def failed(self) -> bool:
        """It ended with an error, or without a response."""
        return self.result in ("error", "lost", "cancelled")

    @property
    def why(self) -> str:
        """Who refused it, and why; or a remark about it."""
        return ": ".join(part for part in (self.by, self.reason) if part)


class NoteRecord(LineMembers, frozen=True):
    """A line about something that belongs to no call: also about a message that was refused before it was a call."""

    note: str = ""
    by: str = ""
    """The id of who has done what the note says, if somebody has."""
    id: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    """Of a refused message: the id to which the refusal responds, or null. The members below are of one as well."""
    decision: str = ""
    cause: str = ""
    reason: str = ""
    result: str = ""
    message: str = ""
    """The message; empty if the line has a digest, or it was too long."""
    message_sha256: str = ""
    agent: str = ""
    checkpoint: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    """Of a signed checkpoint: see `checkpoints`."""


class BadLine(msgspec.Struct, frozen=True):
    """A line that is not a record, and why."""

    line: int
    why: str
    torn: bool = False
    """It is an unfinished last line, whose writer was stopped or is still writing."""


Entry = CallRecord | NoteRecord | BadLine


class _LineKind(msgspec.Struct, frozen=True):
    """The members that distinguish the line of a call from a note."""

    v: int = 0
    tool: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    note: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


_LINE_KIND: Final = msgspec.json.Decoder(_LineKind)
_CALL: Final = msgspec.json.Decoder(CallRecord)
_NOTE: Final = msgspec.json.Decoder(NoteRecord)


def parse_time(time: str) -> datetime | None:
    """Parse an ISO time, in UTC if it names no zone; None if it is invalid."""
    try:
        at = datetime.fromisoformat(time)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def open_file(path: str, flags: int = 0) -> BinaryIO:
    """Open an audit file for reading, with additional `flags`. Raises UserError with the file's name."""
    try:
        if os.path.isdir(path):
            raise UserError(f"{path}: is a folder, not a file", "name an audit file in it")
        return open(path, "rb", buffering=0, opener=lambda name, mode: os.open(name, mode | flags))
    except FileNotFoundError:
        hint = (
            similar_file(path) or "name one that is there; that of [audit] file is created with the first judged call"
        )
        raise UserError(f"{path}: there is no such file", hint) from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}", file_hint(path, error)) from None
    except ValueError:
        raise UserError(f"{path!r}: is not a path: it contains a NUL character", "remove it") from None


def open_older(path: str) -> BinaryIO:
    """Open a rotated file, which is found by its name. Raises UserError, also if it is not a regular file.

    Others who may create files in the folder may have put a pipe there, or a link to an endless device.
    """
    file = None if is_special(path) else open_file(path, os.O_NONBLOCK)
    if file is None or not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        raise UserError(f"{path}: is not a regular file", "the audit did not write it: move it away")
    return file


@contextmanager
def user_errors(path: str) -> Iterator[None]:
    """Turns an OSError from reading the file into a UserError that names it."""
    try:
        yield
    except BrokenPipeError:  # from writing to standard output, not from reading
        raise
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}", file_hint(path, error)) from None


def read(path: str) -> Iterator[Entry]:
    """The records of an audit file, in order, one in memory at a time. Raises UserError if it cannot be read."""
    with open_file(path) as file, user_errors(path):
        yield from entries(file)


def entries(file: Readable) -> Iterator[Entry]:
    """The records of an open file from its position; empty lines are skipped. Raises OSError."""
    return (entry(line) for line in lines(file) if line.raw.strip())


def lines(file: Readable, longest: int = LONGEST) -> Iterator[Line]:
    """The lines of an open file, split at `\\n` only, each cut at `longest` bytes. Raises OSError."""
    number, begun, too_long = 1, bytearray(), False
    while piece := file.read(_READ_SIZE):
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
    """The record on a line. A last line that only lacks its line feed is a record like any other."""
    if line.too_long:
        return BadLine(line.number, "it is too long", torn=not line.finished)
    try:
        raw_json.check_utf8(line.raw)
        kind = _LINE_KIND.decode(line.raw)
        if kind.tool:
            return replace(_CALL.decode(line.raw), line=line.number)
        if kind.note:
            return replace(_NOTE.decode(line.raw), line=line.number)
        why = "it names neither a tool nor a note"
    except (ValueError, RecursionError) as error:  # ValueError covers msgspec's errors
        why = _why_unreadable(error)
    if not line.finished:
        why = "it is unfinished: its writer was stopped, or is still writing"
    return BadLine(line.number, why, torn=not line.finished)


def joined(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries with one record for each call: a line that a call has begun is dropped if its end follows.

    Calls that have begun and have no end come last: their writer was stopped.
    """
    begun: dict[tuple[str, str, int], CallRecord] = {}
    for entry in entries:
        if isinstance(entry, CallRecord) and entry.result == "begun":
            begun[entry.key] = entry
            continue
        if begun and isinstance(entry, CallRecord):
            begun.pop(entry.key, None)
        yield entry
    yield from begun.values()


def _why_unreadable(error: ValueError | RecursionError) -> str:
    if isinstance(error, msgspec.ValidationError):
        return f"it does not have the form of a record: {error}"
    return str(error) if isinstance(error, raw_json.Unreadable) else "not JSON"
