"""The tables that read hookproxy.toml and the models that explain errors accept the same files with the same values."""

from __future__ import annotations

import enum
from datetime import date
from functools import cache
from typing import Annotated, Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import NODEFAULT, Meta, ValidationError, convert
from msgspec.structs import fields
from pydantic import BaseModel
from pydantic import ValidationError as PydanticError

from hookproxy.config import gateway_models, models
from hookproxy.config.gateway_models import GatewayFile
from hookproxy.config.models import ConfigFile, Table
from hookproxy.config.parse import validated, with_lists
from hookproxy.config.pydantic_models import model_of

TABLES = [
    table
    for module in (models, gateway_models)
    for table in vars(module).values()
    if isinstance(table, type) and issubclass(table, Table) and table.__module__ == module.__name__
]
"""All tables of both files: each key stands in one of them."""

FILES = [ConfigFile, GatewayFile]

NUMBERS = (-1, 0, 1, 10, 11, 1023, 1024, 65535, 65536, 100_000, 100_001, 2**63, 2**64, 10**20, 10**400, -(10**20))
JUNK = st.one_of(
    st.sampled_from(NUMBERS),
    st.sampled_from([True, False, 0.0, 1.0, 2.5, 1e300, float("inf"), date(2026, 1, 1), [], {}, [""], {"": ""}, [[]]]),
    st.sampled_from(["", "deny", "allow", "DENY", "keyed", "x\n", "\x85", "a\x1c", "http://x", "a\u2028b", "file:"]),
    st.sampled_from([["x"], ["x", 1], {"x": "y"}, {"command": ["x"]}, {"command": []}, [{}], {"x": {}}, [{"x": 1}]]),
)
"""Values that few keys accept: of wrong types, out of bounds, or tables with keys that do not exist."""

SIMPLE: dict[object, st.SearchStrategy[object]] = {
    bool: st.booleans(),
    int: st.integers(),
    float: st.one_of(st.integers(0, 9), st.floats(allow_nan=False)),
    str: st.sampled_from(["x", "Bash(ls *)", "é"]),
}


@cache  # hypothesis prepares each strategy once
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
        return st.dictionaries(st.sampled_from(["x", "on_trouble", "y z", "a/b"]), valid(arguments[1]), max_size=2)
    if arguments:
        return st.one_of([valid(one) for one in arguments if one is not type(None)])
    return SIMPLE[annotation] if annotation in SIMPLE else members(annotation)


@cache
def valid_or_junk(annotation: object) -> st.SearchStrategy[object]:
    return JUNK | valid(annotation)


def bounded(annotation: object, *constraints: object) -> st.SearchStrategy[object]:
    """Values around the bounds of an annotation."""
    (meta,) = (one for one in constraints if isinstance(one, Meta))
    if meta.pattern is not None:
        return st.sampled_from(["Bash", "https://x", "http://x\n", "x\n", "", "file:x", "0640", "redis://x", "x" * 65])
    if bounds := [bound for bound in (meta.ge, meta.gt, meta.le, meta.lt) if bound is not None]:
        return st.sampled_from([near for bound in bounds for near in (bound - 1, bound, bound + 1, bound + 0.5)])
    return valid(annotation)


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


def fast(document: object, table: type[Table]) -> Table | None:
    assert isinstance(document, dict)
    try:
        return convert(with_lists(document) if "preset" in table.__struct_fields__ else document, table)
    except ValidationError:
        return None


def slow(document: object, table: type[Table]) -> BaseModel | None:
    try:
        return model_of(table).model_validate(document)
    except PydanticError:
        return None


def agree(document: object, table: type[Table]) -> None:
    """Both accept the document and read the same values, or both refuse it."""
    by_tables, by_models = fast(document, table), slow(document, table)
    assert (by_tables is None) == (by_models is None), document
    assert repr(plain(by_tables)) == repr(plain(by_models))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.__name__)
@pytest.mark.slow
@given(data=st.data())
def test_both_read_the_same_from_a_file_that_fits(file: type[ConfigFile], data: st.DataObject) -> None:
    agree(data.draw(table(file)), file)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.__name__)
@pytest.mark.slow
@given(data=st.data())
def test_both_accept_the_same_after_one_change(file: type[ConfigFile], data: st.DataObject) -> None:
    agree(data.draw(mutated(table(file))), file)


@pytest.mark.parametrize("model", TABLES, ids=lambda one: one.__name__)
@pytest.mark.slow
@given(data=st.data())
def test_both_take_the_same_values_for_each_key(model: type[Table], data: st.DataObject) -> None:
    required = {key.encode_name: data.draw(valid(key.type)) for key in fields(model) if key.required}
    for key in fields(model):
        agree(required | {key.encode_name: data.draw(valid_or_junk(key.type))}, model)
        agree({name: value for name, value in required.items() if name != key.encode_name}, model)
    unknown = st.sampled_from(["unknown", "", *(key.name for key in fields(model) if key.name != key.encode_name)])
    agree(required | {data.draw(unknown): data.draw(JUNK)}, model)


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


def test_control_characters_that_only_python_takes_for_spaces_are_read_from_a_name() -> None:
    document: dict[str, object] = {"tools": {"x": {"as": "a\x1c"}}}
    assert validated("f", "", document, ConfigFile).tools["x"].known_as == "a\x1c"
    agree(document, ConfigFile)


def test_one_preset_of_a_server_is_read_as_a_list() -> None:
    document: dict[str, object] = {"servers": {"x": {"preset": "git"}, "y": {"preset": ["git"]}}}
    servers = validated("f", "", document, GatewayFile).servers
    assert servers["x"].preset == servers["y"].preset == ["git"]
    agree(document, GatewayFile)


def test_a_line_feed_at_the_end_of_a_name_is_refused_by_both() -> None:
    document = {"tools": {"x": {"as": "Bash\n"}}}
    assert fast(document, ConfigFile) is None
    assert slow(document, ConfigFile) is None
