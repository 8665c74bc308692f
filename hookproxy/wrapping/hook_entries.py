"""Adds entries to an agent's hook file, in JSON or TOML, by inserted texts that can be taken out again (law 2).

What is wanted is the text of such a file with nothing else in it. In JSON its members are added where they are missing,
objects are extended, and the items of lists follow those that are there; in TOML its tables follow at the end. A value
that is there already and differs is an error, so nothing of the file changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ..config.errors import toml_error
from ..model.errors import ConfigError
from ..model.toml import NotToml, parse_toml
from . import json_file
from .syntax_tree import Edit, Leaf, ListNode, MappingNode, Tree, apply_edits, location, plain_value

_BY_HAND: Final = "add the hooks by hand: hookproxy guard install AGENT --dry-run prints them"
_INDENT: Final = "  "  # of a file in which nothing shows another one


def insertions(path: str, text: str, wanted: str) -> list[Edit]:
    """The edits that add what is wanted to the text of a file. Raises ConfigError."""
    if path.endswith(json_file.JSON.endings):
        tree = json_file.read(path, text)
        edits, before = [*_into_mapping(path, text, tree, json.loads(wanted))], plain_value(tree)
        values = _values(path, wanted)
    elif path.endswith(".toml"):
        values, before = _values(path, wanted), _values(path, text)
        start = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        edits = [Edit(len(text), len(text), (start + wanted).replace("\n", _line_break(text)))]
    else:
        raise ConfigError(path, "exists already, and nothing can be added to a file of this form", _BY_HAND)
    if _values(path, apply_edits(text, edits)) != _extended(before, values):
        raise ConfigError(path, "cannot be extended", _BY_HAND)
    return edits


def without(path: str, text: str, inserted: str) -> str:
    """The text without one that was inserted. Raises ConfigError if it has changed since, or stands there twice."""
    changed = ConfigError(
        path, "what hookproxy wrote into it has changed since", "remove from it what starts hookproxy"
    )
    if text.count(inserted) != 1:
        raise changed
    rest = text.replace(inserted, "")
    try:
        _values(path, rest)
    except ConfigError:
        raise changed from None
    return rest


def _values(path: str, text: str) -> object:
    """The values of a file. Raises ConfigError."""
    if not path.endswith(".toml"):
        return plain_value(json_file.read(path, text))
    try:
        return parse_toml(text.removeprefix("\ufeff"))
    except NotToml as problem:
        raise toml_error(path, text, problem) from None


def _spelled(value: object) -> object:
    """The value as `json_file` reads it, which keeps how numbers are spelled."""
    member = json_file.read("", json.dumps({"value": value})).get("value")
    return member and plain_value(member.value)


def _line_break(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _extended(value: object, wanted: object) -> object:
    if isinstance(value, dict) and isinstance(wanted, Mapping):
        both = {key: _extended(value[key], wanted[key]) for key in value if key in wanted}
        return {**value, **both, **{key: of_key for key, of_key in wanted.items() if key not in value}}
    if isinstance(value, list) and isinstance(wanted, list):
        return [*value, *wanted]
    return wanted


def _into(path: str, text: str, tree: Tree, wanted: object) -> Iterator[Edit]:
    if isinstance(tree, MappingNode) and isinstance(wanted, Mapping):
        yield from _into_mapping(path, text, tree, wanted)
    elif isinstance(tree, ListNode) and isinstance(wanted, list):
        items = [_written(item, _indent_inside(text, tree.start), _unit(text)) for item in wanted]
        yield _inserted(text, tree, tree.items, items)
    elif not (isinstance(tree, Leaf) and tree.value == _spelled(wanted)):
        place = location(path, text, tree.start)
        raise ConfigError(place, f"has another value than {json.dumps(wanted)}", _BY_HAND)


def _into_mapping(path: str, text: str, tree: MappingNode, wanted: Mapping[str, object]) -> Iterator[Edit]:
    missing = {key: value for key, value in wanted.items() if tree.get(key) is None}
    for key, value in wanted.items():
        if member := tree.get(key):
            yield from _into(path, text, member.value, value)
    if missing:
        indent, unit = _indent_inside(text, tree.start), _unit(text)
        members = [f"{json_file.quote(key)}: {_written(value, indent, unit)}" for key, value in missing.items()]
        yield _inserted(text, tree, [member.value for member in tree.members], members)


def _inserted(text: str, tree: MappingNode | ListNode, present: Sequence[Tree], new: Sequence[str]) -> Edit:
    """The edit that adds these texts behind what is in the object or list."""
    indent = _indent_inside(text, tree.start)
    lines = f",\n{indent}".join(new)
    if present:
        at, added = present[-1].end, f",\n{indent}{lines}"
    else:
        at, added = tree.start + 1, f"\n{indent}{lines}\n{indent.removesuffix(_unit(text))}"
    return Edit(at, at, added.replace("\n", _line_break(text)))


def _written(value: object, indent: str, unit: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", f"\n{indent}")


def _unit(text: str) -> str:
    """The indentation of one level: that of the first line that has any."""
    for line in text.splitlines():
        inner = line.lstrip(" \t")
        if inner and inner != line and not inner.startswith(("/", "*")):
            return line[: len(line) - len(inner)]
    return _INDENT


def _indent_inside(text: str, start: int) -> str:
    """The indentation of what is in the object or list that begins here: a level more than its line has."""
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return line[: len(line) - len(line.lstrip(" \t"))] + _unit(text)
