"""Recognises a command line that starts mcp-remote, which connects an agent to a server at an address: pure.

The options follow the README of the npm package mcp-remote, as of 0.1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

_PROGRAM: Final = re.compile(r"mcp-remote(?:@[\w.^~-]+)?")
_STARTERS: Final = (("npx",), ("bunx",), ("pnpm", "dlx"), ("yarn", "dlx"), ("npm", "exec"), ("bun", "x"))
_STARTER_OPTIONS: Final = ("-y", "--yes", "-q", "--quiet", "--bun", "--")
_WINDOWS_ENDINGS: Final = (".cmd", ".exe")

_UNNEEDED: Final = {
    "--debug": 0,
    "--silent": 0,
    "--enable-proxy": 0,
    "--transport": 1,
    "--host": 1,
    "--auth-timeout": 1,
}
"""Options that mean nothing to hookproxy, or that it does anyway, with the number of their values."""


class McpRemote(Struct, frozen=True):
    """What the command line says."""

    url: str
    headers: tuple[tuple[str, str], ...]
    """Names and values; `${NAME}` in a value is a variable of mcp-remote's environment."""
    allow_http: bool
    unknown: str = ""
    """An option that hookproxy has no equal of; empty: there is none."""


def parse(argv: Sequence[str]) -> McpRemote | None:
    """What the command line asks of mcp-remote; None if it starts something else, or names no address."""
    words = _arguments(list(argv))
    url, allow_http, unknown = "", False, ""
    headers: list[tuple[str, str]] = []
    while words:
        word = words.pop(0)
        name, _, value = word.partition("=")
        if word == "--allow-http":
            allow_http = True
        elif word == "--header" and words:
            header, _, text = words.pop(0).partition(":")
            headers.append((header.strip(), text.strip()))
        elif name in _UNNEEDED:
            del words[: _UNNEEDED[name] if not value else 0]
        elif word.startswith("-"):
            unknown = unknown or name
            del words[: 1 if not value and words and not words[0].startswith(("-", "http")) else 0]
        elif not url:
            url = word
        elif not word.isdigit():  # a number is the port for the login
            unknown = unknown or word
    return McpRemote(url, tuple(headers), allow_http, unknown) if url else None


def _arguments(words: list[str]) -> list[str]:
    """The words after `mcp-remote`; none if it is not what the command line starts."""
    if _name(words[:1]) == "cmd" and [word.lower() for word in words[1:2]] == ["/c"]:
        del words[:2]
    for starter in _STARTERS:
        if (_name(words[:1]), *words[1 : len(starter)]) == starter:
            del words[: len(starter)]
            while words[:1] and words[0] in _STARTER_OPTIONS:
                del words[0]
            break
    return words[1:] if words and _PROGRAM.fullmatch(_name(words[:1])) else []


def _name(words: Sequence[str]) -> str:
    """The name of a program, without its folder and its ending on Windows."""
    name = words[0].replace("\\", "/").rpartition("/")[2] if words else ""
    for ending in _WINDOWS_ENDINGS:
        name = name.removesuffix(ending)
    return name
