"""YAML, read into a tree with places by PyYAML, whose nodes know them, so that edits keep every other byte (law 2).

ruamel.yaml keeps comments, yet writes a file anew, with indentation and line breaks of its own: `unwrap` could not
give back what was there. What stands for something elsewhere (anchors, aliases, `<<`) is refused where it is edited.
"""

from __future__ import annotations

from typing import Final

import yaml

from ..dialects.shared.yaml_file import load
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

SERVERS: Final = "extensions"

_EDITED: Final = ("cmd", "args")
_MERGE: Final = "<<"


def read(path: str, text: str) -> Mapping:
    """The mapping that the file holds; only its servers have places. Raises ConfigError that names the line."""
    values = load(path, text)
    try:
        top = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as problem:
        raise ConfigError(path, f"cannot be read as YAML: {problem}", "write it more plainly") from None
    nodes = {key.value: (key, node) for key, node in top.value} if isinstance(top, yaml.MappingNode) else {}
    members = []
    for name, value in values.items():
        tree: Tree = Leaf(-1, -1, value)
        if name == SERVERS and name in nodes and isinstance(nodes[name][1], yaml.MappingNode):
            tree = _Reader(path, text).servers(nodes[name][1], value)
        members.append(Member(name, -1, -1, tree))
    return Mapping(0, len(text), tuple(members))


class _Reader:
    """Turns nodes into trees."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text

    def start(self, node: yaml.Node) -> int:
        place: int = node.start_mark.index
        return place

    def end(self, node: yaml.Node) -> int:
        place: int = node.end_mark.index
        return place

    def refused(self, at: int, what: str) -> ConfigError:
        hint = "write it out in one place, on one line or as a list"
        return ConfigError(f"{self.path}:{line_at(self.text, at)}", f"{what}, which is not taken apart here", hint)

    def servers(self, top: yaml.MappingNode, values: object) -> Mapping:
        known = values if isinstance(values, dict) else {}
        members = []
        for key, node in top.value:
            at = self.start(key)
            if key.value == _MERGE or self.start(node) < self.end(key):
                raise self.refused(at, f"{SERVERS}.{key.value} stands for something elsewhere")
            tree: Tree = Leaf(self.start(node), self.end(node), known.get(key.value))
            if isinstance(node, yaml.MappingNode):
                tree = self.server(node, known.get(key.value), f"{SERVERS}.{key.value}")
            members.append(Member(key.value, at, self.end(key), tree))
        return Mapping(self.start(top), self.end(top), tuple(members))

    def server(self, top: yaml.MappingNode, values: object, name: str) -> Mapping:
        known = values if isinstance(values, dict) else {}
        members = []
        for key, node in top.value:
            at = self.start(key)
            if key.value == _MERGE:
                raise self.refused(at, f"{name} takes members from elsewhere")
            value = known.get(key.value)
            tree: Tree = Leaf(self.start(node), self.end(node), value)
            if key.value in _EDITED and value is not None:
                tree = self.edited(key, node, value, f"{name}.{key.value}")
            members.append(Member(key.value, at, self.end(key), tree))
        return Mapping(self.start(top), self.end(top), tuple(members))

    def edited(self, key: yaml.Node, node: yaml.Node, value: object, name: str) -> Tree:
        """What may be edited: it stands here, and nothing else depends on it."""
        start = self.start(node)
        if start < self.end(key) or self.text[start : start + 1] in ("&", "*", "!"):
            raise self.refused(self.start(key), f"{name} has an anchor, an alias or a tag")
        if isinstance(node, yaml.ScalarNode):
            if node.style in ("|", ">") or "\n" in self.text[start : self.end(node)]:
                raise self.refused(start, f"{name} goes over several lines")
            return Leaf(start, self.end(node), value)
        if isinstance(node, yaml.SequenceNode) and isinstance(value, list):
            return self.flow(node, value) if self.text[start] == "[" else self.block(key, node, value)
        return Leaf(start, self.end(node), value)

    def flow(self, node: yaml.SequenceNode, values: list[object]) -> Listing:
        """`[a, b]`."""
        start, end = self.start(node), self.end(node)
        items = self.items(node, values)
        last = items[-1].end if items else start + 1
        rest = self.text[last : end - 1]
        if items and rest.lstrip().startswith(","):
            last += rest.index(",") + 1
        return in_brackets(self.text, start, end, items, last)

    def block(self, key: yaml.Node, node: yaml.SequenceNode, values: list[object]) -> Listing:
        """A line with a dash for each item."""
        items = self.items(node, values)
        begin = self.start(node)
        starts, after = [], begin
        for item in items:
            starts.append(self.text.rfind("-", after, item.start))
            after = item.end
        if starts[:1] != [begin] or min(starts) < 0:
            raise self.refused(begin, "this list is laid out in an odd way")
        indent = self.text[self.text.rfind("\n", 0, begin) + 1 : begin]
        joint = line_break(self.text, begin) + indent
        colon = self.text.index(":", self.end(key)) + 1
        emptied = Edit(colon, items[-1].end, " []")
        return Listing(begin, items[-1].end, items, tuple(starts), begin, "- ", joint, emptied)

    def items(self, node: yaml.SequenceNode, values: list[object]) -> tuple[Leaf, ...]:
        leaves = tuple(
            Leaf(self.start(item), self.end(item), value) for item, value in zip(node.value, values, strict=True)
        )
        place = self.start(node)
        for leaf in leaves:
            if leaf.start < place:  # an alias is where its anchor is
                raise self.refused(place, "an item of this list stands for something elsewhere")
            place = leaf.end
        return leaves


def add(text: str, mapping: Mapping, after: Member, key: str, value: str) -> Edit:
    """A line more, after that of another key; in braces, an entry more."""
    before = text[text.rfind("\n", 0, after.start) + 1 : after.start]
    if text.startswith("{", mapping.start) or before.strip():
        return Edit(after.value.end, after.value.end, f", {key}: {value}")
    end = end_of_line(text, after.value.end)
    return Edit(end, end, f"{line_break(text, end)}{before}{key}: {value}")


def drop(text: str, mapping: Mapping, member: Member) -> Edit:
    """A line less; in braces, an entry less."""
    at = mapping.members.index(member)
    if not text.startswith("{", mapping.start):
        return without_line(text, member.start, member.value.end)
    if at:
        return Edit(mapping.members[at - 1].value.end, member.value.end, "")
    end = mapping.members[1].start if len(mapping.members) > 1 else member.value.end
    return Edit(member.start, end, "")


YAML: Final = Syntax("YAML", (".yaml", ".yml"), read, quoted, add, drop)
