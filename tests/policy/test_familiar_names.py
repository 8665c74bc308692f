"""Familiar names: recognised for tools that do what Claude Code's tools do, and for no others."""

from __future__ import annotations

import pytest

from hookproxy.policy.familiar_names import alias_for_call, argument_types, familiar_aliases, possible_names, types_of
from hookproxy.policy.presets import preset_for


@pytest.mark.parametrize(
    ("tool", "arguments", "name", "renamed"),
    [
        ("execute_command", "command", "Bash", {}),
        ("runInTerminal", "cmd", "Bash", {"command": "cmd"}),
        ("write_file", "path content", "Write", {"file_path": "path"}),
        ("edit-file", "path oldText newText", "Edit", {"file_path": "path", "old_string": "oldText", "new_string": "newText"}),
        ("read_file", "path", "Read", {"file_path": "path"}),
        ("browser_navigate", "url", "WebFetch", {}),
        ("search_files", "path pattern", "Glob", {}),
        ("search_code", "path pattern filePattern", "Grep", {"glob": "filePattern"}),
    ],
)  # fmt: skip
def test_a_tool_gets_the_familiar_name(tool: str, arguments: str, name: str, renamed: dict[str, str]) -> None:
    (alias,) = familiar_aliases(tool, dict.fromkeys(arguments.split(), "string"))
    assert (alias.tool, alias.name, alias.arguments, alias.automatic) == (tool, name, renamed, True)
    assert name in possible_names(tool)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("run_query", "query"),
        ("execute_sql", "sql"),
        ("list_processes", ""),
        ("read_graph", ""),
        ("create_issue", "title body"),
        ("run_workflow", "script"),
        ("execute_command_on_table", "command table"),
        ("get_process_output", "pid command"),
        ("write_note", "title content"),
        ("read_resource", "uri"),
        ("fetch_issue", "url"),
        ("edit_message", "path old_text new_text"),
        ("write_query", "query"),
        ("create_or_update_file", "owner repo path content message branch"),
        ("get_file_contents", "owner repo path"),
    ],
)
def test_other_tools_get_none(tool: str, arguments: str) -> None:
    assert familiar_aliases(tool, dict.fromkeys(arguments.split(), "string")) == ()


def test_a_tool_that_does_several_things_gets_the_name_that_fits_the_call() -> None:
    arguments = ["command", "path", "old_str", "new_str", "file_text", "insert_line"]
    types = dict.fromkeys(arguments, "string") | {"insert_line": "number", "view_range": "array"}
    aliases = familiar_aliases("str_replace_based_edit_tool", types)
    for call, name in (
        ("command path old_str new_str", "Edit"),
        ("command path insert_line new_str", "Edit"),
        ("command path file_text", "Write"),
        ("command path", "Read"),
    ):
        chosen = alias_for_call(aliases, call.split())
        assert chosen is not None
        assert chosen.name == name


def test_types_are_read_from_schemas_and_calls() -> None:
    schema = b'{"properties": {"a": {"type": ["string", "null"]}, "b": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "c": {"$ref": "x"}}}'
    assert argument_types(schema) == {"a": "string", "b": "number", "c": ""}
    assert types_of(b'{"a": "x", "b": -1, "c": null, "d": [], "e": {}, "f": true}') == {
        "a": "string", "b": "number", "c": "", "d": "array", "e": "object", "f": "boolean",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("npx -y @modelcontextprotocol/server-filesystem@latest /tmp", "filesystem"),
        ("uvx mcp-server-git --repository .", "git"),
        ("python -m other", ""),
    ],
)
def test_a_command_line_names_a_preset(command: str, name: str) -> None:
    assert preset_for(command.split(), "") == name
