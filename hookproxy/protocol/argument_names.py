"""Check the names of a judged call's arguments: no server may read one argument where its hooks read another (law 1).

Servers may ignore case, stop at NUL, or normalise Unicode text in names. Hooks take names as they are.

Names within arguments are compared with the listed schema: a value with every part of the schema that may be about it,
which is what `properties`, `items` and their kin say, through references and alternatives. An object's listed names are
those of all these parts together, so that no name that some part lists is refused; another spelling of a listed name
is. A part that cannot be read lists nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

from ..jsonrpc import raw_json
from ..jsonrpc.schema import referenced
from ..model.hooks import Tool

GUARDED_NAMES: Final = frozenset(
    {"command", "content", "file_path", "new_string", "notebook_path", "old_string"}
    | {"path", "pattern", "prompt", "query", "url"}
)
"""The arguments of the tools for which most guards are written. A tool may have them although it is not listed yet."""

_MOST_STEPS: Final = 500_000
"""Pairs of a value and a part of the schema, for one call: some tenths of a second, and far above what calls need."""

_KEPT_SCHEMAS: Final = 64  # decoded ones: more than the tools with nested arguments that an agent calls in turn
_ALTERNATIVES: Final = ("allOf", "anyOf", "oneOf")
_ALSO: Final = ("if", "then", "else", "not")
_OF_OTHERS: Final = ("additionalProperties", "unevaluatedProperties")
_OF_ITEMS: Final = ("items", "additionalItems", "unevaluatedItems", "contains", "prefixItems")

_Part = dict[str, object]
"""A part of a schema."""


def check(arguments: bytes, names: Collection[str], listed: Tool | None) -> None:
    """Raise Unreadable for `names`, or names inside of the normalised `arguments`, that readers may take for others."""
    _check_object(names)
    known = frozenset[str]() if listed is None else listed.properties
    for name in names:
        if name in known or name in GUARDED_NAMES:
            continue
        meant = raw_json.folded_key(name)
        if listed is not None and (spelled := listed.by_loose_key.get(raw_json.loose_key(name))) is not None:
            raise _misspelled(name, spelled)
        if meant in GUARDED_NAMES:
            raise raw_json.Unreadable(
                f"servers may take its argument {name!r} for {meant!r}, and tools/list has not shown a tool that has "
                f"{name!r}"
            )
    if arguments.count(b"{") > 1:
        schema = b"" if listed is None or not _has_inner_names(listed.input_schema) else listed.input_schema
        hook = _checked if schema else _check_pairs
        value = json.loads(arguments, object_pairs_hook=hook, parse_int=_no_number, parse_float=_no_number)
        if schema and isinstance(root := _decoded(schema), dict):
            _Walk(root).check(value)


def _misspelled(name: str, spelled: str) -> raw_json.Unreadable:
    return raw_json.Unreadable(f"its argument {name!r} is spelled {spelled!r} in the tool's schema")


def _has_inner_names(schema: bytes) -> bool:
    """False: certainly no object within the arguments has names in the schema."""
    return schema.count(b'"properties"') > 1 or b'ef"' in schema or b"\\" in schema  # $ref, $dynamicRef


def _check_pairs(pairs: list[tuple[str, object]]) -> None:
    """Check an object at any depth. It returns nothing, so that nothing is kept."""
    if pairs:
        _check_object([name for name, _ in pairs])


def _checked(pairs: list[tuple[str, object]]) -> dict[str, object]:
    _check_pairs(pairs)
    return dict(pairs)


def _no_number(_: str) -> None:
    """Numbers are not needed."""


def _check_object(names: Collection[str]) -> None:
    """Raise Unreadable if two names of one object may be taken for each other, or one has a NUL."""
    text = "".join(names)
    if "\0" in text:
        raise raw_json.Unreadable("the name of an argument contains a NUL, where some readers stop")
    if len(names) > 1 and len(set(map(str.lower if text.isascii() else raw_json.folded_key, names))) != len(names):
        first, second = _twins(names)
        raise raw_json.Unreadable(f"some readers take its arguments {first!r} and {second!r} for the same")


def _twins(names: Iterable[str]) -> tuple[str, str]:
    seen: dict[str, str] = {}
    for name in names:
        first = seen.setdefault(raw_json.folded_key(name), name)
        if first is not name:
            return first, name
    raise AssertionError("called only for twins")


_decoded = lru_cache(maxsize=_KEPT_SCHEMAS)(raw_json.decoded)


class _Names(Struct):
    listed: dict[str, list[object]]
    """The parts of the schema about each listed name."""
    others: list[object]
    """Those about all other names."""
    by_loose_key: dict[str, str]


class _Walk:
    def __init__(self, root: _Part) -> None:
        self._root = root
        self._steps = 0
        self._known: dict[tuple[int, ...], _Names] = {}  # by the identities of the parts

    def check(self, arguments: object) -> None:
        """Raise Unreadable for a name at any depth that is another spelling of a name which the schema lists there."""
        todo: list[tuple[object, list[_Part]]] = [(arguments, self._parts([self._root]))]
        while todo:
            value, parts = todo.pop()
            if not parts:
                continue
            self._count(len(parts))
            todo += self._members(value, parts) if isinstance(value, dict) else self._items(value, parts)

    def _members(self, value: dict[str, object], parts: list[_Part]) -> Iterator[tuple[object, list[_Part]]]:
        """Yield the members of an object that have members themselves, each with what the schema says about it."""
        names = self._names(parts)
        for name, inner in value.items():
            if name not in names.listed and (spelled := names.by_loose_key.get(raw_json.loose_key(name))) is not None:
                raise _misspelled(name, spelled)
            if isinstance(inner, dict | list):
                yield inner, self._parts(names.listed.get(name, names.others))

    def _names(self, parts: list[_Part]) -> _Names:
        key = tuple(map(id, parts))
        if (known := self._known.get(key)) is None:
            known = self._known[key] = _Names({}, [], {})
            for part in parts:
                for name, about in _objects(part.get("properties")):
                    known.listed.setdefault(name, []).append(about)
                    known.by_loose_key[raw_json.loose_key(name)] = name
                known.others += [part[key] for key in _OF_OTHERS if key in part]
                known.others += [about for _, about in _objects(part.get("patternProperties"))]
        return known

    def _items(self, value: object, parts: list[_Part]) -> Iterator[tuple[object, list[_Part]]]:
        if not isinstance(value, list):
            return
        about: list[object] = []
        for part in parts:
            for of_items in map(part.get, _OF_ITEMS):
                about += of_items if isinstance(of_items, list) else [of_items]
        parts = self._parts(about)
        for item in value:
            if isinstance(item, dict | list):
                yield item, parts

    def _parts(self, about: Iterable[object]) -> list[_Part]:
        """Return all parts of the schema that hold where these do, each once: references and alternatives as well."""
        todo, parts = list(about), dict[int, dict[str, object]]()
        while todo:
            part = todo.pop()
            if not isinstance(part, dict) or id(part) in parts:
                continue
            self._count(1)
            parts[id(part)] = part
            for key in _ALTERNATIVES:
                inner = part.get(key)
                todo += inner if isinstance(inner, list) else []
            todo += [part[key] for key in _ALSO if key in part]
            todo += [inner for _, inner in _objects(part.get("dependentSchemas"))]
            todo += [
                referenced(self._root, part[key]) for key in ("$ref", "$dynamicRef", "$recursiveRef") if key in part
            ]
        return list(parts.values())

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise raw_json.Unreadable("its arguments have too many members to compare them with the tool's schema")


def _objects(value: object) -> Iterable[tuple[str, object]]:
    return value.items() if isinstance(value, Mapping) else ()
