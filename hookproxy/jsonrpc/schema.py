"""Check rewritten arguments against the tool's input schema, because the server may rely on its own schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final


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
    return re.sub("|".join(re.escape(repr(name)) for name in names), lambda found: repr(names[found[0][1:-1]]), message)


_KEYWORDS_WITH_NAMES: Final = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose members have free names: there, `pattern` is the name of a property."""


def _without_patterns(schema: object, named: bool = False) -> object:
    """Remove the regular expressions: they come from the server, are JavaScript, and may run for ever.

    While Python's `re` searches, the whole process waits.
    """
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
