"""Strict reading of hook files, and the labels of hooks."""

import contextlib
import datetime
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.dialects.claude import DIALECT as CLAUDE
from hookproxy.dialects.dialect import HookList
from hookproxy.dialects.shared.command_file import Timeouts
from hookproxy.dialects.shared.hook_file import (
    Table,
    compile_member,
    read_document,
    read_events,
    read_json,
    resolve_program,
    suggestion,
    without_comments,
)
from hookproxy.model.errors import ConfigError
from hookproxy.model.hooks import Event


def table(**members: object) -> Table:
    return Table("/f", "hooks[0]", members)


def refusal(problem: pytest.ExceptionInfo[ConfigError]) -> tuple[str, str]:
    return problem.value.message, problem.value.hint


def test_members_have_their_types() -> None:
    entry = table(text="a", flag=True, texts=["a", "b"], tables=[{"x": 1}], table={"y": "b"}, seconds=1)
    assert (entry.text("text"), entry.flag("flag"), entry.texts("texts")) == ("a", True, ("a", "b"))
    assert entry.tables("tables") == [Table("/f", "hooks[0].tables[0]", {"x": 1})]
    assert entry.table("table").text("y") == "b"
    assert entry.seconds("seconds", 9) == 1.0


def test_absent_members_have_their_defaults() -> None:
    entry = table()
    assert (entry.text("a"), entry.text("a", "x"), entry.flag("a"), entry.texts("a")) == (
        "",
        "x",
        False,
        None,
    )
    assert (entry.tables("a"), entry.table("a").members, entry.seconds("a", 9)) == ([], {}, 9.0)
    assert entry.choice("a", ("x", "y"), "x") == "x"


def test_an_empty_list_is_not_an_absent_one() -> None:
    assert table(args=[]).texts("args") == ()


def test_an_absent_member_that_is_required_is_named() -> None:
    with pytest.raises(ConfigError) as problem:
        table().require("command", "write one")
    assert refusal(problem) == ("/f: hooks[0].command is missing", "write one")


def test_the_error_names_the_type_of_a_wrong_value() -> None:
    with pytest.raises(ConfigError) as problem:
        table(name=datetime.date(2026, 1, 1)).text("name")
    assert refusal(problem) == ("/f: hooks[0].name must be a string, not date", "write a string")


def test_a_timeout_in_milliseconds_is_refused_with_the_seconds_in_our_own_files_only() -> None:
    assert table(timeout=9_999).plausible_seconds("timeout", 60) == 9_999
    assert table(timeout=10_000).seconds("timeout", 60) == 10_000
    with pytest.raises(ConfigError) as problem:
        table(timeout=10_000).plausible_seconds("timeout", 60)
    assert refusal(problem) == (
        "/f: hooks[0].timeout looks like milliseconds: 10000",
        "write seconds: 10 for 10000",
    )


def test_a_session_end_hook_has_a_timeout_of_its_own() -> None:
    timeouts = Timeouts(60.0)
    assert timeouts.read(Event.PRE_TOOL_USE, table()) == (60, [])
    assert timeouts.read(Event.SESSION_END, table()) == (1.5, [])
    assert timeouts.read(Event.SESSION_END, table(timeout=70)) == (60, [])


def test_a_key_that_is_missing_may_be_misspelled() -> None:
    with pytest.raises(ConfigError) as problem:
        table(type="command", comand="x").require("command")
    assert refusal(problem) == ("/f: hooks[0].command is missing", "write command for comand")
    with pytest.raises(ConfigError) as problem:
        table(type="command").require("command")
    assert refusal(problem) == ("/f: hooks[0].command is missing", "add command")


def test_unknown_keys_come_with_suggestions() -> None:
    assert table(timout=1, colour=2, timeout=3).unknown(("timeout", "matcher")) == {
        "timout": "did you mean 'timeout'?",
        "colour": "",
    }


def test_a_suggestion_ignores_case() -> None:
    assert suggestion("pretooluse", ["PreToolUse", "PostToolUse"]) == "did you mean 'PreToolUse'?"
    assert suggestion("xyz", ["PreToolUse"]) == ""


def test_an_error_names_the_text_that_cannot_be_compiled() -> None:
    def never(_text: str) -> None:
        raise ValueError("no good")

    with pytest.raises(ConfigError) as problem:
        compile_member(table(matcher="x"), "matcher", never)
    assert refusal(problem) == (
        "/f: hooks[0].matcher 'x' cannot be used: no good",
        "write a tool's name, several names separated by |, or a regular expression",
    )


def test_an_error_names_a_duplicate_key_at_any_depth() -> None:
    with pytest.raises(ConfigError) as problem:
        read_json("/f", '{"a": [{"c": 2, "b": 1, "b": 3}]}')
    assert refusal(problem) == ("/f: the key 'b' appears twice in one object", "one of the two values would be lost")


def test_an_error_names_the_line_of_the_file() -> None:
    with pytest.raises(ConfigError) as problem:
        read_json("/f", '{\n"a": 1,\n"b" 2}')
    assert problem.value.message.startswith("/f:3: not JSON: ")


def test_a_program_given_as_a_relative_path_is_in_the_folder() -> None:
    assert resolve_program(("./a.sh", "./b"), "/repo") == ("/repo/a.sh", "./b")
    assert resolve_program(("/bin/a",), "/repo") == ("/bin/a",)
    assert resolve_program(("jq",), "/repo") == ("jq",)
    assert resolve_program((), "/repo") == ()


# --- files in other languages ---


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/a.json", '{"hooks": {"a": [1]}}'),
        ("/a.yaml", "hooks:\n  a:\n  - 1\n"),
        ("/a.yml", '{"hooks": {"a": [1]}}'),
        ("/a.yaml", "base: &b {a: [1]}\nhooks:\n  <<: *b\n"),
        ("/a.toml", "[hooks]\na = [1]\n"),
    ],
)
def test_a_file_is_read_in_the_format_of_its_suffix(path: str, text: str) -> None:
    assert read_document(path, text).table("hooks").members == {"a": [1]}


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("/a.yaml", "a: 1\nb:\n  c: 1\n  c: 2\n", "/a.yaml:4: the key 'c' appears twice in one mapping"),
        ("/a.yaml", "on: 1\n", "/a.yaml:1: the key True is not a string"),
        ("/a.yaml", "a: [1\n", "/a.yaml:2: not YAML"),
        ("/a.yaml", "a: \0", "/a.yaml: cannot be read as YAML"),
        ("/a.yaml", "- 1\n", "/a.yaml: must contain one YAML mapping"),
        ("/a.yaml", "", "/a.yaml: must contain one YAML mapping"),
        (
            "/a.yaml",
            "a: !!python/object/apply:os.system [true]",
            "/a.yaml:1: not YAML: could not determine a constructor",
        ),
        ("/a.yaml", "[" * 5000, "/a.yaml: cannot be read as YAML"),
        ("/a.toml", "a = 1\na = 2\n", "/a.toml: not TOML: Cannot overwrite a value (at line 2"),
        ("/a.toml", "a = ", "/a.toml: not TOML"),
    ],
)
def test_an_unreadable_file_is_an_error_with_its_line(path: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_document(path, text)
    assert caught.value.message.startswith(message)


@given(st.text(max_size=80))
def test_any_text_is_read_or_a_config_error(text: str) -> None:
    for path in ("/a.json", "/a.yaml", "/a.toml"):
        with contextlib.suppress(ConfigError):
            read_document(path, text)


@pytest.mark.parametrize("timeout", [0, -1, 1e400, float("nan"), 10**400, True, "5"])
def test_any_invalid_timeout_is_a_config_error(timeout: object) -> None:
    with pytest.raises(ConfigError):
        Table("/a.json", "", {"timeout": timeout}).seconds("timeout", 5)


def read(events: dict[str, object]) -> HookList:
    """A table of claude's events, in which each entry gets a note with its place."""
    hooks = Table("/f", "hooks", events)
    found = read_events(
        hooks,
        CLAUDE.events,
        CLAUDE.unavailable,
        lambda name: HookList((), tuple(f"{name} {entry.path}" for entry in hooks.tables(name))),
    )
    assert not found.hooks
    return found


def test_events_are_read_in_the_files_order_and_those_that_cannot_occur_get_a_remark() -> None:
    assert read({"SessionEnd": [{}], "Stop": [{}, {}], "PreToolUse": [{}, {}]}) == HookList(
        (),
        ("SessionEnd hooks.SessionEnd[0]", "PreToolUse hooks.PreToolUse[0]", "PreToolUse hooks.PreToolUse[1]"),
        ("/f: hooks.Stop cannot fire behind MCP: an MCP server does not see turns, tasks and subagents",),
    )


def test_an_event_without_entries_is_ignored() -> None:
    assert read({"Stop": [], "PreToolUse": []}) == HookList(())


@pytest.mark.parametrize("value", [[], "x"])
def test_a_key_that_is_not_an_event_gets_a_note_whatever_its_value(value: object) -> None:
    note = "/f: hooks.PreToolUze is not an event, so its hooks never run: did you mean 'PreToolUse'?"
    assert read({"PreToolUze": value}) == HookList((), (note,))


def test_comments_are_no_events() -> None:
    assert read({"//": 1, "_x": [], "comment": "y", "$schema": "z", "description": "d"}) == HookList(())


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ('{"a": 1} // end', '{"a": 1}       '),
        ('{"a": "//x", /* b */ "c": [1, 2,],}', '{"a": "//x",         "c": [1, 2 ] }'),
        ('{"a": "\\"/*", "b": "*/"}', '{"a": "\\"/*", "b": "*/"}'),
        ("{/* two\nlines */}", "{      \n        }"),
        ('{"a": 1, // c\n}', '{"a": 1      \n}'),
        ("[,]", "[,]"),
        ("{\n,}", "{\n,}"),
        ("[1,,]", "[1,,]"),
        ('{"open', '{"open'),
        ("{/* open", "{/* open"),
    ],
)
def test_comments_and_trailing_commas_become_blanks(text: str, plain: str) -> None:
    assert without_comments(text) == plain


def test_json_without_comments_is_never_changed() -> None:
    text = json.dumps({"a": ["//", "/*", ",]", '"', "\\"], "b": "*/"}, indent=1)
    assert without_comments(text) == text


def test_comments_are_only_read_where_the_system_has_them() -> None:
    with pytest.raises(ConfigError, match="not JSON"):
        read_document("x.json", '{"a": 1} // c')
    assert read_document("x.json", '{"a": 1} // c', comments=True).members == {"a": 1}
