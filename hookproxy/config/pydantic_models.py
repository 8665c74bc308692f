"""The tables of `models`, or of another file, as pydantic models, which say what is wrong; also for the JSON Schema.

They are derived, so that both have the same keys. Imported only for an invalid file, and by scripts and tests.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from itertools import pairwise
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import FieldInfo, fields
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from ..model.errors import ConfigError
from .errors import FindLine
from .models import OR_ONE_STRING, SAME_PATTERN, Table
from .validation_error import validation_error

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def explanation(
    path: str,
    text: str,
    tables: dict[str, object],
    whole: type[Struct],
    problem: str,
    find_line: FindLine | None = None,
) -> ConfigError:
    """The error about a file with this text that `models` refuse, with the line and the key of the first error.

    `problem` is what `models` say; a test holds that both refuse the same, and so it is never needed. `find_line` as in
    `validation_error`.
    """
    try:
        model_of(whole).model_validate(tables)
    except ValidationError as error:
        first, *others = (_in_file(one, tables) for one in error.errors(include_url=False))
        same_value = [one for one in others if one["loc"][: len(first["loc"])] == first["loc"]]
        first = max((first, *same_value), key=lambda one: len(one["loc"]))  # of several types, the one that is meant
        if first["type"] == "missing":  # a key that nobody knows in the same table may be the misspelt one
            same = (one for one in others if one["type"] == "extra_forbidden" and one["loc"][:-1] == first["loc"][:-1])
            first = next(same, first)
        return validation_error(path, text, first, model_of(whole), find_line)
    return ConfigError(path, problem, "`hookproxy schema` shows what keys may be")


def _in_file(error: ErrorDetails, tables: Mapping[str, object]) -> ErrorDetails:
    """The error with its place in the file: pydantic also has there which of several types a value was tried as."""
    value: object = tables
    place: list[str | int] = []
    for number, part in enumerate(error["loc"], 1):
        is_last = number == len(error["loc"])
        if isinstance(value, Mapping) and (part in value or (is_last and error["type"] == "missing")):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part]
        elif part != "[key]":
            continue
        place.append(part)
    return {**error, "loc": tuple(place)}


# --- derivation ---


@cache
def model_of(table: type[Struct]) -> type[BaseModel]:
    """The model that accepts what the table accepts, with the same keys and defaults, and their descriptions."""
    texts = _texts(table) if issubclass(table, Table) else {key.name: "" for key in fields(table)}
    derived: dict[str, Any] = {key.name: (_type(key.type), _field(key, texts[key.name])) for key in fields(table)}
    return create_model(table.__name__, __base__=_Model, __doc__=table.__doc__, **derived)


def _texts(table: type[Table]) -> dict[str, str]:
    """The text below each key of a table, and of those that it inherits from."""
    lineage = (ancestor for ancestor in reversed(table.__mro__) if issubclass(ancestor, Table))
    texts: dict[str, str] = {}
    for ancestor in lineage:
        texts |= _descriptions(ancestor.__module__)[ancestor.__name__]
    return texts


@cache
def _descriptions(module: str) -> dict[str, dict[str, str]]:
    """The text below each key in the source of a module, by table and field: it does not exist at run time."""
    return {
        table.name: {
            key.target.id: " ".join(text.value.value.split())
            for key, text in pairwise(table.body)
            if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name)
            if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
        }
        for table in ast.parse(inspect.getsource(sys.modules[module])).body
        if isinstance(table, ast.ClassDef)
    }


def _field(key: FieldInfo, description: str) -> object:
    alias = key.encode_name if key.encode_name != key.name else None
    if key.default is not NODEFAULT:
        return Field(key.default, alias=alias, description=description)
    if key.default_factory is NODEFAULT:
        return Field(alias=alias, description=description)
    factory = key.default_factory
    is_table = isinstance(factory, type) and issubclass(factory, Struct)
    return Field(model_of(factory)() if is_table else factory(), alias=alias, description=description)


def _type(annotation: object) -> object:
    """The annotation for pydantic: it has other keywords for bounds, and enums need a validator for their names."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return Annotated[_type(arguments[0]), *(_constraint(meta) for meta in arguments[1:])]
    if origin in (Union, UnionType):
        return Union[tuple(_type(argument) for argument in arguments)]  # noqa: UP007 - of a tuple
    if origin is tuple:  # in a file it is a list
        return list[_type(arguments[0])]  # type: ignore[misc]  # of a value, as all of it
    if origin in (list, dict):
        return origin[tuple(_type(argument) for argument in arguments)]
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return model_of(annotation)
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return Annotated[annotation, Field(strict=False)]  # TOML has no enums
    return annotation


def _constraint(meta: Meta) -> object:
    extra = meta.extra or {}
    if OR_ONE_STRING in extra:
        return BeforeValidator(_as_list, json_schema_input_type=str | list[str])
    # The `$` of Rust and JSON Schema is Python's `\Z`.
    pattern = extra.get(SAME_PATTERN) or (meta.pattern and meta.pattern.replace(r"\Z", "$"))
    return Field(
        gt=meta.gt, ge=meta.ge, lt=meta.lt, le=meta.le,
        min_length=meta.min_length, max_length=meta.max_length, pattern=pattern,
    )  # fmt: skip


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value
