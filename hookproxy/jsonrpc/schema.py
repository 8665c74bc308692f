"""Check what hooks have written against a tool's schema: the server relies on its own schema, and so does the agent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Set
from typing import Any, Final

from . import raw_json


def mismatch(input_schema: bytes, arguments: bytes, names: Mapping[str, str] | None = None) -> str:
    """Return why the arguments do not fit the schema, with the field; empty if they fit or the schema is unusable.

    `names` maps an argument's name in the schema to the reader's name. Nothing is fetched: a schema with an external
    reference is unusable.
    """
    import jsonschema  # 70 ms, only for runs in which a hook rewrites a listed call
    import referencing

    try:
        schema: Any = _without_patterns(json.loads(input_schema))  # the validator checks its type
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
        problems = kind(schema, registry=referencing.Registry()).iter_errors(json.loads(arguments))
        problem = jsonschema.exceptions.best_match(problems)
    except Exception:  # the schema is untrusted: the validator may fail on it in any way
        return ""
    if problem is None:
        return ""
    names = names or {}
    first, *rest = problem.absolute_path or [""]
    field = ".".join(map(str, [names.get(first, first), *rest]))
    return f"{field}: {problem.message}" if field else _renamed(str(problem.message), names)


def _renamed(message: str, names: Mapping[str, str]) -> str:
    """Rename the arguments in a sentence, in which the names are spelled as Python's repr."""
    if not names:
        return message
    return re.sub("|".join(re.escape(repr(name)) for name in names), lambda match: repr(names[match[0][1:-1]]), message)


_KEYWORDS_WITH_NAMES: Final = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose members have free names: there, `pattern` is the name of a property."""


def _without_patterns(schema: object, named: bool = False) -> object:
    """Remove the regular expressions, which are the server's: they may run for ever, and the process would wait."""
    if isinstance(schema, list):
        return [_without_patterns(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    dropped = set() if named else {"pattern", "patternProperties"} & schema.keys()
    if "patternProperties" in dropped:  # without them, nothing is known about other properties
        dropped |= {"additionalProperties", "unevaluatedProperties"}
    return {
        key: _without_patterns(value, not named and key in _KEYWORDS_WITH_NAMES)
        for key, value in schema.items()
        if key not in dropped
    }


# --- certainty about structured output ---

_NOTES: Final = frozenset(
    {"$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "deprecated"}
    | {"readOnly", "writeOnly"}
)
"""Keywords that allow everything."""

_MAX_STEPS: Final = 100_000  # a few milliseconds to one tenth of a second: a schema may be written to take long


def fits(schema: bytes, value: object, known: Set[str] = frozenset()) -> bool:
    """True if a decoded JSON value certainly fits. False also for a schema with a keyword that is not checked here.

    A text with a `pattern` or a `format` fits if it is one of the `known` texts, which are the server's own: patterns
    are not run, as in `mismatch`.
    """
    root = raw_json.decoded(schema)
    try:
        return _Check(root, known).fits(root, value)
    except (RecursionError, TypeError):
        return False


class _Check:
    def __init__(self, root: object, known: Set[str]) -> None:
        self._root = root
        self._known = known
        self._steps = 0

    def fits(self, schema: object, value: object) -> bool:
        """True if the value certainly fits this part of the schema."""
        self._steps += 1
        if self._steps > _MAX_STEPS:
            return False
        if not isinstance(schema, dict):
            return schema is True
        return all(self._keyword(name, schema, value) for name in schema if name not in _NOTES and name[:2] != "x-")

    def _keyword(self, name: str, schema: dict[str, Any], value: object) -> bool:  # noqa: C901  # one case for each
        rule = schema[name]
        match name:
            case "type":
                return any(_is_type(value, kind) for kind in (rule if isinstance(rule, list) else [rule]))
            case "enum":
                return any(_equal(value, allowed) for allowed in rule)
            case "const":
                return _equal(value, rule)
            case "required":
                return not isinstance(value, dict) or set(rule) <= value.keys()
            case "properties":
                return not isinstance(value, dict) or all(
                    self.fits(rule[key], item) for key, item in value.items() if key in rule
                )
            case "additionalProperties":
                named = schema.get("properties", {})
                return not isinstance(value, dict) or all(
                    self.fits(rule, item) for key, item in value.items() if key not in named
                )
            case "items":
                return not isinstance(value, list) or all(self.fits(rule, item) for item in value)
            case "anyOf":
                return any(self.fits(part, value) for part in rule)
            case "allOf":
                return all(self.fits(part, value) for part in rule)
            case "$ref":
                return self.fits(referenced(self._root, rule), value)
            case "pattern" | "format":
                return not isinstance(value, str) or value in self._known
            case "minLength" | "maxLength":
                return not isinstance(value, str) or _within(name, len(value), rule)
            case "minItems" | "maxItems":
                return not isinstance(value, list) or _within(name, len(value), rule)
            case "minimum" | "maximum":
                return isinstance(value, bool) or not isinstance(value, int | float) or _within(name, value, rule)
            case _:
                return False


def referenced(root: object, reference: object) -> object:
    """Return the part of a schema that a reference within the same document names; None for others."""
    part = root if isinstance(reference, str) and reference.startswith("#") else None
    for name in str(reference)[1:].split("/")[1:]:
        part = part.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(part, dict) else None
    return part


def _is_type(value: object, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    types: dict[str, bool] = {
        "object": isinstance(value, dict),
        "array": isinstance(value, list),
        "string": isinstance(value, str),
        "number": isinstance(value, int | float),
        "integer": whole,
        "null": value is None,
    }
    return types.get(name, False)


def _equal(value: object, other: object) -> bool:
    """True for equal values, where true is not 1."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _within(keyword: str, number: float, limit: float) -> bool:
    return number >= limit if keyword.startswith("min") else number <= limit
