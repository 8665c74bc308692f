"""Plans: which servers are wrapped, and that nothing else in the file can change."""

from __future__ import annotations

import json

import pytest

from hookproxy.model.errors import ConfigError
from hookproxy.wrapping import edit_plan
from tests.wrapping.roundtrip import OPTIONS, argv, launcher, unwrapped

TEXT = json.dumps({
    "mcpServers": {
        "git": {"command": "npx", "args": ["git"]},
        "time": {"command": "uvx"},
        "far": {"url": "https://x"},
        "ext": {"source": "extension"},
        "odd": {"type": "ws", "url": "wss://x"},
    }
})  # fmt: skip


def plan(text: str = TEXT, *names: str) -> edit_plan.Plan:
    return edit_plan.wrap(edit_plan.read("x.json", text), names, launcher, OPTIONS)


def test_all_servers_with_a_command_or_an_address_are_wrapped_and_the_others_have_a_reason() -> None:
    found = plan()
    assert [entry.name for entry in found.changed] == ["git", "time", "far"]
    assert [entry.name for entry in found.unchanged] == ["ext", "odd"]
    assert found.reasons["mcpServers.ext"].startswith("has no command and no address")


def test_one_server_alone_is_wrapped_and_unwrapped() -> None:
    one = plan(TEXT, "time").text
    assert argv("x.json", one)["mcpServers.git"] == ("npx", "git")
    both = plan(one).text
    only = edit_plan.unwrap(edit_plan.read("x.json", both), ["git", "far"]).text
    assert only == one
    assert unwrapped("x.json", only) == TEXT


def test_a_name_selects_the_servers_of_all_projects() -> None:
    text = json.dumps({
        "mcpServers": {"a": {"command": "1"}},
        "projects": {"/p": {"mcpServers": {"a": {"command": "2"}, "b": {"command": "3"}}}},
    })  # fmt: skip
    assert [entry.key_path for entry in plan(text, "a").changed] == ["mcpServers.a", "projects./p.mcpServers.a"]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("gti", "there is no server 'gti' in it\nhint: did you mean 'git'?"),
        ("nothing", "there is no server 'nothing' in it\nhint: its servers: ext, far, git, odd, time"),
        ("odd", "x.json:1: mcpServers.odd has the type 'ws', which hookproxy does not know"),
        ("ext", "x.json:1: mcpServers.ext has no command"),
    ],
)
def test_a_named_server_that_cannot_be_wrapped_is_an_error(name: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(TEXT, name)
    assert what in str(caught.value)


@pytest.mark.parametrize("text", ["{}", '{"mcpServers": []}', '{"other": {"mcpServers": {}}}'])
def test_a_file_without_known_keys_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="has no servers under any known key"):
        plan(text)


def test_a_file_without_servers_is_an_error() -> None:
    with pytest.raises(ConfigError, match="there are no servers in it"):
        plan('{"mcpServers": {}}')


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_that_cannot_be_on_a_command_line_is_an_error(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be passed on a command line"):
        plan(json.dumps({"mcpServers": {name: {"command": "x"}}}))


def test_toml_and_yaml_that_would_take_too_long_are_not_read() -> None:
    for name in ("config.toml", "config.yaml"):
        with pytest.raises(ConfigError, match="longer than"):
            edit_plan.read(name, "# x\n" * 2**19)


@pytest.mark.parametrize(
    "text",
    [
        "extensions:\n  a: &a {cmd: npx}\nother: *a\n",  # the other entry would change too
        "extensions:\n  a:\n    cmd: x, [y\n    args: [z]\n",  # the text has another meaning in a list
    ],
)
def test_a_plan_that_would_change_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"config\.yaml:2: this layout cannot be edited safely"):
        edit_plan.wrap(edit_plan.read("config.yaml", text), (), launcher, OPTIONS)
