"""TOML, read into a tree with places: tomlkit keeps every byte of a file, so what it writes shows where a value stands.

tomlkit tells no places: each value that may be edited gets a mark instead, and the marks are looked for in the text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError

from ..config.errors import toml_error
from ..model.errors import ConfigError
from .syntax_tree import (
    Edit,
    Leaf,
    Listing,
    Mapping,
    Member,
    Syntax,
    Tree,
    end_of_line,
    in_brackets,
    line_at,
    line_break,
    quoted,
    without_line,
)

SERVERS: Final = "mcp_servers"

_MARKED: Final = ("command", "args")
_PART: Final = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_STATEMENT: Final = re.compile(rf"[ \t]*(?:{_PART}[ \t]*\.[ \t]*)*({_PART})[ \t]*=[ \t]*")
"""What stands before the value of a line; in a table within a line there is more."""
_PLAINLY: Final = 'write the server\'s command and args plainly: args = ["…", "…"]'
_BLANK: Final = re.compile(r"(?>(?:[ \t\r\n]++|#[^\n]*+)*)")
_STRING: Final = re.compile(
    r'"""(?>(?:[^"\\]|\\.|"{1,2}(?!"))*)"{3,5}' r"|'''.*?'{3,5}" r'|"(?>(?:[^"\\\n]|\\.)*)"' r"|'[^'\n]*+'", re.DOTALL
)


def read(path: str, text: str) -> Mapping:
    """The table that the file holds; only what starts servers has places. Raises ConfigError that names the line."""
    try:
        values = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as problem:
        raise toml_error(path, text, str(problem)) from None
    except (RecursionError, ValueError) as problem:
        raise ConfigError(path, f"cannot be read as TOML: {problem}", "write it more plainly") from None
    places = dict(_places(path, text)) if SERVERS in values else {}
    return Mapping(0, len(text), tuple(_top(path, text, key, value, places) for key, value in values.items()))


def _top(path: str, text: str, key: str, value: object, places: dict[tuple[str, str], tuple[int, int]]) -> Member:
    if key != SERVERS or not isinstance(value, dict):
        return Member(key, -1, -1, Leaf(-1, -1, value))
    servers = []
    for name, server in value.items():
        tree: Tree = Leaf(-1, -1, server)
        if isinstance(server, dict):
            members = [_member(path, text, inner, places.get((name, key)), key) for key, inner in server.items()]
            start = max((member.start for member in members), default=-1)
            tree = Mapping(start, start, tuple(members))
        servers.append(Member(name, tree.start, tree.start, tree))
    return Member(key, -1, -1, Mapping(-1, -1, tuple(servers)))


def _member(path: str, text: str, value: object, place: tuple[int, int] | None, key: str) -> Member:
    start, end = place or (-1, -1)
    tree: Tree = Leaf(start, end, value)
    if place and key == "args" and isinstance(value, list) and all(isinstance(item, str) for item in value):
        tree = _listing(path, text, start, end, value)
    return Member(key, start, start, tree)


def _listing(path: str, text: str, start: int, end: int, values: list[object]) -> Listing:
    """An array of strings."""
    items: list[Leaf] = []
    last, place = start + 1, _skip(text, start + 1)
    while place < end - 1 and (found := _STRING.match(text, place)):
        items.append(Leaf(place, found.end(), values[len(items)] if len(items) < len(values) else None))
        last, place = found.end(), _skip(text, found.end())
        if text.startswith(",", place):
            last, place = place + 1, _skip(text, place + 1)
    if len(items) != len(values) or place != end - 1:
        raise ConfigError(
            f"{path}:{line_at(text, start)}", "this array is written in a way that is not understood", _PLAINLY
        )
    return in_brackets(text, start, end, items, last)


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _places(path: str, text: str) -> Iterator[tuple[tuple[str, str], tuple[int, int]]]:
    """Where the values of servers that may be edited stand, by the server's name and the key."""
    body = text.removeprefix("\ufeff")
    try:
        marks = _marked(document := tomlkit.parse(body), body)
    except (TOMLKitError, RecursionError, ValueError) as problem:
        raise ConfigError(path, f"cannot be read as TOML: {problem}", "write it more plainly") from None
    shown = document.as_string()
    whole, shift = shown, len(text) - len(body)
    for mark, key, raw in sorted(marks, key=lambda one: shown.index(one[0])):
        at = shown.index(mark)
        yield key, (at + shift, at + shift + len(raw))
        shift += len(raw) - len(mark)
        whole = whole.replace(mark, raw, 1)
    if whole != body:
        raise ConfigError(path, "cannot be edited: this TOML is laid out in a way that is not understood", _PLAINLY)


def _marked(document: tomlkit.TOMLDocument, text: str) -> list[tuple[str, tuple[str, str], str]]:
    """Put a mark in the place of each value; gives the marks, what they stand for, and the spelling they replace."""
    marks: list[tuple[str, tuple[str, str], str]] = []
    servers: Any = document[SERVERS]
    for name in servers if hasattr(servers, "keys") else ():
        for key in _MARKED:
            server = servers[name]
            if hasattr(server, "keys") and key in server:
                spelled = server.item(key).as_string() if hasattr(server, "item") else server[key].as_string()
                mark = f'"{_unused(text, len(marks))}"'
                server[key] = tomlkit.string(mark[1:-1])
                marks.append((mark, (str(name), key), spelled))
    return marks


def _unused(text: str, number: int) -> str:
    """A word that the text does not hold."""
    word = f"mark-{number}-"
    while word in text:
        word += "-"
    return word


def add(text: str, mapping: Mapping, after: Member, key: str, value: str) -> Edit:
    """A line more, after that of another key; in a table within a line, an entry more."""
    start = text.rfind("\n", 0, after.start) + 1
    statement = _STATEMENT.fullmatch(text, start, after.start)
    if not statement:
        return Edit(after.value.end, after.value.end, f", {key} = {value}")
    before, between = text[start : statement.start(1)], text[statement.end(1) : after.start]
    end = end_of_line(text, after.value.end)
    return Edit(end, end, f"{line_break(text, end)}{before}{key}{between}{value}")


def drop(text: str, mapping: Mapping, member: Member) -> Edit:
    """A line less; in a table within a line, an entry less."""
    start = text.rfind("\n", 0, member.start) + 1
    if _STATEMENT.fullmatch(text, start, member.start):
        return without_line(text, member.start, member.value.end)
    key = re.compile(rf"""(,?)[ \t]*["']?{re.escape(member.key)}["']?[ \t]*=[ \t]*\Z""").search(text, 0, member.start)
    begin = key.start() if key else member.start
    after = re.compile(r"[ \t]*,[ \t]*").match(text, member.value.end)
    first = key is not None and not key[1]  # no comma before it: the one after it goes
    return Edit(begin, after.end() if first and after else member.value.end, "")


TOML: Final = Syntax("TOML", (".toml",), read, quoted, add, drop)
