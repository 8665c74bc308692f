"""What to do about a text that is not TOML: the parser says what it did not expect, and not what its author meant."""

from __future__ import annotations

import json
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


_HEADER_AND_KEY: Final = re.compile(r"\s*(\[[^\[\]=]+\])\s+([\w\-.\"']+\s*=.*)")
_TWO_SIGNS: Final = re.compile(r"\s*([\w\-.]+)\s*(?:==|:=|=>|=:)\s*(.+)")
_OTHER_COMMENT: Final = re.compile(r"\s(?://|;|--)\s*(.*)$")
_TWO_WORDS: Final = re.compile(r"\s*([\w\-]+)\s+([^\s=\[\]]+)\s*")
_PLAIN_VALUE: Final = re.compile(r"true|false|[0-9]+(?:\.[0-9]+)?|\".*\"|'.*'")
_NO_COMMA: Final = re.compile(r"""("[^"]*"|'[^']*')\s+("[^"]*"|'[^']*')""")
_SEVERAL_TEXTS: Final = re.compile(r"""("[^"]*"|'[^']*')(?:\s*,\s*("[^"]*"|'[^']*'))+""")
_NUMBER_WITH_UNIT: Final = re.compile(r"([0-9]+) ?([A-Za-z]+)")
_TRUTHS: Final = {**dict.fromkeys(("true", "yes", "on"), "true"), **dict.fromkeys(("false", "no", "off"), "false")}
_NO_ITEM: Final = re.compile(r"(?:,|\[)\s*,")
_NO_COMMA_BETWEEN_LINES: Final = re.compile(r"""["'][ \t]*(?:#[^\n]*)?\n[ \t]*["']""")
"""In a list of several lines: an item, and another one at the beginning of the next line."""
_BARE_LIST: Final = re.compile(r"\[\s*([^\[\]{}]*[A-Za-z_][^\[\]{}]*?)\s*,?\s*\]")


def quoted(text: str) -> str:
    """A text as a string of TOML, in single quotes if it has a backslash or a double quote."""
    return f"'{text}'" if ("\\" in text or '"' in text) and "'" not in text else json.dumps(text, ensure_ascii=False)


def toml_repair(path: str, text: str, number: int, reason: str) -> tuple[str, str]:
    """The problem and its repair for the line with this number; `reason` is the parser's."""
    found = _repair(path, text, number, reason)
    problem = reason[:1].lower() + reason[1:]
    if twice := _TWICE.match(reason):
        name = ".".join(re.findall(r"'([^']*)'", twice[1]))
        begins = (f"[{name}]", f"{name}.")
        first = _line_where(text, lambda other: re.sub(r"[\s\"']", "", other).startswith(begins))
        if "." in name:  # [tools.NAME]: both may be meant
            return (
                f"[{name}] stands twice",
                f"remove one of both, or give it another name: the first is on line {first}",
            )
        return f"[{name}] stands twice", f"move its keys there: the first is on line {first}"
    return problem, found or f"correct line {number}"


def _repair(path: str, text: str, number: int, reason: str) -> str:
    """How to correct the line of this number; empty if that is not known."""
    line = "".join(text.split("\n")[number - 1 : number])
    if "\r" in line.rstrip("\r"):
        return f"its lines end with CR alone: tr '\\r' '\\n' <{path} >{path}.new gives them other ends"
    in_words = (
        ("\0" in line, "remove the zero byte: no text has one"),
        (_CURLY.search(line), 'write straight quotes: "…"'),
        (text.lstrip()[:1] == "{", 'it is JSON: in TOML, {"a": {"b": 1}} is [a], and below it b = 1'),
        ("hex value" in reason or "Unescaped" in reason, _BACKSLASH),
        (reason.startswith('Expected "\'"') and line.count("'") % 2 == 0, _not_closed_above(text, number)),
        (reason.startswith("Illegal character '\\n'") or "Unterminated" in reason, _NOT_CLOSED),
        (line.startswith(("<<<<<<<", "=======", ">>>>>>>")), "end the merge: remove this line and what is not wanted"),
        (line.lstrip().startswith(("/*", "//", ";", "--")), "a comment begins with #"),
        (_WITH_COLON.match(line), "write key = value, with = in place of the colon"),
        (
            "for a key part" in reason and line.count("{") > line.count("}"),
            "a table in braces ends in the line in which it begins: write all of it in one line",
        ),
    )
    if known := next((repair for applies, repair in in_words if applies), "") or _about_signs(text, line, reason):
        return known
    if line.lstrip().startswith("[") and "]" in reason:
        return f"close the bracket: {line.strip()}{']' * (line.count('[') - line.count(']'))}"
    if reason.startswith("Expected newline") and line.rstrip().endswith(("]]", "}}")) and (pair := _PAIR.match(line)):
        return f"remove the last bracket: {pair['key']} = {pair['value'].rstrip()[:-1]}"
    return _about_second(text, line) if reason == "Cannot overwrite a value" else _about_value(line, reason)


def _not_closed_above(text: str, number: int) -> str:
    """The repair where a quote is open at the end of the line before this one, or of one before that."""
    lines = text.split("\n")[: number - 1]
    line = next((at for at in range(len(lines), 0, -1) if lines[at - 1].count("'") % 2), 0)
    return f"a quote is not closed in line {line}: end each text with the quote with which it begins" if line else ""


def _about_signs(text: str, line: str, reason: str) -> str:
    """A sign that other languages have there."""
    if reason == "Unclosed array" or "Unclosed inline table" in reason:
        return _about_list(text, line, reason)
    if other := _about_header_or_sum(line):
        return other
    if double := _TWO_SIGNS.match(line):
        return f"write one sign: {double[1].strip()} = {double[2].strip()}"
    if (comment := _OTHER_COMMENT.search(line)) and reason.startswith("Expected newline"):
        return f"a comment begins with #: {line[: comment.start()].strip()} # {comment[1].strip()}".rstrip()
    if line.rstrip().endswith((";", ",")) and reason.startswith("Expected newline"):
        return f"remove the {line.rstrip()[-1]}: in TOML, the end of the line ends a value"
    if (words := _TWO_WORDS.fullmatch(line)) and reason.startswith("Expected '='"):
        return f"write {words[1]} = {words[2] if _PLAIN_VALUE.fullmatch(words[2]) else quoted(words[2])}"
    return ""


def _about_header_or_sum(line: str) -> str:
    """A header with more behind it, and a sign that adds to a key."""
    if header := _HEADER_AND_KEY.match(line):
        return f"write {header[2].strip()} on a line of its own, below {header[1]}"
    if added := re.match(r"\s*([\w\-.]+)\s*\+=\s*(.+)", line):
        return f"nothing can be added to a key: write all of it there, {added[1]} = {added[2]}"
    if header := re.fullmatch(r"\s*\[([\w.\-]+)\]\]\s*", line):
        return f"write [{header[1]}], or [[{header[1]}]] for one of several such tables"
    return ""


def _about_list(text: str, line: str, reason: str) -> str:
    """A list, or a table in braces, that does not end."""
    sign = "]" if reason == "Unclosed array" else "}"
    if two := _NO_COMMA.search(line):
        return f"put a comma between the items: {two[1]}, {two[2]}"
    if two_lines := _NO_COMMA_BETWEEN_LINES.search(text):
        at = text.count("\n", 0, two_lines.start()) + 1
        return f"put a comma at the end of line {at}: {text.splitlines()[at - 1].strip()},"
    if any(line.count(quote) % 2 for quote in "\"'"):
        return _NOT_CLOSED
    return f"close it with {sign} after the last item, and put a comma between items"


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
    if other := (_about_more(key, value) if reason.startswith("Expected newline") else "") or _about_word(key, value):
        return other
    if _OCTAL.match(value):
        return f'put it in quotes: {key} = "{value}"'
    if reason != "Invalid value":
        return ""
    if _NO_ITEM.search(value):
        return "remove the comma that has no item before it"
    if (bare := _BARE_LIST.fullmatch(value)) is not None:
        items = ", ".join(quoted(item.strip().strip("\"'")) for item in bare[1].split(","))
        return f"put each item in quotes: {key} = [{items}]"
    return f'put strings in quotes: {key} = "{value}"' if _WORD.match(value) else "put strings in quotes"


def _about_word(key: str, value: str) -> str:
    """A value as other languages write it."""
    if (word := _TRUTHS.get(value.lower())) and value != word:
        return f"write {key} = {word}"
    if value.lower() in ("null", "nil", "none"):
        return "leave the line out: a key without a value is not set"
    in_parentheses = re.fullmatch(r"[({](.*)[)}]", value)
    return f"write a list in brackets: {key} = [{in_parentheses[1].strip()}]" if in_parentheses else ""


def _about_more(key: str, value: str) -> str:
    """Something follows a value in its line: more values, or a unit."""
    if two := re.fullmatch(r"(\[[^\[\]]*\]|\"[^\"]*\"|[\w.]+)[\s,;]+([\w\-]+\s*=.*)", value):
        return f"write each key on a line of its own: {key} = {two[1]}, and below it {two[2]}"
    if re.fullmatch(r"[0-9]+,[0-9]+", value):
        return f"write a point in the place of the comma: {key} = {value.replace(',', '.')}"
    if _SEVERAL_TEXTS.fullmatch(value.rstrip(", ")):
        return f"put the items in brackets: {key} = [{value.rstrip(', ')}]"
    if with_unit := _NUMBER_WITH_UNIT.fullmatch(value):
        from .value_repairs import seconds_of_unit

        seconds = int(with_unit[1]) * seconds_of_unit(with_unit[2])
        in_seconds = seconds and ("seconds" in key or key == "timeout")
        return f"write {key} = {seconds}" if in_seconds else f'put it in quotes: {key} = "{value}"'
    return ""


def _line_where(text: str, holds: Callable[[str], bool]) -> int:
    """The number of the first line for which this holds; 1 if it holds for none."""
    return next((number for number, line in enumerate(text.split("\n"), 1) if holds(line)), 1)
