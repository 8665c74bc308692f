"""By what a call is the same as one before: its tool and arguments, without what a model only says about them. Pure.

A model in a loop runs a command again and describes it in other words, so the description of a command does not count.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec
from msgspec import Raw

from ..jsonrpc import normalize, raw_json
from ..model.aliases import Alias

_COMMAND: Final = "Bash"

_SAID_ABOUT: Final = frozenset({
    "description", "explanation", "goal", "justification", "summary", "toolaction", "toolsummary",
})  # fmt: skip
"""Arguments, without signs and capitals, by which agents' own shells let a model say what a command is for."""

_SORTED: Final = msgspec.json.Encoder(order="sorted")


def compared(alias: Alias | None, arguments: bytes) -> bytes:
    """The arguments that tell a call from others; of a command without blanks around it and what is said about it."""
    if alias is None or _COMMAND not in alias.names:
        return arguments
    try:
        members = raw_json.fields(arguments)
    except (ValueError, RecursionError):
        return arguments
    line = alias.named(_COMMAND).arguments.get("command", "command")
    kept = {name: raw for name, raw in members.items() if name == line or _plain(name) not in _SAID_ABOUT}
    if (command := raw_json.text(kept.get(line, b""))) is not None:
        kept[line] = Raw(raw_json.encode(command.strip()))
    return raw_json.encode(kept)


def canonical(arguments: bytes) -> bytes:
    """The arguments with their members in one order: a model may spell the same call in another."""
    try:
        return _SORTED.encode(msgspec.json.decode(arguments))
    except (msgspec.MsgspecError, ValueError, RecursionError):  # numbers that only the tool can read
        pass
    try:
        return _SORTED.encode(normalize.decode(arguments))
    except (ValueError, RecursionError):
        return arguments


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())
