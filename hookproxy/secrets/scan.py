"""Finds secrets in files of any size, and says where they are: the line and column of a text, the member of a record.

How it works. A text is read by pieces. Each is searched together with what came before it, so that nothing is missed
where two pieces meet: what is found in the last `_LONGEST` bytes counts with the next piece, which may have more of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from msgspec import Struct

from .finder import Finder
from .literals import find_in_json, member_at

_PIECE: Final = 1024 * 1024  # bytes that are read at once
_LONGEST: Final = 64 * 1024  # bytes of a secret: private keys have 4 kB, and their lines may be escaped twice
_BEFORE: Final = 512  # bytes before a secret that say what it is, such as its name
_LONGEST_NAME: Final = 60  # characters of a name that are shown


class Readable(Protocol):
    """An open file."""

    def read(self, size: int, /) -> bytes | None:
        """At most so many bytes; nothing at its end."""


class Place(Struct, frozen=True):
    """Where a secret begins, and what has found it."""

    rule: str
    line: int
    """From 1."""
    column: int
    """In characters, from 1."""
    member: str = ""
    """The member of a record of JSON, such as `arguments.headers[0]`; empty: it is a text."""


def in_text(file: Readable, finder: Finder) -> Iterator[Place]:
    """The secrets in a text. At most some megabytes of it are in memory. Raises OSError."""
    text, line, column = b"", 1, 1
    reported = 0  # what begins before it was reported with an earlier piece
    while True:
        piece = file.read(_PIECE) or b""
        text += piece
        end = max(len(text) - _LONGEST, reported) if piece else len(text)
        counted = 0
        for secret in finder.find(text):
            if secret.start < reported or secret.start >= end:
                continue
            line, column = _moved(line, column, text[counted : secret.start])
            counted = secret.start
            yield Place(secret.rule, line, column)
            end = max(end, secret.end) if piece else end
        if not piece:
            return
        kept = max(end - _BEFORE, counted)
        line, column = _moved(line, column, text[counted:kept])
        text, reported = text[kept:], end - kept


def in_record(raw: bytes, line: int, finder: Finder) -> list[Place]:
    """The secrets in a record, which is a line of JSON."""
    places = [(secret.rule, secret.parts[0][0]) for secret in find_in_json(finder, raw)]

    def shown(name: str) -> str:
        return "…" if finder.find(name.encode()) else name[:_LONGEST_NAME]

    return [Place(rule, line, _moved(line, 1, raw[:at])[1], member_at(raw, at, shown)) for rule, at in places]


def _moved(line: int, column: int, text: bytes) -> tuple[int, int]:
    """The line and the column behind this text."""
    lines = text.count(b"\n")
    last = text[text.rfind(b"\n") + 1 :] if lines else text
    return line + lines, len(last.decode(errors="replace")) + (1 if lines else column)
