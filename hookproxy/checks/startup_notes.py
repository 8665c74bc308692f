"""Parses the notes of start-up, `FILE: KEY …`: finds the line of the key, and the hook that a note is about."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

from ..jsonrpc import locate
from ..model.settings import FORMER_KEYS
from .report import Finding


class KeyLines:
    """The lines of keys in configuration files. Each file is read once."""

    def __init__(self) -> None:
        self._places: dict[str, locate.Location | None] = {}

    def line(self, file: str, key: str) -> int | None:
        """The line of the key, also under its former name; None: there is none, or the file cannot be read again."""
        if file not in self._places:
            self._places[file] = _read(file)
        whole = self._places[file]
        if whole is None or not key:
            return None
        table, dot, name = key.rpartition(".")
        former = (f"{table}{dot}{old}" for old, new in FORMER_KEYS.items() if new == name)
        places = (whole.find(spelling) for spelling in (key, *former))
        return next((place.line for place in places if place), None)


def _read(file: str) -> locate.Location | None:
    if not os.path.isfile(file):  # a pipe, which has been read already
        return None
    try:
        with open(file, encoding="utf-8-sig") as text:
            return locate.read(file, text.read())
    except (OSError, ValueError):
        return None


def finding(note: str, files: KeyLines) -> Finding:
    """Split a note into its parts. The key stays in the sentence, unless a colon follows it."""
    for colon in re.finditer(r"(?::(\d+))?: ", note):
        file, rest = note[: colon.start()], note[colon.end() :]
        if os.path.isabs(file) and os.path.exists(file):
            words = rest.split(" ")
            for count in range(len(words), 0, -1):
                first = " ".join(words[:count])
                key = first.removesuffix(":")
                line = files.line(file, key)
                if line is not None:
                    return Finding(file, line, key, rest if key == first else rest[len(first) + 1 :])
            return Finding(file, int(colon[1]) if colon[1] else None, "", rest)
    return Finding("", None, "", note)


_PLACE: Final = re.compile(r"(/[^:]*\.toml): ([A-Za-z][\w\-]*(?:\[\d+\]|\.[^\s.:,\[\]]+)*)(?=[\s:,]|$)")
"""A file of ours without a line, and the key in it that a message is about."""


def with_lines(text: str) -> str:
    """A message with the line of each key of a configuration file that it names without one: `FILE: KEY …`.

    If the file does not have the key, the line is that of the innermost table around it.
    """
    files = KeyLines()

    def placed(found: re.Match[str]) -> str:
        file, key = found[1], found[2]
        while key and (line := files.line(file, key)) is None:
            key = key.rpartition("[" if key.endswith("]") else ".")[0]
        return f"{file}:{line}: {found[2]}" if key else found[0]

    return _PLACE.sub(placed, text)


def concerns(note: Finding, file: str, key: str) -> bool:
    """Whether the note is about the hook at `key`: about the hook, a key inside or around it, or a key of its group."""
    if note.file != file or not note.key:
        return False
    group = re.fullmatch(r"(.*\])\.[^.\[\]]+", note.key)  # `hooks.PreToolUse[0].matcher` belongs to a group of hooks
    outer = [note.key, group[1]] if group else [note.key]
    return _contains(key, note.key) or any(_contains(outer_key, key) for outer_key in outer)


def _contains(key: str, other: str) -> bool:
    """Whether `other` is `key` or a key inside it."""
    return other.startswith(key) and other[len(key) : len(key) + 1] in ("", ".", "[")


def event_of(key: str, events: Iterable[str]) -> str:
    """The event that the key of an entry belongs to; empty if the key is not the key of an entry.

    An entry is the whole list of an event, or an item in it.
    """
    names = re.split(r"\.|\[\d+\]", key)
    known = [name for name in names if name in set(events)]
    return known[0] if known and (key.endswith("]") or names[-1] == known[0]) else ""
