"""What was meant by a text that is not a permission rule, or that looks like a regular expression. Pure."""

from __future__ import annotations

import re
from typing import Final

from ..model.aliases import FAMILIAR_NAMES

_EXPRESSION: Final = re.compile(r"(?:^|[^A-Za-z0-9])\.[*+?]|\.\+|\\[.wdsbWDS]|\.\*\$|^\^|\$$|\[\^|\(\?|\{\d")
"""In a name: signs of a regular expression that no name and no glob has. `fs.*` may be meant for names with a dot."""
_ANYTHING: Final = re.compile(r"(?:\.|\\[wdsWDS])(?:[*+]\??|\{[\d,]+\})")
_SEPARATORS: Final = re.compile(r"\s*(?:&&|\|\||,)\s*(?![^(]*\))")
"""Between two rules in one text: not within parentheses."""
_ALTERNATIVES: Final = re.compile(r"\^?([\w*?.\-]*)\((?:\?:)?([\w*?.\-]+(?:\|[\w*?.\-]+)+)\)([\w*?.\-]*)\$?")
_NAMES: Final = re.compile(r"\^?([\w*?.\-]+(?:\|[\w*?.\-]+)+)\$?")


def glob_meant(name: str) -> str:
    """The glob for a name that looks like a regular expression; empty: it looks like a glob, or a name."""
    return _as_glob(name) if _EXPRESSION.search(name) else ""


def rule_repair(text: str) -> str:
    """How to write a text that is not a rule; empty if that is not known."""
    text = text.strip()
    if len(rules := _SEPARATORS.split(text)) > 1 and all(rules):
        return f"write each rule separately: {_list(rules)}"
    if text.endswith("(") and text.count("(") == 1:
        return f"remove the parenthesis: {text[:-1]!r}, or name an argument in it"
    if (missing := text.count("(") - text.count(")")) > 0:
        return f"close the parenthesis: {text + ')' * missing!r}"
    if found := _ALTERNATIVES.fullmatch(text):
        return f"write a rule for each: {_list([f'{found[1]}{name}{found[3]}' for name in found[2].split('|')])}"
    if found := _NAMES.fullmatch(text):
        return f"write a rule for each: {_list(found[1].split('|'))}"
    name, parenthesis, rest = text.partition("(")
    if glob := glob_meant(name):
        return f"rules are globs: write {glob + parenthesis + rest!r}"
    return _without_blanks(text)


def _without_blanks(text: str) -> str:
    """The repair of a rule with blanks in its name; empty: it has none, or something else is wrong, too."""
    tool, blank, argument = text.partition(" ")
    if tool in FAMILIAR_NAMES and blank and "(" not in text:
        return f"write what it is about in parentheses: {f'{tool}({argument.strip()})'!r}"
    name, parenthesis, rest = text.partition("(")
    if re.fullmatch(r"[\w.\-]+(?: [\w.\-]+)+", name.strip()):
        return f"a tool's name has no blanks: write {name.strip().replace(' ', '_') + parenthesis + rest!r}"
    return ""


def _list(names: list[str]) -> str:
    return ", ".join(repr(_as_glob(name)) for name in names)


def _as_glob(name: str) -> str:
    begins = name.startswith("^") and not name.endswith(("$", "*", "+"))
    glob = re.sub(r"\\(.)", r"\1", _ANYTHING.sub("*", name.removeprefix("^").removesuffix("$")))
    return f"{glob}*" if begins or not glob else glob
