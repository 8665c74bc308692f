"""Breaks texts for a terminal between words, and only there: a path or a command is copied whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

WORD: Final = re.compile(r"\s*\S+\s*")
_LONG_WORD: Final = re.compile(r".*?[,;](?=[\"\[{])|.+", re.DOTALL)  # JSON without blanks is broken between its members
_CLAUSE: Final = re.compile(
    r"(?:hint: )?hookproxy [-a-z].*?(?:;\s+|$)|.+?(?:;\s+|(?<=\s)(?=hookproxy [-a-z])|$)", re.DOTALL
)
"""What ends with a semicolon, or before a command of ours; a command takes a hint's first word with it."""
_COMMAND: Final = re.compile(r"(?:^hint: |(?<=\s)|^)hookproxy [-a-z]")
CONTINUED: Final = "  "  # before what does not fit a line that has no label


def columns(text: str) -> int:
    """How many columns a text takes: some characters take two, and some none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrap(text: str, width: int) -> list[str]:
    """The lines of a text that are at most so wide, broken between words only: a path is copied whole."""
    lines, used = [""], 0
    for word in _words(text, width):
        if used and used + columns(word.rstrip()) > width:
            lines.append("")
            used = 0
        lines[-1] += word
        used += columns(word)
    return lines


def _words(text: str, width: int) -> Iterator[str]:
    for word in WORD.findall(text) or [text]:
        yield from _LONG_WORD.findall(word) if columns(word) > width else [word]


def error_text(text: str, width: int) -> str:
    """Sentences, each line of them broken between words; a command of ours stays whole, since it is copied."""
    lines = []
    for line in text.split("\n"):
        pieces = _filled(line, width - len(CONTINUED))
        lines += [pieces[0].rstrip(), *(f"{CONTINUED}{piece.rstrip()}" for piece in pieces[1:])]
    return "\n".join(lines)


def _filled(line: str, width: int) -> list[str]:
    """The line in pieces, as `wrap`; clauses that begin with a command of ours are not broken."""
    if columns(line) <= width:
        return [line]
    if line.startswith("hint: usage: ") or not _COMMAND.search(line):
        return wrap(line, width)
    pieces = [""]
    for clause in _CLAUSE.findall(line):
        if columns((pieces[-1] + clause).rstrip()) <= width:
            pieces[-1] += clause
        elif _COMMAND.match(clause):
            if pieces[-1].strip():
                pieces.append(clause)
            else:  # it is indented
                pieces[-1] += clause
        else:
            *done, last = wrap(pieces[-1] + clause, width)
            pieces[-1:] = [*done, last]
    return [piece for piece in pieces if piece]
