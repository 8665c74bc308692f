"""JSON with comments and trailing commas, read into a tree with places, so that edits keep every other byte (law 2).

Our own reader, and small: Python's libraries for such files either write them anew from values, or (jsonc-edit) are
young wrappers around a JavaScript program; none gives the places of tokens, which is all that is needed here.
"""

from __future__ import annotations

import json
import re
from typing import Final, NoReturn

from ..model.errors import ConfigError
from .syntax_tree import Edit, Leaf, Listing, Mapping, Member, Syntax, Tree, in_brackets, line_at, twin

DEEPEST: Final = 200
"""Objects and lists inside each other: agents need about five, and Python's stack bears this many of ours."""

_BLANK: Final = re.compile(r"(?>(?:[ \t\r\n]++|//[^\n]*+|/\*.*?\*/)*)", re.DOTALL)
_BEGIN_BLANK: Final = frozenset(" \t\r\n/")
_STRING: Final = re.compile(r'"(?>(?:[^"\\\x00-\x1f]++|\\.)*)"')
_WORD: Final = re.compile(r"[\w+.-]+")
_COMMA: Final = ","


class _Reader:
    """Reads one text from left to right."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.depth = 0

    def wrong(self, at: int, message: str) -> NoReturn:
        raise ConfigError(
            f"{self.path}:{line_at(self.text, at)}", f"not JSON: {message}", "mend it there; comments may stand in it"
        )

    def blank(self, at: int) -> int:
        """The next place that is neither blank nor comment."""
        if self.text[at : at + 1] not in _BEGIN_BLANK:
            return at
        found = _BLANK.match(self.text, at)
        end = found.end() if found else at
        if self.text.startswith("/*", end):
            self.wrong(end, "this comment does not end")
        return end

    def value(self, at: int) -> Tree:
        first = self.text[at : at + 1]
        if first in ("{", "["):
            self.depth += 1
            if self.depth > DEEPEST:
                raise ConfigError(
                    f"{self.path}:{line_at(self.text, at)}",
                    f"more than {DEEPEST} levels deep",
                    "name an agent's configuration",
                )
            tree = self.mapping(at) if first == "{" else self.listing(at)
            self.depth -= 1
            return tree
        if first == '"':
            return self.string(at)
        found = _WORD.match(self.text, at)
        if not found:
            self.wrong(at, f"{first!r} where a value should be" if first else "it ends too soon")
        return Leaf(at, found.end(), self.plain(at, found[0]))

    def plain(self, at: int, word: str) -> object:
        """A number, true, false or null; numbers as they are spelled, since nobody here counts with them."""
        try:
            value = json.loads(word, parse_int=_number, parse_float=_number, parse_constant=_no_constant)
        except ValueError:
            self.wrong(at, f"{word[:40]!r} is no value")
        return value

    def string(self, at: int) -> Leaf:
        found = _STRING.match(self.text, at)
        if not found:
            self.wrong(at, "a string that does not end, or holds a control character")
        spelled = found[0]
        try:
            return Leaf(at, found.end(), json.loads(spelled) if "\\" in spelled else spelled[1:-1])
        except ValueError:
            self.wrong(at, "a string with an escape that there is not")

    def mapping(self, at: int) -> Mapping:
        members: dict[str, Member] = {}
        place, start = at, self.blank(at + 1)
        while not self.text.startswith("}", start):
            if not self.text.startswith('"', start):
                self.wrong(start, "a key in quotation marks, or `}`, should be here")
            key = self.string(start)
            name = str(key.value)
            if name in members:
                raise twin(self.path, line_at(self.text, start), name)
            place = self.blank(key.end)
            if not self.text.startswith(":", place):
                self.wrong(place, "`:` should be here")
            members[name] = Member(name, start, key.end, self.value(self.blank(place + 1)))
            place, start = self.separator(members[name].value.end, "}")
        return Mapping(at, start + 1, tuple(members.values()))

    def listing(self, at: int) -> Listing:
        items: list[Tree] = []
        last, start = at + 1, self.blank(at + 1)
        while not self.text.startswith("]", start):
            items.append(self.value(start))
            last, start = self.separator(items[-1].end, "]")
        return in_brackets(self.text, at, start + 1, items, last)

    def separator(self, at: int, closing: str) -> tuple[int, int]:
        """The end of the comma after a value, if it has one, and where it goes on."""
        place = self.blank(at)
        if self.text.startswith(_COMMA, place):
            return place + 1, self.blank(place + 1)
        if not self.text.startswith(closing, place):
            self.wrong(place, f"`,` or `{closing}` should be here" if place < len(self.text) else "it ends too soon")
        return at, place


def _number(spelled: str) -> tuple[str, str]:
    return ("number", spelled)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def read(path: str, text: str) -> Mapping:
    """The object that the file holds. Raises ConfigError that names the line."""
    reader = _Reader(path, text)
    start = reader.blank(1 if text.startswith("\ufeff") else 0)
    if not text.startswith("{", start):
        reader.wrong(start, "it should begin with `{`" if start < len(text) else "it is empty")
    tree = reader.mapping(start)
    end = reader.blank(tree.end)
    if end < len(text):
        reader.wrong(end, "there is something after its end")
    return tree


def quote(word: str) -> str:
    """A string, in quotation marks."""
    return json.dumps(word, ensure_ascii=False)


def add(text: str, mapping: Mapping, after: Member, key: str, value: str) -> Edit:
    """A member more, laid out as the one before it."""
    at = mapping.members.index(after)
    begin = _past_comma(text, mapping, at)
    before = text[begin : after.start]
    colon = text[after.key_end : after.value.start]
    before, colon = ("" if one.strip(" \t\r\n:") else one for one in (before, colon))
    return Edit(after.value.end, after.value.end, f",{before}{quote(key)}{colon or ': '}{value}")


def _past_comma(text: str, mapping: Mapping, at: int) -> int:
    """Where the room before a member begins: after `{`, or after the comma."""
    if not at:
        return mapping.start + 1
    previous = mapping.members[at - 1].value.end
    return text.index(_COMMA, previous) + 1


def drop(text: str, mapping: Mapping, member: Member) -> Edit:
    """A member less, with the comma that it needed."""
    at = mapping.members.index(member)
    if at:
        return Edit(mapping.members[at - 1].value.end, member.value.end, "")
    end = mapping.members[1].start if len(mapping.members) > 1 else member.value.end
    return Edit(member.start, end, "")


JSON: Final = Syntax("JSON", (".json", ".jsonc", ".json5"), read, quote, add, drop)
