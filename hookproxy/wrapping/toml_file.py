"""TOML, read into a tree with positions: `tomllib` says what the values are, and a scan of the text where they are.

`tomllib` reports no positions. The scan knows keys, headers and where a value ends, which is little in a text that is
valid; each value that may be edited is read again from its place alone, and must be the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from ..config.errors import toml_error
from ..model.errors import ConfigError
from ..model.toml import NotToml, parse_toml
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
    without_member,
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
        values = parse_toml(text.removeprefix("\ufeff"))
    except NotToml as problem:
        raise toml_error(path, text, problem) from None
    members = []
    for key, value in values.items():
        tree = _servers(path, text, value) if key == SERVERS and isinstance(value, dict) else Leaf(-1, -1, value)
        members.append(Member(key, -1, -1, tree))
    return MappingNode(0, len(text), tuple(members))


def _servers(path: str, text: str, values: dict[str, object]) -> MappingNode:
    statements = {statement.path[1:3]: statement for statement in _keys_of_servers(text, statements_of(text))}
    servers = []
    for name, server in values.items():
        tree: Tree = Leaf(-1, -1, server)
        if isinstance(server, dict):
            members = [_member(path, text, key, value, statements.get((name, key))) for key, value in server.items()]
            start = max((member.start for member in members), default=-1)
            tree = MappingNode(start, start, tuple(members))
        servers.append(Member(name, tree.start, tree.start, tree))
    return MappingNode(-1, -1, tuple(servers))


def _member(path: str, text: str, key: str, value: object, statement: Statement | None) -> Member:
    if statement is None:  # a table with its own header
        return Member(key, -1, -1, Leaf(-1, -1, value))
    start, end = statement.value_start, statement.end
    tree: Tree = Leaf(start, end, value)
    if key in _EDITABLE_KEYS:
        if parse_toml(f"value = {text[start:end]}") != {"value": value}:
            raise ConfigError(path, "cannot be edited: the layout of this TOML is not understood", _SIMPLIFY_HINT)
        if key == "args" and isinstance(value, list) and all(isinstance(item, str) for item in value):
            tree = _list_node(path, text, start, end, value)
    return Member(key, statement.start, start, tree)


def _list_node(path: str, text: str, start: int, end: int, values: list[object]) -> ListNode:
    items: list[Leaf] = []
    last, position = start + 1, skip_blanks(text, start + 1)
    while position < end - 1 and (found := _STRING.match(text, position)):
        items.append(Leaf(position, found.end(), values[len(items)] if len(items) < len(values) else None))
        last, position = found.end(), skip_blanks(text, found.end())
        if text.startswith(",", position):
            last, position = position + 1, skip_blanks(text, position + 1)
    if len(items) != len(values) or position != end - 1:
        raise ConfigError(
            f"{path}:{line_at(text, start)}", "the layout of this array is not understood", _SIMPLIFY_HINT
        )
    return in_brackets(text, start, end, items, last)


def skip_blanks(text: str, at: int) -> int:
    """The position after blanks, line breaks and comments."""
    found = _BLANK.match(text, at)
    return found.end() if found else at


def insert_member(text: str, mapping: MappingNode, after: Member, key: str, value: str) -> Edit:
    """Insert a line after that of another key; in an inline table, insert an entry."""
    start = text.rfind("\n", 0, after.start) + 1
    statement = _STATEMENT.fullmatch(text, start, after.value.start)
    if not statement:
        return Edit(after.value.end, after.value.end, f", {key} = {value}")
    before, between = text[start : statement.start(1)], text[statement.end(1) : after.value.start]
    end = end_of_line(text, after.value.end)
    return Edit(end, end, f"{line_break(text, end)}{before}{key}{between}{value}")


def remove_member(text: str, mapping: MappingNode, member: Member) -> Edit:
    """Remove a line; in an inline table, remove an entry."""
    start = text.rfind("\n", 0, member.start) + 1
    if _STATEMENT.fullmatch(text, start, member.value.start):
        return without_line(text, member.start, member.value.end)
    return without_member(mapping, member)


class Statement(Struct, frozen=True):
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
    statements = list(statements_of(text))
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


def _inline_layout(text: str, table: Statement) -> Layout | None:
    parts = tuple(
        Part(statement.path[2], statement.start, statement.value_start, statement.end)
        for statement in statements_of(text, table.value_start + 1, table.path)
    )
    if not parts or skip_blanks(text, parts[-1].end) != table.end - 1:
        return None
    return Layout(table.value_start, table.end, parts, ", ")


def statements_of(text: str, at: int = 0, table: tuple[str, ...] = ()) -> Iterator[Statement]:
    """Every header and every key with its value, in order; those of an inline `table` if `at` is its first position.

    The text is valid TOML.
    """
    at = skip_blanks(text, 1 if not at and text.startswith("\ufeff") else at)
    while at < len(text):
        if header := _HEADER.match(text, at):
            table, end = _path(header[1]), header.end()
            yield Statement(table, table, at, end, end, is_header=True)
        elif pair := _PAIR.match(text, at):
            end = value_end(text, pair.end())
            yield Statement((*table, *_path(pair[1])), table, at, pair.end(), end, is_header=False)
        else:
            return
        at = skip_blanks(text, end)
        if text.startswith(",", at):
            at = skip_blanks(text, at + 1)


def _keys_of_servers(text: str, statements: Iterable[Statement]) -> Iterator[Statement]:
    """Those of the statements that set a key of a server, and those in inline tables of servers."""
    for statement in statements:
        if statement.is_header or statement.path[0] != SERVERS:
            continue
        if len(statement.path) > 2:
            yield statement
        elif text.startswith("{", statement.value_start):
            yield from _keys_of_servers(text, statements_of(text, statement.value_start + 1, statement.path))


def _path(key: str) -> tuple[str, ...]:
    """The parts of a key, without their quotation marks."""
    path: list[str] = []
    value: object = parse_toml(f"{key} = 0")
    while isinstance(value, dict):
        (name, value), *_ = value.items()
        path.append(name)
    return tuple(path)


def value_end(text: str, at: int) -> int:
    """The end of the value that begins here."""
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
        at = max(skip_blanks(text, at), at + 1) if text[at] in "# \t\r\n" else at + 1
    return at


TOML: Final = Syntax("TOML", (".toml",), read, quoted, insert_member, remove_member, layout, " = ")
