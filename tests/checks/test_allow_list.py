"""An allow list from a server's own tools: what only reads is allowed, and nothing of the server's breaks out of it."""

from __future__ import annotations

import json
import tomllib
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.checks.allow_list import AllowList, propose, text_of
from hookproxy.config.parse import parse
from hookproxy.hooks.explain import Answer, explain
from hookproxy.model.hooks import Tool
from hookproxy.model.settings import Settings
from hookproxy.policy import methods
from tests.support.examples import examples

READS: Final = {"readOnlyHint": True}


def tool(name: str, annotations: object = None, properties: Any = None) -> Tool:  # noqa: ANN401  # any JSON
    schema = json.dumps({"type": "object", "properties": properties or {}}).encode()
    names = frozenset(properties or ())
    return Tool(
        name, schema, annotations=b"" if annotations is None else json.dumps(annotations).encode(), properties=names
    )


def proposed(*tools: Tool, command: str = "a-server", known: tuple[str, ...] = (), server: str = "") -> AllowList:
    return propose(tools, command.split(), server or "a", "", with_server=bool(server), known=known)


@pytest.mark.parametrize(
    ("annotations", "is_allowed"),
    [
        (READS, True),
        ({**READS, "destructiveHint": False, "title": "x"}, True),
        ({**READS, "destructiveHint": True}, False),
        ({"readOnlyHint": "true"}, False),
        ({"readOnlyHint": 1}, False),
        ({"readOnlyHint": False}, False),
        ({}, False),
        ([True], False),
        (None, False),
    ],
)
def test_a_tool_is_allowed_if_its_server_says_clearly_that_it_only_reads(annotations: object, is_allowed: bool) -> None:
    rules = proposed(tool("look", annotations))
    assert (rules.by_annotation, rules.ask) == ((("look",), ()) if is_allowed else ((), ("look",)))


def test_a_tool_that_runs_commands_or_writes_is_asked_about_whatever_its_server_says() -> None:
    runs = tool("run_command", READS, {"command": {"type": "string"}})
    writes = tool("write_file", READS, {"path": {"type": "string"}, "content": {"type": "string"}})
    assert proposed(runs, writes).ask == ("run_command", "write_file")


@pytest.mark.parametrize(
    "name",
    ["delete_all", "DELETE_ALL", "deleteAll", "Delete-All", "send", "run_report", "db.drop", "x/write_y", "setUp"],
)
def test_a_tool_that_is_called_after_a_change_is_asked_about_whatever_its_server_says(name: str) -> None:
    assert proposed(tool(name, READS)).ask == (name,)


@pytest.mark.parametrize("name", ["settings", "get_updates", "address", "runner_status", "list_sent", "postcode"])
def test_a_tool_whose_name_only_begins_like_one_is_allowed(name: str) -> None:
    assert proposed(tool(name, READS)).by_annotation == (name,)


@pytest.mark.parametrize("name", ["Bash", "Write", "WebFetch"])
def test_a_tool_that_has_a_familiar_name_itself_is_what_that_name_says(name: str) -> None:
    assert proposed(tool(name, READS)).ask == (name,)


def test_a_tool_that_fetches_any_address_is_asked_about_because_it_can_carry_data_out() -> None:
    assert proposed(tool("fetch", READS, {"url": {"type": "string"}})).ask == ("fetch",)


def test_tools_of_a_known_server_are_judged_by_what_is_known_of_them() -> None:
    names = ("read_text_file", "list_directory", "write_file", "edit_file", "move_file", "new_tool")
    rules = proposed(*map(tool, names), command="npx @modelcontextprotocol/server-filesystem /srv")
    assert rules.by_preset == ("read_text_file", "list_directory")
    assert rules.ask == ("write_file", "edit_file", "move_file", "new_tool")


def test_what_a_person_has_decided_is_not_proposed_again() -> None:
    rules = proposed(tool("a", READS), tool("b"), tool("c"), known=("a", "c"))
    assert (rules.allow, rules.ask, rules.known) == ((), ("b",), ("a", "c"))


def test_rules_for_one_server_name_it() -> None:
    rules = proposed(tool("look", READS), tool("write"), server="my files")
    assert (rules.allow, rules.ask) == (("mcp__my_files__look",), ("mcp__my_files__write",))


HOSTILE: Final = (
    'x"]\nallow = ["*',
    "x\n[permissions]\nallow = ['*']",
    "*",
    "?",
    "[a-z]*",
    "a*",
    "",
    " ",
    "a b",
    "a(b)",
    "a|b",
    "a\\",
    'a"',
    "a#b",
    "a\u2028b",
    "\uff41",
    "a\0",
    "mcp__other__tool",
    "mcp__other",
    "x" * 129,
    "resources/read",
    "tools/call/\n",
    "a\x1b[31m",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_a_rule_cannot_name_exactly_gets_no_rule(name: str) -> None:
    rules = proposed(tool(name, READS), tool("look", READS))
    assert (rules.allow, rules.ask, rules.unnamed) == (("look",), (), (name,))
    assert tomllib.loads(text_of(rules)) == {"permissions": {"default": "deny", "allow": ["look"]}}


@examples(200)
@given(st.lists(st.tuples(st.text(max_size=12) | st.sampled_from(HOSTILE), st.booleans()), max_size=4))
@pytest.mark.slow
def test_nothing_of_a_servers_texts_breaks_out_and_only_what_only_reads_is_allowed(
    tools: list[tuple[str, bool]],
) -> None:
    listed = [tool(name, {"readOnlyHint": reads, "title": name}) for name, reads in dict(tools).items()]
    rules = proposed(*listed)
    file = parse("/x.toml", text_of(rules))
    assert file.permissions.allow == list(rules.allow)
    assert file.permissions.ask == list(rules.ask)
    settings = Settings(
        default_permission=file.permissions.default,
        allow=tuple(file.permissions.allow),
        ask=tuple(file.permissions.ask),
    )
    for explanation, (name, reads) in zip(explain((), settings, "a", listed), dict(tools).items(), strict=True):
        is_callable = not methods.is_method(name)  # a call of such a tool is refused as ambiguous
        assert not is_callable or explanation.decision is not Answer.ALLOW or (reads and name in rules.allow), name


def test_many_tools_stay_in_readable_lines() -> None:
    rules = proposed(*(tool(f"a_tool_with_a_long_name_{number}") for number in range(200)))
    assert max(map(len, text_of(rules).splitlines())) <= 104
    assert parse("/x.toml", text_of(rules)).permissions.ask == list(rules.ask)
