"""What is known of a tool's arguments, from its schema and from a call."""

from __future__ import annotations

import json

import pytest

from hookproxy.policy.tool_arguments import ToolArguments, commands_inside, listed_arguments, types_of

TEXT = {"type": "string"}
FIXED = {"enum": ["a", "b"]}


def listed(**properties: object) -> ToolArguments:
    return listed_arguments(json.dumps({"type": "object", "properties": properties}).encode())


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (TEXT, "string"),
        ({"type": ["string", "null"]}, "string"),
        ({"type": "integer"}, "number"),
        ({"type": ["string", "array"]}, ""),
        ({"anyOf": [TEXT, {"type": "null"}]}, "string"),
        ({"anyOf": [TEXT, {"type": "array"}]}, ""),
        ({"oneOf": [{"anyOf": [TEXT]}]}, "string"),
        ({"anyOf": [{"anyOf": [{"anyOf": [{"anyOf": [TEXT]}]}]}]}, "string"),
        (FIXED, "string"),
        ({"const": 7}, "number"),
        ({"enum": ["a", 7]}, ""),
        ({}, ""),
        (True, ""),
    ],
)
def test_the_type_of_an_argument_is_what_all_alternatives_have(schema: object, kind: str) -> None:
    assert listed(a=schema).types == {"a": kind}


@pytest.mark.parametrize(
    ("schema", "has_choices"),
    [
        (FIXED, True),
        ({"const": "a"}, True),
        (TEXT, False),
        ({"anyOf": [FIXED, {"type": "null"}]}, True),
        ({"oneOf": [FIXED, {"const": "c"}]}, True),
        ({"oneOf": [FIXED, TEXT]}, False),
        ({"anyOf": [FIXED], "oneOf": [TEXT]}, False),
        ({"allOf": [TEXT, FIXED]}, True),
        ({"anyOf": [{"type": "null"}]}, False),
        ({"oneOf": [{"anyOf": [{"oneOf": [FIXED]}]}]}, True),
    ],
)
def test_an_argument_has_choices_if_each_alternative_has(schema: object, has_choices: bool) -> None:
    assert (listed(a=schema).choices == {"a"}) is has_choices


def around(schema: object, levels: int) -> object:
    for _ in range(levels):
        schema = {"anyOf": [schema]}
    return schema


@pytest.mark.parametrize(("levels", "is_read"), [(7, True), (8, False)])
def test_schemas_inside_schemas_are_followed_to_a_depth(levels: int, is_read: bool) -> None:
    arguments = listed(a=around(FIXED, levels))
    assert (arguments.choices == {"a"}) is is_read
    assert (arguments.types == {"a": "string"}) is is_read


def test_a_schema_that_contains_itself_without_end_is_read_to_a_depth() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"anyOf": []}}}
    schema["$defs"]["a"]["anyOf"] = [{"$ref": "#/$defs/a"}]  # type: ignore[index]  # a dict of dicts
    assert listed_arguments(json.dumps(schema).encode()).choices == frozenset()


def inside(schema: object, levels: int) -> object:
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


@pytest.mark.parametrize(("levels", "is_found"), [(1, True), (3, True), (8, True), (9, False)])
def test_a_command_inside_an_argument_is_found_to_a_depth(levels: int, is_found: bool) -> None:
    command = {"type": "object", "properties": {"command": TEXT}}
    assert (listed(a=inside(command, levels - 1)).nested == ("a",)) is is_found


@pytest.mark.parametrize(
    ("schema", "is_open"),
    [
        ({"type": "object"}, True),
        ({"type": "object", "additionalProperties": True}, True),
        ({"type": "object", "additionalProperties": False}, False),
        ({"type": "object", "properties": {"x": TEXT}}, False),
        ({"type": "array", "items": {"type": "object"}}, True),
        ({"type": "array", "items": TEXT}, False),
        ({"type": "array"}, True),
        (TEXT, False),
    ],
)
def test_an_argument_is_open_if_its_schema_does_not_say_what_is_in_it(schema: object, is_open: bool) -> None:
    assert listed(a=schema, b=TEXT).open is is_open


@pytest.mark.parametrize(
    ("required", "names"),
    [(["a"], ["a"]), (["a", 7], ["a"]), ("a", []), (None, [])],
)
def test_required_arguments_are_those_that_the_schema_names(required: object, names: list[str]) -> None:
    schema = {"type": "object", "properties": {"a": TEXT}, "required": required}
    assert listed_arguments(json.dumps(schema).encode()).required == frozenset(names)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (b'{"a":{"command":"ls"}}', ("a",)),
        (b'{"a":[{"command":"ls"}],"b":1}', ("a",)),
        (b'{"command":"ls"}', ()),
        (b'{"a":"{"}', ()),
        (b"{}", ()),
        (b"{{", ()),
        (b"", ()),
    ],
)
def test_commands_inside_of_a_call_are_found(arguments: bytes, names: tuple[str, ...]) -> None:
    assert commands_inside(arguments) == names


def test_a_call_shows_the_types_of_its_arguments() -> None:
    arguments = b'{"a":"x","b":[],"c":{},"d":true,"e":false,"f":1,"g":-1,"h":null}'
    kinds = ("string", "array", "object", "boolean", "boolean", "number", "number", "")
    assert types_of(arguments) == dict(zip("abcdefgh", kinds, strict=True))
    assert types_of(b"[]") == {}


@pytest.mark.parametrize(("properties", "is_known"), [(1_000, True), (10_001, False)])
def test_a_schema_with_too_many_parts_is_as_if_it_were_not_listed(properties: int, is_known: bool) -> None:
    assert listed(**{f"a{n}": TEXT for n in range(properties)}).known is is_known
