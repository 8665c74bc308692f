"""The words that a shell certainly runs first: enough to tell that a script is missing, and no more than is certain."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_PIECE: Final = re.compile(
    r"""
      (?P<plain>[A-Za-z0-9_@%+=:,./^-]+)
    | '(?P<single>[^']*)'
    | "(?P<double>(?:[^"\\`$]|\\.|\$\w+|\$\{\w+\})*)"
    | (?P<variable>\$\w+|\$\{\w+\})
    | (?P<home>~(?=/))
    | (?P<continued>\\\n)
    | \\(?P<escaped>.)
    | (?P<blank>[ \t]+)
    | (?P<unsure>[*?\[\]{}!])
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_QUOTES: Final = re.compile(r"\\(?:\n|([\\\"$`]))|\$\{?(\w+)\}?")
_SPLITS: Final = re.compile(r"[\s*?\[]|\A\Z")  # in a value that no quotes protect: it may be any number of words
_OPERATORS: Final = tuple(";|&\n<>)")


def first_command(line: str, known: Mapping[str, str]) -> list[str | None]:
    """The words of a command line's first command, as far as they can be told without a shell.

    None is a word that only a shell knows. `known` are the variables whose values are certain.
    """
    words: list[str | None] = []
    pieces: list[str | None] = []
    line = line.strip()
    at = 0
    while found := _PIECE.match(line, at):
        at = found.end()
        if found.lastgroup == "blank":
            words += _joined(pieces)
            pieces = []
        elif found.lastgroup != "continued":
            pieces.append(_value(found, known, begins=not pieces))
    return words + _last(pieces, line[at : at + 1]) if line[at : at + 1] != "(" else []


def _joined(pieces: list[str | None]) -> list[str | None]:
    """The one word that they make, if there are any."""
    if not pieces:
        return []
    certain = [piece for piece in pieces if piece is not None]
    return ["".join(certain) if len(certain) == len(pieces) else None]


def _last(pieces: list[str | None], sign: str) -> list[str | None]:
    """The word before the sign at which the reading stopped, if it is one."""
    if not sign or sign in _OPERATORS:
        word = _joined(pieces)
        return [] if sign in ("<", ">") and word and str(word[0]).isdigit() else word  # a descriptor's number
    return [] if sign == "#" and not pieces else [None]  # a comment; or what is not read here


def _value(found: re.Match[str], known: Mapping[str, str], *, begins: bool) -> str | None:
    """What a piece stands for; None: only a shell knows."""
    match found.lastgroup:
        case "plain" | "single" | "escaped":
            return found[found.lastgroup]
        case "double":
            return _unquoted(found["double"], known)
        case "variable":
            value = known.get(found["variable"].strip("${}"))
            return None if value is None or _SPLITS.search(value) else value
        case "home" if begins:
            return known.get("HOME")
        case _:
            return None


def _unquoted(text: str, known: Mapping[str, str]) -> str | None:
    if any(name and name not in known for _, name in _IN_QUOTES.findall(text)):
        return None
    return _IN_QUOTES.sub(lambda found: known[found[2]] if found[2] else found[1] or "", text)
