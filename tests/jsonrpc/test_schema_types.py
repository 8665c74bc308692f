"""Types that a schema states: what certainly does not fit is found, and nothing that may fit is."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.jsonrpc import raw_json
from hookproxy.jsonrpc.schema_types import SchemaTypes

SCHEMA: Final = {
    "type": "object",
    "$defs": {"text": {"type": "string"}},
    "required": ["command"],
    "properties": {
        "command": {"type": "string"},
        "ref": {"$ref": "#/$defs/text"},
        "far": {"$ref": "https://example.com/x"},
        "either": {"type": ["string", "array"]},
        "any": {"anyOf": [{"type": "string"}, {}]},
        "one": {"oneOf": [{"type": "integer"}, {"type": "null"}]},
        "open": {},
        "choice": {"enum": ["a", 1]},
        "all": {"allOf": [{"type": ["string", "number"]}, {"type": "string"}]},
        "nullable": {"type": "string", "nullable": True},
        "edits": {"type": "array", "items": {"type": "object", "properties": {"old": {"type": "string"}}}},
        "odd": {"type": "file"},
        "yes": True,
    },
}


def problem(names: list[str] | None = None, **arguments: object) -> str:
    members = raw_json.fields(json.dumps(arguments).encode())
    found = SchemaTypes(json.dumps(SCHEMA).encode()).first_problem(members, names)
    return "" if found is None else f"{found.path}: {found.wanted}: {found.found}"


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({}, "command: a text: "),
        ({"command": None}, "command: a text: null"),
        ({"command": 5}, "command: a text: a number"),
        ({"command": ["ls"]}, "command: a text: a list"),
        ({"command": {}}, "command: a text: an object"),
        ({"command": "x", "ref": True}, "ref: a text: true or false"),
        ({"command": "x", "either": 5}, "either: a text or a list: a number"),
        ({"command": "x", "one": "5"}, "one: a number: a text"),
        ({"command": "x", "choice": []}, "choice: a text or a number: a list"),
        ({"command": "x", "all": 5}, "all: a text: a number"),
        ({"command": "x", "edits": [{"old": "a"}, {"old": 5}]}, "edits[1].old: a text: a number"),
        ({"command": "x", "edits": {}}, "edits: a list: an object"),
    ],
)
def test_what_does_not_fit_is_found(arguments: dict[str, Any], found: str) -> None:
    assert problem(**arguments) == found


@pytest.mark.parametrize(
    "arguments",
    [
        {"ref": None, "either": None, "one": None, "choice": None, "edits": None},
        {"ref": "x", "either": ["x"], "any": 5, "one": 5, "open": {}, "choice": "b", "all": "x", "nullable": None},
        {"far": 5, "odd": 5, "yes": 5, "unheard_of": 5, "edits": [], "one": 5.0},
        {"edits": [{"old": None, "new": 5}, "x"][:1]},
    ],
)
def test_what_may_fit_does(arguments: dict[str, Any]) -> None:
    assert problem(command="x", **arguments) == ""


def test_only_the_named_arguments_are_looked_at() -> None:
    assert problem(["ref"], ref="x") == ""
    assert problem(["ref", "command"], ref="x") == "command: a text: "
    assert problem(["edits"], edits=[{"old": 5}]) == ""
    assert problem(["edits"], edits="x") == "edits: a list: a text"


@pytest.mark.parametrize("schema", [b"", b"7", b"{", b"[]", b'{"properties":7,"required":7}', b"[" * 5000, b"\xff"])
def test_a_schema_that_cannot_be_read_states_nothing(schema: bytes) -> None:
    assert SchemaTypes(schema).first_problem({"a": b"5"}, None) is None


VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(["string", "#", "#/a"]),
    lambda each: (
        st.lists(each, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "anyOf", "allOf", "properties", "items", "$ref", "enum", "required", "a"]),
            each,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(VALUES, st.dictionaries(st.sampled_from(["a", "type"]), VALUES, max_size=3))
def test_it_never_raises(schema: object, arguments: dict[str, object]) -> None:
    members = raw_json.fields(json.dumps(arguments).encode())
    for names in (None, ["a"]):
        SchemaTypes(json.dumps(schema).encode()).first_problem(members, names)


def test_a_schema_that_refers_to_itself_many_times_is_not_followed_without_end() -> None:
    argument = {"properties": {"a": {"anyOf": [{"$ref": "#/properties/a"}] * 100}}}
    assert SchemaTypes(json.dumps(argument).encode()).first_problem({"a": b"5"}, None) is None


CALLS: Final = st.dictionaries(st.sampled_from([*SCHEMA["properties"], "unheard_of"]), VALUES, max_size=4)


@given(st.lists(CALLS, max_size=4))
def test_what_a_call_has_asked_changes_no_later_answer(calls: list[dict[str, object]]) -> None:
    kept = SchemaTypes(json.dumps(SCHEMA).encode())
    for call in calls:
        members = raw_json.fields(json.dumps(call).encode())
        for names in (None, list(call)[:2]):
            fresh = SchemaTypes(json.dumps(SCHEMA).encode())
            assert kept.first_problem(members, names) == fresh.first_problem(members, names)


def test_what_a_call_could_not_find_out_for_want_of_steps_a_later_one_does() -> None:
    deep: dict[str, Any] = {"type": "number"}
    for _ in range(5):
        deep = {"anyOf": [deep] * 10}
    schema = {"properties": {"deep": deep, "text": {"type": "string"}}}
    types = SchemaTypes(json.dumps(schema).encode())
    assert types.first_problem({"deep": b"5", "text": b"5"}, None) is None
    assert types.first_problem({"text": b"5"}, None) is not None
