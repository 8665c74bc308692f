"""How verbs show things: to people labels with texts beside them, as wide as the terminal; to programs JSON."""

from __future__ import annotations

import contextlib
import difflib
import json
import re
from typing import Final

import msgspec
from rich.console import Console
from rich.text import Text

from ..jsonrpc import normalize, raw_json
from ..model.aliases import Alias
from . import common

MARGIN: Final = 11
"""Columns of a label and the blanks around it."""

_LEAST: Final = 30  # columns that are left for what stands beside the labels, however narrow the terminal is


_MOST_COMPARED: Final = 1_000_000  # bytes of what is compared line by line: more takes seconds, and nobody reads it
_NO_ASCII: Final = re.compile(r"[^\x00-\x7f]")


def new_page() -> Console:
    """Coloured on a terminal, unless NO_COLOR is set. Written to inside `capture`, and shown as a whole."""
    return Console(highlight=False)


def row(console: Console, before: Text, text: str, style: str = "") -> None:
    """A label, and beside it the text: on a terminal in lines of its width, else as it is."""
    for line in text.strip("\n").split("\n"):
        shown = Text(visible(line, console), style)
        width = max(console.width - len(before), _LEAST)
        for part in shown.wrap(console, width) if console.is_terminal else [shown]:
            part.rstrip()
            put(console, before + part)
            before = Text(" " * len(before))


def put(console: Console, text: Text) -> None:
    """One line, however long."""
    text.rstrip()
    console.print(text, soft_wrap=True)


def label(name: str) -> Text:
    """What stands before a text."""
    return Text.assemble((f"  {name}".ljust(MARGIN), "dim"))


def diff(console: Console, name: str, before: bytes, after: bytes) -> None:
    """Two JSON values, compared line by line."""
    lines = _compared(before, after)
    put(console, Text.assemble((name, "bold"), "" if lines else ": unchanged"))
    for one in lines:
        row(console, Text("  "), one, {"-": "red", "+": "green"}.get(one[0], ""))
    put(console, Text())


def _compared(before: bytes, after: bytes) -> list[str]:
    """The lines of a diff; none if there is no difference."""
    old, new = _pretty(before), _pretty(after)
    if old == new:
        return []
    if len(before) + len(after) > _MOST_COMPARED:
        return [f"{len(before)} bytes before, {len(after)} after: too many to be compared here; --json has both"]
    return list(difflib.unified_diff(old, new, "before", "after", lineterm=""))


def _pretty(raw: bytes) -> list[str]:
    with contextlib.suppress(ValueError, RecursionError):  # an answer that can be read in two ways
        raw = msgspec.json.format(normalize.normalize(raw, lenient=True), indent=2)
    return raw.decode(errors="replace").split("\n")


def visible(text: str, console: Console) -> str:
    """The text as this terminal can show it. A hook may be anybody's: nothing of it reaches the terminal raw."""
    return common.visible(text, console.encoding)


def short(file: str, cwd: str) -> str:
    """The path from the working directory, where it is below."""
    return file.removeprefix(cwd.rstrip("/") + "/")


def known_as(alias: Alias) -> str:
    """What hooks call a tool and its arguments, each of these beside the server's own name for it."""
    renamed = ", ".join(f"{own} as {name}" for name, own in alias.arguments.items())
    seen = " ".join(
        part for part in (f"as {alias.name}" if alias.name else "", f"({renamed})" if renamed else "") if part
    )
    return seen + (f", by the preset {alias.preset}" if alias.preset else "")


def count(number: int, word: str) -> str:
    """A number of things: `no hooks`, `1 hook`."""
    return f"{number or 'no'} {word}{'' if number == 1 else 's'}"


def document(members: object) -> str:
    """A JSON document for programs, in ASCII, for output may have any encoding; what is no UTF-8 as escapes."""
    text = msgspec.json.format(raw_json.encode(_encodable(members)), indent=2).decode() + "\n"
    return _NO_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)


def as_json(raw: bytes | None) -> object:
    """Raw JSON to stand in a document, spelled as it is; None for none, and a text for what is no JSON."""
    if not raw:
        return None
    try:
        return msgspec.Raw(normalize.normalize(raw))
    except ValueError:
        return raw.decode(errors="backslashreplace")


def _encodable(value: object) -> object:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value
