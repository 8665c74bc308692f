"""A unified diff, made from the edits themselves: only the lines around them are compared, however long the text is."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from io import StringIO
from itertools import accumulate
from typing import Final

from .syntax_tree import Edit, apply_edits

CONTEXT_LINES: Final = 3
"""Lines that are shown before and after a change, as in other diffs."""


def unified(path: str, text: str, edits: Sequence[Edit]) -> list[str]:
    """The lines of the diff, without line breaks; none if nothing changes."""
    lines = StringIO(text).readlines()
    starts = list(accumulate(map(len, lines), initial=0))
    diff: list[str] = []
    shift = 0
    for first, end, inside in _regions(starts, edits):
        begin = starts[first]
        moved = [Edit(edit.start - begin, edit.end - begin, edit.text) for edit in inside]
        old, new = lines[first:end], StringIO(apply_edits(text[begin : starts[end]], moved)).readlines()
        for hunk in SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT_LINES):
            diff += _hunk(hunk, old, new, first, first + shift)
        shift += len(new) - len(old)
    return [f"--- {path}", f"+++ {path}", *diff] if diff else []


def _regions(starts: list[int], edits: Sequence[Edit]) -> Iterator[tuple[int, int, list[Edit]]]:
    """The edits that are near each other, with the lines that they touch and their context, counted from 0."""
    region: tuple[int, int, list[Edit]] | None = None
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        first = max(bisect_right(starts, edit.start) - 1 - CONTEXT_LINES, 0)
        end = min(bisect_left(starts, max(edit.end, edit.start + 1)) + CONTEXT_LINES, len(starts) - 1)
        if region is not None and first <= region[1]:
            region = region[0], max(end, region[1]), [*region[2], edit]
            continue
        if region is not None:
            yield region
        region = first, end, [edit]
    if region is not None:
        yield region


def _hunk(
    hunk: Sequence[tuple[str, int, int, int, int]], old: list[str], new: list[str], old_first: int, new_first: int
) -> Iterator[str]:
    """The lines of a hunk; `old_first` and `new_first` are the numbers of the first lines of `old` and `new`."""
    (_, old_start, _, new_start, _), (_, _, old_end, _, new_end) = hunk[0], hunk[-1]
    old_range = _range(old_first + old_start, old_end - old_start)
    yield f"@@ -{old_range} +{_range(new_first + new_start, new_end - new_start)} @@"
    for kind, start, end, start_of_new, end_of_new in hunk:
        if kind == "equal":
            yield from _prefixed(" ", old[start:end])
        else:
            yield from _prefixed("-", old[start:end])
            yield from _prefixed("+", new[start_of_new:end_of_new])


def _range(start: int, count: int) -> str:
    return f"{start + 1 if count else start},{count}"


def _prefixed(prefix: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield prefix + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"
