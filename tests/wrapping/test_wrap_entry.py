"""What counts as wrapped, which words are put before a server's command, and how a wrapped entry is updated."""

from __future__ import annotations

import json
from typing import Final

import pytest

from hookproxy.wrapping import edit_plan
from hookproxy.wrapping.wrap_entry import RunOptions, parse_wrapping, server_command
from tests.wrapping.roundtrip import LAUNCHER, argv, unwrapped, wrapped

COMMAND: Final = ("npx", "-y", "server")
NOTHING: Final = RunOptions()


def text_of(*words: str, **members: object) -> str:
    return json.dumps({"mcpServers": {"git": {"command": words[0], "args": words[1:], **members}}})


def again(text: str, options: RunOptions = NOTHING, launcher: tuple[str, ...] = LAUNCHER) -> tuple[str, ...]:
    plan = edit_plan.wrap(edit_plan.read("x.json", text), (), lambda _entry: launcher, options)
    return argv("x.json", plan.text)["mcpServers.git"]


def test_the_servers_name_and_the_options_come_before_its_command() -> None:
    options = RunOptions(config="/c.toml", hooks=("claude=/h.json", "/i.json"))
    assert again(text_of(*COMMAND), options) == (
        *LAUNCHER, "run", "--name", "git", "--config", "/c.toml", "--hooks", "claude=/h.json", "--hooks", "/i.json",
        "--", *COMMAND,
    )  # fmt: skip


def test_the_servers_own_dashes_stay_unchanged() -> None:
    words = ("npx", "--", "run", "--", "x")
    new = wrapped("x.json", text_of(*words))
    assert server_command(edit_plan.read("x.json", new).entries[0]) == words


def test_wrapping_again_replaces_what_is_given_and_keeps_the_rest() -> None:
    first = (*LAUNCHER, "run", "--name", "git", "--config", "/a.toml", "--audit", "/log", "--hooks", "/h", "--", "npx")
    assert again(text_of(*first)) == first
    assert again(text_of(*first), RunOptions(config="/a.toml")) == first
    assert again(text_of(*first), RunOptions(config="/b.toml")) == (
        *LAUNCHER, "run", "--name", "git", "--config", "/b.toml", "--hooks", "/h", "--audit", "/log", "--", "npx",
    )  # fmt: skip
    assert "/h" not in again(text_of(*first), RunOptions(hooks=("/i", "/j")))


def test_wrapping_again_puts_this_hookproxy_in_the_place_of_another_one() -> None:
    planted = ("/tmp/evil/hookproxy", "run", "--name", "git", "--", *COMMAND)
    assert again(text_of(*planted)) == (*LAUNCHER, *planted[1:])
    module = ("/usr/bin/python3", "-P", "-m", "hookproxy")
    assert again(text_of(*planted), launcher=module) == (*module, *planted[1:])


@pytest.mark.parametrize("name", ["config.toml", "config.yaml", "x.json"])
def test_hookproxys_words_are_replaced_in_every_syntax(name: str) -> None:
    text = {
        "config.toml": '[mcp_servers.git]\ncommand = "x"\n',
        "config.yaml": "extensions:\n  git:\n    cmd: x\n    args:\n    - y\n",
        "x.json": '{"mcp": {"git": {"command": ["x"]}}}',
    }[name]
    one = wrapped(name, text)
    other = edit_plan.wrap(
        edit_plan.read(name, one), (), lambda _: ("python3", "-m", "hookproxy"), RunOptions(hooks=("/h",))
    ).text
    assert other != one
    assert unwrapped(name, other) == text


def test_an_entry_wrapped_by_hand_gets_its_name() -> None:
    assert again(text_of("hookproxy", "run", "--", "npx")) == (*LAUNCHER, "run", "--name=git", "--", "npx")


def test_the_fallback_configuration_is_used_only_for_entries_without_one() -> None:
    users = RunOptions(fallback="/home/me/hookproxy.toml")
    assert again(text_of(*COMMAND), users)[4:6] == ("--config", "/home/me/hookproxy.toml")
    assert again(text_of(*COMMAND), RunOptions(config="/c", fallback="/d"))[4:6] == ("--config", "/c")
    own_config = (*LAUNCHER, "run", "--name", "git", "--config", "/c", "--", *COMMAND)
    assert again(text_of(*own_config), users) == own_config


# --- parsing of wrapped command lines ---


@pytest.mark.parametrize(
    "words",
    [
        ("hookproxy", "run", "--"),
        ("/opt/x/hookproxy", "run", "--name", "git", "--"),
        ("/usr/bin/python3.12", "-P", "-m", "hookproxy", "run", "--"),
        ("python", "-m", "hookproxy", "run", "--config=/x", "--hooks", "claude=/y", "--hooks=/z", "--"),
        ("uvx", "hookproxy", "run", "--audit", "/a", "--"),
        ("hookproxy", "run", "--name", "git", "--config=/x"),  # `run` needs no dashes
    ],
)
def test_a_command_line_that_starts_hookproxy_before_a_command_is_wrapped(words: tuple[str, ...]) -> None:
    wrapping = parse_wrapping((*words, *COMMAND))
    assert wrapping is not None
    assert wrapping.count == len(words)
    assert argv("x.json", unwrapped("x.json", text_of(*words, *COMMAND))) == {"mcpServers.git": COMMAND}


@pytest.mark.parametrize(
    "words",
    [
        COMMAND,
        ("hookproxy",),
        ("hookproxy", "demo"),
        ("hookproxy", "run", "--name", "x"),
        ("hookproxy", "run", "--odd", "x"),
        ("hookproxy", "run", "--"),
        ("hookproxy.sh", "run", "--", "npx"),
        ("docker", "run", "image", "hookproxy", "run", "--", "npx"),
        ("python", "-c", "hookproxy", "run", "--", "npx"),
        ("python", "hookproxy", "run", "--", "npx"),
        ("npx", "hookproxy", "run", "--", "x"),
    ],
)
def test_a_command_line_that_only_looks_wrapped_is_not(words: tuple[str, ...]) -> None:
    assert parse_wrapping(words) is None
    assert unwrapped("x.json", text_of(*words)) == text_of(*words)
    new = wrapped("x.json", text_of(*words))
    assert argv("x.json", new)["mcpServers.git"][-len(words) :] == words


def test_options_are_parsed_in_one_word_or_two() -> None:
    wrapping_words = (
        "hookproxy",
        "run",
        "--name=a",
        "--config",
        "b",
        "--hooks=c=d",
        "--audit",
        "e",
        "--hooks",
        "f",
        "--odd",
    )
    wrapping = parse_wrapping((*wrapping_words, "--", "x"))
    assert wrapping is not None
    assert wrapping.options == RunOptions(("--name=a",), "b", ("c=d", "f"), ("--audit", "e", "--odd"))
    assert wrapping.options.words == (
        "--name=a", "--config", "b", "--hooks", "c=d", "--hooks", "f", "--audit", "e", "--odd",
    )  # fmt: skip


def test_a_server_that_is_named_like_an_option_gets_its_bytes_back() -> None:
    for text in (
        '{"mcpServers": {"--server": {"command": "x"}}}',
        '{"mcpServers": {"-s": {"command": "x", "args": []}}}',
    ):
        wrapped("x.json", text)


def test_an_option_without_its_value_is_kept_unchanged() -> None:
    wrapping = parse_wrapping(["hookproxy", "run", "--config", "--", "x"])
    assert wrapping is not None
    assert wrapping.options == RunOptions(others=("--config",))


def test_a_given_project_replaces_that_of_a_wrapped_entry_and_other_options_stay() -> None:
    first = (*LAUNCHER, "run", "--name", "git", "--project", "/a", "--audit", "/log", "--", "npx")
    assert again(text_of(*first)) == first
    assert again(text_of(*first), RunOptions(others=("--project", "/b"))) == (
        *LAUNCHER, "run", "--name", "git", "--audit", "/log", "--project", "/b", "--", "npx",
    )  # fmt: skip
