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
