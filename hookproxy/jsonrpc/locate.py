"""Find the line of a key in a JSON, TOML or YAML file, such as the line of `hooks.PreToolUse[0].command`.

The text must be valid, which its reader has checked before: for an invalid text, the lines mean nothing.
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
    """The line of a value, and the locations of its members or items."""

    line: int
    """The line of its key, or of the item's first character. The first line is 1."""
    members: dict[str, Location] = field(default_factory=dict)
    items: list[Location] = field(default_factory=list)

    def find(self, key: str) -> Location | None:
        """Return the location of `a.b[0].c` below this one; None: there is none. Names may have dots and brackets."""
        if not key:
            return self
        if number := _INDEX.match(key):
            at = int(number[1])
            return self.items[at].find(key[number.end() :]) if at < len(self.items) else None
        key = key.removeprefix(".")
        for name in sorted(self.members, key=len, reverse=True):
            rest = key[len(name) :]
            if key.startswith(name) and rest[:1] in ("", ".", "["):
                location = self.members[name].find(rest)
                if location is not None:
                    return location
        return None


def read(path: str, text: str) -> Location:
    """Return the location of the whole file. The ending of `path` says whether it is YAML, TOML or (else) JSON."""
    try:
        if path.endswith((".yaml", ".yml")):
            return _yaml(text)
        reader = _Reader(text.removeprefix("\ufeff"))
        return reader.tables() if path.endswith(".toml") else reader.value()
    except (ValueError, RecursionError):
        return Location(1)


_INDEX: Final = re.compile(r"\[(\d+)\]")
_BLANKS: Final = re.compile(r"(?:\s|#[^\n]*)*")  # JSON has no comments, and no # between tokens either
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
"""The four types of strings in TOML. JSON has one of them."""


class _Reader:
    """Steps over the tokens of JSON and TOML. For keys and lines alone, the two differ little."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._ends = [end.start() for end in re.finditer("\n", text)]

    def value(self) -> Location:
        """Read the value that begins here."""
        location = Location(self._line())
        if self._skip("{"):
            while not self._skip("}"):
                self._member(location)
                self._skip(",")
        elif self._skip("["):
            while not self._skip("]"):
                location.items.append(self.value())
                self._skip(",")
        elif not self._match(_STRING):
            self._expect(_SCALAR)
        return location

    def tables(self) -> Location:
        """Read a whole TOML file."""
        root = here = Location(1)
        while self._line() and self._at < len(self._text):
            line = self._line()
            if self._skip("[["):
                here = _table_at(root, self._names("]]"), line)
                here.items.append(Location(line))
                here = here.items[-1]
            elif self._skip("["):
                here = _last_item(_table_at(root, self._names("]"), line))
            else:
                self._member(here)
        return root

    def _member(self, location: Location) -> None:
        line = self._line()
        *path, name = self._names("=", ":")
        value = self.value()
        _table_at(location, path, line).members[name] = Location(line, value.members, value.items)

    def _names(self, *ends: str) -> list[str]:
        """Read a key and the sign after it. Dots join the names of a key with several names."""
        names = [self._name()]
        while not any(self._skip(end) for end in ends):
            self._expect(re.compile(r"\."))
            names.append(self._name())
        return names

    def _name(self) -> str:
        self._line()
        if token := self._match(_STRING):
            return str(json.loads(token, strict=False)) if token[0] == '"' else token[1:-1]
        return self._expect(_BARE)

    def _line(self) -> int:
        """Skip blanks, and return the line of the next token."""
        self._match(_BLANKS)
        return bisect_left(self._ends, self._at) + 1

    def _skip(self, sign: str) -> bool:
        self._match(_BLANKS)
        is_there = self._text.startswith(sign, self._at)
        self._at += len(sign) * is_there
        return is_there

    def _expect(self, token: re.Pattern[str]) -> str:
        text = self._match(token)
        if not text:
            raise ValueError("neither JSON nor TOML")
        return text

    def _match(self, token: re.Pattern[str]) -> str:
        match = token.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return match[0] if match else ""


def _table_at(location: Location, path: list[str], line: int) -> Location:
    """Return the location of the table with this path. Missing tables are created."""
    for name in path:
        location = _last_item(location).members.setdefault(name, Location(line))
    return location


def _last_item(location: Location) -> Location:
    """Return the last table of a TOML array of tables, because the array's name means the last one; else `location`."""
    return location.items[-1] if location.items else location


def _yaml(text: str) -> Location:
    import yaml  # 20 ms, only for runs with such a file

    class Loader(yaml.SafeLoader):
        """Finds locations instead of values. An alias has the location of its anchor."""

        def locate(self, node: yaml.Node, known: dict[int, Location]) -> Location:
            """Return the location of a node. `known`: the locations by identity, as a node may contain itself."""
            if id(node) not in known:
                location = known[id(node)] = Location(node.start_mark.line + 1)
                if isinstance(node, yaml.MappingNode):
                    self.flatten_mapping(node)  # resolves `<<`
                    for key, value in node.value:
                        inner = self.locate(value, known)
                        location.members[str(key.value)] = Location(key.start_mark.line + 1, inner.members, inner.items)
                elif isinstance(node, yaml.SequenceNode):
                    location.items.extend(self.locate(item, known) for item in node.value)
            return known[id(node)]

    try:
        loader = Loader(text)
        root = loader.get_single_node()
        return loader.locate(root, {}) if root is not None else Location(1)
    except yaml.YAMLError as problem:
        raise ValueError(str(problem)) from None
