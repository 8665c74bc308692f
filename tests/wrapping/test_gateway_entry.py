"""An entry that reaches the gateway: it starts `connect`, and unwrapped it has the same bytes again."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.model.errors import ConfigError
from hookproxy.wrapping import edit_plan
from hookproxy.wrapping.gateway_entry import Gateway
from hookproxy.wrapping.syntax_tree import quoted
from hookproxy.wrapping.wrap_entry import RunOptions
from tests.wrapping.roundtrip import LAUNCHER, argv, launcher, unwrapped

DEFAULT: Final = Gateway()
CALLER: Final = Gateway("/run/x.sock", from_caller=True)

CURSOR: Final = """\
{
  "mcpServers": {
    "git": {"command": "npx", "args": ["-y", "server"], "env": {"TOKEN": "of git"}}, // mine
    "plain": {"command": "uvx"},
    "empty": {"command": "uvx", "args": []},
    "both": {"command": "uvx", "url": "https://example.com/both"},
    "far": {
      "url": "https://example.com/mcp",
      "headers": {"Authorization": "Bearer ${TOKEN}"}
    }
  }
}
"""
VSCODE: Final = """\
{"servers": {"far": {"type": "http", "url": "https://example.com/mcp"}, "near": {"type": "stdio", "command": "x"}}}
"""
OPENCODE: Final = """\
{"mcp": {"near": {"type": "local", "command": ["npx", "server"], "environment": {"A": "b"}}}}
"""
CODEX: Final = """\
[mcp_servers.near]
command = "npx"
args = ["server"]

[mcp_servers.near.env]
KEY = "value"

[mcp_servers.far]
url = "https://example.com/mcp"
bearer_token_env_var = "TOKEN"
"""
GOOSE: Final = """\
extensions:
  near:
    type: stdio
    cmd: npx
    args:
      - server
    enabled: true
  far:
    type: streamable_http
    uri: https://example.com/mcp
    enabled: true
"""
FILES: Final = {
    "mcp.json": CURSOR,
    "code.json": VSCODE,
    "opencode.json": OPENCODE,
    "config.toml": CODEX,
    "config.yaml": GOOSE,
}


def wrapped(name: str, text: str, gateway: Gateway, *servers: str) -> str:
    """The text with these servers behind the gateway. Wrapping again changes nothing; unwrapping restores the text."""
    plan = edit_plan.wrap_for_gateway(edit_plan.read(name, text), servers, launcher, gateway)
    again = edit_plan.wrap_for_gateway(edit_plan.read(name, plan.text), servers, launcher, gateway)
    assert again.text == plan.text
    assert unwrapped(name, plan.text) == text
    return plan.text


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    ("gateway", "options"),
    [
        (DEFAULT, ()),
        (Gateway("/run/x.sock"), ("--socket", "/run/x.sock")),
        (Gateway(url="https://x"), ("--url", "https://x")),
    ],
    ids=["default", "socket", "url"],
)
def test_every_entry_starts_connect_with_its_name(name: str, gateway: Gateway, options: tuple[str, ...]) -> None:
    text = wrapped(name, FILES[name], gateway)
    for key, words in argv(name, text).items():
        assert words == (*LAUNCHER, "connect", key.rpartition(".")[2], *options)
    assert not any(edit_plan.wrapping(one) is None for one in edit_plan.read(name, text).entries)


@pytest.mark.parametrize("name", FILES)
def test_a_server_that_runs_as_the_user_keeps_its_command_after_the_dashes(name: str) -> None:
    text = wrapped(name, FILES[name], CALLER)
    before = argv(name, FILES[name])
    for key, words in argv(name, text).items():
        if before[key]:
            assert words[-len(before[key]) :] == before[key]
            assert words[: len(words) - len(before[key])] in (
                (*LAUNCHER, "connect", key.rpartition(".")[2], "--socket", "/run/x.sock", "--"),
                (*LAUNCHER, "connect", key.rpartition(".")[2], "--socket=/run/x.sock", "--"),
            )
        else:
            assert words == (), "an address is not started by the user"


def test_nothing_of_an_address_is_left_beside_the_command() -> None:
    entries = json.loads(wrapped("mcp.json", CURSOR.replace(" // mine", ""), DEFAULT))["mcpServers"]
    assert set(entries["far"]) == set(entries["both"]) == {"command", "args", "env"}
    assert entries["git"]["env"]["TOKEN"] == "of git"
    assert "of git" not in entries["git"]["env"]["HOOKPROXY_ENTRY"], "a secret is there once"


def test_another_socket_replaces_the_first_one() -> None:
    text = wrapped("mcp.json", CURSOR, DEFAULT)
    other = edit_plan.wrap_for_gateway(edit_plan.read("mcp.json", text), (), launcher, Gateway("/other"))
    assert argv("mcp.json", other.text)["mcpServers.git"][-2:] == ("--socket", "/other")
    assert unwrapped("mcp.json", other.text) == CURSOR


@pytest.mark.parametrize(("first", "second"), [(DEFAULT, CALLER), (CALLER, DEFAULT)])
def test_one_way_does_not_replace_the_other(first: Gateway, second: Gateway) -> None:
    text = wrapped("mcp.json", CURSOR, first, "git")
    with pytest.raises(ConfigError, match="wrapped in another way already: unwrap it first"):
        edit_plan.wrap_for_gateway(edit_plan.read("mcp.json", text), ("git",), launcher, second)


@pytest.mark.parametrize("gateway", [DEFAULT, CALLER])
def test_run_and_the_gateway_do_not_replace_each_other(gateway: Gateway) -> None:
    with_run = edit_plan.wrap(edit_plan.read("mcp.json", CURSOR), ("git",), launcher, RunOptions()).text
    with pytest.raises(ConfigError, match="wrapped in another way already: unwrap it first"):
        edit_plan.wrap_for_gateway(edit_plan.read("mcp.json", with_run), ("git",), launcher, gateway)
    behind = wrapped("mcp.json", CURSOR, gateway, "git")
    with pytest.raises(ConfigError, match="reaches the gateway, which judges its calls: unwrap it first"):
        edit_plan.wrap(edit_plan.read("mcp.json", behind), ("git",), launcher, RunOptions())


@pytest.mark.parametrize("name", ["", "two words", "-x", "a/b", "é", "x" * 65])
@pytest.mark.parametrize("gateway", [DEFAULT, CALLER])
def test_a_name_that_no_server_of_a_gateway_can_have_is_an_error(name: str, gateway: Gateway) -> None:
    text = json.dumps({"mcpServers": {name: {"command": "x"}, "other": {"command": "y"}}})
    plan = edit_plan.wrap_for_gateway(edit_plan.read("mcp.json", text), (), launcher, gateway)
    assert [entry.name for entry in plan.changed] == ["other"]
    assert [reason for reason in plan.reasons.values() if "rename it as the gateway has it" in reason]


def test_an_entry_written_by_hand_is_not_unwrapped() -> None:
    text = '{"mcpServers": {"git": {"command": "hookproxy", "args": ["connect", "git"]}}}'
    plan = edit_plan.unwrap(edit_plan.read("mcp.json", text), ())
    assert not plan.edits
    assert [reason for reason in plan.reasons.values() if "was written by hand" in reason]


def test_an_entry_that_was_changed_since_is_not_lost() -> None:
    text = wrapped("mcp.json", CURSOR, DEFAULT, "git")
    entry = json.loads(text.replace(" // mine", ""))
    entry["mcpServers"]["git"]["env"]["MORE"] = "mine"
    with pytest.raises(ConfigError, match="was changed since it was wrapped: its env"):
        edit_plan.unwrap(edit_plan.read("mcp.json", json.dumps(entry)), ())


@pytest.mark.parametrize("words", [["connect"], ["connect", "git", "--"]])
def test_a_command_line_that_reaches_nothing_is_not_taken_for_a_wrapped_one(words: list[str]) -> None:
    text = json.dumps({"mcpServers": {"git": {"command": "hookproxy", "args": words}}})
    assert [edit_plan.wrapping(entry) for entry in edit_plan.read("mcp.json", text).entries] == [None]


WORDS: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES: Final[Any] = st.fixed_dictionaries(
    {"command": WORDS.filter(bool)},
    optional={
        "args": st.lists(WORDS, max_size=3),
        "env": st.dictionaries(st.sampled_from(["A", "TOKEN", "HOOKPROXY_URL"]), WORDS, max_size=2),
        "timeout": st.integers(0, 9),
        "disabled": st.booleans(),
    },
)


@given(VALUES, st.permutations(range(5)), st.sampled_from([None, 2]), st.sampled_from([DEFAULT, CALLER]))
def test_any_entry_comes_back(entry: dict[str, Any], order: list[int], indent: int | None, gateway: Gateway) -> None:
    keys = [key for _, key in sorted(zip(order, entry, strict=False))]
    text = json.dumps({"mcpServers": {"git": {key: entry[key] for key in keys}}}, indent=indent, ensure_ascii=False)
    after = json.loads(wrapped("mcp.json", text, gateway))["mcpServers"]["git"]
    assert {key: after.get(key) for key in ("timeout", "disabled")} == {
        key: entry.get(key) for key in ("timeout", "disabled")
    }
    if gateway.from_caller:
        assert after.get("env") == entry.get("env")


def test_a_toml_file_keeps_its_other_tables() -> None:
    text = f'[other]\nkey = {quoted("x")}\n\n[mcp_servers.git]\ncommand = "npx"\n'
    assert wrapped("config.toml", text, DEFAULT).startswith('[other]\nkey = "x"\n')
