"""What counts as wrapped, and what only looks like it."""

from __future__ import annotations

import json
from typing import Final

import pytest

from hookproxy.wrapping.wrap_entry import Options
from hookproxy.wrapping.wrap_entry import wrapping as found_in
from tests.wrapping.roundtrip import argv, unwrapped, wrapped

COMMAND: Final = ("npx", "-y", "server")


def text_of(*words: str) -> str:
    return json.dumps({"mcpServers": {"git": {"command": words[0], "args": words[1:]}}})


@pytest.mark.parametrize(
    "words",
    [
        ("hookproxy", "run", "--"),
        ("/opt/x/hookproxy", "run", "--name", "git", "--"),
        ("/usr/bin/python3.12", "-P", "-m", "hookproxy", "run", "--"),
        ("python", "-m", "hookproxy", "run", "--config=/x", "--hooks", "claude=/y", "--hooks=/z", "--"),
        ("uvx", "hookproxy", "run", "--audit", "/a", "--"),
    ],
)
def test_what_starts_hookproxy_before_a_command_is_wrapped(words: tuple[str, ...]) -> None:
    found = found_in((*words, *COMMAND))
    assert found is not None
    assert found.count == len(words)
    assert argv("x.json", unwrapped("x.json", text_of(*words, *COMMAND))) == {"mcpServers.git": COMMAND}


@pytest.mark.parametrize(
    "words",
    [
        COMMAND,
        ("hookproxy",),
        ("hookproxy", "demo"),
        ("hookproxy", "run", "--name", "x"),
        ("hookproxy", "run", "--"),
        ("hookproxy.sh", "run", "--", "npx"),
        ("docker", "run", "image", "hookproxy", "run", "--", "npx"),
        ("python", "-c", "hookproxy", "run", "--", "npx"),
        ("python", "hookproxy", "run", "--", "npx"),
        ("npx", "hookproxy", "run", "--", "x"),
    ],
)
def test_what_only_looks_like_it_is_not(words: tuple[str, ...]) -> None:
    assert found_in(words) is None
    assert unwrapped("x.json", text_of(*words)) == text_of(*words)
    new = wrapped("x.json", text_of(*words))
    assert argv("x.json", new)["mcpServers.git"][-len(words) :] == words


def test_options_are_read_in_one_word_or_two() -> None:
    ours = ("hookproxy", "run", "--name=a", "--config", "b", "--hooks=c=d", "--audit", "e", "--hooks", "f", "--odd")
    found = found_in((*ours, "--", "x"))
    assert found is not None
    assert found.options == Options(("--name=a",), "b", ("c=d", "f"), ("--audit", "e", "--odd"))
    assert found.options.words == (
        "--name=a", "--config", "b", "--hooks", "c=d", "--hooks", "f", "--audit", "e", "--odd",
    )  # fmt: skip


def test_an_option_without_its_value_is_kept_as_it_is() -> None:
    found = found_in(["hookproxy", "run", "--config", "--", "x"])
    assert found is not None
    assert found.options == Options(rest=("--config",))
