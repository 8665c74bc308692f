"""Where a wrapped entry connects to, and with which headers: read from its command line and its variables."""

from __future__ import annotations

from collections.abc import Mapping

from hookproxy.model.env_references import expand
from hookproxy.wrapping import edit_plan
from hookproxy.wrapping.find_servers import Entry


def entry_of(name: str, text: str, server: str) -> Entry:
    return next(entry for entry in edit_plan.read(name, text).entries if entry.name == server)


def variables_of(entry: Entry) -> dict[str, str]:
    found = entry.values.get(entry.shape.env, {})
    assert isinstance(found, dict)
    return {str(name): str(value) for name, value in found.items()}


def connection(entry: Entry, outside: Mapping[str, str] | None = None) -> tuple[str, list[tuple[str, str]]]:
    """The address and the headers, if the agent passes its variables, and those of the entry, as they are."""
    environ = {**(outside or {}), **variables_of(entry)}
    words = list(entry.argv)
    assert "--" not in words
    assert edit_plan.wrapping(entry) is not None
    url, headers = "", []
    while words:
        word = words.pop(0)
        if word == "--url":
            url = expand(word, words.pop(0), environ)
        elif word == "--header":
            name, _, value = words.pop(0).partition(": ")
            headers.append((name, expand(word, value, environ)))
    return url, headers
