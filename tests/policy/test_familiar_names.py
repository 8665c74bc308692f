"""Familiar names: tools get them that do what Claude Code's tools do, and no others.

The files in `servers/` are facts: what published servers answered to tools/list, and which familiar name is right for
each tool. `[by_preset]` has what the preset says where it says something else.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, json

from hookproxy.model.aliases import FAMILIAR_NAMES, Alias
from hookproxy.policy.alias_choice import action_of, aliases_for_call
from hookproxy.policy.familiar_names import familiar_aliases, possible_names
from hookproxy.policy.presets import PRESETS, preset_aliases, preset_for
from hookproxy.policy.recognisers import RECOGNISERS
from hookproxy.policy.tool_arguments import listed_arguments, types_of

ENOUGH: Final = 0.95
"""The share of right names that recognition finds without presets."""


class Tool(Struct, frozen=True):
    """One tool of a published server."""

    server: str
    preset: str
    name: str
    right: str
    """The familiar names, with commas, then `hooks' name=server's name` of arguments; empty: none."""
    by_preset: str
    arguments: Mapping[str, str]


class Server(Struct, frozen=True):
    """One file: a published server."""

    server: str
    version: str
    command: list[str]
    server_name: str
    preset: str
    tools: dict[str, tuple[str, str]]
    by_preset: dict[str, str] = {}

    def all_tools(self) -> list[Tool]:
        return [
            Tool(self.server, self.preset, name, right, self.by_preset.get(name, right), _types(arguments))
            for name, (right, arguments) in self.tools.items()
        ]


def _types(arguments: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in arguments.split():
        name, _, kind = one.partition(":")
        found[name] = {"": "string", "?": ""}.get(kind, kind)
    return found


def _read(path: Path) -> Server:
    return json.decode(json.encode(tomllib.loads(path.read_text("utf-8"))), type=Server)


SERVERS: Final = [_read(path) for path in sorted((Path(__file__).parent / "servers").glob("*.toml"))]
TOOLS: Final = [tool for server in SERVERS for tool in server.all_tools()]


def text(aliases: Sequence[Alias]) -> str:
    names = dict.fromkeys(one.name for one in aliases)
    arguments = {known: own for one in aliases for known, own in one.arguments.items()}
    return " ".join([",".join(names), *(f"{known}={own}" for known, own in arguments.items())])


# --- published servers ---


def test_there_are_enough_servers() -> None:
    assert len(SERVERS) >= 25
    assert sum(bool(tool.right) for tool in TOOLS) >= 100
    assert sum(not tool.right for tool in TOOLS) >= 400


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: f"{server.server} {server.version}")
def test_no_tool_of_a_published_server_gets_a_wrong_name_without_presets(server: Server) -> None:
    for tool in server.all_tools():
        found = text(familiar_aliases(tool.name, tool.arguments))
        assert found in ("", tool.right), tool.name


def test_nearly_all_right_names_are_found_without_presets() -> None:
    named = [tool for tool in TOOLS if tool.right]
    found = [tool for tool in named if familiar_aliases(tool.name, tool.arguments)]
    assert len(found) >= ENOUGH * len(named), [tool.name for tool in named if tool not in found]


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: f"{server.server} {server.version}")
def test_with_presets_every_tool_of_a_published_server_gets_the_right_name(server: Server) -> None:
    assert preset_for(server.command, "") == server.preset or preset_for([], server.server_name) == server.preset
    for tool in server.all_tools():
        found = preset_aliases(server.preset, tool.name, tool.arguments)
        if found is None:
            found = familiar_aliases(tool.name, tool.arguments)
        assert text(found) == tool.by_preset, tool.name


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: f"{server.server} {server.version}")
def test_an_alias_renames_only_arguments_that_the_tool_has_and_never_onto_one_that_it_has(server: Server) -> None:
    for tool in server.all_tools():
        aliases = [
            *familiar_aliases(tool.name, tool.arguments),
            *(preset_aliases(server.preset, tool.name, tool.arguments) or ()),
        ]
        for one in aliases:
            assert set(one.arguments.values()) <= tool.arguments.keys(), tool.name
            own_commands = {own for known, own in one.arguments.items() if known in tool.arguments}
            assert own_commands <= one.needed, tool.name  # only for calls that have this argument
            assert one.needed <= tool.arguments.keys(), tool.name


def test_a_configured_preset_says_of_published_tools_what_a_recognised_one_says() -> None:
    for tool in TOOLS:
        for one in PRESETS[tool.preset].tools if tool.preset else ():
            if one.tool == tool.name and one.name:
                assert tool.by_preset.split()[0].split(",")[0] == one.name, (tool.server, tool.name)


def test_the_familiar_names_are_those_that_recognition_gives() -> None:
    right = {name for tool in TOOLS if tool.right for name in tool.right.split()[0].split(",")}
    assert right <= set(FAMILIAR_NAMES)
    assert set(FAMILIAR_NAMES) == set(RECOGNISERS)


# --- names that say one thing and arguments that say another ---


@pytest.mark.parametrize(
    ("tool", "arguments", "right"),
    [
        ("runInTerminal", "cmd", "Bash command=cmd"),
        ("execute-shell-command", "command timeoutMs:number", "Bash timeout=timeoutMs"),
        ("python_repl", "code", "Bash command=code"),
        ("server.writeFile", "filePath contents", "Write file_path=filePath content=contents"),
        ("create_or_update_file", "path content", "Write file_path=path"),
        ("edit-file", "path oldText newText", "Edit file_path=path old_string=oldText new_string=newText"),
        ("replace_in_file", "path replacements:array", "MultiEdit,Edit file_path=path edits=replacements"),
        ("insert_at_line", "path line:number text", "Edit file_path=path new_string=text"),
        ("docker_exec", "container command", "Bash"),
        ("fs_read_file", "path", "Read file_path=path"),
        ("READ_FILE", "path", "Read file_path=path"),
        ("list_dir", "directory", "LS path=directory"),
        ("search_files", "path pattern", "Glob"),
        ("search_files", "path pattern regex:boolean", "Grep"),
        ("search_code", "path query filePattern", "Grep pattern=query glob=filePattern"),
        ("browser_navigate", "url", "WebFetch"),
        ("search_web", "q", "WebSearch query=q"),
        ("run_command", "command:?", "Bash"),
        ("execute_command", "command:array", "Bash"),
        ("execute_command", "command:array cmd", "Bash"),
        ("execute_command", "command Command", "Bash"),
        ("run_program", "program args:array", "Bash command=program"),
        ("run_container", "image command", "Bash"),
    ],
)
def test_a_tool_gets_the_familiar_name(tool: str, arguments: str, right: str) -> None:
    types = _types(arguments)
    aliases = familiar_aliases(tool, types)
    assert text(aliases) == right
    assert all(one.automatic and one.tool == tool for one in aliases)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("run_query", "query"),
        ("run_query", "command"),
        ("execute_sql", "sql"),
        ("execute_sql", "command"),
        ("execute_command", "command database"),
        ("execute_command_on_table", "command table"),
        ("execute_vscode_command", "command"),
        ("browser_run_code", "code"),
        ("redis_execute_command", "command"),
        ("kv_read", "path"),
        ("update_content", "path content"),
        ("list_processes", ""),
        ("get_process_output", "pid:number command"),
        ("get_command_history", "command"),
        ("kill_process", "command"),
        ("explain_command", "command"),
        ("run_workflow", "script"),
        ("read_graph", ""),
        ("create_issue", "title body"),
        ("write_note", "title content"),
        ("write_query", "query"),
        ("write_file", "path content:object"),
        ("create_or_update_file", "owner repo path content message branch"),
        ("get_file_contents", "owner repo path"),
        ("get_file_info", "path"),
        ("get_file_contents", "project_id file_path ref"),
        ("read_file", "host path"),
        ("read_file", "paths:array"),
        ("read_range", "path sheet range"),
        ("read_resource", "uri"),
        ("delete_file", "path"),
        ("edit_message", "path old_text new_text"),
        ("replace_cells", "path query replacement sheet"),
        ("fetch", "id"),
        ("fetch_issue", "url"),
        ("search_issues", "query path"),
        ("search_code", "q"),
        ("playwright_post", "url value"),
        ("download_file", "url path"),
        ("google_maps_search", "query"),
        ("write_file", "path Path content"),
        ("write_file", "path file_path:array content"),
        ("", "command"),
        ("run_команду", ""),
    ],
)
def test_other_tools_get_none(tool: str, arguments: str) -> None:
    assert familiar_aliases(tool, _types(arguments)) == ()


def test_a_tool_that_says_that_it_destroys_gets_no_name_of_a_tool_that_only_reads() -> None:
    types = {"path": "string"}
    (refusing,) = familiar_aliases("read_file", types, b'{"destructiveHint": true}')
    assert (refusing.name, refusing.guessed) == ("Read", True)  # a server's hint takes no guard's name away
    assert familiar_aliases("read_file", types, b'{"destructiveHint": true, "readOnlyHint": true}')
    assert familiar_aliases("read_file", types, b'{"destructiveHint": fal')
    assert familiar_aliases("run_command", {"command": "string"}, b'{"readOnlyHint": true, "destructiveHint": true}')


def test_a_tool_with_a_second_spelling_of_a_renamed_argument_gets_none() -> None:
    """A call with that spelling would be refused: the familiar name must not take anything away."""
    assert familiar_aliases("write_file", _types("path PATH content")) == ()


# --- calls ---

EDITOR: Final = _types("command path old_str new_str file_text insert_line:number view_range:array")


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        ("command path old_str new_str", ["Edit", "Edit"]),
        ("command path old_str", ["Edit"]),
        ("command path insert_line new_str", ["Edit", "Edit"]),
        ("command path file_text", ["Write", "Read"]),
        ("command path file_text old_str", ["Edit", "Write"]),
        ("command path view_range", ["Read"]),
        ("command path", ["Read"]),
        ("command", ["Edit"]),
    ],
)
def test_a_tool_that_does_several_things_gets_the_name_that_fits_the_call(keys: str, names: list[str]) -> None:
    aliases = familiar_aliases("str_replace_based_edit_tool", EDITOR)
    assert aliases_for_call(aliases, keys.split())[0].name == names[0]
    assert [one.name for one in aliases_for_call(aliases, keys.split())][: len(names)] == names


@pytest.mark.parametrize(
    ("keys", "action", "names"),
    [
        ("path", "view", {"Read"}),
        ("path", None, {"Read"}),
        ("path", "create", {"Edit", "Write"}),
        ("path", "undo_edit", {"Edit", "Write"}),
        ("path file_text", "create", {"Write"}),
        ("path", "peek", {"Edit", "Write", "Read"}),
        ("path", "", {"Edit", "Write", "Read"}),
    ],
)
def test_what_a_call_asks_an_editor_to_do_decides_whether_it_reads(
    keys: str, action: str | None, names: set[str]
) -> None:
    aliases = familiar_aliases("str_replace_based_edit_tool", EDITOR)
    assert {one.name for one in aliases_for_call(aliases, ["command", *keys.split()], action)} == names


@pytest.mark.parametrize(
    ("arguments", "action"),
    [
        (b'{"command":"Vi\\u0065w"}', "view"),
        (b'{"action":"create"}', "create"),
        (b'{"command":null,"action":"view"}', ""),
        (b'{"command":["view"]}', ""),
        (b'{"path":"view"}', None),
        (b'{"command":', ""),
    ],
)
def test_the_action_is_read_from_a_call(arguments: bytes, action: str | None) -> None:
    assert action_of(familiar_aliases("str_replace_based_edit_tool", EDITOR), arguments) == action
    assert action_of(familiar_aliases("read_file", {"path": "string"}), arguments) is None


def test_without_aliases_a_call_has_none() -> None:
    assert aliases_for_call((), ["command"]) == ()


# --- types ---


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ('{"type": "string"}', "string"),
        ('{"type": "integer"}', "number"),
        ('{"type": ["string", "null"]}', "string"),
        ('{"type": ["string", "array"]}', ""),
        ('{"anyOf": [{"type": "integer"}, {"type": "null"}]}', "number"),
        ('{"oneOf": [{"type": "string"}, {"type": "array"}]}', ""),
        ('{"allOf": [{"$ref": "#/$defs/text"}]}', "string"),
        ('{"$ref": "#/$defs/text"}', "string"),
        ('{"$ref": "#/$defs/loop"}', ""),
        ('{"$ref": "https://example.com/schema"}', ""),
        ('{"enum": ["a", "b"]}', "string"),
        ('{"const": true}', "boolean"),
        ('{"type": "null"}', ""),
        ("{}", ""),
        ("true", ""),
    ],
)
def test_the_type_of_an_argument_is_read_from_its_schema(schema: str, kind: str) -> None:
    defs = '{"text": {"type": "string"}, "loop": {"$ref": "#/$defs/loop"}}'
    listed = f'{{"type": "object", "properties": {{"a": {schema}}}, "$defs": {defs}}}'
    assert listed_arguments(listed.encode()).types == {"a": kind}


def test_arguments_of_alternatives_are_arguments() -> None:
    listed = b'{"properties": {"a": {"type": "string"}}, "anyOf": [{"properties": {"b": {"type": "array"}}}, 7]}'
    assert listed_arguments(listed).types == {"a": "string", "b": "array"}


@pytest.mark.parametrize("schema", [b"", b"7", b"[]", b"{", b'{"properties": []}', b"\xff", b"[" * 5000])
def test_an_unreadable_schema_has_no_arguments(schema: bytes) -> None:
    assert listed_arguments(schema).types == {}


def test_types_are_read_from_a_call() -> None:
    assert types_of(b'{"a": "x", "b": -1, "c": null, "d": [], "e": {}, "f": true}') == {
        "a": "string",
        "b": "number",
        "c": "",
        "d": "array",
        "e": "object",
        "f": "boolean",
    }
    assert types_of(b"[1]") == types_of(b"{") == {}


# --- whatever a server sends ---

WORDS: Final = sorted({word for tool in TOOLS for word in tool.name.replace("-", "_").split("_")})
ARGUMENTS: Final = sorted({name for tool in TOOLS for name in tool.arguments} | {"Path", "PATH", "file_Path", "\0", ""})
names = st.lists(st.sampled_from(WORDS), max_size=4).map("_".join) | st.text(max_size=20)
types = st.dictionaries(
    st.sampled_from(ARGUMENTS) | st.text(max_size=8),
    st.sampled_from(["string", "array", "object", "number", "boolean", ""]),
    max_size=8,
)


@given(names, types, st.binary(max_size=20), st.sets(st.sampled_from(ARGUMENTS), max_size=4))
def test_recognition_never_raises_and_never_gives_an_argument_two_meanings(
    name: str, arguments: dict[str, str], annotations: bytes, keys: set[str]
) -> None:
    aliases = familiar_aliases(name, arguments, annotations)
    assert {one.name for one in aliases} <= possible_names(name)
    for one in aliases:
        assert len(set(one.arguments.values())) == len(one.arguments)
        assert set(one.arguments.values()) | one.needed <= arguments.keys()
        taken = one.arguments.keys() & arguments.keys()
        assert taken <= {"command"}
        assert {one.arguments[known] for known in taken} <= one.needed
        call = json.encode(dict.fromkeys(arguments.keys() - taken, 1))
        assert one.for_call(call).for_server(one.for_hooks(call)) == call
    assert (not aliases_for_call(aliases, keys)) == (not aliases)


SCHEMA_KEYS: Final = st.sampled_from(["properties", "anyOf", "$ref", "type", "enum", "a"])
documents = st.recursive(
    st.none() | st.sampled_from(["string", "#", "#/a"]),
    lambda each: st.lists(each) | st.dictionaries(SCHEMA_KEYS, each),
)


@given(st.binary(max_size=60) | documents.map(json.encode))
def test_reading_types_never_raises(document: bytes) -> None:
    assert all(isinstance(kind, str) for kind in listed_arguments(document).types.values())
    assert all(isinstance(kind, str) for kind in types_of(document).values())


def test_a_schema_that_refers_to_itself_many_times_is_not_followed_without_end() -> None:
    alternatives = {"anyOf": [{"$ref": "#"}] * 100, "properties": {"command": {"type": "string"}}}
    assert listed_arguments(json.encode(alternatives)).types == {}
    argument = {"properties": {"command": {"anyOf": [{"$ref": "#/properties/command"}] * 100}}}
    assert listed_arguments(json.encode(argument)).types == {}


def test_the_time_for_a_name_grows_with_its_length_only() -> None:
    assert possible_names("run_" * 50_000) == {"Bash"}  # minutes, if each word were compared with all others
    assert possible_names("poem_" + "read_file_" * 50_000) == {"Read"}
