"""What the tests of every syntax share: wrap a text, wrap it again, unwrap it, and compare bytes."""

from __future__ import annotations

from typing import Final

from hookproxy.wrapping import edit_plan
from hookproxy.wrapping.find_servers import Entry
from hookproxy.wrapping.wrap_entry import RunOptions

LAUNCHER: Final = ("/opt/hooks/bin/hookproxy",)
OPTIONS: Final = RunOptions(config="/etc/hooks.toml")


def launcher(_entry: Entry) -> tuple[str, ...]:
    return LAUNCHER


def wrapped(name: str, text: str, options: RunOptions = OPTIONS) -> str:
    """The text with all servers wrapped. Wrapping again changes nothing, and unwrapping restores the text."""
    once = edit_plan.wrap(edit_plan.read(name, text), (), launcher, options)
    configuration = edit_plan.read(name, once.text)
    assert once.changed, "nothing was wrapped"
    assert all(edit_plan.wrapping(entry) for entry in configuration.entries if entry.argv)
    assert edit_plan.wrap(configuration, (), launcher, options).text == once.text
    assert unwrapped(name, once.text) == text
    return once.text


def unwrapped(name: str, text: str) -> str:
    return edit_plan.unwrap(edit_plan.read(name, text), ()).text


def argv(name: str, text: str) -> dict[str, tuple[str, ...]]:
    """The command line of each server."""
    return {entry.key_path: entry.argv for entry in edit_plan.read(name, text).entries}
