"""What the tests of every syntax share: wrap a text, wrap it again, unwrap it, and compare bytes."""

from __future__ import annotations

from typing import Final

from hookproxy import wrapping
from hookproxy.wrapping.finding import Entry
from hookproxy.wrapping.words import Options

LAUNCHER: Final = ("/opt/hooks/bin/hookproxy",)
OPTIONS: Final = Options(config="/etc/hooks.toml")


def launcher(_entry: Entry) -> tuple[str, ...]:
    return LAUNCHER


def wrapped(name: str, text: str, options: Options = OPTIONS) -> str:
    """The text with everything wrapped; a second time changes nothing, and unwrapping gives back the first."""
    once = wrapping.wrap(wrapping.read(name, text), (), launcher, options)
    found = wrapping.read(name, once.text)
    assert once.changed, "nothing was wrapped"
    assert all(wrapping.wrapping(entry) for entry in found.entries if entry.argv)
    assert wrapping.wrap(found, (), launcher, options).text == once.text
    assert unwrapped(name, once.text) == text
    return once.text


def unwrapped(name: str, text: str) -> str:
    return wrapping.unwrap(wrapping.read(name, text), ()).text


def argv(name: str, text: str) -> dict[str, tuple[str, ...]]:
    """What each server is started with."""
    return {entry.place: entry.argv for entry in wrapping.read(name, text).entries}
