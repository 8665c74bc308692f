"""JSON with comments and trailing commas, read into a tree with positions, so that edits keep all other bytes (law 2).

This is a small parser of our own. Python's libraries for such files either write them anew from values, or (jsonc-edit)
are young wrappers around a JavaScript program. None gives the positions of tokens, which is all that is needed here.
"""

from __future__ import annotations

import json
import re
from typing import Final, NoReturn

from ..model.errors import ConfigError
from .syntax_tree import (
    Edit,
    Layout,
    Leaf,
    ListNode,
    MappingNode,
    Member,
    Part,
    Syntax,
    Tree,
    duplicate_key,
    in_brackets,
    line_at,
    without_member,
)

MAX_DEPTH: Final = 200
"""The deepest nesting of objects and lists: agents need about five levels, and Python's stack allows this many."""

_BLANK: Final = re.compile(r"(?>(?:[ \t\r\n]++|//[^\n]*+|/\*.*?\*/)*)", re.DOTALL)
_BLANK_STARTS: Final = frozenset(" \t\r\n/")
_STRING: Final = re.compile(r'"(?>(?:[^"\\\x00-\x1f]++|\\.)*)"')
_WORD: Final = re.compile(r"[\w+.-]+")
_COMMA: Final = ","


class _Reader:
    """Parses one text from left to right."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.depth = 0

    def fail(self, at: int, message: str) -> NoReturn:
        raise ConfigError(
            f"{self.path}:{line_at(self.text, at)}", f"not JSON: {message}", "correct it there; comments are allowed"
        )

    def skip_blanks(self, at: int) -> int:
        """The next position after blanks and comments."""
        if self.text[at : at + 1] not in _BLANK_STARTS:
            return at
        match = _BLANK.match(self.text, at)
        end = match.end() if match else at
        if self.text.startswith("/*", end):
            self.fail(end, "this comment is not closed")
        return end

    def value(self, at: int) -> Tree:
        first = self.text[at : at + 1]
        if first in ("{", "["):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise ConfigError(
                    f"{self.path}:{line_at(self.text, at)}",
                    f"is nested more than {MAX_DEPTH} levels deep",
                    "name an agent's configuration",
                )
            tree = self.mapping(at) if first == "{" else self.list_node(at)
            self.depth -= 1
            return tree
        if first == '"':
            return self.string(at)
        match = _WORD.match(self.text, at)
        if not match:
            self.fail(at, f"a value is expected, not {first!r}" if first else "it ends too early")
        return Leaf(at, match.end(), self.plain_value(at, match[0]))

    def plain_value(self, at: int, word: str) -> object:
        """The value of a number, true, false or null. Numbers stay as they are spelled: nothing here calculates."""
        try:
            value = json.loads(word, parse_int=_number, parse_float=_number, parse_constant=_no_constant)
        except ValueError:
            self.fail(at, f"{word[:40]!r} is not a value")
        return value

    def string(self, at: int) -> Leaf:
        match = _STRING.match(self.text, at)
        if not match:
            self.fail(at, "a string is not closed, or contains a control character")
        raw = match[0]
        try:
            return Leaf(at, match.end(), json.loads(raw) if "\\" in raw else raw[1:-1])
        except ValueError:
            self.fail(at, "a string contains an unknown escape")

    def mapping(self, at: int) -> MappingNode:
        members: dict[str, Member] = {}
        start = self.skip_blanks(at + 1)
        while not self.text.startswith("}", start):
            if not self.text.startswith('"', start):
                self.fail(start, "a key in quotation marks, or `}`, is expected")
            key = self.string(start)
            name = str(key.value)
            if name in members:
                raise duplicate_key(self.path, line_at(self.text, start), name)
            colon = self.skip_blanks(key.end)
            if not self.text.startswith(":", colon):
                self.fail(colon, "`:` is expected")
            members[name] = Member(name, start, key.end, self.value(self.skip_blanks(colon + 1)))
            _, start = self.separator(members[name].value.end, "}")
        return MappingNode(at, start + 1, tuple(members.values()))

    def list_node(self, at: int) -> ListNode:
        items: list[Tree] = []
        last, start = at + 1, self.skip_blanks(at + 1)
        while not self.text.startswith("]", start):
            items.append(self.value(start))
            last, start = self.separator(items[-1].end, "]")
        return in_brackets(self.text, at, start + 1, items, last)

    def separator(self, at: int, closing: str) -> tuple[int, int]:
        """The end of the comma after a value, or of the value itself if there is none, and the next position."""
        end = self.skip_blanks(at)
        if self.text.startswith(_COMMA, end):
            return end + 1, self.skip_blanks(end + 1)
        if not self.text.startswith(closing, end):
            self.fail(
                end,
                f"`,` or `{closing}` is expected" if end < len(self.text) else "it ends too early",
            )
        return at, end


def _number(raw: str) -> tuple[str, str]:
    return ("number", raw)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def read(path: str, text: str) -> MappingNode:
    """The object in the file. Raises ConfigError that names the line."""
    reader = _Reader(path, text)
    start = reader.skip_blanks(1 if text.startswith("\ufeff") else 0)
    if not text.startswith("{", start):
        reader.fail(start, "it must begin with `{`" if start < len(text) else "it is empty")
    tree = reader.mapping(start)
    end = reader.skip_blanks(tree.end)
    if end < len(text):
        reader.fail(end, "there is text after its end")
    return tree


def quote(word: str) -> str:
    """The string in quotation marks."""
    return json.dumps(word, ensure_ascii=False)


def insert_member(text: str, mapping: MappingNode, after: Member, key: str, value: str) -> Edit:
    """Insert a member after another one, with the same layout."""
    at = mapping.members.index(after)
    begin = _past_comma(text, mapping, at)
    before = text[begin : after.start]
    colon = text[after.key_end : after.value.start]
    before, colon = ("" if part.strip(" \t\r\n:") else part for part in (before, colon))
    return Edit(after.value.end, after.value.end, f",{before}{quote(key)}{colon or ': '}{value}")


def _past_comma(text: str, mapping: MappingNode, at: int) -> int:
    """The position at which the space before a member begins: after `{` or after the comma."""
    if not at:
        return mapping.start + 1
    previous = mapping.members[at - 1].value.end
    return text.index(_COMMA, previous) + 1


def remove_member(_text: str, mapping: MappingNode, member: Member) -> Edit:
    """Remove a member, with the comma that it needed."""
    return without_member(mapping, member)


def layout(text: str, name: str, mapping: MappingNode) -> Layout | None:
    """How the object of a server is laid out."""
    if not mapping.members:
        return None
    parts = tuple(Part(member.key, member.start, member.value.start, member.value.end) for member in mapping.members)
    before = text[mapping.start + 1 : parts[0].start]
    separator = "," + (before if before.strip(" \t\r\n") == "" and before else " ")
    return Layout(mapping.start, mapping.end, parts, separator)


JSON: Final = Syntax(
    "JSON", (".json", ".jsonc", ".json5"), read, quote, insert_member, remove_member, layout, ": ", quotes_keys=True
)
