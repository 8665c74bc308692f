"""Whether rewritten arguments still fit what the server lists for its tool: the server may trust its own schema."""

from __future__ import annotations

import json


def misfit(input_schema: bytes, arguments: bytes) -> str:
    """Why the arguments do not fit the schema, naming the field; empty if they do, or if the schema is not usable.

    Nothing is fetched: a reference out of the schema counts as not usable.
    """
    import jsonschema  # 70 ms: only runs in which a hook rewrites a listed call pay them
    import referencing

    schema = json.loads(input_schema)
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
        problems = kind(schema, registry=referencing.Registry()).iter_errors(json.loads(arguments))
        problem = jsonschema.exceptions.best_match(problems)
    except (jsonschema.SchemaError, referencing.exceptions.Unresolvable):
        return ""
    if problem is None:
        return ""
    field = ".".join(map(str, problem.absolute_path))
    return f"{field}: {problem.message}" if field else str(problem.message)
