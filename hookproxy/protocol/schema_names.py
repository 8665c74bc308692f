"""Check the names within a call's arguments by the listed schema: no server may read one where hooks read another.

A value is compared with every part of the schema that may be about it: what `properties`, `items` and their kin say,
through references and alternatives. An object's listed names are those of all these parts together, so that no name
that some part lists is refused; another spelling of a listed name is (law 1). A part that cannot be read lists nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct

from ..jsonrpc import raw_json

_MOST_STEPS: Final = 500_000
"""Pairs of a value and a part of the schema, for one call: some tenths of a second, and far above what calls need."""

_KEPT_SCHEMAS: Final = 64  # decoded ones: more than the tools with nested arguments that an agent calls in turn
_ALTERNATIVES: Final = ("allOf", "anyOf", "oneOf")
_ALSO: Final = ("if", "then", "else", "not")
_OF_OTHERS: Final = ("additionalProperties", "unevaluatedProperties")
_OF_ITEMS: Final = ("items", "additionalItems", "unevaluatedItems", "contains")


def misspelled(name: str, spelled: str) -> str:
    """Return why another spelling of a listed name is refused."""
    return f"its argument {name!r} is spelled {spelled!r} in the tool's schema"


def check(schema: bytes, arguments: object) -> None:
    """Raise Unreadable for a name at any depth that is another spelling of a name which the schema lists there."""
    root = _decoded(schema)
    if isinstance(root, dict):
        _Walk(root).check(arguments)


@lru_cache(maxsize=_KEPT_SCHEMAS)
def _decoded(schema: bytes) -> object:
    try:
        return msgspec.json.decode(schema)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


class _Names(Struct):
    """What some parts of a schema together say about the members of an object."""

    listed: dict[str, list[object]]
    """The parts of the schema about each listed name."""
    others: list[object]
    """Those about all other names."""
    by_loose_key: dict[str, str]


class _Walk:
    """One comparison of arguments with their schema."""

    def __init__(self, root: dict[str, object]) -> None:
        self._root = root
        self._steps = 0
        self._known: dict[tuple[int, ...], _Names] = {}  # by the identities of the parts

    def check(self, arguments: object) -> None:
        todo: list[tuple[object, list[dict[str, object]]]] = [(arguments, self._parts([self._root]))]
        while todo:
            value, parts = todo.pop()
            if not parts:
                continue
            self._count(len(parts))
            todo += self._members(value, parts) if isinstance(value, dict) else self._items(value, parts)

    def _members(
        self, value: dict[str, object], parts: list[dict[str, object]]
    ) -> Iterator[tuple[object, list[dict[str, object]]]]:
        """Yield the members of an object that have members themselves, each with what the schema says about it."""
        names = self._names(parts)
        for name, inner in value.items():
            if name not in names.listed and (spelled := names.by_loose_key.get(raw_json.loose_key(name))) is not None:
                raise raw_json.Unreadable(misspelled(name, spelled))
            if isinstance(inner, dict | list):
                yield inner, self._parts(names.listed.get(name, names.others))

    def _names(self, parts: list[dict[str, object]]) -> _Names:
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

    def _items(self, value: object, parts: list[dict[str, object]]) -> Iterator[tuple[object, list[dict[str, object]]]]:
        if not isinstance(value, list):
            return
        about: list[object] = []
        for part in parts:
            for found in (*(part.get(key) for key in _OF_ITEMS), part.get("prefixItems")):
                about += found if isinstance(found, list) else [found]
        of_items = self._parts(about)
        for item in value:
            if isinstance(item, dict | list):
                yield item, of_items

    def _parts(self, about: Iterable[object]) -> list[dict[str, object]]:
        """Return all parts of the schema that hold where these do, each once: references and alternatives as well."""
        todo, found = list(about), dict[int, dict[str, object]]()
        while todo:
            part = todo.pop()
            if not isinstance(part, dict) or id(part) in found:
                continue
            self._count(1)
            found[id(part)] = part
            for key in _ALTERNATIVES:
                inner = part.get(key)
                todo += inner if isinstance(inner, list) else []
            todo += [part[key] for key in _ALSO if key in part]
            todo += [inner for _, inner in _objects(part.get("dependentSchemas"))]
            todo += [self._referenced(part[key]) for key in ("$ref", "$dynamicRef", "$recursiveRef") if key in part]
        return list(found.values())

    def _referenced(self, reference: object) -> object:
        """Return the part of the schema that a local reference names; None for others."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        part: object = self._root
        for name in reference[1:].split("/")[1:]:
            key = name.replace("~1", "/").replace("~0", "~")
            part = part.get(key) if isinstance(part, dict) else None
        return part

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > _MOST_STEPS:
            raise raw_json.Unreadable("its arguments have too many members to compare them with the tool's schema")


def _objects(value: object) -> Iterable[tuple[str, object]]:
    return value.items() if isinstance(value, Mapping) else ()
