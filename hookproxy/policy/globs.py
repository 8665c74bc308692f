"""Globs over the text of a call, and the work that comparing them may take."""

from __future__ import annotations

import re
from typing import Final

from ..model.late_pattern import late_pattern

PREFIX_ENDINGS: Final = (":*", " *")
"""The endings of a rule about the beginning of a command."""

COMMAND_SEPARATORS: Final = late_pattern(r"&&|\|\||[;|&\n]")
"""The signs between two commands of a line."""

_FOLDERS: Final = late_pattern(r"(?:(?<=/)|\A)(?:\*\*+/+)+")
"""In a path: any number of folders, or none."""
_WILDCARD: Final = late_pattern(r"\*+|\?|\[[^\]]+\]")
"""In a shell's pattern for names of files: of a class of characters it does not matter which."""
_ONE: Final = late_pattern(r"\?|\[[^\]]+\]")
_ONE_OR_TEXT: Final = late_pattern(r"\?|\[[^\]]+\]|\[|[^?\[]+")
_MOST_FOLDERS: Final = 4  # of them have both meanings: each doubles the work


class BudgetExceeded(Exception):
    """Judging this call would take too long."""


OF_RESOURCE: Final = 4_000_000
"""Steps for a request about a resource, in all readings of its URI together: some have thirty."""


class WorkBudget:
    """The steps that judging one call may still take, about ten nanoseconds each. They are limited because the agent
    chooses the arguments.
    """

    __slots__ = ("_left",)

    def __init__(self, steps: int = 2_000_000) -> None:  # 20 ms
        self._left = steps

    def spend(self, steps: int) -> None:
        """Spend some steps. Raises BudgetExceeded."""
        self._left -= steps
        if self._left < 0:
            raise BudgetExceeded


def command_pattern(specifier: str) -> re.Pattern[str]:
    """Return the pattern for one command."""
    if specifier.endswith(PREFIX_ENDINGS):  # `ls` itself and `ls -la`, but not `lsof`
        return re.compile(glob(specifier[:-2]) + r"(?:\s.*)?", re.DOTALL)
    return re.compile(glob(specifier), re.DOTALL)


def path_pattern(specifier: str) -> re.Pattern[str]:
    """Return the pattern for one path."""
    return re.compile("|".join(map(glob, path_spellings(specifier))), re.DOTALL)


def path_spellings(specifier: str) -> list[str]:
    """The specifier of a path without some of its `**/`, which also stand for no folder at all, as in gitignore."""
    first, *parts = _FOLDERS.split(specifier, maxsplit=_MOST_FOLDERS)
    spellings = [first]
    for part in parts:
        spellings = [spelling + folders + part for spelling in spellings for folders in ("**/", "")]
    return spellings


def glob(text: str) -> str:
    """Return a regular expression in which `*` is anything. Text between two stars is searched once, from the left."""
    first, *parts = (re.escape(part) for part in re.split(r"\*+", text))
    return first + "".join(f"(?>.*?{part})" for part in parts[:-1]) + "".join(f".*{part}" for part in parts[-1:])


def may_both_name(specifier: str, pattern: str) -> bool:
    """True if there may be a file that both the path of a rule and a shell's pattern name; both have one case.

    A pattern that names a folder names what is in it. Where a path begins with `/`, a pattern must as well: otherwise
    every `*` might be its first folder. Where both begin in the folder of the project, they begin at the same place.
    """
    is_absolute = specifier.startswith("/")
    if is_absolute and not pattern.startswith("/"):
        return False
    parts = [part for part in specifier.removeprefix("~").split("/") if part not in ("", ".")]
    is_below = not pattern.startswith(("/", "~")) and ".." not in pattern and not specifier.startswith("~")
    rule = parts if is_absolute or is_below else ["**", *parts]
    at = _behind_folders(rule, {0})
    for part in pattern.split("/"):
        if part in ("", ".", "~"):
            continue
        if part == "**":
            at = _behind_visible(rule, at)
            continue
        stay = {place for place in at if place < len(rule) and rule[place] in ("*", "**")}
        go = {place + 1 for place in at if place < len(rule) and _may_be_same(rule[place], part)}
        at = _behind_folders(rule, stay | go)
    return len(rule) in at


def _behind_folders(rule: list[str], places: set[int]) -> set[int]:
    """The places, and those behind any number of folders, which may be none."""
    for place, part in enumerate(rule):
        if place in places and part == "**":
            places = places | {place + 1}
    return places


def _behind_visible(rule: list[str], places: set[int]) -> set[int]:
    """The places, and those behind any number of names that a wildcard of a shell may be."""
    reached = set(places)
    for place in sorted(places):
        while place < len(rule) and not rule[place].startswith("."):
            place += 1
            reached.add(place)
    return reached


def _as_expression(part: str) -> str:
    """A name in a shell's pattern as a regular expression in which text behind a star is searched from the left."""
    pieces = (
        "".join("." if _ONE.fullmatch(sign) else re.escape(sign) for sign in _ONE_OR_TEXT.findall(piece))
        for piece in re.split(r"\*+", part)
    )
    first, *others = pieces
    return first + "".join(f"(?>.*?{piece})" for piece in others[:-1]) + "".join(f".*{piece}" for piece in others[-1:])


def _may_be_same(rule: str, part: str) -> bool:
    """True if a name may be both. A wildcard of a shell does not stand for a dot at the beginning of a name."""
    if rule.startswith(".") and _WILDCARD.match(part):
        return False
    literals = _WILDCARD.split(part)
    if "*" not in rule:
        return re.fullmatch(_as_expression(part), rule, re.DOTALL) is not None
    if len(literals) == 1:
        return re.fullmatch(glob(rule), part, re.DOTALL) is not None
    begin, end = literals[0], literals[-1]
    first, last = rule.partition("*")[0], rule.rpartition("*")[2]
    begins = first.startswith(begin) or begin.startswith(first)
    return begins and (last.endswith(end) or end.endswith(last))
