"""Where the keys of a file stand: the line of `hooks.PreToolUse[0].command` in JSON, TOML or YAML.

For texts that somebody has read without an error: what is found in others means nothing.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

if TYPE_CHECKING:
    import yaml


class Location(Struct, frozen=True):
    """Where a value stands, and where its own members or items do."""

    line: int
    """Of its key, or of the item's first character. The first line is 1."""
    members: dict[str, Location] = field(default_factory=dict)
    items: list[Location] = field(default_factory=list)

    def find(self, key: str) -> Location | None:
        """The place of `a.b[0].c` below this one; None: nothing is there. Names may hold dots and brackets."""
        if not key:
            return self
        if number := _INDEX.match(key):
            at = int(number[1])
            return self.items[at].find(key[number.end() :]) if at < len(self.items) else None
        key = key.removeprefix(".")
        for name in sorted(self.members, key=len, reverse=True):
            rest = key[len(name) :]
            if key.startswith(name) and rest[:1] in ("", ".", "["):
                found = self.members[name].find(rest)
                if found is not None:
                    return found
        return None


def read(path: str, text: str) -> Location:
    """The place of the whole file; by its name's ending it is YAML, TOML or else JSON."""
    try:
        if path.endswith((".yaml", ".yml")):
            return _yaml(text)
        reader = _Reader(text.removeprefix("\ufeff"))
        return reader.tables() if path.endswith(".toml") else reader.value()
    except (ValueError, RecursionError):
        return Location(1)


_INDEX: Final = re.compile(r"\[(\d+)\]")
_BLANKS: Final = re.compile(r"(?:\s|#[^\n]*)*")  # a comment is none in JSON, but no # stands there between tokens
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR: Final = re.compile(r"[^,\]}#\n]+")  # a number, a word, a date
_STRING: Final = re.compile(
    r"""
      \"{3}(?:\\.|[^\\])*?\"{3,5}
    | '{3}.*?'{3,5}
    | "(?:\\.|[^"\\])*"
    | '[^']*'
    """,
    re.VERBOSE | re.DOTALL,
)
"""TOML's four kinds of strings, of which JSON has one."""


class _Reader:
    """Steps over the tokens of JSON and TOML, which differ little where only keys and lines matter."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._ends = [end.start() for end in re.finditer("\n", text)]

    def value(self) -> Location:
        """The value that begins here."""
        place = Location(self._line())
        if self._takes("{"):
            while not self._takes("}"):
                self._member(place)
                self._takes(",")
        elif self._takes("["):
            while not self._takes("]"):
                place.items.append(self.value())
                self._takes(",")
        elif not self._match(_STRING):
            self._expect(_SCALAR)
        return place

    def tables(self) -> Location:
        """A whole TOML file."""
        root = here = Location(1)
        while self._line() and self._at < len(self._text):
            line = self._line()
            if self._takes("[["):
                here = _table_at(root, self._names("]]"), line)
                here.items.append(Location(line))
                here = here.items[-1]
            elif self._takes("["):
                here = _last_item(_table_at(root, self._names("]"), line))
            else:
                self._member(here)
        return root

    def _member(self, place: Location) -> None:
        line = self._line()
        *path, name = self._names("=", ":")
        value = self.value()
        _table_at(place, path, line).members[name] = Location(line, value.members, value.items)

    def _names(self, *ends: str) -> list[str]:
        """A key, of several names where dots join them, and the sign after it."""
        names = [self._name()]
        while not any(self._takes(end) for end in ends):
            self._expect(re.compile(r"\."))
            names.append(self._name())
        return names

    def _name(self) -> str:
        self._line()
        if token := self._match(_STRING):
            return str(json.loads(token, strict=False)) if token[0] == '"' else token[1:-1]
        return self._expect(_BARE)

    def _line(self) -> int:
        """The line of the next token, after the blanks before it."""
        self._match(_BLANKS)
        return bisect_left(self._ends, self._at) + 1

    def _takes(self, sign: str) -> bool:
        self._match(_BLANKS)
        there = self._text.startswith(sign, self._at)
        self._at += len(sign) * there
        return there

    def _expect(self, token: re.Pattern[str]) -> str:
        found = self._match(token)
        if not found:
            raise ValueError("neither JSON nor TOML")
        return found

    def _match(self, token: re.Pattern[str]) -> str:
        found = token.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found[0] if found else ""


def _table_at(place: Location, path: list[str], line: int) -> Location:
    """The place of a table by its path; it is made where it is not there yet."""
    for name in path:
        place = _last_item(place).members.setdefault(name, Location(line))
    return place


def _last_item(place: Location) -> Location:
    """Of a TOML array of tables the last, which is meant wherever the array is named."""
    return place.items[-1] if place.items else place


def _yaml(text: str) -> Location:
    import yaml  # 20 ms, for those who have such a file

    class Loader(yaml.SafeLoader):
        """Finds places instead of values. An alias stands where its anchor does."""

        def place_of(self, node: yaml.Node, known: dict[int, Location]) -> Location:
            """`known`: by the node's identity, for a node may be inside itself."""
            if id(node) not in known:
                place = known[id(node)] = Location(node.start_mark.line + 1)
                if isinstance(node, yaml.MappingNode):
                    self.flatten_mapping(node)  # what `<<` merges
                    for key, value in node.value:
                        inner = self.place_of(value, known)
                        place.members[str(key.value)] = Location(key.start_mark.line + 1, inner.members, inner.items)
                elif isinstance(node, yaml.SequenceNode):
                    place.items.extend(self.place_of(item, known) for item in node.value)
            return known[id(node)]

    try:
        loader = Loader(text)
        root = loader.get_single_node()
        return loader.place_of(root, {}) if root is not None else Location(1)
    except yaml.YAMLError as problem:
        raise ValueError(str(problem)) from None
