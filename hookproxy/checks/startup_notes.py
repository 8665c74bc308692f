"""Start-up's notes, `FILE: KEY …`, with the line of their key, and which hook each of them is about."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from ..jsonrpc import locate
from .report import Finding


class KeyLines:
    """The places of the keys in the files that are configured, each read once."""

    def __init__(self) -> None:
        self._places: dict[str, locate.Place | None] = {}

    def line(self, file: str, key: str) -> int | None:
        """The line of the key; None: there is no such key, or the file cannot be read a second time."""
        if file not in self._places:
            self._places[file] = _read(file)
        whole = self._places[file]
        place = whole.find(key) if whole and key else None
        return place.line if place else None


def _read(file: str) -> locate.Place | None:
    if not os.path.isfile(file):  # a pipe, which has been read
        return None
    try:
        with open(file, encoding="utf-8-sig") as text:
            return locate.read(file, text.read())
    except (OSError, ValueError):
        return None


def finding(note: str, files: KeyLines) -> Finding:
    """The note in its parts. The key stays in the sentence, unless a colon cuts it off."""
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


def concerns(note: Finding, file: str, key: str) -> bool:
    """True if it is about the hook at `key`: it names the hook, something in it or around it, or its group's."""
    if note.file != file or not note.key:
        return False
    group = re.fullmatch(r"(.*\])\.[^.\[\]]+", note.key)  # `hooks.PreToolUse[0].matcher`: of a group of hooks
    around = [note.key, group[1]] if group else [note.key]
    return _holds(key, note.key) or any(_holds(one, key) for one in around)


def _holds(key: str, other: str) -> bool:
    """True if `other` is `key` or stands in it."""
    return other.startswith(key) and other[len(key) : len(key) + 1] in ("", ".", "[")


def event_of(key: str, events: Iterable[str]) -> str:
    """The event in whose part of the file an entry stands; empty: the key is none of an entry.

    An entry is an event's whole list, or an item in it.
    """
    names = re.split(r"\.|\[\d+\]", key)
    known = [name for name in names if name in set(events)]
    return known[0] if known and (key.endswith("]") or names[-1] == known[0]) else ""
