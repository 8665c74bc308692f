"""What was meant by a text that is not a permission rule, or that looks like a regular expression. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from ..model.aliases import FAMILIAR_NAMES

_EXPRESSION: Final = re.compile(r"(?:^|[^A-Za-z0-9])\.[*+?]|\.\+|\\[.wdsbWDS]|\.\*\$|^\^|\$$|\[\^|\(\?|\{\d|\]\+")
"""In a name: signs of a regular expression that no name and no glob has. `fs.*` may be meant for names with a dot."""
_ANYTHING: Final = re.compile(r"(?:\.|\\[wdsWDS]|\[[^\]]+\](?=\+))(?:[*+]\??|\{[\d,]+\})")
_NEGATED: Final = re.compile(r"(?:!\s*|not\s+)(.+)", re.IGNORECASE)
_OTHER_BRACKETS: Final = re.compile(r"([\w.\-*]+)(?:\s*[\[{]\s*(.+?)\s*[\]}]|\s+\(\s*(.+?)\s*\))\Z")
_WITH_COLON: Final = re.compile(r"([A-Z]\w+):\s*(.+)")

_EXPRESSION_OF_ARGUMENT: Final = re.compile(r"^\^|[^\\$]\$$|\.\+|\\[sdwbSDW][+*{]|\\b|\(\w+(?:\|\w+)+\)|^\w+\.\*$")
"""In what a rule says of a command: signs of a regular expression, which no command has."""
_OF_HOME: Final = re.compile(r"\$(?:HOME\b|\{HOME\})")
_OF_ARGUMENT: Final = re.compile(
    r"(?:command|cmd|path|file_path|url|uri|to|cc|query|text|content|body|subject|name)\s*[:=]\s*(.+)"
)
"""What a rule says of an argument by its name, as it cannot."""
_PLACES: Final = frozenset({"read", "write", "edit", "multiedit", "glob", "grep", "ls"})
"""Tools whose rules are about paths."""
_SEPARATORS: Final = re.compile(r"\s*(?:&&|\|\||,)\s*(?![^(]*\))")
"""Between two rules in one text: not within parentheses."""
_ALTERNATIVES: Final = re.compile(r"\^?([\w*?.\-]*)\((?:\?:)?([\w*?.\-]+(?:\|[\w*?.\-]+)+)\)([\w*?.\-]*)\$?")
_NAMES: Final = re.compile(r"\^?([\w*?.\-]+(?:\|[\w*?.\-]+)+)\$?")


def glob_meant(name: str) -> str:
    """The glob for a name that looks like a regular expression; empty: it looks like a glob, or a name."""
    return as_glob(name) if _EXPRESSION.search(name) else ""


def rule_repair(text: str) -> str:
    """How to write a text that is not a rule; empty if that is not known."""
    text = text.strip()
    if (plain := in_plain_signs(text)) != text:
        return f"it has signs of another script: write {plain!r}"
    if negated := _NEGATED.fullmatch(text):
        return f'no rule can be negated: write default = "deny" and allow = [{negated[1]!r}]'
    if several := _several(text):
        return several
    if text.endswith("(") and text.count("(") == 1:
        return f"remove the parenthesis: {text[:-1]!r}, or name an argument in it"
    if (missing := text.count("(") - text.count(")")) > 0:
        return f"close the parenthesis: {text + ')' * missing!r}"
    name, parenthesis, rest = text.partition("(")
    if not (found := _OTHER_BRACKETS.fullmatch(text)) and (glob := glob_meant(name)):
        return f"rules are globs: write {glob + parenthesis + rest!r}"
    return f"write {f'{found[1]}({found[2] or found[3]})'!r}" if found else _without_blanks(text)


def _several(text: str) -> str:
    """The repair of a text with several rules; empty: it is one."""
    if len(rules := _SEPARATORS.split(text)) > 1 and all(rules):
        return f"write each rule separately: {_list(rules)}"
    if found := _ALTERNATIVES.fullmatch(text):
        return f"write a rule for each: {_list([f'{found[1]}{name}{found[3]}' for name in found[2].split('|')])}"
    if found := _NAMES.fullmatch(text):
        return f"write a rule for each: {_list(found[1].split('|'))}"
    return ""


def in_plain_signs(text: str) -> str:
    """The text with ASCII in the place of signs that only look like it: full-width letters and parentheses."""
    plain = unicodedata.normalize("NFKC", text)
    return plain if plain.isascii() else text


def with_home(path: str) -> str:
    """The path with `~` in the place of the variable of the home folder, which nothing replaces in a rule."""
    return _OF_HOME.sub("~", path)


def argument_repair(text: str) -> str:
    """How to write a rule that is one, but whose words about arguments match nothing; empty if they may match."""
    name, _, inner = text.strip().partition("(")
    argument, is_bash = inner.removesuffix(")"), name.casefold() == "bash"
    if not argument:
        return ""
    if len(rules := re.split(r"(?<=\))\s*[;|/]\s*(?=[A-Za-z_]\w*\()", text.strip())) > 1:
        return f"write each rule separately: {', '.join(map(repr, rules))}"
    written = argument
    if argument.count(")") > argument.count("("):
        written = argument[:-1] if argument.endswith(")") else argument
    elif len(argument) > 2 and argument[0] == argument[-1] and argument[0] in "\"'":
        written = argument[1:-1]
    elif name.casefold() in _PLACES:
        written = f"{with_home(argument)}{'**' * (argument.endswith('/') and len(argument) > 1)}"
    elif name.casefold() == "webfetch":
        written = re.sub(r"^(?:domain|host)\s*=\s*", "domain:", argument)
    elif is_bash and _EXPRESSION_OF_ARGUMENT.search(argument):
        written = re.sub(r"(?<=\w)\*+$", " *", as_glob(argument.replace("\\b", "")))
    return f"write {f'{name}({written})'!r}" if written != argument else ""


def unclear_argument(text: str) -> str:
    """What words of a rule about arguments are about, if many write them so who mean something else; or empty."""
    name, _, inner = text.strip().partition("(")
    argument, is_bash = inner.removesuffix(")"), name.casefold() == "bash"
    if of_argument := _OF_ARGUMENT.fullmatch(argument):
        return f"arguments are compared without their names: write {f'{name}({of_argument[1]})'!r}"
    if is_bash and argument.endswith(" .*"):
        return f"a dot is only a dot: {f'{name}({argument[:-2]}*)'!r} is about all arguments"
    if is_bash and len(commands := re.split(r"(?<=\S)\|(?=[^\s|])", argument)) > 1:
        each = ", ".join(repr(f"{name}({command})") for command in commands)
        return f"it is about commands that are joined by a pipe: write {each} for each alone"
    if is_bash and re.fullmatch(r"[\w.\-]+", argument):
        return f"it is about {argument} without arguments: {f'{name}({argument} *)'!r} is about all its calls"
    return ""


def _without_blanks(text: str) -> str:
    """The repair of a rule with blanks in its name; empty: it has none, or something else is wrong, too."""
    tool, blank, argument = text.partition(" ")
    if (found := _WITH_COLON.fullmatch(text)) is not None:
        tool, blank, argument = found[1], ":", found[2]
    if argument.count(")") > argument.count("("):
        argument = argument.removesuffix(")")
    if tool in FAMILIAR_NAMES and blank and "(" not in text:
        return f"write what it is about in parentheses: {f'{tool}({argument.strip()})'!r}"
    name, parenthesis, rest = text.partition("(")
    if re.fullmatch(r"[\w.\-]+(?: [\w.\-]+)+", name.strip()):
        return f"a tool's name has no blanks: write {name.strip().replace(' ', '_') + parenthesis + rest!r}"
    return ""


def _list(names: list[str]) -> str:
    return ", ".join(repr(as_glob(name)) for name in names)


def as_glob(name: str) -> str:
    """The glob for a name that is a regular expression; a name without signs of one stays as it is."""
    if len(name) > 2 and name[0] == name[-1] == "/":  # as JavaScript has them
        name = name[1:-1]
    begins = name.startswith("^") and not name.endswith(("$", "*", "+"))
    glob = re.sub(r"\\(.)", r"\1", _ANYTHING.sub("*", name.removeprefix("^").removesuffix("$")))
    return f"{glob}*" if begins or not glob else glob
