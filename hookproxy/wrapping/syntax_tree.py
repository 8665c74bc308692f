"""A configuration as a tree whose nodes know their positions in the text, and edits of that text.

All positions are offsets of characters. Files are changed only by edits, and never written from values: what no edit
touches keeps every byte (law 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from ..model.errors import ConfigError


class Edit(Struct, frozen=True):
    """The characters from `start` to `end` become `text`."""

    start: int
    end: int
    text: str


class Leaf(Struct, frozen=True):
    """A value without child nodes."""

    start: int
    end: int
    value: object


class ListNode(Struct, frozen=True):
    """A list of values, and how to insert more of them at its beginning."""

    start: int
    end: int
    items: tuple[Tree, ...]
    starts: tuple[int, ...]
    """The position of each item, including the dash before an item of a YAML block."""
    insert_at: int
    """The position at which new first items are inserted."""
    item_prefix: str
    """The text before each inserted item: a dash, or nothing."""
    separator: str
    """The text after each inserted item."""
    clear: Edit | None = None
    """The edit that removes all items; None if there are none."""


class Member(Struct, frozen=True):
    """A key and its value."""

    key: str
    start: int
    """The position of the key."""
    key_end: int
    value: Tree


class MappingNode(Struct, frozen=True):
    """An object in JSON, a table in TOML, a mapping in YAML."""

    start: int
    end: int
    members: tuple[Member, ...]

    def get(self, key: str) -> Member | None:
        """The member with this key; None if there is none."""
        return next((member for member in self.members if member.key == key), None)


_SHORT_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

Tree = Leaf | ListNode | MappingNode


class Part(Struct, frozen=True):
    """A key of an entry with its value, as a part of the text."""

    key: str
    start: int
    value_start: int
    """The position of the value; for a table with its own header in TOML, the end of that header."""
    end: int
    is_table: bool = False
    """True for a table with its own header."""


class Layout(Struct, frozen=True):
    """How an entry is laid out in the text: its parts in order, from the first one to the last one."""

    start: int
    end: int
    parts: tuple[Part, ...]
    separator: str
    """The text between two parts."""

    def part(self, key: str) -> Part | None:
        """The part with this key; None if there is none."""
        return next((part for part in self.parts if part.key == key), None)


class Syntax(Struct, frozen=True):
    """How files of one syntax are read and edited: JSON with comments, TOML or YAML."""

    name: str
    endings: tuple[str, ...]
    read: Callable[[str, str], MappingNode]
    """(path, text): parses the text. Raises ConfigError that names the path and the line, also for duplicate keys."""
    quote: Callable[[str], str]
    """(string): the string as an item of a list."""
    insert_member: Callable[[str, MappingNode, Member, str, str], Edit]
    """(text, mapping, after, key, value): inserts a key with its spelled value after a member of the mapping."""
    remove_member: Callable[[str, MappingNode, Member], Edit]
    """(text, mapping, member): removes the member from the mapping. This undoes `insert_member` exactly."""
    layout: Callable[[str, str, MappingNode], Layout | None]
    """(text, name, mapping): how the entry of a server is laid out; None if it cannot be rewritten."""
    assignment: str
    """The text between a key and its value."""
    quotes_keys: bool = False

    def pair(self, key: str, value: str) -> str:
        """A key with its value, which is spelled already."""
        return f"{self.quote(key) if self.quotes_keys else key}{self.assignment}{value}"


class Shape(Struct, frozen=True):
    """Where a file keeps its servers, and the keys of their commands and arguments."""

    path: tuple[str, ...]
    """The keys from the top to the servers; `*` is any key."""
    command: str = "command"
    args: str = "args"
    env: str = "env"
    """The key of the variables that the command gets."""
    type: str = "stdio"
    """The value of `type` for a server that is started."""
    command_is_list: bool = False
    """True if the command and its arguments are one list."""


def plain_value(tree: Tree) -> object:
    """The value of a tree, without positions."""
    if isinstance(tree, MappingNode):
        return {member.key: plain_value(member.value) for member in tree.members}
    if isinstance(tree, ListNode):
        return [plain_value(item) for item in tree.items]
    return tree.value


def printable_name(name: str) -> str:
    """A name from a file, with control characters escaped for terminals."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in name)


def line_at(text: str, position: int) -> int:
    """The number of the line at this position, counted from 1."""
    return text.count("\n", 0, max(position, 0)) + 1


def location(path: str, text: str, position: int) -> str:
    """The file, and the line if the position is known, for errors."""
    return f"{path}:{line_at(text, position)}" if position >= 0 else path


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text after all edits. They must not overlap."""
    parts, end = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start < end:
            raise ValueError("edits overlap")
        parts += [text[end : edit.start], edit.text]
        end = edit.end
    return "".join((*parts, text[end:]))


def end_of_line(text: str, position: int) -> int:
    """The end of the line at this position, before its line break."""
    end = text.find("\n", position)
    end = len(text) if end < 0 else end
    return end - 1 if end > position and text[end - 1] == "\r" else end


def line_break(text: str, position: int) -> str:
    """The line break of the line at this position; at the end of the file, the one that the file uses."""
    end = end_of_line(text, position)
    return "\r\n" if text.startswith("\r\n", end) or (end == len(text) and "\r\n" in text) else "\n"


def without_line(text: str, start: int, end: int) -> Edit:
    """The edit that removes a line from `start` to `end`, with the line break before it."""
    before = text.rfind("\n", 0, start)
    if before < 0:  # for the first line, the line break after it is removed
        after = text.find("\n", end)
        return Edit(0, len(text) if after < 0 else after + 1, "")
    return Edit(before - (text[before - 1 : before] == "\r"), end, "")


def without_member(mapping: MappingNode, member: Member) -> Edit:
    """The edit that removes a member of a mapping in braces, with the comma that it needed."""
    at = mapping.members.index(member)
    if at:
        return Edit(mapping.members[at - 1].value.end, member.value.end, "")
    return Edit(member.start, mapping.members[1].start if len(mapping.members) > 1 else member.value.end, "")


def quoted(word: str) -> str:
    """The string in double quotes, as both TOML and YAML read it."""
    return '"' + "".join(map(_escaped, word)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    if character.isprintable():
        return character
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"


def in_brackets(text: str, start: int, end: int, items: Sequence[Tree], last: int) -> ListNode:
    """The list that a pair of brackets holds; `last` is the end of the last item's comma, or of the item itself."""
    starts = tuple(item.start for item in items)
    insert_at = starts[0] if starts else start + 1
    before = text[start + 1 : insert_at]
    separator = f",{before}" if "\n" in before and not before.strip() else ", "  # a comment there is not copied
    clear = Edit(insert_at, last, "") if items else None
    return ListNode(start, end, tuple(items), starts, insert_at, "", separator, clear)


def duplicate_key(path: str, line: int, key: str) -> ConfigError:
    """The error for a duplicate key in a mapping: agents could read either of its values."""
    return ConfigError(f"{path}:{line}", f"the key {key!r} appears twice in one object", "remove one of the two")
