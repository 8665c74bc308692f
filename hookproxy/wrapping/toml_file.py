"""TOML, read into a tree with positions: tomlkit keeps every byte of a file, so its output shows where a value is.

tomlkit does not report positions. Instead, each value that may be edited is replaced with a mark, and the marks are
found in tomlkit's output.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any, Final

import tomlkit
from msgspec import Struct
from tomlkit.exceptions import TOMLKitError

from ..config.errors import toml_error
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
    end_of_line,
    in_brackets,
    line_at,
    line_break,
    quoted,
    without_line,
)

SERVERS: Final = "mcp_servers"

_EDITABLE_KEYS: Final = ("command", "args")
_PART: Final = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_STATEMENT: Final = re.compile(rf"[ \t]*(?:{_PART}[ \t]*\.[ \t]*)*({_PART})[ \t]*=[ \t]*")
"""The text before the value of a line; in an inline table there is more."""
_SIMPLIFY_HINT: Final = 'write the server\'s command and args in a simple way: args = ["…", "…"]'
_KEY: Final = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_HEADER: Final = re.compile(rf"\[\[?[ \t]*({_KEY})[ \t]*\]\]?")
_PAIR: Final = re.compile(rf"({_KEY})[ \t]*=[ \t]*")
_SCALAR: Final = re.compile(r"[^\s,#\]}]+(?: [0-9][^\s,#\]}]*)?")
"""A number, a word or a date, which may have a space before its time."""
_BLANK: Final = re.compile(r"(?>(?:[ \t\r\n]++|#[^\n]*+)*)")
_STRING: Final = re.compile(
    r'"""(?>(?:[^"\\]|\\.|"{1,2}(?!"))*)"{3,5}' r"|'''.*?'{3,5}" r'|"(?>(?:[^"\\\n]|\\.)*)"' r"|'[^'\n]*+'", re.DOTALL
)


def read(path: str, text: str) -> MappingNode:
    """The table in the file. Only what starts servers has positions. Raises ConfigError that names the line."""
    try:
        values = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as problem:
        raise toml_error(path, text, str(problem)) from None
    except (RecursionError, ValueError) as problem:
        raise ConfigError(path, f"cannot be read as TOML: {problem}", "write it in a simpler way") from None
    positions = dict(_positions(path, text)) if SERVERS in values else {}
    return MappingNode(0, len(text), tuple(_top(path, text, key, value, positions) for key, value in values.items()))


def _top(path: str, text: str, key: str, value: object, positions: dict[tuple[str, str], tuple[int, int]]) -> Member:
    if key != SERVERS or not isinstance(value, dict):
        return Member(key, -1, -1, Leaf(-1, -1, value))
    servers = []
    for name, server in value.items():
        tree: Tree = Leaf(-1, -1, server)
        if isinstance(server, dict):
            members = [_member(path, text, inner, positions.get((name, key)), key) for key, inner in server.items()]
            start = max((member.start for member in members), default=-1)
            tree = MappingNode(start, start, tuple(members))
        servers.append(Member(name, tree.start, tree.start, tree))
    return Member(key, -1, -1, MappingNode(-1, -1, tuple(servers)))


def _member(path: str, text: str, value: object, position: tuple[int, int] | None, key: str) -> Member:
    start, end = position or (-1, -1)
    tree: Tree = Leaf(start, end, value)
    if position and key == "args" and isinstance(value, list) and all(isinstance(item, str) for item in value):
        tree = _list_node(path, text, start, end, value)
    return Member(key, start, start, tree)


def _list_node(path: str, text: str, start: int, end: int, values: list[object]) -> ListNode:
    """An array of strings."""
    items: list[Leaf] = []
    last, position = start + 1, _skip_blanks(text, start + 1)
    while position < end - 1 and (found := _STRING.match(text, position)):
        items.append(Leaf(position, found.end(), values[len(items)] if len(items) < len(values) else None))
        last, position = found.end(), _skip_blanks(text, found.end())
        if text.startswith(",", position):
            last, position = position + 1, _skip_blanks(text, position + 1)
    if len(items) != len(values) or position != end - 1:
        raise ConfigError(
            f"{path}:{line_at(text, start)}", "the layout of this array is not understood", _SIMPLIFY_HINT
        )
    return in_brackets(text, start, end, items, last)


def _skip_blanks(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _positions(path: str, text: str) -> Iterator[tuple[tuple[str, str], tuple[int, int]]]:
    """The positions of the servers' values that may be edited, by the server's name and the key."""
    body = text.removeprefix("\ufeff")
    try:
        marks = _insert_marks(document := tomlkit.parse(body), body)
    except (TOMLKitError, RecursionError, ValueError) as problem:
        raise ConfigError(path, f"cannot be read as TOML: {problem}", "write it in a simpler way") from None
    marked_text = document.as_string()
    whole, offset = marked_text, len(text) - len(body)
    for mark, key, raw in sorted(marks, key=lambda item: marked_text.index(item[0])):
        at = marked_text.index(mark)
        yield key, (at + offset, at + offset + len(raw))
        offset += len(raw) - len(mark)
        whole = whole.replace(mark, raw, 1)
    if whole != body:
        raise ConfigError(path, "cannot be edited: the layout of this TOML is not understood", _SIMPLIFY_HINT)


def _insert_marks(document: tomlkit.TOMLDocument, text: str) -> list[tuple[str, tuple[str, str], str]]:
    """Replace each value with a mark. Returns the marks, with their server and key, and the text that they replace."""
    marks: list[tuple[str, tuple[str, str], str]] = []
    servers: Any = document[SERVERS]
    for name in servers if hasattr(servers, "keys") else ():
        for key in _EDITABLE_KEYS:
            server = servers[name]
            if hasattr(server, "keys") and key in server:
                raw = server.item(key).as_string() if hasattr(server, "item") else server[key].as_string()
                mark = f'"{_unused_word(text, len(marks))}"'
                server[key] = tomlkit.string(mark[1:-1])
                marks.append((mark, (str(name), key), raw))
    return marks


def _unused_word(text: str, number: int) -> str:
    """A word that does not occur in the text."""
    word = f"mark-{number}-"
    while word in text:
        word += "-"
    return word


def add(text: str, mapping: MappingNode, after: Member, key: str, value: str) -> Edit:
    """Insert a line after that of another key; in an inline table, insert an entry."""
    start = text.rfind("\n", 0, after.start) + 1
    statement = _STATEMENT.fullmatch(text, start, after.start)
    if not statement:
        return Edit(after.value.end, after.value.end, f", {key} = {value}")
    before, between = text[start : statement.start(1)], text[statement.end(1) : after.start]
    end = end_of_line(text, after.value.end)
    return Edit(end, end, f"{line_break(text, end)}{before}{key}{between}{value}")


def drop(text: str, mapping: MappingNode, member: Member) -> Edit:
    """Remove a line; in an inline table, remove an entry."""
    start = text.rfind("\n", 0, member.start) + 1
    if _STATEMENT.fullmatch(text, start, member.start):
        return without_line(text, member.start, member.value.end)
    key = re.compile(rf"""(,?)[ \t]*["']?{re.escape(member.key)}["']?[ \t]*=[ \t]*\Z""").search(text, 0, member.start)
    begin = key.start() if key else member.start
    after = re.compile(r"[ \t]*,[ \t]*").match(text, member.value.end)
    first = key is not None and not key[1]  # without a comma before it, the one after it is removed
    return Edit(begin, after.end() if first and after else member.value.end, "")


class _Statement(Struct, frozen=True):
    """A header of a table, or a key with its value."""

    path: tuple[str, ...]
    """All keys that lead to it."""
    table: tuple[str, ...]
    """The keys of the table in which it stands; for a header, its own."""
    start: int
    value_start: int
    end: int
    is_header: bool


def layout(text: str, name: str, mapping: MappingNode) -> Layout | None:
    """How the table of a server is laid out; None if its parts do not follow each other below its header."""
    server = (SERVERS, name)
    statements = list(_statements(text))
    own = [at for at, statement in enumerate(statements) if statement.path[:2] == server]
    if not own or own != list(range(own[0], own[-1] + 1)):
        return None
    first, rest = statements[own[0]], [statements[at] for at in own[1:]]
    if not first.is_header:
        is_inline = not rest and first.path == server and text.startswith("{", first.value_start)
        return _inline_layout(text, first) if is_inline else None
    if first.path != server or not rest:
        return None
    parts: list[Part] = []
    for statement in rest:
        if statement.is_header:
            parts.append(Part(statement.path[2], statement.start, statement.end, statement.end, is_table=True))
        elif statement.table == server:
            parts.append(Part(statement.path[2], statement.start, statement.value_start, statement.end))
        else:
            last = parts[-1]
            parts[-1] = Part(last.key, last.start, last.value_start, statement.end, is_table=True)
    indent = text[text.rfind("\n", 0, parts[0].start) + 1 : parts[0].start]
    return Layout(parts[0].start, parts[-1].end, tuple(parts), line_break(text, parts[0].start) + indent)


def _inline_layout(text: str, statement: _Statement) -> Layout | None:
    parts: list[Part] = []
    at = _skip_blanks(text, statement.value_start + 1)
    while found := _PAIR.match(text, at):
        end = _value_end(text, found.end())
        parts.append(Part(_path(found[1])[0], at, found.end(), end))
        at = _skip_blanks(text, end)
        at = _skip_blanks(text, at + 1) if text.startswith(",", at) else at
    if not parts or at != statement.end - 1:
        return None
    return Layout(statement.value_start, statement.end, tuple(parts), ", ")


def _statements(text: str) -> Iterator[_Statement]:
    """Every header and every key with its value, in order. The text is valid TOML."""
    table: tuple[str, ...] = ()
    at = _skip_blanks(text, 1 if text.startswith("\ufeff") else 0)
    while at < len(text):
        if header := _HEADER.match(text, at):
            table, end = _path(header[1]), header.end()
            yield _Statement(table, table, at, end, end, is_header=True)
        elif found := _PAIR.match(text, at):
            end = _value_end(text, found.end())
            yield _Statement((*table, *_path(found[1])), table, at, found.end(), end, is_header=False)
        else:
            return
        at = _skip_blanks(text, end)


def _path(key: str) -> tuple[str, ...]:
    """The parts of a key, without their quotation marks."""
    path: list[str] = []
    value: object = tomllib.loads(f"{key} = 0")
    while isinstance(value, dict):
        (name, value), *_ = value.items()
        path.append(name)
    return tuple(path)


def _value_end(text: str, at: int) -> int:
    """The end of the value at this position."""
    if text[at : at + 1] not in ("[", "{"):
        found = _STRING.match(text, at) or _SCALAR.match(text, at)
        return found.end() if found else at
    depth = 0
    while at < len(text):
        if text[at] in "[{":
            depth += 1
        elif text[at] in "]}":
            depth -= 1
            if not depth:
                return at + 1
        elif found := _STRING.match(text, at):
            at = found.end()
            continue
        at = max(_skip_blanks(text, at), at + 1) if text[at] in "# \t\r\n" else at + 1
    return at


def pair(key: str, value: str) -> str:
    """A key with its value."""
    return f"{key} = {value}"


TOML: Final = Syntax("TOML", (".toml",), read, quoted, add, drop, layout, pair)
