"""Edges of recognising tools that other tests pass by: each was found by a change of the code that no test noticed."""

from __future__ import annotations

import pytest

from hookproxy.model.aliases import Alias
from hookproxy.model.command_line import Parts
from hookproxy.policy.alias_choice import action_of, rival_arguments, rival_commands
from hookproxy.policy.command_tools import command_aliases, guessed_aliases
from hookproxy.policy.familiar_names import (
    aliases_of_open,
    aliases_of_unlisted,
    familiar_aliases,
    listed_aliases,
    may_be_command,
)
from hookproxy.policy.recognisers import bash_aliases, known_tool
from hookproxy.policy.tool_arguments import ToolArguments
from hookproxy.policy.tool_names import plain, words_of

Names = list[tuple[str, dict[str, str], bool]]

BASH: Names = [("Bash", {}, False)]


def runs(tool: str, types: dict[str, str]) -> bool:
    return bool(guessed_aliases(tool, words_of(tool), types))


# --- familiar names: what counts of a tool's arguments ---


@pytest.mark.parametrize(
    ("tool", "types", "required", "names"),
    [
        ("read_file", {"path": "string", "content": "string"}, None, []),
        ("read_file", {"path": "string", "new_text": "string"}, None, []),
        ("read_file", {"path": "string", "content": "string"}, ["path"], ["Read"]),
        ("read_file", {"path": "string", "content": "string"}, ["path", "content"], []),
        ("read_file", {"path": "string", "Path": "string"}, None, []),
        ("write_file", {"path": "string", "content": "string", "repo": "string"}, None, []),
        ("write_file", {"path": "string", "content": "string", "repo": "string"}, ["path"], ["Write"]),
        ("write_file", {"path": "string", "content": "string", "repo": "string"}, ["path", "repo"], []),
        ("edit_file", {"target_file": "string", "code_edit": "string"}, None, ["Edit"]),
        ("edit_file", {"target_file": "string", "code_edit": "string", "repo": "string"}, ["target_file"], ["Edit"]),
        ("edit_file", {"target_file": "string", "code_edit": "string", "repo": "string"}, ["repo"], []),
        ("edit_file", {"target_file": "string", "targetFile": "string", "code_edit": "string"}, None, []),
        ("edit_file", {"path": "string", "old_text": "string", "new_text": "string"}, None, ["Edit"]),
        ("list_directory", {"path": "string"}, None, ["LS"]),
        ("list_directory", {"path": "string", "content": "string"}, None, []),
        ("list_directory", {"path": "string", "repo": "string"}, None, []),
        ("glob", {"pattern": "string", "include": "string"}, None, ["Glob"]),
        ("fetch_url", {"url": "string"}, None, ["WebFetch"]),
        ("fetch_url", {"url": "string", "path": "string"}, None, []),
    ],
)
def test_an_argument_that_means_something_else_rules_a_name_out_where_every_call_has_it(
    tool: str, types: dict[str, str], required: list[str] | None, names: list[str]
) -> None:
    assert [alias.name for alias in familiar_aliases(tool, types, required=required)] == names
    if required is not None:
        listed = listed_aliases(tool, ToolArguments(types, frozenset(required)))
        assert [alias.name for alias in listed] == names


def test_listed_arguments_that_are_not_known_to_be_required_rule_nothing_out() -> None:
    (alias,) = listed_aliases("read_file", ToolArguments({"path": "string", "content": "string"}))
    assert (alias.name, alias.guessed) == ("Read", False)
    assert listed_aliases("frobnicate", ToolArguments({"command": "string", "sql": "string"}, frozenset({"sql"}))) == ()
    (alias,) = listed_aliases("frobnicate", ToolArguments({"command": "string", "sql": "string"}, frozenset()))
    assert alias.name == "Bash"


@pytest.mark.parametrize("annotations", [b'["destructiveHint"]', b'{"title":"destructiveHint"}'])
def test_a_hint_that_is_not_given_changes_nothing(annotations: bytes) -> None:
    (alias,) = familiar_aliases("read_file", {"path": "string"}, annotations)
    assert (alias.name, alias.guessed) == ("Read", False)


def test_a_list_of_edits_is_known_under_both_names() -> None:
    aliases = familiar_aliases("edit_file", {"path": "string", "edits": "array"})
    assert [(alias.name, alias.edits) for alias in aliases] == [("MultiEdit", "edits"), ("Edit", "edits")]


def test_an_editor_that_inserts_needs_the_text_or_the_place() -> None:
    types = {"command": "string", "path": "string", "old_str": "string", "new_str": "string", "insert_text": "string"}
    needed = [alias.needed for alias in familiar_aliases("str_replace_editor", types) if alias.name == "Edit"]
    assert needed == [{"path", own} for own in ("old_str", "new_str", "insert_text")]


def test_a_part_of_a_file_is_the_new_text() -> None:
    (alias,) = familiar_aliases("edit_file", {"target_file": "string", "code_edit": "string"})
    assert alias.arguments == {"file_path": "target_file", "new_string": "code_edit"}


def test_an_argument_is_found_in_any_spelling() -> None:
    tool = known_tool("t", ["t"], {"File-Path": "string", "repo": "string"}, frozenset({"filepath"}))
    assert plain("File-Path_x") == "filepathx"
    assert tool.named(("filepath",)) == "File-Path"
    assert tool.named(("other",)) == ""
    assert tool.named(("filepath",), "number") == ""
    assert tool.lacks(frozenset({"repo"}))
    assert not tool.lacks(frozenset({"filepath"}))
    assert not known_tool("t", ["t"], {"repo": "string"}).lacks(frozenset({"repo"}))


# --- Bash ---


@pytest.mark.parametrize(
    ("types", "listed", "needed", "words"),
    [
        ({"command": "integer"}, True, [], ()),
        ({"command": "integer"}, False, ["command"], None),
        ({"code": "integer"}, True, [], ()),
        ({"code": "integer"}, False, ["code"], None),
        ({"command": "string", "x_cmd": "integer"}, True, ["command"], ()),
        ({"command": "string", "x_cmd": "integer"}, False, ["command", "x_cmd"], None),
        ({"command": "string", "args": "array"}, True, ["command"], ("args",)),
        ({"command": "string", "args": "array"}, False, ["command"], None),
    ],
)
def test_a_command_of_any_type_counts_where_only_a_call_shows_it(
    types: dict[str, str], listed: bool, needed: list[str], words: tuple[str, ...] | None
) -> None:
    aliases = bash_aliases(known_tool("run_command", ["run", "command"], types), listed=listed)
    assert [list(alias.needed) for alias in aliases] == [[own] for own in needed]
    assert all(alias.parts is not None and alias.parts.words == words for alias in aliases)
    if listed:
        assert bash_aliases(known_tool("run_command", ["run", "command"], types)) == aliases


def test_further_arguments_of_bash_are_found_in_their_spellings() -> None:
    types = {"cmd": "string", "timeout_ms": "", "background": "boolean"}
    (alias,) = bash_aliases(known_tool("run_command", ["run", "command"], types))
    assert alias.arguments == {"command": "cmd", "timeout": "timeout_ms", "run_in_background": "background"}


def test_the_words_of_a_guessed_command_are_not_known_where_only_a_call_shows_them() -> None:
    types = {"command": "string", "args": "array"}
    (listed,), (called,) = (guessed_aliases("x", ["x"], types, listed=listed) for listed in (True, False))
    (unlisted,) = aliases_of_unlisted("frobnicate", types)
    assert [one.parts.words for one in (listed, called, unlisted) if one.parts] == [("args",), None, None]


def test_only_a_guessed_alias_has_the_program_after_which_a_tool_is_named() -> None:
    types = {"command": "string", "args": "array"}
    for guessed, program in ((True, "git"), (False, "")):
        (alias,) = command_aliases("run_git", ["command"], types, {}, guessed=guessed)
        assert alias.parts == Parts(("command",), ("args",), program)


def test_a_command_keeps_its_name_where_another_argument_may_be_taken_for_it() -> None:
    (alias,) = command_aliases("x", ["cmd"], {"cmd": "string", "Command": "integer"}, {})
    assert alias.arguments == {}


@pytest.mark.parametrize(
    ("tool", "types", "may_run"),
    [
        ("run_code", {"source": "string"}, True),
        ("run_code", {"title": "string", "x": "string"}, False),
        ("shell", {"args": "array"}, True),
        ("shell", {"args": "array", "session_id": "string"}, True),
        ("shell", {"args": "array", "session-id": "string"}, True),
        ("launch_thing", {"args": "string"}, False),
        ("launch_thing", {"args": "array"}, True),
        ("launch_thing", {"script_body": "string"}, True),
        ("launch_thing", {"script_name": "string"}, False),
        ("run-git", {"args": "string"}, True),
    ],
)
def test_further_tools_that_may_run_commands(tool: str, types: dict[str, str], *, may_run: bool) -> None:
    assert runs(tool, types) is may_run


def test_a_program_beside_words_is_one_argument_and_a_fixed_value_is_none() -> None:
    (alias,) = guessed_aliases("launch_it", ["launch", "it"], {"path": "string", "app": "string", "args": "array"})
    assert alias.needed == {"path"}
    assert not guessed_aliases("shell", ["shell"], {"input": "string"}, choices=["input"])
    assert guessed_aliases("shell", ["shell"], {"input": "string"})


@pytest.mark.parametrize("tool", ["frobnicate", "read_file", "sql_run"])
def test_any_tool_may_be_bash_by_an_argument_for_a_shell(tool: str) -> None:
    assert may_be_command(tool)


@pytest.mark.parametrize(
    ("tool", "arguments", "nested", "needed"),
    [
        ("run_command", {"code": "object"}, (), {"code"}),
        ("run_command", {"y": "object"}, (), None),
        ("run_command", {"x": "object"}, ("x",), {"x"}),
        ("read_file", {"code": "object"}, (), None),
        ("read_file", {"x": "object"}, ("x",), {"x"}),
    ],
)
def test_an_object_beside_the_listed_arguments_is_a_command_where_it_is_named_like_one(
    tool: str, arguments: dict[str, str], nested: tuple[str, ...], needed: set[str] | None
) -> None:
    aliases = aliases_of_open(tool, arguments, nested)
    assert [(one.name, set(one.needed)) for one in aliases] == ([("Bash", needed)] if needed else [])


@pytest.mark.parametrize(
    ("tool", "arguments", "names"),
    [
        ("run_command", {"command": "string", "query": "string"}, BASH),
        ("frobnicate", {"action": "string", "path": "string"}, []),
        ("text_editor", {"path": "string"}, []),
        (
            "text_editor",
            {"action": "string", "path": "string", "view_range": "array"},
            [("Read", {"file_path": "path"}, False)],
        ),
        (
            "text_editor",
            {"action": "string", "path": "string", "content": "string"},
            [("Write", {"file_path": "path"}, False), ("Read", {"file_path": "path"}, False)],
        ),
        (
            "edit_file",
            {"target_file": "string", "code_edit": "string"},
            [("Edit", {"file_path": "target_file", "new_string": "code_edit"}, False)],
        ),
        ("read_file", {"path": "integer", "file": "string"}, [("Read", {"file_path": "file"}, False)]),
    ],
)
def test_a_call_shows_the_names_of_further_tools(tool: str, arguments: dict[str, str], names: Names) -> None:
    found = [(one.name, dict(one.arguments), one.guessed) for one in aliases_of_unlisted(tool, arguments)]
    assert found == names


# --- which alias a call gets ---


def test_a_tool_that_reads_and_writes_is_asked_for_its_action_whatever_it_is_called() -> None:
    both = (Alias("files", "Read"), Alias("files", "Write"))
    assert action_of(both, b'{"action":"View"}') == "view"
    assert action_of(both[:1], b'{"action":"view"}') is None
    assert action_of((Alias("text_editor", "Read"),), b'{"action":"view"}') == "view"


@pytest.mark.parametrize(
    ("arguments", "listed", "rivals"),
    [
        (["path", "file_path"], ["path"], ["file_path", "path"]),
        (["path", "file_path"], [], ["file_path", "path"]),
        (["path", "file_path"], ["path", "file_path"], []),
        (["path"], [], []),
        (["path", "content", "text"], ["path", "content"], []),
    ],
)
def test_two_arguments_for_a_file_are_rivals_unless_both_are_listed(
    arguments: list[str], listed: list[str], rivals: list[str]
) -> None:
    assert rival_arguments((Alias("t", "Read", needed=frozenset({"path"})),), arguments, listed) == rivals


@pytest.mark.parametrize(
    ("names", "arguments", "listed", "rivals"),
    [
        (["Bash"], {"cmd": "string", "command": "string"}, ["cmd", "command"], ["command", "cmd"]),
        (["Read", "Bash"], {"cmd": "array", "command": "object"}, ["cmd", "command"], ["command", "cmd"]),
        (["Bash"], {"cmd": "string", "command": "string"}, ["cmd"], []),
        (["Bash"], {"cmd": "string", "command": "number"}, ["cmd", "command"], []),
        (["Bash"], {"cmd": "string"}, ["cmd"], []),
        (["Read"], {"cmd": "string", "command": "string"}, ["cmd", "command"], []),
    ],
)
def test_two_listed_commands_are_rivals(
    names: list[str], arguments: dict[str, str], listed: list[str], rivals: list[str]
) -> None:
    assert rival_commands([Alias("t", name) for name in names], arguments, listed) == rivals
