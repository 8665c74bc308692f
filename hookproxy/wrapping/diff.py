"""A unified diff, made from the edits themselves, in time proportional to the file's length, whatever is in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from .syntax_tree import Edit, apply_edits

CONTEXT_LINES: Final = 3
"""Lines that are shown before and after a change, as in other diffs."""


class _LineChange(Struct, frozen=True):
    """The lines from `first` up to `end`, counted from 0, and the lines that replace them."""

    first: int
    end: int
    new: list[str]


def unified(path: str, text: str, edits: Sequence[Edit]) -> list[str]:
    """The lines of the diff, without line breaks; none if nothing changes."""
    old = _lines(text)
    changes = list(_changes(text, old, edits))
    if not changes:
        return []
    diff = [f"--- {path}", f"+++ {path}"]
    shift = 0
    for hunk in _hunks(changes):
        lines, added = _hunk(old, hunk, shift)
        diff += lines
        shift += added
    return diff


def _lines(text: str) -> list[str]:
    """The lines of a text, each with its line feed; other line breaks do not count."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _changes(text: str, old: list[str], edits: Sequence[Edit]) -> Iterator[_LineChange]:
    """One change for each group of adjacent lines that edits touch."""
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    groups: list[tuple[int, int, list[Edit]]] = []
    number = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        while number + 1 < len(old) and starts[number + 1] <= edit.start:
            number += 1
        end = number + 1
        while end < len(old) and starts[end] < edit.end:
            end += 1
        end = min(end + 1, len(old))  # an edit that removes a line break joins two lines
        if groups and number < groups[-1][1]:
            first, before, inside = groups[-1]
            inside.append(edit)
            groups[-1] = (first, max(end, before), inside)
        else:
            groups.append((number, end, [edit]))
    for first, end, inside in groups:
        begin = starts[first]
        moved = [Edit(edit.start - begin, edit.end - begin, edit.text) for edit in inside]
        yield from _trimmed(old, first, end, _lines(apply_edits(text[begin : starts[end]], moved)))


def _trimmed(old: list[str], first: int, end: int, new: list[str]) -> Iterator[_LineChange]:
    """The change without unchanged lines at both ends; nothing if all are unchanged."""
    while new and first < end and old[first] == new[0]:
        first, new = first + 1, new[1:]
    while new and first < end and old[end - 1] == new[-1]:
        end, new = end - 1, new[:-1]
    if new or first < end:
        yield _LineChange(first, end, new)


def _hunks(changes: list[_LineChange]) -> Iterator[list[_LineChange]]:
    """Groups of changes that are near each other."""
    hunk = changes[:1]
    for before, change in pairwise(changes):
        if change.first - before.end > 2 * CONTEXT_LINES:
            yield hunk
            hunk = []
        hunk.append(change)
    yield hunk


def _hunk(old: list[str], changes: list[_LineChange], shift: int) -> tuple[list[str], int]:
    """The lines of a hunk, and how many more lines the new text has than the old one."""
    start = max(changes[0].first - CONTEXT_LINES, 0)
    stop = min(changes[-1].end + CONTEXT_LINES, len(old))
    lines: list[str] = []
    place = start
    for change in changes:
        lines += _prefixed(" ", old[place : change.first])
        lines += _prefixed("-", old[change.first : change.end])
        lines += _prefixed("+", change.new)
        place = change.end
    lines += _prefixed(" ", old[place:stop])
    added = sum(len(change.new) - (change.end - change.first) for change in changes)
    count = stop - start
    ranges = _range(start, count), _range(start + shift, count + added)
    return [f"@@ -{ranges[0]} +{ranges[1]} @@", *lines], added


def _range(start: int, count: int) -> str:
    return f"{start + 1 if count else start},{count}"


def _prefixed(prefix: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield prefix + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"
