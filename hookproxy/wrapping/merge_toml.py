"""Merges one hookproxy.toml into another: pure, and every byte of the other stays where it was, comments too.

Tables that are missing are appended as they are written, with their comments; in a table that is there, lists get the
items that they lack, and missing keys a line of their own. A key with another value is never changed: that is an error.
The result is parsed, and must be exactly the values of both; so a layout that is not understood is refused.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from msgspec import Struct

from ..config.errors import place_of, toml_error
from ..model.errors import ConfigError
from ..model.limits import Measure
from ..model.toml import NotToml, parse_toml
from .syntax_tree import Edit, apply_edits, end_of_line, quoted
from .toml_file import Statement, skip_blanks, statements_of, value_end

Path: TypeAlias = tuple[str, ...]
Table: TypeAlias = dict[str, object]

_WIDTH: Final = 120  # columns of a line with items of a list, as in the files of configs/
_SHOWN: Final = 60  # characters of a value in an error
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_BY_HAND: Final = "write its tables as [permissions] and [[use]] with keys below them, or merge by hand"
_IDENTITY: Final[Mapping[str, Sequence[str]]] = {
    "hooks": ("name", "command", "argv", "call", "url"),
    "limits": ("tool", "per", "window", "within"),
    "use": ("file",),
}
"""By the first key of a list of tables: what makes two tables in it the same one, with other values beside."""

_MEASURES: Final[Mapping[str, Sequence[str]]] = {"limits": tuple(Measure)}
"""Keys, too, of which two such tables have the same ones, whatever their values are."""


class Merged(Struct, frozen=True):
    """The text of both files."""

    text: str
    added: tuple[str, ...]
    """What is new in it, for people; nothing: all of it was there."""


class _Block(Struct, frozen=True):
    """A table of a text with everything up to the next one, and the comments above it."""

    path: Path
    number: int
    """Of its list: how many tables of it stand before."""
    text: str


def merge(path: str, text: str, addition: str, source: str) -> Merged:
    """The text at `path` with all that `addition` says; `source` names the latter for people.

    Raises ConfigError, which names the line, if a key has another value or the layout cannot be edited safely.
    """
    before, extra = values_of(path, text), parse_toml(addition)
    expected: Table = copy.deepcopy(before)
    missing = _Comparison(path, text, source)
    missing.add(expected, extra)
    if not missing.described:
        return Merged(text, ())
    changed = _with_missing(path, text, addition, source, missing)
    try:
        after = parse_toml(changed.removeprefix("\ufeff"))
    except NotToml:
        after = {}
    if after != expected:
        raise ConfigError(path, f"is laid out in a way to which {source} cannot be added", _BY_HAND)
    return Merged(changed, missing.described)


def values_of(path: str, text: str) -> Table:
    """The tables of the text. Raises ConfigError that names the line."""
    try:
        return parse_toml(text.removeprefix("\ufeff"))
    except NotToml as problem:
        raise toml_error(path, text, problem) from None


# --- what is missing ---


class _Comparison:
    """What one file lacks of another one, and the values of both together."""

    def __init__(self, path: str, text: str, source: str) -> None:
        self._path = path
        self._text = text
        self._source = source
        self.keys: Final[list[Path]] = []
        """Tables and keys, each by its path."""
        self.items: Final[list[tuple[Path, list[object]]]] = []
        """Of lists that are there."""
        self.tables: Final[list[tuple[Path, int]]] = []
        """Tables of lists, by the list's path and their number in the other file."""

    @property
    def described(self) -> tuple[str, ...]:
        """What is missing, for people."""
        return (
            *(".".join(path) for path in self.keys),
            *(f"{len(items)} in {'.'.join(path)}" for path, items in self.items),
            *dict.fromkeys(f"[[{'.'.join(path)}]]" for path, _number in self.tables),
        )

    def add(self, target: Table, extra: Table, at: Path = ()) -> None:
        """Add what `target` lacks of `extra` to it, and note it. Raises ConfigError for what contradicts it."""
        for key, value in extra.items():
            path, present = (*at, key), target.get(key)
            if key not in target:
                target[key] = value
                self.keys.append(path)
            elif isinstance(value, dict) and isinstance(present, dict):
                self.add(present, value, path)
            elif isinstance(value, list) and isinstance(present, list):
                self._add_items(path, present, value)
            elif value != present or type(value) is not type(present):
                raise self._conflict(path, present, f"{self._source} needs {_shown(value)}")

    def _add_items(self, path: Path, present: list[object], value: list[object]) -> None:
        new = [(number, item) for number, item in enumerate(value) if item not in present]
        for _number, item in new:
            if isinstance(item, dict) and (other := _same(path, item, present, value)) is not None:
                raise self._conflict((*path, other), present[other], f"{self._source} has it with other values")
        present += [item for _number, item in new]
        if any(isinstance(item, dict) for _number, item in new):
            self.tables.extend((path, number) for number, _item in new)
        elif new:
            self.items.append((path, [item for _number, item in new]))

    def _conflict(self, path: Sequence[str | int], value: object, but: str) -> ConfigError:
        name = ".".join(str(part) for part in path if isinstance(part, str))
        return ConfigError(
            place_of(self._path, self._text, path),
            f"{name} is {_shown(value)} here, and {but}",
            "nothing was changed; change it there, or choose another folder with --folder",
        )


def _same(path: Path, item: Table, present: Sequence[object], wanted: Sequence[object]) -> int | None:
    """The number of the table that is the same one, although some of its values are others."""
    keys, measures = _IDENTITY.get(path[0], ()), _MEASURES.get(path[0], ())

    def identity(table: Table) -> list[object]:
        return [*map(table.get, keys), *(key in table for key in measures)]

    for number, other in enumerate(present):
        is_same = isinstance(other, dict) and identity(other) == identity(item)
        if keys and is_same and other not in wanted:
            return number
    return None


def _shown(value: object) -> str:
    text = _value(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _value(value: object) -> str:
    """A value as TOML has it."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_value(item)}' for key, item in value.items())} }}"
    return str(value)


# --- where it goes ---


def _with_missing(path: str, text: str, addition: str, source: str, missing: _Comparison) -> str:
    known = list(statements_of(text))
    edits = [
        edit for at, items in missing.items for edit in _list_edits(text, _list_at(path, known, at), items, source)
    ]
    blocks, appended = list(_blocks(addition)), []
    for block in blocks[1:]:
        of_list = (block.path, block.number) in missing.tables
        if of_list or any(block.path[:length] in missing.keys for length in range(1, len(block.path) + 1)):
            appended.append(block.text)
    lines: dict[Path, list[str]] = {}
    for statement in statements_of(addition):
        if not statement.is_header and statement.path in missing.keys and _is_there(known, statement.table):
            end = end_of_line(addition, statement.end)
            lines.setdefault(statement.table, []).append(addition[statement.start : end])
    edits += [_line_edit(path, text, known, table, keys) for table, keys in lines.items()]
    if appended:
        described = blocks[0].text.strip("\n")  # what the whole file is for, and its keys that belong to no table
        remarks = "\n".join(
            line for line in described.splitlines() if line.startswith("#") and not line.startswith("#:")
        )
        added = "\n\n".join(filter(None, (remarks, *(block.strip("\n") for block in appended))))
        start = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
        edits.append(Edit(len(text), len(text), f"{start}{added}\n"))
    if "\r\n" in text:
        edits = [Edit(edit.start, edit.end, edit.text.replace("\r\n", "\n").replace("\n", "\r\n")) for edit in edits]
    return apply_edits(text, _joined(edits))


def _joined(edits: Iterable[Edit]) -> Iterator[Edit]:
    """Insertions at one place become one, in their order."""
    by_place: dict[tuple[int, int], str] = {}
    for edit in edits:
        by_place[edit.start, edit.end] = by_place.get((edit.start, edit.end), "") + edit.text
    yield from (Edit(start, end, text) for (start, end), text in by_place.items())


def _is_there(known: Sequence[Statement], table: Path) -> bool:
    return not table or any(statement.path[: len(table)] == table for statement in known)


def _blocks(text: str) -> Iterator[_Block]:
    """What stands before the first table, and each table. Tables within one of a list belong to it."""
    starts: list[tuple[int, Path, int]] = [(0, (), 0)]
    counts: Counter[Path] = Counter()
    last = 0
    around: Path = ()
    for statement in statements_of(text):
        path = statement.path
        if statement.is_header and not (around and path[: len(around)] == around and path != around):
            around = path if text.startswith("[[", statement.start) else ()
            start = last if len(starts) > 1 else _comments_above(text, last, statement.start)
            starts.append((start, path, counts[path]))
            counts[path] += 1
        last = min(end_of_line(text, statement.end) + 1, len(text))
    for (start, path, number), (end, *_) in pairwise([*starts, (len(text), (), 0)]):
        yield _Block(path, number, text[start:end])


def _comments_above(text: str, least: int, at: int) -> int:
    """The beginning of the comments that stand directly above a place."""
    at = text.rfind("\n", 0, at) + 1
    while at > least:
        before = text.rfind("\n", 0, at - 1) + 1
        if before < least or not text[before:at].startswith("#"):
            break
        at = before
    return at


def _line_edit(file: str, text: str, known: Sequence[Statement], table: Path, lines: Sequence[str]) -> Edit:
    """Lines with keys for a table that is there: below its last key, or else below its header."""
    own = [one for one in known if one.path == table or (one.table == table and not one.is_header)]
    if own and not (own[0].path == table and not own[0].is_header):
        at = end_of_line(text, own[-1].end)
        return Edit(at, at, "".join(f"\n{line}" for line in lines))
    if not table:  # before the first table, and before what is said about it
        at = _comments_above(text, 0, known[0].start) if known else len(text)
        return Edit(at, at, "".join(f"{line}\n" for line in lines) + "\n")
    dotted = [one for one in known if len(one.table) < len(table) < len(one.path) and one.path[: len(table)] == table]
    if dotted and not dotted[-1].is_header:
        before = ".".join(map(_key, table[len(dotted[-1].table) :]))
        at = end_of_line(text, dotted[-1].end)
        return Edit(at, at, "".join(f"\n{before}.{line}" for line in lines))
    raise ConfigError(
        place_of(file, text, table), f"[{'.'.join(table)}] is not a table with a header of its own", _BY_HAND
    )


def _key(part: str) -> str:
    return part if _BARE.fullmatch(part) else quoted(part)


def _list_at(file: str, known: Sequence[Statement], path: Path) -> Statement:
    for statement in known:
        if statement.path == path and not statement.is_header:
            return statement
    raise ConfigError(file, f"{'.'.join(path)} is laid out in a way that cannot be edited safely", _BY_HAND)


def _list_edits(text: str, statement: Statement, values: Sequence[object], source: str) -> Iterator[Edit]:
    """Items after the last one of a list: in its line if they fit, or else in lines of their own."""
    start, end = statement.value_start, statement.end
    last, has_comma, at = start + 1, True, skip_blanks(text, start + 1)
    is_empty = at >= end - 1
    while at < end - 1:
        last = value_end(text, at)
        at = skip_blanks(text, last)
        has_comma = text.startswith(",", at)
        if has_comma:
            last, at = at + 1, skip_blanks(text, at + 1)
    items = [_value(value) for value in values]
    joined, line_start = ", ".join(items), text.rfind("\n", 0, start) + 1
    if "\n" not in text[start:end] and end_of_line(text, end) - line_start + len(joined) + 2 <= _WIDTH:
        yield Edit(last, last, joined if is_empty else f" {joined}" if has_comma else f", {joined}")
        return
    before = text[text.rfind("\n", 0, last) + 1 : last]
    indent = before[: len(before) - len(before.lstrip())] if "\n" in text[start:last] else ""
    indent = indent or "    "
    if not has_comma:
        yield Edit(last, last, ",")
    line_end = end_of_line(text, last)
    rest_is_comment = line_end < end and not text[last:line_end].split("#")[0].strip()
    at = line_end if rest_is_comment else last
    lines = "\n".join(f"{indent}{line}" for line in (f"# {source}", *_filled(items, _WIDTH - len(indent))))
    yield Edit(at, at, f"\n{lines}" + ("" if rest_is_comment else "\n"))


def _filled(items: Sequence[str], width: int) -> Iterator[str]:
    line = ""
    for item in items:
        if line and len(line) + len(item) + 2 > width:
            yield line
            line = ""
        line += f"{' ' if line else ''}{item},"
    yield line
