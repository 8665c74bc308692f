"""Finds values that are certainly not of the type that a schema states, and members that are missing.

It looks at types alone, so it is cheap and needs no validator: whatever it does not know (a reference to another
document, a keyword) fits. The schema is the server's, and is read only so far.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct

from . import raw_json
from .schema import referenced

_BY_FIRST_BYTE: Final = {0x22: "string", 0x5B: "array", 0x7B: "object", 0x74: "boolean", 0x66: "boolean", 0x6E: "null"}
_TYPES: Final = {name: name for name in ("string", "array", "object", "boolean", "null", "number")} | {
    "integer": "number"
}
_WORDS: Final = {
    "string": "a text", "array": "a list", "object": "an object", "boolean": "true or false", "number": "a number",
    "null": "null",
}  # fmt: skip
_DEEPEST: Final = 8  # schemas inside schemas: as many as any listed tool has around one argument
_MOST_STEPS: Final = 20_000  # parts of a schema for one call: a few milliseconds


class Problem(Struct, frozen=True):
    """An argument that does not fit."""

    path: str
    """The argument, with the members and places inside of it: `edits[0].text`."""
    wanted: str
    """What it should be, in words: `a text`."""
    found: str
    """What it is; empty: it is missing."""


class SchemaTypes:
    """The types that one inputSchema states."""

    def __init__(self, schema: bytes) -> None:
        self._root = raw_json.decoded(schema)
        root = followed(self._root, self._root, _DEEPEST)
        members = root if isinstance(root, dict) else {}
        required, properties = members.get("required"), members.get("properties")
        self._required = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        self._properties: dict[str, object] = properties if isinstance(properties, dict) else {}
        self._known: dict[str, frozenset[str] | None] = {}  # the types of arguments, as far as calls had them
        self._steps = 0

    def first_problem(
        self, arguments: Mapping[str, msgspec.Raw | bytes], names: Collection[str] | None
    ) -> Problem | None:
        """Return the first of these `names` that certainly does not fit; None: of all, and what is inside of them."""
        self._steps = 0
        for name in self._required:
            if name not in arguments and (names is None or name in names):
                return Problem(name, _in_words(self._types_of(name)), "")
        for name, raw in arguments.items():
            if names is not None and name not in names:
                continue
            if problem := self._problem(name, bytes(raw), deep=names is None):
                return problem
        return None

    def _problem(self, name: str, raw: bytes, *, deep: bool) -> Problem | None:
        kind = _BY_FIRST_BYTE.get(raw[0], "number")
        if kind == "null" and name not in self._required:
            return None
        if not deep or kind not in ("object", "array"):
            allowed = self._types_of(name)
            fits = allowed is None or kind in allowed
            return None if fits else Problem(name, _in_words(allowed), _WORDS[kind])
        return next(self._problems(self._properties.get(name), msgspec.json.decode(raw), name, _DEEPEST), None)

    def _types_of(self, name: str) -> frozenset[str] | None:
        """The types that an argument may have; None: any."""
        if name not in self._properties:
            return None
        if name not in self._known:
            allowed = self._allowed(self._properties[name], _DEEPEST)
            if self._steps > _MOST_STEPS:  # what this call has left to find out is not all that there is
                return allowed
            self._known[name] = allowed
        return self._known[name]

    def _problems(self, schema: object, value: object, path: str, depth: int) -> Iterator[Problem]:
        allowed = self._allowed(schema, depth)
        if allowed is not None and _kind(value) not in allowed:
            yield Problem(path, _in_words(allowed), _WORDS[_kind(value)])
        members = followed(schema, self._root, depth)
        if depth <= 0 or not isinstance(members, dict):
            return
        if isinstance(value, dict) and isinstance(properties := members.get("properties"), dict):
            for key, inner in value.items():
                if key in properties and inner is not None:
                    yield from self._problems(properties[key], inner, f"{path}.{key}", depth - 1)
        if isinstance(value, list) and isinstance(items := members.get("items"), dict):
            for at, inner in enumerate(value):
                yield from self._problems(items, inner, f"{path}[{at}]", depth - 1)

    def _allowed(self, schema: object, depth: int) -> frozenset[str] | None:
        """The types that a value may have; None: any."""
        self._steps += 1
        schema = followed(schema, self._root, depth)
        if depth <= 0 or self._steps > _MOST_STEPS or not isinstance(schema, dict):
            return None
        stated = [_stated(schema), _listed(schema)]
        choices = [parts for key in ("anyOf", "oneOf") if isinstance(parts := schema.get(key), list) and parts]
        stated += [_union([self._allowed(part, depth - 1) for part in parts]) for parts in choices]
        every = schema.get("allOf")
        stated += [self._allowed(part, depth - 1) for part in every] if isinstance(every, list) else []
        known = [types for types in stated if types is not None]
        allowed = frozenset.intersection(*known) if known else None
        if allowed is not None and schema.get("nullable") is True:
            allowed |= {"null"}
        return allowed or None


def followed(schema: object, root: object, depth: int) -> object:
    """The schema that `$ref` points to in the same document, whose root this is; None where it cannot be followed."""
    for _ in range(max(depth, 0)):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str):
            return schema
        schema = referenced(root, reference)
    return None


@lru_cache(maxsize=64)  # of the tools that are called: a schema has a few thousand bytes
def types_of(schema: bytes) -> SchemaTypes:
    """Return the types of a listed inputSchema, which is read once."""
    return SchemaTypes(schema)


def _stated(schema: Mapping[str, object]) -> frozenset[str] | None:
    kinds = schema.get("type")
    names = kinds if isinstance(kinds, list) else [kinds]
    if not names or not all(isinstance(name, str) and name in _TYPES for name in names):
        return None
    return frozenset(_TYPES[str(name)] for name in names)


def _listed(schema: Mapping[str, object]) -> frozenset[str] | None:
    """The types of the values that `enum` or `const` lists."""
    if "const" in schema:
        return frozenset({_kind(schema["const"])})
    values = schema.get("enum")
    return frozenset(map(_kind, values)) if isinstance(values, list) and values else None


def _union(parts: list[frozenset[str] | None]) -> frozenset[str] | None:
    known = [part for part in parts if part is not None]
    return frozenset().union(*known) if len(known) == len(parts) else None


def _kind(value: object) -> str:
    if isinstance(value, int | float):
        return "boolean" if isinstance(value, bool) else "number"
    return _BY_FIRST_BYTE.get(msgspec.json.encode(value)[0], "number")


def _in_words(allowed: Collection[str] | None) -> str:
    return " or ".join(_WORDS[name] for name in _WORDS if allowed and name in allowed and name != "null")
