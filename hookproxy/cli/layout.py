"""How verbs format output: for people, labels with text beside them, as wide as the terminal; for programs, JSON."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Sequence
from typing import Final

import msgspec
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ..jsonrpc import normalize, raw_json
from ..model.aliases import Alias
from . import common

MARGIN: Final = 11
"""The columns of a label and the blanks around it."""

_MIN_TEXT_WIDTH: Final = 30  # columns for the text beside a label, however narrow the terminal is
_MAX_COMPARED_BYTES: Final = 1_000_000  # to compare more line by line takes seconds, and nobody reads it
_WORD: Final = re.compile(r"\s*\S+\s*")
_NON_ASCII: Final = re.compile(r"[^\x00-\x7f]")


def new_console() -> Console:
    """A console with colours on a terminal, unless NO_COLOR is set. Print inside `capture`, then show the result."""
    return Console(highlight=False)


def row(console: Console, before: Text, text: str, style: str = "") -> None:
    """Print the text beside a label. On a terminal, the text is wrapped to its width, between words."""
    for line in text.strip("\n").split("\n"):
        shown = Text(visible(line, console), style)
        width = max(console.width - len(before), _MIN_TEXT_WIDTH)
        for part in wrap(shown, width) if console.is_terminal else [shown]:
            part.rstrip()
            print_line(console, before + part)
            before = Text(" " * len(before))


def wrap(text: Text, width: int) -> Sequence[Text]:
    """The lines of a text that are at most so wide, broken between words only: a path is copied whole."""
    cuts, used = [], 0
    for word in _WORD.finditer(text.plain):
        if used and used + cell_len(word[0].rstrip()) > width:
            cuts.append(word.start())
            used = 0
        used += cell_len(word[0])
    return list(text.divide(cuts))


def print_line(console: Console, text: Text) -> None:
    """Print one line, however long it is, without blanks at its end."""
    text.rstrip()
    console.print(text, soft_wrap=True)


def label(name: str) -> Text:
    """The label of a row."""
    return Text.assemble((f"  {name}".ljust(MARGIN), "dim"))


def diff(console: Console, name: str, before: bytes, after: bytes) -> None:
    """Print the differences between two JSON values, line by line."""
    lines = _diff_lines(before, after)
    print_line(console, Text.assemble((name, "bold"), "" if lines else ": unchanged"))
    for line in lines:
        row(console, Text("  "), line, {"-": "red", "+": "green"}.get(line[0], ""))
    print_line(console, Text())


def _diff_lines(before: bytes, after: bytes) -> list[str]:
    """The lines of the diff; none if there is no difference."""
    import difflib

    old, new = _pretty(before), _pretty(after)
    if old == new:
        return []
    if len(before) + len(after) > _MAX_COMPARED_BYTES:
        return [f"{len(before)} bytes before, {len(after)} after: too long to compare here; --json shows both"]
    return list(difflib.unified_diff(old, new, "before", "after", lineterm=""))


def _pretty(raw: bytes) -> list[str]:
    with contextlib.suppress(ValueError, RecursionError):  # a value with duplicate keys stays as it is
        raw = msgspec.json.format(normalize.normalize(raw, lenient=True), indent=2)
    return raw.decode(errors="replace").split("\n")


def visible(text: str, console: Console) -> str:
    """The text as this terminal can show it. Anybody may have written a hook: none of its text is printed raw."""
    return common.visible(text, console.encoding)


def short_path(file: str, cwd: str) -> str:
    """The path relative to the working directory, if the file is below it."""
    return file.removeprefix(cwd.rstrip("/") + "/")


def alias_text(alias: Alias) -> str:
    """The names that hooks use for a tool and its arguments, with the server's names for the arguments."""
    if not (alias.name or alias.arguments):
        return "has no other name"
    arguments = dict(alias.arguments)
    if alias.parts is not None and len(parts := (*alias.parts.commands, *(alias.parts.words or ()))) > 1:
        arguments[alias.line] = " + ".join(parts)
    renamed = ", ".join(f"{server_name} as {hook_name}" for hook_name, server_name in arguments.items())
    names = " ".join(
        part for part in (f"as {alias.name}" if alias.name else "", f"({renamed})" if renamed else "") if part
    )
    if alias.preset:
        return f"{names}, by the preset {alias.preset}"
    return f"{names}, by its name and arguments" if alias.automatic else names


def document(members: object) -> str:
    """A JSON document for programs, in ASCII, since the output may have any encoding. Invalid UTF-8 is escaped."""
    text = msgspec.json.format(raw_json.encode(_encodable(members)), indent=2).decode() + "\n"
    return _NON_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)


def as_json(raw: bytes | None) -> object:
    """Raw JSON as a part of a document, spelled as it is. Empty: None; invalid JSON: a string."""
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
