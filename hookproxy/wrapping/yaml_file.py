"""YAML, read by PyYAML into a tree with positions, which its nodes know, so that edits keep all other bytes (law 2).

ruamel.yaml keeps comments, but writes a file anew, with its own indentation and line breaks: `unwrap` could not restore
the original. Anchors, aliases and `<<` are refused in parts that are edited, because they refer to other places.
"""

from __future__ import annotations

from typing import Final

import yaml

from ..dialects.shared.yaml_file import load
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
    without_member,
)

SERVERS: Final = "extensions"

_EDITABLE_KEYS: Final = ("cmd", "args")
_MERGE: Final = "<<"


def read(path: str, text: str) -> MappingNode:
    """The mapping in the file. Only its servers have positions. Raises ConfigError that names the line."""
    values = load(path, text)
    try:
        top = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as problem:
        raise ConfigError(path, f"cannot be read as YAML: {problem}", "write it in a simpler way") from None
    nodes = {key.value: (key, node) for key, node in top.value} if isinstance(top, yaml.MappingNode) else {}
    members = []
    for name, value in values.items():
        tree: Tree = Leaf(-1, -1, value)
        if name == SERVERS and name in nodes and isinstance(nodes[name][1], yaml.MappingNode):
            tree = _Reader(path, text).servers(nodes[name][1], value)
        members.append(Member(name, -1, -1, tree))
    return MappingNode(0, len(text), tuple(members))


class _Reader:
    """Turns nodes into trees."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text

    def start(self, node: yaml.Node) -> int:
        position: int = node.start_mark.index
        return position

    def end(self, node: yaml.Node) -> int:
        position: int = node.end_mark.index
        return position

    def content_end(self, node: yaml.Node) -> int:
        """The end of a value without the space and the comments after it, which the end of a block includes."""
        start = self.start(node)
        if isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
            last = node.value[-1]
            return max(start, self.content_end(last[1] if isinstance(last, tuple) else last))
        return start + len(self.text[start : self.end(node)].rstrip())

    def refuse(self, at: int, what: str) -> ConfigError:
        hint = "write it without references, on one line or as a list"
        return ConfigError(f"{self.path}:{line_at(self.text, at)}", f"{what}, which cannot be edited", hint)

    def servers(self, top: yaml.MappingNode, values: object) -> MappingNode:
        values_by_key = values if isinstance(values, dict) else {}
        members = []
        for key, node in top.value:
            at = self.start(key)
            if key.value == _MERGE or self.start(node) < self.end(key):
                raise self.refuse(at, f"{SERVERS}.{key.value} refers to another place")
            tree: Tree = Leaf(self.start(node), self.end(node), values_by_key.get(key.value))
            if isinstance(node, yaml.MappingNode):
                tree = self.server(node, values_by_key.get(key.value), f"{SERVERS}.{key.value}")
            members.append(Member(key.value, at, self.end(key), tree))
        return MappingNode(self.start(top), self.end(top), tuple(members))

    def server(self, top: yaml.MappingNode, values: object, name: str) -> MappingNode:
        values_by_key = values if isinstance(values, dict) else {}
        members = []
        for key, node in top.value:
            at = self.start(key)
            if key.value == _MERGE:
                raise self.refuse(at, f"{name} includes members from another place")
            value = values_by_key.get(key.value)
            tree: Tree = Leaf(self.start(node), self.content_end(node), value)
            if key.value in _EDITABLE_KEYS and value is not None:
                tree = self.editable(key, node, value, f"{name}.{key.value}")
            members.append(Member(key.value, at, self.end(key), tree))
        return MappingNode(self.start(top), self.end(top), tuple(members))

    def editable(self, key: yaml.Node, node: yaml.Node, value: object, name: str) -> Tree:
        """A value that may be edited: it is written in its place, and nothing else refers to it."""
        start = self.start(node)
        if start < self.end(key) or self.text[start : start + 1] in ("&", "*", "!"):
            raise self.refuse(self.start(key), f"{name} has an anchor, an alias or a tag")
        if isinstance(node, yaml.ScalarNode):
            if node.style in ("|", ">") or "\n" in self.text[start : self.end(node)]:
                raise self.refuse(start, f"{name} spans several lines")
            return Leaf(start, self.end(node), value)
        if isinstance(node, yaml.SequenceNode) and isinstance(value, list):
            return self.flow(node, value) if self.text[start] == "[" else self.block(key, node, value)
        return Leaf(start, self.end(node), value)

    def flow(self, node: yaml.SequenceNode, values: list[object]) -> ListNode:
        """A list in brackets: `[a, b]`."""
        start, end = self.start(node), self.end(node)
        items = self.items(node, values)
        last = items[-1].end if items else start + 1
        rest = self.text[last : end - 1]
        if items and rest.lstrip().startswith(","):
            last += rest.index(",") + 1
        return in_brackets(self.text, start, end, items, last)

    def block(self, key: yaml.Node, node: yaml.SequenceNode, values: list[object]) -> ListNode:
        """A list with a line and a dash for each item."""
        items = self.items(node, values)
        start = self.start(node)
        starts, after = [], start
        for item in items:
            starts.append(self.text.rfind("-", after, item.start))
            after = item.end
        if starts[:1] != [start] or min(starts) < 0:
            raise self.refuse(start, "this list has an unusual layout")
        indent = self.text[self.text.rfind("\n", 0, start) + 1 : start]
        separator = line_break(self.text, start) + indent
        colon = self.text.index(":", self.end(key)) + 1
        clear = Edit(colon, items[-1].end, " []")
        return ListNode(start, items[-1].end, items, tuple(starts), start, "- ", separator, clear)

    def items(self, node: yaml.SequenceNode, values: list[object]) -> tuple[Leaf, ...]:
        leaves = tuple(
            Leaf(self.start(item), self.end(item), value) for item, value in zip(node.value, values, strict=True)
        )
        position = self.start(node)
        for leaf in leaves:
            if leaf.start < position:  # the position of an alias is that of its anchor
                raise self.refuse(position, "an item of this list refers to another place")
            position = leaf.end
        return leaves


def insert_member(text: str, mapping: MappingNode, after: Member, key: str, value: str) -> Edit:
    """Insert a line after that of another key; in braces, insert an entry."""
    before = text[text.rfind("\n", 0, after.start) + 1 : after.start]
    if text.startswith("{", mapping.start) or before.strip():
        return Edit(after.value.end, after.value.end, f", {key}: {value}")
    end = end_of_line(text, after.value.end)
    return Edit(end, end, f"{line_break(text, end)}{before}{key}: {value}")


def remove_member(text: str, mapping: MappingNode, member: Member) -> Edit:
    """Remove a line; in braces, remove an entry."""
    if text.startswith("{", mapping.start):
        return without_member(mapping, member)
    return without_line(text, member.start, member.value.end)


def layout(text: str, name: str, mapping: MappingNode) -> Layout | None:
    """How the mapping of a server is laid out."""
    parts = []
    for member in mapping.members:
        end = member.value.start + len(text[member.value.start : member.value.end].rstrip())
        if member.value.start < member.key_end:
            return None  # the position of an alias is that of its anchor
        parts.append(Part(member.key, member.start, member.value.start, end))
    if not parts:
        return None
    if text.startswith("{", mapping.start):
        return Layout(mapping.start, mapping.end, tuple(parts), ", ")
    indent = text[text.rfind("\n", 0, parts[0].start) + 1 : parts[0].start]
    if indent.strip():
        return None
    return Layout(parts[0].start, parts[-1].end, tuple(parts), line_break(text, parts[0].start) + indent)


YAML: Final = Syntax("YAML", (".yaml", ".yml"), read, quoted, insert_member, remove_member, layout, ": ")
