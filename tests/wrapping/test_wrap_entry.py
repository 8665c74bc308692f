"""Which words stand in front of a server's own, and how an entry that is wrapped is brought up to date."""

from __future__ import annotations

import json
from typing import Final

import pytest

from hookproxy.wrapping import edit_plan
from hookproxy.wrapping.wrap_entry import Options, own
from tests.wrapping.roundtrip import LAUNCHER, argv, unwrapped, wrapped

COMMAND: Final = ("npx", "-y", "server")
NOTHING: Final = Options()


def text_of(*words: str, **members: object) -> str:
    return json.dumps({"mcpServers": {"git": {"command": words[0], "args": words[1:], **members}}})


def again(text: str, options: Options = NOTHING, launcher: tuple[str, ...] = LAUNCHER) -> tuple[str, ...]:
    plan = edit_plan.wrap(edit_plan.read("x.json", text), (), lambda _entry: launcher, options)
    return argv("x.json", plan.text)["mcpServers.git"]


def test_the_servers_name_and_the_options_stand_in_front_of_its_command() -> None:
    options = Options(config="/c.toml", hooks=("claude=/h.json", "/i.json"))
    assert again(text_of(*COMMAND), options) == (
        *LAUNCHER, "run", "--name", "git", "--config", "/c.toml", "--hooks", "claude=/h.json", "--hooks", "/i.json",
        "--", *COMMAND,
    )  # fmt: skip


def test_a_servers_own_dashes_stay_its_own() -> None:
    words = ("npx", "--", "run", "--", "x")
    new = wrapped("x.json", text_of(*words))
    assert own(edit_plan.read("x.json", new).entries[0]) == words


def test_wrapping_again_replaces_what_is_given_and_keeps_the_rest() -> None:
    first = (*LAUNCHER, "run", "--name", "git", "--config", "/a.toml", "--audit", "/log", "--hooks", "/h", "--", "npx")
    assert again(text_of(*first)) == first
    assert again(text_of(*first), Options(config="/a.toml")) == first
    assert again(text_of(*first), Options(config="/b.toml")) == (
        *LAUNCHER, "run", "--name", "git", "--config", "/b.toml", "--hooks", "/h", "--audit", "/log", "--", "npx",
    )  # fmt: skip
    assert "/h" not in again(text_of(*first), Options(hooks=("/i", "/j")))


def test_wrapping_again_puts_this_hookproxy_in_the_place_of_another_one() -> None:
    planted = ("/tmp/evil/hookproxy", "run", "--name", "git", "--", *COMMAND)
    assert again(text_of(*planted)) == (*LAUNCHER, *planted[1:])
    module = ("/usr/bin/python3", "-P", "-m", "hookproxy")
    assert again(text_of(*planted), launcher=module) == (*module, *planted[1:])


@pytest.mark.parametrize("name", ["config.toml", "config.yaml", "x.json"])
def test_words_of_ours_are_replaced_in_every_syntax(name: str) -> None:
    text = {
        "config.toml": '[mcp_servers.git]\ncommand = "x"\n',
        "config.yaml": "extensions:\n  git:\n    cmd: x\n    args:\n    - y\n",
        "x.json": '{"mcp": {"git": {"command": ["x"]}}}',
    }[name]
    one = wrapped(name, text)
    other = edit_plan.wrap(
        edit_plan.read(name, one), (), lambda _: ("python3", "-m", "hookproxy"), Options(hooks=("/h",))
    ).text
    assert other != one
    assert unwrapped(name, other) == text


def test_an_entry_wrapped_by_hand_gets_its_name() -> None:
    assert again(text_of("hookproxy", "run", "--", "npx")) == (*LAUNCHER, "run", "--name=git", "--", "npx")


def test_a_configuration_to_fall_back_on_is_for_entries_that_name_none() -> None:
    users = Options(fallback="/home/me/hookproxy.toml")
    assert again(text_of(*COMMAND), users)[4:6] == ("--config", "/home/me/hookproxy.toml")
    assert again(text_of(*COMMAND), Options(config="/c", fallback="/d"))[4:6] == ("--config", "/c")
    own_config = (*LAUNCHER, "run", "--name", "git", "--config", "/c", "--", *COMMAND)
    assert again(text_of(*own_config), users) == own_config
