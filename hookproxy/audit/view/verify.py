"""Verifies that the lines of chained audit files are unchanged, and finds the first that is not.

It cannot see lines removed from the end, or a file that was rewritten as a whole. To detect both, note the head (the
hash of the last line) elsewhere now and then, and give it as `expected_head` later.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import BinaryIO, Final

import msgspec

from ...model.counts import counted
from ...model.errors import UserError, file_hint
from ..hash_chain import (
    CHECKPOINT,
    CHECKPOINT_LINES,
    count_of,
    is_whole,
    line_hash,
    mac_fits,
    predecessor,
    rotations,
    torn_hash,
)
from ..records import Line, lines, open_file, open_older, user_errors

_LONGEST_CHECKPOINT: Final = 1024  # bytes: it has two hashes and a number
_ROTATED: Final = re.compile(r"\.[0-9]{1,9}\Z")


class Break(msgspec.Struct, frozen=True):
    """The first line at which a file is not as it was written, and why."""

    line: int
    what: str


class FileCheck(msgspec.Struct):
    """The result for one file. Its member names are those of `audit verify --json`."""

    path: str
    lines: int = 0
    """Whole lines."""
    unchained: int = 0
    """Lines at the beginning without a hash: written before the chain began."""
    torn: int = 0
    """Torn lines (see `hash_chain`) that the next line confirms, or that are last."""
    unfinished: bool = False
    """The last line is unfinished: its writer was stopped, or is still writing."""
    continues: str = ""
    """The name of the previous file, from the first line; empty if the chain begins here."""
    first: str = ""
    """The hash of the previous file's last line, from the first line."""
    head: str = ""
    """The hash of the last whole line."""
    found: bool = False
    """The expected head is the hash of one of the lines."""
    keyed: int = 0
    """Whole lines whose number and mac fit the key; 0 if no key was given."""
    count: int = 0
    """The number of the last of them."""
    broken: Break | None = None

    @property
    def chained(self) -> int:
        """Whole lines that have the hash of the line before."""
        return self.lines - self.unchained


class _Link(msgspec.Struct, frozen=True):
    """A line's members about the lines before it; `previous` is None if it lacks the member."""

    previous: str | None = None
    torn: str = ""
    continues: str = ""


_LINK: Final = msgspec.json.Decoder(_Link)


def verify(path: str, expected_head: str = "", key: bytes = b"") -> list[FileCheck]:
    """Check a file and its rotated files, as far as they exist. Returns them in order, the oldest first.

    With the key of a keyed chain, macs, numbers and the checkpoint are checked as well. A file that is missing in the
    middle or at the end counts as changed. Raises UserError for a file that cannot be read.
    """
    with user_errors(path):
        last = predecessor(path) if not os.path.lexists(path) and os.path.isdir(os.path.dirname(path) or ".") else ""
    if last:
        missing = FileCheck(path, continues=os.path.basename(last), broken=Break(0, f"is missing, but {last} is there"))
    files = [missing if last else _Checker(path, expected_head, key).check()]
    if not files[0].lines and not files[0].broken:  # its writer was stopped right after a rotation
        with user_errors(path):
            files[0].continues = os.path.basename(predecessor(path))
    while before := _before(files[0]):
        older = _Checker(before, expected_head, key).check(open_older)
        continues_chain = older.head == files[0].first or not files[0].lines
        if older.broken is None and files[0].broken is None and not continues_chain:
            files[0].broken = Break(1, f"the line that it names as the one before is not the last line of {before}")
        files.insert(0, older)
    _check_middle(files[0])
    if key:
        _check_checkpoint(files, f"{path}{CHECKPOINT}", key)
    return files


def _check_middle(first: FileCheck) -> None:
    """A file that the first one continues and that is missing was removed as too old, unless older ones are there."""
    named = _ROTATED.search(first.continues)
    if first.broken or named is None or not _may_continue(os.path.basename(first.path), first.continues):
        return
    base = os.path.join(os.path.dirname(first.path), first.continues[: named.start()])
    with user_errors(base):
        older = sorted(number for number in rotations(base) if number < int(named[0][1:]))
    if older:
        first.broken = Break(1, f"{first.continues}, which it continues, is missing, but {base}.{older[-1]} is there")


def _check_checkpoint(files: list[FileCheck], path: str, key: bytes) -> None:
    """Find lines that were removed from the end: the checkpoint counts more lines."""
    last = files[-1]
    if any(file.broken for file in files):
        return
    count = max(file.count for file in files)
    try:
        with open(path, "rb") as file:
            checkpoint = file.read(_LONGEST_CHECKPOINT).rstrip(b"\n")
    except FileNotFoundError:
        if count >= CHECKPOINT_LINES:
            last.broken = Break(last.lines, f"after it, {path} should name {counted(count, 'line')}, but it is missing")
        return
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}", file_hint(path, error)) from None
    if not mac_fits(checkpoint, key):
        last.broken = Break(last.lines, f"{path} was changed, or has another key")
    elif (named := count_of(checkpoint)) > count:
        last.broken = Break(last.lines, f"after it, lines are missing: {path} names {named}, and {count} are there")


def _before(file: FileCheck) -> str:
    """The path of the file that this one continues; empty if there is none, or it is missing."""
    if not _may_continue(os.path.basename(file.path), file.continues):
        return ""  # whoever can write lines must not choose what is read
    path = os.path.join(os.path.dirname(file.path), file.continues)
    return path if os.path.lexists(path) else ""


def _may_continue(name: str, before: str) -> bool:
    """True if `before` is NAME.N, or BASE.N for a name BASE.M with M > N: so there are no circles."""
    named = _ROTATED.search(before)
    if named is None:
        return False
    base, own = before[: named.start()], _ROTATED.search(name)
    if own is not None and base == name[: own.start()]:
        return int(own[0][1:]) > int(named[0][1:])
    return base == name


class _Checker:
    """The check of one file, line by line."""

    def __init__(self, path: str, expected_head: str, key: bytes) -> None:
        self.result = FileCheck(path)
        self._expected_head = expected_head
        self._key = key
        self._pieces: list[bytes] = []  # torn lines since the last whole line
        self._first_piece = 0
        self._finished = True

    def check(self, open_with: Callable[[str], BinaryIO] = open_file) -> FileCheck:
        """Check the file, opened with `open_with`. Raises UserError if it cannot be read."""
        result = self.result
        with open_with(result.path) as file, user_errors(result.path):
            for line in lines(file):
                if line.raw:
                    self._add(line)
                if result.broken:
                    return result
        if self._pieces and self._finished:
            self._break(self._first_piece, "it is not a record, and there is no line after it that names it")
        else:
            result.torn += len(self._pieces)
            result.unfinished = not self._finished
        return result

    def _add(self, line: Line) -> None:
        self._finished = line.finished
        if line.too_long:
            self._break(line.number, "it is too long")
        elif not is_whole(line.raw):
            self._first_piece = self._first_piece or line.number
            self._pieces.append(line.raw)
        else:
            self._add_line(line)

    def _add_line(self, line: Line) -> None:
        result = self.result
        try:
            link = _LINK.decode(line.raw)
        except (ValueError, RecursionError):
            self._break(line.number, "its reference to the line before cannot be read")
            return
        if link.previous is None and not link.torn and not result.chained:  # also after a torn line of that time
            result.unchained += 1
        elif error := self._chain_error(link):
            self._break(line.number if link.torn or not self._pieces else self._first_piece, error)
            return
        elif self._key and (error := self._mac_error(line.raw)):
            self._break(line.number, error)
            return
        if not result.lines:
            result.first, result.continues = link.previous or "", link.continues
        result.lines += 1
        result.torn += len(self._pieces)
        self._pieces, self._first_piece = [], 0
        result.head = line_hash(line.raw)
        result.found = result.found or result.head == self._expected_head

    def _chain_error(self, link: _Link) -> str:
        """Why the line does not follow the lines before it; empty if it does."""
        before = self.result.head
        if link.previous is None:
            return "it does not name the line before it: it was inserted, or its writer did not chain"
        if link.torn != torn_hash(self._pieces):
            if link.torn:
                return "the torn line before it has been changed or removed"
            return "it is not a record, and the line after it does not name it: it was changed or inserted"
        if not before:
            return "" if link.continues or not link.previous else "the lines before it have been removed"
        if link.previous == before:
            return ""
        return (
            "the line before it is not the one that it names: that one was changed, "
            "or lines between them were removed, inserted or moved"
        )

    def _mac_error(self, raw: bytes) -> str:
        """Why the line was not written by somebody with the key; empty if it was."""
        result, fits = self.result, mac_fits(raw, self._key)
        if fits is None:
            return "it has no mac: it was inserted, or its writer had no key" if result.keyed else ""
        if not fits:
            return "its mac does not fit the key: it was changed, inserted, or written with another key"
        number = count_of(raw)
        if result.keyed and number != result.count + 1:
            return f"its number is {number} instead of {result.count + 1}"
        result.keyed, result.count = result.keyed + 1, number
        return ""

    def _break(self, line: int, what: str) -> None:
        self.result.broken = Break(line, what)
