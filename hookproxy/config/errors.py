"""Where the tables and keys of a TOML file stand, and what is wrong with a text that is not TOML."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ..model.errors import ConfigError
from ..model.late_pattern import late_pattern
from ..model.settings import FORMER_KEYS
from ..model.toml import NotToml

_HEADER: Final = late_pattern(r"\s*(\[\[?)([^\[\]]+)\]")
_KEY: Final = late_pattern(r"\s*([\w\-.\"' \t]+?)\s*=")


FindLine = Callable[[str, Sequence[str | int]], int | None]
"""Returns the line of a key in a text, as `line_of`."""


def toml_error(path: str, text: str, error: NotToml) -> ConfigError:
    """The error to raise for a text that is not TOML."""
    reason, _, position = str(error).partition(" (at ")
    line = re.search(r"line (\d+)", position)
    if error.hint:
        return ConfigError(f"{path}:{line[1]}" if line else path, f"cannot be read: {reason}", error.hint)
    number = int(line[1]) if line else text.count("\n") + 1  # otherwise the message says "at end of document"
    from .toml_repairs import toml_repair  # only for errors

    problem, repair = toml_repair(path, text, number, reason)
    return ConfigError(f"{path}:{number}", f"not TOML: {problem}", repair)


def line_of(text: str, at: Sequence[str | int]) -> int | None:
    """The line of a key or, if the key has none, of the innermost table around it that has one."""
    lines = _lines(text)
    return next((lines[*at[:depth]] for depth in range(len(at), 0, -1) if (*at[:depth],) in lines), None)


def place_of(path: str, text: str, at: Sequence[str | int]) -> str:
    """The file, and the line of a key in it if it has one."""
    return f"{path}:{line}" if (line := line_of(text, at)) else path


def _lines(text: str) -> dict[tuple[str | int, ...], int]:
    """The line of each table and of each key at the start of a line. A multi-line string may look like more of them."""
    found: dict[tuple[str | int, ...], int] = {}
    counts: Counter[tuple[str | int, ...]] = Counter()
    table: tuple[str | int, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = at = _in_last(_parts(header[2]), counts)
            if header[1] == "[[":
                table = at = (*table, counts[table])
                counts[at[:-1]] += 1
        elif key := _KEY.match(line):
            at = (*table, *_parts(key[1]))
        else:
            continue
        for path in {at, tuple(FORMER_KEYS.get(part, part) if isinstance(part, str) else part for part in at)}:
            for depth in range(1, len(path) + 1):
                found.setdefault(path[:depth], number)
    return found


def _in_last(names: tuple[str | int, ...], counts: Mapping[tuple[str | int, ...], int]) -> tuple[str | int, ...]:
    """Where a header leads: to the last table of each array of tables on the way."""
    at: tuple[str | int, ...] = ()
    for name in names[:-1]:
        at = (*at, name)
        if number := counts.get(at, 0):
            at = (*at, number - 1)
    return (*at, *names[-1:])


def _parts(dotted: str) -> tuple[str | int, ...]:
    return tuple(part.strip(" \t\"'") for part in dotted.split("."))
