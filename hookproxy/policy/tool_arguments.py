"""The arguments of a tool and their JSON types: as its listed inputSchema says, or as a call has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from ..jsonrpc.schema_types import followed
from ..model.command_line import has_command_inside, is_command
from . import command_tools

_TYPES: Final = {"string": "string", "array": "array", "object": "object", "boolean": "boolean"} | dict.fromkeys(
    ("number", "integer"), "number"
)
_BY_FIRST_BYTE: Final = {0x22: "string", 0x5B: "array", 0x7B: "object", 0x74: "boolean", 0x66: "boolean"}
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_DEPTH: Final = 8
"""How many schemas inside schemas are followed: more than any listed tool has around one argument."""
_MAX_PARTS: Final = 10_000
"""How many parts of one schema are read: far more than any listed tool has, and a few milliseconds."""


class ToolArguments(Struct, frozen=True):
    """The arguments of a tool."""

    types: Mapping[str, str]
    """The JSON type of each; "" for an unknown one, or where it may have several."""
    required: frozenset[str] | None = None
    """Those that every call has; None: not known."""
    choices: frozenset[str] = frozenset()
    """Those with a few fixed values, such as the actions of an editor."""
    nested: tuple[str, ...] = ()
    """Those that are objects, or lists of objects, with a member that is named like a command."""
    known: bool = True
    """These are all arguments, even if there are none; False: only a call shows them."""
    open: bool = False
    """A call may have others, or values of which the schema does not say what is in them, and so a command in them."""


_NOT_LISTED: Final = ToolArguments({}, frozenset(), known=False)


def listed_arguments(schema: bytes) -> ToolArguments:
    """Return the arguments in a listed inputSchema.

    An unreadable schema has no arguments, nor has one with too many parts: then the arguments of a call say what the
    tool does. References to other documents are not followed.
    """
    try:
        root: object = msgspec.json.decode(schema)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _NOT_LISTED
    reader = _SchemaReader(root)
    properties = reader.properties(root, _DEPTH)
    types = {name: reader.type_of(part, _DEPTH) for name, part in properties.items()}
    choices = frozenset(name for name, part in properties.items() if reader.has_choices(part))
    required = root.get("required") if isinstance(root, dict) else None
    names = frozenset(name for name in required if isinstance(name, str)) if isinstance(required, list) else frozenset()
    known = bool(properties) or (isinstance(root, dict) and isinstance(root.get("properties"), dict))
    nested = tuple(name for name, part in properties.items() if reader.holds_command(part))
    is_open = _takes_others(root, properties) or any(
        reader.is_open(part) or (is_command(name) and types[name] not in command_tools.TEXTS)
        for name, part in properties.items()
    )
    return ToolArguments(types, names, choices, nested, known, is_open) if reader.parts_left > 0 else _NOT_LISTED


_OTHERS: Final = ("patternProperties", "dependentSchemas", "dependencies", "if", "then", "else", "$dynamicRef")
"""Keywords with arguments of which `properties` says nothing."""


def _takes_others(root: object, properties: Mapping[str, object]) -> bool:
    """The schema invites arguments that it does not list: it says so, or it lists none and does not forbid any."""
    if not isinstance(root, dict):
        return False
    additional = root.get("additionalProperties")
    if additional is not None and additional is not False:
        return True
    return (not properties and additional is None) or any(key in root for key in _OTHERS)


def commands_inside(arguments: bytes) -> tuple[str, ...]:
    """Return those of a call's arguments that are or hold objects with a member named like a command.

    Raises nothing: of what cannot be read there are none.
    """
    if b"{" not in arguments[1:]:
        return ()
    try:
        values = msgspec.json.decode(arguments, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ()
    return tuple(name for name, value in values.items() if has_command_inside(value))


def types_of(arguments: bytes) -> Mapping[str, str]:
    """Return the JSON type of each of a call's arguments; "" for null. Without a JSON object there are none."""
    try:
        values = _MEMBERS.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return {name: _value_type(bytes(value)) for name, value in values.items()}


def _value_type(value: bytes) -> str:
    return "" if value == b"null" else _BY_FIRST_BYTE.get(value[0], "number")


class _SchemaReader:
    """Reads the parts of one schema. The server wrote it, so the number of parts that are read is limited."""

    def __init__(self, root: object) -> None:
        self._root = root
        self.parts_left = _MAX_PARTS
        """How many parts may still be read; none: what has been read is incomplete."""

    def properties(self, schema: object, depth: int) -> dict[str, object]:
        """The properties of an object's schema and of its alternatives."""
        members = self._members(schema, depth)
        properties = members.get("properties")
        merged: dict[str, object] = dict(properties) if isinstance(properties, dict) else {}
        for part in _parts(members):
            merged = self.properties(part, depth - 1) | merged
        return merged

    def type_of(self, schema: object, depth: int) -> str:
        """The JSON type of a schema's values; "" if it says none or several."""
        members = self._members(schema, depth)
        kinds: set[str] = set()
        stated = members.get("type")
        for kind in stated if isinstance(stated, list) else [stated]:
            if isinstance(kind, str) and kind != "null":
                kinds.add(_TYPES.get(kind, ""))
        if not kinds and isinstance(values := members.get("enum", [members.get("const")]), list):
            kinds = {_value_type(msgspec.json.encode(value)) for value in values if value is not None}
        if not kinds:
            alternatives = [part for part in _parts(members) if part != {"type": "null"}]
            kinds = {self.type_of(part, depth - 1) for part in alternatives}
        return kinds.pop() if len(kinds) == 1 else ""

    def holds_command(self, schema: object, depth: int = _DEPTH) -> bool:
        """True if the schema's values are or hold objects with a member that is named like a command."""
        if not depth:
            return False
        properties = self.properties(schema, depth)
        texts = {name: self.type_of(part, depth) for name, part in properties.items() if not self.has_choices(part)}
        if command_tools.named_commands(texts):
            return True
        items = self._members(schema, depth).get("items")
        inside = (*properties.values(), *([items] if isinstance(items, dict) else ()))
        return any(self.holds_command(part, depth - 1) for part in inside)

    def is_open(self, schema: object) -> bool:
        """True if the schema's values are objects, or lists of objects, of which it does not say what is in them."""
        if self.type_of(schema, _DEPTH) not in ("object", "array"):
            return False
        members = self._members(schema, _DEPTH)
        if "items" in members:
            return self.is_open(members["items"])
        return not self.properties(schema, _DEPTH) and members.get("additionalProperties") is not False

    def has_choices(self, schema: object, depth: int = _DEPTH) -> bool:
        """True if the schema's values are a few fixed texts, whichever of its alternatives counts."""
        members = self._members(schema, depth)
        if "enum" in members or "const" in members:
            return True
        if any(self.has_choices(part, depth - 1) for part in _listed_in(members, "allOf")):
            return True
        parts = (*_listed_in(members, "anyOf"), *_listed_in(members, "oneOf"))
        alternatives = [part for part in parts if not _is_null(part)]
        return bool(alternatives) and all(self.has_choices(part, depth - 1) for part in alternatives)

    def _members(self, schema: object, depth: int) -> Mapping[str, object]:
        """The members of a schema, of the one that its `$ref` points to; none if it has none or may not be read."""
        self.parts_left -= 1
        if not depth or self.parts_left <= 0:
            return {}
        schema = followed(schema, self._root, depth)
        return schema if isinstance(schema, dict) else {}


def _parts(schema: Mapping[str, object]) -> list[object]:
    return [part for key in ("anyOf", "oneOf", "allOf") for part in _listed_in(schema, key)]


def _listed_in(schema: Mapping[str, object], key: str) -> list[object]:
    parts = schema.get(key)
    return parts if isinstance(parts, list) else []


def _is_null(schema: object) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"
