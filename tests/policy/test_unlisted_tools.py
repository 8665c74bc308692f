"""The names of tools of which only a call shows the arguments, and of tools that may run commands: for refusing."""

from __future__ import annotations

import pytest

from hookproxy.policy.command_tools import guessed_aliases, looks_like_command
from hookproxy.policy.familiar_names import aliases_of_open, aliases_of_unlisted, familiar_aliases
from hookproxy.policy.tool_names import words_of

Names = list[tuple[str, dict[str, str], bool]]

BASH: Names = [("Bash", {}, False)]
REFUSED: Names = [("Bash", {}, True)]


@pytest.mark.parametrize(
    ("tool", "arguments", "names"),
    [
        ("run_command", {"command": "string"}, BASH),
        ("run_command", {"command": "array"}, BASH),
        ("run_command", {"command": "integer"}, BASH),
        ("run_command", {"cmd": "string", "x": "string"}, [("Bash", {"command": "cmd"}, False)]),
        ("read_file", {"path": "string"}, [("Read", {"file_path": "path"}, False)]),
        ("read_file", {"path": "integer"}, [("Read", {"file_path": "path"}, False)]),
        ("read_file", {"path": "string", "content": "string"}, [("Read", {"file_path": "path"}, False)]),
        ("read_file", {"x": "string"}, []),
        ("read_file", {}, []),
        ("write_file", {"path": "string", "content": "string"}, [("Write", {"file_path": "path"}, False)]),
        ("write_file", {"path": "string"}, []),
        (
            "edit_file",
            {"path": "string", "edits": "string"},
            [("MultiEdit", {"file_path": "path"}, False), ("Edit", {"file_path": "path"}, False)],
        ),
        ("str_replace_editor", {"command": "string", "path": "string"}, [("Read", {"file_path": "path"}, False)]),
        ("text_editor", {"action": "string", "path": "string"}, [("Read", {"file_path": "path"}, False)]),
        ("grep", {"pattern": "string"}, [("Grep", {}, False)]),
        ("fetch", {"url": "string"}, [("WebFetch", {}, False)]),
        ("frobnicate", {"command": "string"}, REFUSED),
        ("frobnicate", {"x": "string"}, []),
    ],
)
def test_a_call_shows_by_which_names_its_tool_is_known(tool: str, arguments: dict[str, str], names: Names) -> None:
    aliases = aliases_of_unlisted(tool, arguments)
    assert [(one.name, dict(one.arguments), one.guessed) for one in aliases] == names
    assert all(one.tool == tool for one in aliases)


@pytest.mark.parametrize(
    ("tool", "arguments", "names"),
    [
        ("run_command", {"command": "string"}, REFUSED),
        ("run_command", {"cmd": "string"}, [("Bash", {"command": "cmd"}, True)]),
        ("read_file", {"path": "string"}, []),
        ("read_file", {"command": "integer"}, REFUSED),  # the agent chooses the type
        ("read_file", {"command": "object"}, REFUSED),
    ],
)
def test_arguments_that_a_tool_does_not_list_may_be_a_command(
    tool: str, arguments: dict[str, str], names: Names
) -> None:
    aliases = aliases_of_open(tool, arguments, ())
    assert [(one.name, dict(one.arguments), one.guessed) for one in aliases] == names


def test_a_tool_that_only_reads_keeps_its_name_although_it_says_that_it_destroys() -> None:
    (alias,) = familiar_aliases("read_file", {"path": "string"}, b'{"destructiveHint":true,"readOnlyHint":true}')
    assert (alias.name, alias.guessed) == ("Read", False)
    (alias,) = familiar_aliases("read_file", {"path": "string"}, b'{"destructiveHint":false,"readOnlyHint":false}')
    assert (alias.name, alias.guessed) == ("Read", False)


def test_only_names_of_tools_that_read_are_doubted_by_a_hint() -> None:
    (alias,) = familiar_aliases("write_file", {"path": "string", "content": "string"}, b'{"destructiveHint":true}')
    assert (alias.name, alias.guessed) == ("Write", False)


# --- tools that may run commands ---


def runs(tool: str, types: dict[str, str], required: tuple[str, ...] = (), nested: tuple[str, ...] = ()) -> bool:
    aliases = guessed_aliases(tool, words_of(tool), types, (), required, nested=nested)
    assert all(one.name == "Bash" and one.guessed for one in aliases)
    return bool(aliases)


@pytest.mark.parametrize(
    ("tool", "types", "may_run"),
    [
        ("frobnicate", {"argv": "array"}, True),
        ("frobnicate", {"argv": "array", "title": "string"}, False),
        ("run_git", {"args": "string"}, True),
        ("run_git", {"args": "array"}, True),
        ("frobnicate", {"args": "string"}, False),
        ("frobnicate", {"args": "array"}, False),
        ("sql_run", {"command": "string"}, False),
        ("sql_run", {"shell_command": "string"}, True),
        ("sql_run", {"bash_command": "string"}, True),
    ],
)
def test_what_a_tool_gets_shows_whether_it_may_run_commands(tool: str, types: dict[str, str], *, may_run: bool) -> None:
    assert runs(tool, types) is may_run


@pytest.mark.parametrize("name", ["database", "Database", "DATABASE"])
def test_a_tool_that_needs_a_database_runs_statements(name: str) -> None:
    types = {"command": "string", name: "string"}
    assert not runs("frobnicate", types, (name,))
    assert runs("frobnicate", types)


@pytest.mark.parametrize("kind", ["array", "object"])
def test_a_list_that_holds_commands_is_not_renamed_to_one(kind: str) -> None:
    (alias,) = guessed_aliases("frobnicate", ["frobnicate"], {"steps": kind}, nested=("steps",))
    assert dict(alias.arguments) == {}
    assert alias.needed == {"steps"}


def test_a_query_is_a_command_only_where_something_runs() -> None:
    assert looks_like_command(["run", "it"], {"query": "string"})
    assert looks_like_command(["database", "query"], {"query": "string"})
    assert not looks_like_command(["get", "it"], {"query": "string"})
    assert not looks_like_command(["run", "it"], {"title": "string"})
