"""What to do about a text that is not TOML: the parser says what it did not expect, and not what its author meant."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_CURLY: Final = re.compile("[\u201c\u201d\u201e\u2018\u2019]")
"""Quotes of word processors."""
_TWICE: Final = re.compile(r"Cannot declare \((.*?)\) twice")
_PAIR: Final = re.compile(r"""\s*(?P<key>[\w\-."']+)\s*=\s*(?P<value>[^#]*?)\s*(?:#.*)?\Z""")
_WITH_COLON: Final = re.compile(r"\s*[\w\-]+:(?:\s|\Z)")
_OCTAL: Final = re.compile(r"0[0-9]+\Z")
_BACKSLASH: Final = r"a backslash begins an escape: use single quotes, as in 'C:\programs', or write each one twice"
_NOT_CLOSED: Final = "a quote is not closed in this line: end the text with the quote with which it begins"
_WORD: Final = re.compile(r"[A-Za-z_/.~$%@:][^\[\]{}\"',]*\Z")


def toml_repair(path: str, text: str, number: int, reason: str) -> tuple[str, str]:
    """The problem and its repair for the line with this number; `reason` is the parser's."""
    line = text.split("\n")[number - 1 : number]
    found = _repair(path, text, line[0] if line else "", reason)
    problem = reason[:1].lower() + reason[1:]
    if twice := _TWICE.match(reason):
        name = ".".join(re.findall(r"'([^']*)'", twice[1]))
        first = _line_where(text, lambda other: re.sub(r"[\s\"']", "", other).startswith(f"[{name}]"))
        return f"[{name}] stands twice", f"remove one of both, or give it another name: the first is on line {first}"
    return problem, found or f"correct line {number}"


def _repair(path: str, text: str, line: str, reason: str) -> str:
    """How to correct the line; empty if that is not known."""
    if "\r" in line.rstrip("\r"):
        return f"its lines end with CR alone: tr '\\r' '\\n' <{path} >{path}.new gives them other ends"
    in_words = (
        ("\0" in line, "remove the zero byte: no text has one"),
        (_CURLY.search(line), 'write straight quotes: "…"'),
        (text.lstrip()[:1] == "{", 'it is JSON: in TOML, {"a": {"b": 1}} is [a], and below it b = 1'),
        ("hex value" in reason or "Unescaped" in reason, _BACKSLASH),
        (reason.startswith("Illegal character '\\n'") or "Unterminated" in reason, _NOT_CLOSED),
        (_WITH_COLON.match(line), "write key = value, with = in place of the colon"),
    )
    if known := next((repair for applies, repair in in_words if applies), ""):
        return known
    if line.lstrip().startswith("[") and "]" in reason:
        return f"close the bracket: {line.strip()}{']' * (line.count('[') - line.count(']'))}"
    return _about_second(text, line) if reason == "Cannot overwrite a value" else _about_value(line, reason)


def _about_second(text: str, line: str) -> str:
    """A key stands twice in its table."""
    if (pair := _PAIR.match(line)) is None:
        return ""
    first = _line_where(text, lambda other: (known := _PAIR.match(other)) is not None and known["key"] == pair["key"])
    return f"remove one of both: {pair['key']} stands on line {first} already"


def _about_value(line: str, reason: str) -> str:
    """A value that TOML does not have."""
    pair = _PAIR.match(line)
    key, value = (pair["key"], pair["value"]) if pair else ("", "")
    if value in ("True", "False"):
        return f"write {key} = {value.lower()}"
    if _OCTAL.match(value):
        return f'put it in quotes: {key} = "{value}"'
    if reason != "Invalid value":
        return ""
    return f'put strings in quotes: {key} = "{value}"' if _WORD.match(value) else "put strings in quotes"


def _line_where(text: str, holds: Callable[[str], bool]) -> int:
    """The number of the first line for which this holds; 1 if it holds for none."""
    return next((number for number, line in enumerate(text.split("\n"), 1) if holds(line)), 1)
