"""No argument of a judged call has a name that a server may read as the name of another."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from hookproxy.jsonrpc import raw_json
from hookproxy.jsonrpc.raw_json import Unreadable
from hookproxy.model.hooks import Tool
from hookproxy.protocol import argument_names
from hookproxy.protocol.tool_list import listed_tools


def check(arguments: dict[str, Any], listed: Tool | None = None) -> None:
    raw = json.dumps(arguments, ensure_ascii=False).encode()
    argument_names.check(raw, raw_json.fields(raw).keys(), listed)


def tool(*names: str) -> Tool:
    properties = {name: {"type": "string"} for name in names}
    listing = {"tools": [{"name": "t", "inputSchema": {"type": "object", "properties": properties}}]}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "result": listing}, ensure_ascii=False).encode()
    return listed_tools(line)[0]


TWINS: Final = [
    ("a", "A"),
    ("key", "\u212aey"),
    ("files", "file\u017f"),
    ("stra\u00dfe", "STRASSE"),
    ("caf\u00e9", "cafe\u0301"),
    ("command", "\uff43ommand"),
    ("\ufb01le", "file"),
]


@pytest.mark.parametrize("pair", TWINS, ids=ascii)
@pytest.mark.parametrize("place", ["%s", '{"opts":%s}', '{"x":[[1,{"y":%s}]]}'])
def test_names_that_some_readers_take_for_each_other_are_refused_at_any_depth(
    pair: tuple[str, str], place: str
) -> None:
    for first, second in (pair, pair[::-1]):
        with pytest.raises(Unreadable, match="for the same"):
            check(json.loads(place % json.dumps({first: 1, "zz": 2, second: 3})))


@pytest.mark.parametrize("place", ["%s", '{"opts":%s}', '[{"y":%s}]'])
def test_a_name_with_a_nul_is_refused_at_any_depth(place: str) -> None:
    inner = json.loads(place % json.dumps({"anything\0": 1}))
    with pytest.raises(Unreadable, match="NUL"):
        check(inner if isinstance(inner, dict) else {"list": inner})


@pytest.mark.parametrize("name", ["Command", "COMMAND", "File_Path", "\uff50ath", "Old_String", "URL"], ids=ascii)
def test_another_spelling_of_a_name_that_guards_look_at_is_refused_unless_the_tool_has_it(name: str) -> None:
    for listed in (None, tool(), tool("other")):
        with pytest.raises(Unreadable, match="may take its argument"):
            check({name: "x"}, listed)
    check({name: "x"}, tool(name))
    check({name: "x"}, tool(name, raw_json.folded_key(name)))
    check({"env": {name: "x"}}, None)


@pytest.mark.parametrize("name", ["Target", "TARGET", "\uff54arget"], ids=ascii)
def test_another_spelling_of_a_listed_name_is_refused(name: str) -> None:
    with pytest.raises(Unreadable, match="is spelled 'target'"):
        check({name: "x"}, tool("target"))
    check({name: "x"}, None)


def test_ordinary_names_pass() -> None:
    check({})
    check({"command": "ls", "cwd": "/", "n": 1.5})
    check(
        {"path": "a", "Kind": "b", "edits": [{"oldText": "x", "newText": "X"}, {"oldText": "y"}]}, tool("path", "Kind")
    )
    check({"text": '{"a": {"A": 1}}', "x": {"\u00e9": 1, "\u00e8": [{}, {"n": 10**300, "f": -1.5e300}]}})


NESTED: Final = {
    "plain": {"properties": {"opts": {"type": "object", "properties": {"command": {}, "file_path": {}}}}},
    "a reference": {
        "properties": {"opts": {"$ref": "#/$defs/a~1b"}},
        "$defs": {"a/b": {"properties": {"command": {}, "file_path": {}}}},
    },
    "alternatives": {
        "properties": {
            "opts": {"anyOf": [{"type": "null"}, {"allOf": [{"properties": {"command": {}, "file_path": {}}}]}]}
        }
    },
    "any name": {"properties": {}, "additionalProperties": {"properties": {"command": {}, "file_path": {}}}},
    "a recursive one": {"properties": {"opts": {"$ref": "#"}, "command": {}, "file_path": {}}},
    "a pattern": {"properties": {}, "patternProperties": {"^o": {"properties": {"command": {}, "file_path": {}}}}},
    "a condition": {
        "properties": {"opts": {}},
        "if": {},
        "then": {"properties": {"opts": {"properties": {"command": {}, "file_path": {}}}}},
    },
}


def listed_as(schema: object) -> Tool:
    listing = {"tools": [{"name": "t", "inputSchema": schema}]}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "result": listing}).encode()
    return listed_tools(line)[0]


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("name", ["Command", "COMMAND", "\uff43ommand", "com_mand", "file-path", "filePath"], ids=ascii)
def test_another_spelling_of_a_name_that_the_schema_lists_within_an_argument_is_refused(kind: str, name: str) -> None:
    listed = listed_as(NESTED[kind])
    opts: Any
    for opts in ({name: "x"}, {"a": {}, name: {}}):
        with pytest.raises(Unreadable, match=r"is spelled '(command|file_path)' in the tool's schema"):
            check({"opts": opts}, listed)
    check({"opts": {"command": "x", "file_path": "y", "other": {name: 1}}}, listed_as(NESTED["plain"]))


@pytest.mark.parametrize("key", ["items", "prefixItems", "additionalItems", "contains"])
def test_another_spelling_within_a_list_is_refused(key: str) -> None:
    inner: object = {"properties": {"command": {}}}
    listed = listed_as({"properties": {"steps": {key: [inner] if key == "prefixItems" else inner}}})
    with pytest.raises(Unreadable, match="is spelled 'command'"):
        check({"steps": [{}, [], 1, {"Command": 1}]}, listed)
    check({"steps": [{"command": "x"}, {"other": {"Command": 1}}]}, listed)


def test_names_that_are_free_or_listed_themselves_pass_within_an_argument() -> None:
    free = listed_as({"properties": {"env": {"additionalProperties": {"type": "string"}}, "o": {"properties": {}}}})
    check({"env": {"PATH": "/bin"}, "o": {"Command": {}}}, free)
    both = listed_as({"properties": {"o": {"properties": {"filePath": {}, "file_path": {}}}}})
    check({"o": {"filePath": 1, "file_path": {}}}, both)
    broken: object
    for broken in (None, [], "x", {"properties": {"o": {"properties": [1], "$ref": 3, "anyOf": {}, "items": 1}}}):
        check({"o": {"Command": {"a": []}}}, listed_as(broken))


@pytest.mark.slow
def test_a_schema_that_would_take_long_to_compare_is_refused() -> None:
    many: dict[str, Any] = {"properties": {"x": {"properties": {}}}}
    many["anyOf"] = [{"additionalProperties": {"$ref": "#"}, "items": {"$ref": "#"}} for _ in range(2000)]
    with pytest.raises(Unreadable, match="too many members"):
        check({"o": [{"p": {"q": {}}} for _ in range(2000)]}, listed_as(many))


@pytest.mark.parametrize("name", ["file-path", "filePath", "File_Path", "FILEPATH"])
def test_a_name_without_or_with_other_dashes_is_another_spelling_of_a_listed_one(name: str) -> None:
    with pytest.raises(Unreadable, match="is spelled 'file_path'"):
        check({name: "x"}, tool("file_path"))
    check({name: "x"}, tool("file_path", name))
