"""Whether the lines of chained audit files are those that were written: finds the first that is not.

What it cannot see: lines taken away from the end, and a file that somebody has written anew as a whole. For both, note
the head (the hash of the last line) elsewhere now and then: `sought` finds it again, or it is gone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import BinaryIO, Final

import msgspec

from ..hash_chain import is_whole, line_hash, predecessor, torn_hash
from ..records import Line, lines, open_file, open_older, unreadable

_ROTATED: Final = re.compile(r"\.[0-9]{1,9}\Z")


class Break(msgspec.Struct, frozen=True):
    """Where a file stops being as it was written."""

    line: int
    what: str


class Checked(msgspec.Struct):
    """What was found in one file."""

    path: str
    lines: int = 0
    """Whole lines."""
    unchained: int = 0
    """Lines at the beginning that know nothing of a line before: written before the chain began."""
    torn: int = 0
    """Lines that are none because their writers were stopped, as the next line says, or as there is no next line."""
    unfinished: bool = False
    """The last of them is the last line: its writer was stopped, or is still writing."""
    continues: str = ""
    """The name of the file before, as the first line says; empty: the chain begins here."""
    first: str = ""
    """The hash that the first line calls its previous."""
    head: str = ""
    """The hash of the last whole line."""
    found: bool = False
    """The sought head is the hash of one of the lines."""
    broken: Break | None = None

    @property
    def chained(self) -> int:
        """Whole lines that know of the line before."""
        return self.lines - self.unchained


class _Link(msgspec.Struct, frozen=True):
    """What a line says of what stands before it; None: nothing."""

    previous: str | None = None
    torn: str = ""
    continues: str = ""


_LINK: Final = msgspec.json.Decoder(_Link)


def verify(path: str, sought: str = "") -> list[Checked]:
    """Check a file and those before it, as far as they are there: gives them in their order, up to a broken one.

    Raises UserError for the file itself if it cannot be read, or for one before it.
    """
    files = [check(path, sought)]
    if not files[0].lines and not files[0].broken:  # its writer was stopped when it had begun a new file
        with unreadable(path):
            files[0].continues = os.path.basename(predecessor(path))
    while before := _before(files[0]):
        older = check(before, sought, open_older)
        fits = older.head == files[0].first or not files[0].lines
        if older.broken is None and files[0].broken is None and not fits:
            files[0].broken = Break(1, f"what it calls the line before is not the last line of {before}")
        files.insert(0, older)
    return files


def _before(file: Checked) -> str:
    """The file that this one continues; empty: there is none, or it is not here."""
    if not _may_continue(os.path.basename(file.path), file.continues):
        return ""  # whoever can write lines must not choose what we read
    path = os.path.join(os.path.dirname(file.path), file.continues)
    return path if os.path.lexists(path) else ""


def _may_continue(name: str, before: str) -> bool:
    """`before` is NAME.N, or where the name itself is BASE.M also BASE.N with a smaller N: there are no circles."""
    named = _ROTATED.search(before)
    if named is None:
        return False
    base, own = before[: named.start()], _ROTATED.search(name)
    if own is not None and base == name[: own.start()]:
        return int(own[0][1:]) > int(named[0][1:])
    return base == name


def check(path: str, sought: str = "", opened: Callable[[str], BinaryIO] = open_file) -> Checked:
    """Check one file, as `opened` gives it. Raises UserError if it cannot be read."""
    checking = _Checking(path, sought)
    with opened(path) as file, unreadable(path):
        for line in lines(file):
            if line.raw:
                checking.take(line)
            if checking.found.broken:
                break
    return checking.end()


class _Checking:
    """A file that is being read."""

    def __init__(self, path: str, sought: str) -> None:
        self.found = Checked(path)
        self._sought = sought
        self._pieces: list[bytes] = []  # what is no line, since the last that is one
        self._pieces_from = 0
        self._finished = True

    def take(self, line: Line) -> None:
        self._finished = line.finished
        if line.too_long:
            self._break(line.number, "it is too long to be read")
        elif not is_whole(line.raw):
            self._pieces_from = self._pieces_from or line.number
            self._pieces.append(line.raw)
        else:
            self._join(line)

    def _join(self, line: Line) -> None:
        found = self.found
        try:
            link = _LINK.decode(line.raw)
        except (ValueError, RecursionError):
            self._break(line.number, "what it says of the line before cannot be read")
            return
        if link.previous is None and not link.torn and not found.chained:  # also behind half a line of that time
            found.unchained += 1
        elif problem := self._misfit(link):
            self._break(line.number if link.torn or not self._pieces else self._pieces_from, problem)
            return
        if not found.lines:
            found.first, found.continues = link.previous or "", link.continues
        found.lines += 1
        found.torn += len(self._pieces)
        self._pieces, self._pieces_from = [], 0
        found.head = line_hash(line.raw)
        found.found = found.found or found.head == self._sought

    def _misfit(self, link: _Link) -> str:
        """Why the line does not belong after what stands before it; empty: it does."""
        before = self.found.head
        if link.previous is None:
            return "it does not say which line was before it: it was inserted, or written by who does not chain"
        if link.torn != torn_hash(self._pieces):
            if link.torn:
                return "what a stopped writer left before it has been changed or removed"
            return "it is no record, and the line after it does not know it: it was changed or inserted"
        if not before:
            return "" if link.continues or not link.previous else "the lines before it have been removed"
        if link.previous == before:
            return ""
        return (
            "the line before it is not the one it was written after: that one was changed, "
            "or lines between them were removed, inserted or moved"
        )

    def _break(self, line: int, what: str) -> None:
        self.found.broken = Break(line, what)

    def end(self) -> Checked:
        """What was found, once all has been read."""
        found = self.found
        if self._pieces and not found.broken:
            if self._finished:
                self._break(self._pieces_from, "it is no record, and there is no line after it that knows it")
            else:
                found.torn += len(self._pieces)
        found.unfinished = not self._finished and not found.broken
        return found
