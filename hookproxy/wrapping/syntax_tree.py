"""Shapes of wrapping: a configuration as a tree that knows where each part stands in the text, and edits of that text.

All positions are offsets of characters. Files are changed by edits alone, never written anew from values: what no
edit touches keeps every byte (law 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from ..model.errors import ConfigError


class Edit(Struct, frozen=True):
    """The characters from `start` to `end` become `text`."""

    start: int
    end: int
    text: str


class Leaf(Struct, frozen=True):
    """A value that is not looked into."""

    start: int
    end: int
    value: object


class Listing(Struct, frozen=True):
    """A list of values, and how one puts more of them in front."""

    start: int
    end: int
    items: tuple[Tree, ...]
    starts: tuple[int, ...]
    """Where each item begins, with the dash that a line of YAML has."""
    first: int
    """Where another first item would stand."""
    lead: str
    """What stands before each item that is put in front: a dash, or nothing."""
    joint: str
    """What stands between it and the next."""
    emptied: Edit | None = None
    """Leaves no item; None where there is none."""


class Member(Struct, frozen=True):
    """A key and its value."""

    key: str
    start: int
    """Where the key begins."""
    key_end: int
    value: Tree


class Mapping(Struct, frozen=True):
    """An object, a table, a mapping."""

    start: int
    end: int
    members: tuple[Member, ...]

    def get(self, key: str) -> Member | None:
        """The member of that name."""
        return next((member for member in self.members if member.key == key), None)


Tree = Leaf | Listing | Mapping


class Syntax(Struct, frozen=True):
    """How one kind of file spells trees: JSON with comments, TOML, YAML."""

    name: str
    endings: tuple[str, ...]
    read: Callable[[str, str], Mapping]
    """Of a path, for errors, and a text. Raises ConfigError that names the line, also for twin keys."""
    quote: Callable[[str], str]
    """A string, as an item of a list."""
    add: Callable[[str, Mapping, Member, str, str], Edit]
    """In a text, to a mapping, after this member: a key, and its value as spelled."""
    drop: Callable[[str, Mapping, Member], Edit]
    """From a text, out of a mapping: this member. Undoes `add` exactly."""


class Shape(Struct, frozen=True):
    """Where a file keeps its servers, and how it calls what starts one."""

    path: tuple[str, ...]
    """The keys from the top to the servers; `*` is any key."""
    command: str = "command"
    args: str = "args"


def plain(tree: Tree) -> object:
    """The value, without places."""
    if isinstance(tree, Mapping):
        return {member.key: plain(member.value) for member in tree.members}
    if isinstance(tree, Listing):
        return [plain(item) for item in tree.items]
    return tree.value


def shown(name: str) -> str:
    """A name out of a file, with nothing that a terminal would obey."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in name)


def line_at(text: str, place: int) -> int:
    """The number of the line, from 1."""
    return text.count("\n", 0, max(place, 0)) + 1


def where(path: str, text: str, place: int) -> str:
    """The file, and the line if it is known, for errors."""
    return f"{path}:{line_at(text, place)}" if place >= 0 else path


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text after all edits, which do not overlap."""
    parts, done = [], 0
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        if edit.start < done:
            raise ValueError("edits overlap")
        parts += [text[done : edit.start], edit.text]
        done = edit.end
    return "".join((*parts, text[done:]))


def end_of_line(text: str, place: int) -> int:
    """Where the line ends that this place is in, before its line break."""
    end = text.find("\n", place)
    end = len(text) if end < 0 else end
    return end - 1 if end > place and text[end - 1] == "\r" else end


def line_break(text: str, place: int) -> str:
    """The line break that ends this place's line, or the one that the file uses."""
    end = end_of_line(text, place)
    return "\r\n" if text.startswith("\r\n", end) or (end == len(text) and "\r\n" in text) else "\n"


def without_line(text: str, start: int, end: int) -> Edit:
    """Takes out what begins a line at `start` and ends at `end`, with the line break before it."""
    before = text.rfind("\n", 0, start)
    if before < 0:  # the first line: the line break after it goes
        after = text.find("\n", end)
        return Edit(0, len(text) if after < 0 else after + 1, "")
    return Edit(before - (text[before - 1 : before] == "\r"), end, "")


def quoted(word: str) -> str:
    """A string in double quotes, as TOML and YAML both read it."""
    return '"' + "".join(map(_spelled, word)) + '"'


def _spelled(one: str) -> str:
    if one in '"\\':
        return f"\\{one}"
    if one.isprintable():
        return one
    return f"\\u{ord(one):04x}" if ord(one) < 0x10000 else f"\\U{ord(one):08x}"


def in_brackets(text: str, start: int, end: int, items: Sequence[Tree], last: int) -> Listing:
    """The list that a pair of brackets holds; `last` is the end of the last item's comma, or of the item itself."""
    starts = tuple(item.start for item in items)
    first = starts[0] if starts else start + 1
    before = text[start + 1 : first]
    joint = f",{before}" if "\n" in before and not before.strip() else ", "  # a comment there stays alone
    emptied = Edit(first, last, "") if items else None
    return Listing(start, end, tuple(items), starts, first, "", joint, emptied)


def twin(path: str, line: int, key: str) -> ConfigError:
    """The error to raise about a key that stands twice in one mapping: agents could read either."""
    return ConfigError(f"{path}:{line}", f"the key {key!r} stands twice in one place", "take one of the two out")
