"""A unified diff, from the edits themselves: in time that grows with the file's length, whatever is in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from .syntax_tree import Edit, edited

AROUND: Final = 3
"""Lines that are shown before and after a change, as everywhere."""


class _Change(Struct, frozen=True):
    """The lines from `first` up to `end`, counted from 0, and what they become."""

    first: int
    end: int
    new: list[str]


def unified(path: str, text: str, edits: Sequence[Edit]) -> list[str]:
    """The lines of the diff, without line breaks; none where nothing changes."""
    old = _lines(text)
    changes = list(_changes(text, old, edits))
    if not changes:
        return []
    shown = [f"--- {path}", f"+++ {path}"]
    shift = 0
    for hunk in _hunks(changes):
        lines, added = _hunk(old, hunk, shift)
        shown += lines
        shift += added
    return shown


def _lines(text: str) -> list[str]:
    """Split at line feeds alone, each line with its own."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _changes(text: str, old: list[str], edits: Sequence[Edit]) -> Iterator[_Change]:
    """One for each run of lines that edits touch."""
    starts = [0]
    for each in old:
        starts.append(starts[-1] + len(each))
    groups: list[tuple[int, int, list[Edit]]] = []
    line = 0
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        while line + 1 < len(old) and starts[line + 1] <= edit.start:
            line += 1
        end = line + 1
        while end < len(old) and starts[end] < edit.end:
            end += 1
        end = min(end + 1, len(old))  # a line break that goes joins two lines
        if groups and line < groups[-1][1]:
            first, before, inside = groups[-1]
            inside.append(edit)
            groups[-1] = (first, max(end, before), inside)
        else:
            groups.append((line, end, [edit]))
    for first, end, inside in groups:
        begin = starts[first]
        moved = [Edit(edit.start - begin, edit.end - begin, edit.text) for edit in inside]
        yield from _trimmed(old, first, end, _lines(edited(text[begin : starts[end]], moved)))


def _trimmed(old: list[str], first: int, end: int, new: list[str]) -> Iterator[_Change]:
    """Without the lines at both ends that stay as they are."""
    while new and first < end and old[first] == new[0]:
        first, new = first + 1, new[1:]
    while new and first < end and old[end - 1] == new[-1]:
        end, new = end - 1, new[:-1]
    if new or first < end:
        yield _Change(first, end, new)


def _hunks(changes: list[_Change]) -> Iterator[list[_Change]]:
    """Changes that stand near each other, together."""
    hunk = changes[:1]
    for before, change in pairwise(changes):
        if change.first - before.end > 2 * AROUND:
            yield hunk
            hunk = []
        hunk.append(change)
    yield hunk


def _hunk(old: list[str], changes: list[_Change], shift: int) -> tuple[list[str], int]:
    """Its lines, and how many more there are than before."""
    start = max(changes[0].first - AROUND, 0)
    stop = min(changes[-1].end + AROUND, len(old))
    lines: list[str] = []
    place = start
    for change in changes:
        lines += _marked(" ", old[place : change.first])
        lines += _marked("-", old[change.first : change.end])
        lines += _marked("+", change.new)
        place = change.end
    lines += _marked(" ", old[place:stop])
    added = sum(len(change.new) - (change.end - change.first) for change in changes)
    count = stop - start
    ranges = _range(start, count), _range(start + shift, count + added)
    return [f"@@ -{ranges[0]} +{ranges[1]} @@", *lines], added


def _range(start: int, count: int) -> str:
    return f"{start + 1 if count else start},{count}"


def _marked(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"
