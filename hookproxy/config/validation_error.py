"""Turns an error of pydantic about a file into one sentence with the line, the key and a hint: for errors only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..model.errors import ConfigError
from .errors import FindLine, line_of
from .key_repairs import unknown_key
from .model_keys import is_of_cases, is_of_pack, item_of, model_around, schema_verb
from .value_repairs import EXAMPLES_OF_KEYS, problem, repair

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails


def validation_error(
    path: str, text: str, error: ErrorDetails, model: type[BaseModel], find_line: FindLine | None = None
) -> ConfigError:
    """The error to raise for a file that does not fit its model. `find_line` is for files that are not TOML."""
    at, kind = error["loc"], error["type"]
    line = (find_line or line_of)(text, at)
    where = f"{path}:{line}" if line else path
    key = ".".join(str(part) if isinstance(part, str) else f"[{part}]" for part in at).replace(".[", "[")
    if kind == "string_pattern_mismatch" and at[-1] == "[key]":
        return _invalid_name(where, at)
    if kind == "extra_forbidden":
        what, hint = unknown_key(at, error["input"], model)
    elif found := _of_table(at, error, model):
        what, hint = found
    elif kind == "missing":
        return ConfigError(where, f"{key} is missing", _missing(at, model))
    else:
        what, hint = problem(error), repair(at, error, model)
    return ConfigError(where, f"{key}: {what}", hint)


def _of_table(at: Sequence[str | int], error: ErrorDetails, model: type[BaseModel]) -> tuple[str, str] | None:
    """What is wrong with a table where none may be, or with something else where one must be; None: neither is wrong.

    With the repair.
    """
    kind, value = error["type"], error["input"]
    header = ".".join(part for part in at if isinstance(part, str))
    outer, _, name = header.rpartition(".")
    if at[0] == "hooks" and len(at) == 3 and isinstance(at[2], int) and not isinstance(value, dict):
        return "a hook is a table", f"write [[hooks.{at[1]}]], and below it command = …"
    if kind == "list_type" and isinstance(value, dict):
        if item_of(model_around(at, model), name) is not None:
            return "must be an array of tables", f"write [[{header}]]"
        return "should be a list", f'write [{outer}], and below it {name} = ["…"]'
    if kind in ("bool_type", "literal_error") and isinstance(value, dict) and outer:
        example = repair(at, error, model).removeprefix("write ").replace("true or false", "true")
        return problem(error), f"write [{outer}], and below it {example}"
    if kind != "model_type":
        return None
    if is_of_cases(model):
        return "must be a table", f"write {at[-1]} = {{ … }}; {schema_verb(model)} shows one"
    if at == ("hooks",) and isinstance(value, list):
        return "the event stands in the brackets", "write [[hooks.PreToolUse]]"
    table = f"[{header}]" if isinstance(at[-1], str) else f"[[{header}]]"
    return "must be a table", f"write {table}, and its keys below that line"


def _missing(at: Sequence[str | int], model: type[BaseModel]) -> str:
    """The repair for a key that is missing."""
    if is_of_cases(model):
        return f'add {at[-1]} = "…"'
    if is_of_pack(model) and at[0] == "files":
        return "hookproxy pack new FOLDER writes [files] anew"
    of_table = EXAMPLES_OF_KEYS.get(".".join(map(str, at[-2:])))
    example = of_table or EXAMPLES_OF_KEYS.get(str(at[-1]), "…")
    return f"add {at[-1]} = {example}; {schema_verb(model)} shows more"


def _invalid_name(where: str, at: Sequence[str | int]) -> ConfigError:
    """The error about a name of one's own that a table may not have."""
    table, name = ".".join(map(str, at[:-2])), str(at[-2])
    valid = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).lstrip("_.-")[:64] or "NAME"
    hint = f"use letters, digits and _ . -, at most 64: [{table}.{valid}]"
    return ConfigError(where, f"{table}: {name!r} is not a valid name", hint)
