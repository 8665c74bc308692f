"""Whether rewritten arguments still fit what the server lists for its tool: the server may trust its own schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final


def mismatch(input_schema: bytes, arguments: bytes, names: Mapping[str, str] | None = None) -> str:
    """Why the arguments do not fit the schema, naming the field; empty if they do, or if the schema is not usable.

    `names`: what the reader calls an argument that the schema calls otherwise. Nothing is fetched: a reference out of
    the schema counts as not usable.
    """
    import jsonschema  # 70 ms: only runs in which a hook rewrites a listed call pay them
    import referencing

    try:
        schema: Any = _without_patterns(json.loads(input_schema))  # whatever it is, the validator says
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
        problems = kind(schema, registry=referencing.Registry()).iter_errors(json.loads(arguments))
        problem = jsonschema.exceptions.best_match(problems)
    except Exception:  # a schema is a stranger's program: the validator may fail on it in any way
        return ""
    if problem is None:
        return ""
    names = names or {}
    first, *rest = problem.absolute_path or [""]
    field = ".".join(map(str, [names.get(first, first), *rest]))
    return f"{field}: {problem.message}" if field else _renamed(str(problem.message), names)


def _renamed(message: str, names: Mapping[str, str]) -> str:
    """A sentence about the whole of the arguments, in which their names stand as Python spells them."""
    if not names:
        return message
    return re.sub("|".join(re.escape(repr(name)) for name in names), lambda found: repr(names[found[0][1:-1]]), message)


_KEYWORDS_WITH_NAMES: Final = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose members are named freely: there `pattern` is somebody's property."""


def _without_patterns(schema: object, named: bool = False) -> object:
    """The schema without regular expressions: they are the server's, in JavaScript, and may take for ever.

    Python's `re` keeps the whole process from doing anything else meanwhile.
    """
    if isinstance(schema, list):
        return [_without_patterns(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    dropped = set() if named else {"pattern", "patternProperties"} & schema.keys()
    if "patternProperties" in dropped:  # what they allow cannot be told now
        dropped |= {"additionalProperties", "unevaluatedProperties"}
    return {
        key: _without_patterns(value, not named and key in _KEYWORDS_WITH_NAMES)
        for key, value in schema.items()
        if key not in dropped
    }
