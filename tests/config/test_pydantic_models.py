"""The tables that read hookproxy.toml and the models that explain errors accept the same files with the same values."""

from __future__ import annotations

import enum
from datetime import date
from typing import Annotated, Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import NODEFAULT, Meta, ValidationError, convert
from msgspec.structs import fields
from pydantic import BaseModel
from pydantic import ValidationError as PydanticError

from hookproxy.config import models
from hookproxy.config.models import ConfigFile, Table
from hookproxy.config.parse import validated, with_lists
from hookproxy.config.pydantic_models import model_of, validate_or_explain
from hookproxy.model.errors import ConfigError

TABLES = [one for one in vars(models).values() if isinstance(one, type) and issubclass(one, Table) and one is not Table]

NUMBERS = (-1, 0, 1, 10, 11, 1023, 1024, 65535, 65536, 100_000, 100_001, 2**63, 2**64, 10**20, 10**400, -(10**20))
JUNK = st.one_of(
    st.sampled_from(NUMBERS),
    st.sampled_from([True, False, 0.0, 1.0, 2.5, 1e300, float("inf"), date(2026, 1, 1), [], {}, [""], {"": ""}, [[]]]),
    st.sampled_from(
        ["", "deny", "allow", "DENY", "keyed", "x\n", "x y", "\x1c", "a\x1c", "\x85", "http://x", "a\u2028b"]
    ),
    st.sampled_from([["x"], ["x", 1], {"x": "y"}, {"command": ["x"]}, {"command": []}, [{}], {"x": {}}, [{"x": 1}]]),
)


SIMPLE: dict[object, st.SearchStrategy[object]] = {
    bool: st.booleans(),
    int: st.integers(),
    float: st.one_of(st.integers(0, 9), st.floats(allow_nan=False)),
    str: st.sampled_from(["x", "Bash(ls *)", "é"]),
}


def valid(annotation: object) -> st.SearchStrategy[object]:
    """Values that fit an annotation of a table, or nearly."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return bounded(*arguments)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is list:
        return st.lists(valid(arguments[0]), max_size=2)
    if origin is dict:
        return st.dictionaries(st.sampled_from(["x", "on_trouble", "y z"]), valid(arguments[1]), max_size=2)
    if arguments:
        return st.one_of([valid(one) for one in arguments if one is not type(None)])
    return SIMPLE[annotation] if annotation in SIMPLE else members(annotation)


def bounded(annotation: object, *constraints: object) -> st.SearchStrategy[object]:
    """Values around the bounds of an annotation."""
    (meta,) = (one for one in constraints if isinstance(one, Meta))
    if meta.pattern is not None:
        return st.sampled_from(["Bash", "https://x", "http://x\n", "x\n", ""])
    bounds = [one for one in (meta.ge, meta.le) if one is not None]
    return st.sampled_from([bounds[0] + 1, *bounds]) if bounds else valid(annotation)


def members(annotation: object) -> st.SearchStrategy[object]:
    """Values that fit a table or an enum."""
    assert isinstance(annotation, type)
    if issubclass(annotation, Table):
        return table(annotation)
    assert issubclass(annotation, enum.Enum)
    return st.sampled_from([one.value for one in annotation])


def table(model: type[Table]) -> st.SearchStrategy[object]:
    required = {one.encode_name: valid(one.type) for one in fields(model) if one.required}
    optional = {one.encode_name: valid(one.type) for one in fields(model) if not one.required}
    return st.fixed_dictionaries(required, optional=optional)


@st.composite
def mutated(draw: st.DrawFn, documents: st.SearchStrategy[object]) -> object:
    """A document with one value replaced or one key added, at any depth."""
    document = draw(documents)
    inside = document
    while True:
        steps = list(inside) if isinstance(inside, dict) else range(len(inside)) if isinstance(inside, list) else []
        if isinstance(inside, dict) and draw(st.booleans()):
            inside[draw(st.sampled_from([*inside, "unknown", "only_if", "known_as", "background", "chain"]))] = draw(
                JUNK
            )
            return document
        if not steps:
            return document
        step = draw(st.sampled_from(list(steps)))
        below = inside[step]  # type: ignore[index]  # a key of a table or an index of a list
        if not isinstance(below, dict | list) or draw(st.integers(0, 3)) == 0:
            inside[step] = draw(JUNK)  # type: ignore[index]
            return document
        inside = below


def fast(document: dict[str, object]) -> ConfigFile | None:
    try:
        return convert(with_lists(document), ConfigFile)
    except ValidationError:
        return None


def slow(document: dict[str, object]) -> ConfigFile | None:
    try:
        return validate_or_explain("f", "", document, ConfigFile)
    except ConfigError:
        return None


def agree(document: object) -> None:
    assert isinstance(document, dict)
    by_tables, by_models = fast(document), slow(document)
    if by_tables is not None:
        assert repr(by_tables) == repr(by_models)
    try:
        either = validated("f", "", document, ConfigFile)
    except ConfigError:
        either = None
    assert repr(either) == repr(by_models)


@pytest.mark.slow
@given(table(ConfigFile))
def test_both_read_the_same_from_a_file_that_fits(document: object) -> None:
    agree(document)


@pytest.mark.slow
@given(mutated(table(ConfigFile)))
def test_both_accept_the_same_after_one_change(document: object) -> None:
    agree(document)


@pytest.mark.parametrize("model", TABLES, ids=lambda one: one.__name__)
@pytest.mark.slow
@given(data=st.data())
def test_both_take_the_same_values_for_each_key(model: type[Table], data: st.DataObject) -> None:
    for key in fields(model):
        one = {each.encode_name: data.draw(valid(each.type)) for each in fields(model) if each.required}
        document = one | {key.encode_name: data.draw(JUNK | valid(key.type))}
        try:
            read: Table | None = convert(with_lists(document), model)
        except ValidationError:
            continue
        found = model_of(model).model_validate(document)
        for each in fields(model):
            assert repr(plain(getattr(found, each.name))) == repr(plain(getattr(read, each.name)))


def plain(value: object) -> object:
    """A value with the tables in it as dictionaries."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, Table):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, BaseModel):
        return {name: plain(getattr(value, name)) for name in type(value).model_fields}
    return value


@pytest.mark.parametrize("model", TABLES, ids=lambda one: one.__name__)
def test_both_have_the_same_keys_and_defaults(model: type[Table]) -> None:
    derived = model_of(model).model_fields
    assert [field.alias or name for name, field in derived.items()] == list(model.__struct_encode_fields__)
    for key in fields(model):
        field = derived[key.name]
        assert field.is_required() == key.required
        if not key.required:
            default = key.default if key.default is not NODEFAULT else key.default_factory()
            assert plain(field.default) == plain(default)


def test_control_characters_that_only_python_takes_for_spaces_are_read_from_a_name_as_before() -> None:
    document: dict[str, object] = {"tools": {"x": {"as": "a\x1c"}}}
    assert fast(document) is None
    assert validated("f", "", document, ConfigFile).tools["x"].known_as == "a\x1c"


def test_a_line_feed_at_the_end_of_a_name_is_refused_by_both() -> None:
    document: dict[str, object] = {"tools": {"x": {"as": "Bash\n"}}}
    assert fast(document) is None
    with pytest.raises(ConfigError):
        validated("f", "", document, ConfigFile)
    with pytest.raises(PydanticError):
        model_of(ConfigFile).model_validate(document)
