"""Calls like one that a person has approved: of the same tool, with a command that begins with the same words (law 1).

Everything else must be the same. What cannot be read for certain is not like anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ..jsonrpc import raw_json
from ..shell.commands import commands_of
from ..shell.programs import operand_places, runs_operands
from ..shell.statements import LONGEST
from ..shell.words import literal

_PLAIN_WORD: Final = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
"""A word that every shell reads as it is written."""

_PLAIN_LINE: Final = re.compile(r"[A-Za-z0-9_@%+=:,./ '\"~*?-]+")
"""A command line that is one command: no sign starts, joins or redirects another one."""

COMMAND_ARGUMENTS: Final = ("command", "cmd")
"""The names of arguments that hold a command, if nothing better is known of the tool."""

_LEAVES_FOLDER: Final = ".."
_MAX_WORDS: Final = 8  # of the first words: more than a person compares


class SimilarCalls(Struct, frozen=True):
    """The calls of a tool whose command begins with these words, and whose other arguments are these."""

    tool: str
    words: str
    """The first words of the command."""
    argument: str
    """The server's name of the argument with the command."""
    others: Mapping[str, bytes]
    """The other arguments, as normalised JSON."""

    @property
    def text(self) -> str:
        """The calls in the form of a permission rule, for people."""
        return f"{self.tool}({self.words} *)"

    def include(self, tool: str, arguments: bytes) -> bool:
        """True if a call with these arguments, normalised JSON, is certainly one of these."""
        if tool != self.tool:
            return False
        command, others = _split(arguments, self.argument)
        if command is None or others != self.others or not _is_one_command(command):
            return False
        return command == self.words or command.startswith(f"{self.words} ")


def similar_calls(tool: str, arguments: bytes, argument: str) -> SimilarCalls | None:
    """Return the calls like this one; None if its command is not simple enough to say which these are.

    `arguments` are normalised JSON under the server's names; `argument` is the name of the one with the command.
    """
    command, others = _split(arguments, argument)
    words = _first_words(command) if command is not None else []
    return SimilarCalls(tool, " ".join(words), argument, others) if words else None


def _split(arguments: bytes, argument: str) -> tuple[str | None, dict[str, bytes]]:
    """The command, and the other arguments; None if there is no command that can be read."""
    try:
        members = {key: bytes(value) for key, value in raw_json.fields(arguments).items()}
    except ValueError:
        return None, {}
    command = raw_json.text(members.pop(argument, b""))
    return (None if command is None else command.strip(" ")), members


def _is_one_command(command: str) -> bool:
    """True if this is a plain command that starts no other one, whatever its options mean."""
    if len(command) > LONGEST or _PLAIN_LINE.fullmatch(command) is None or _LEAVES_FOLDER in command:
        return False
    line = commands_of(command)
    return len(line.commands) == 1 and not line.unreadable


def _first_operand(words: list[str]) -> int:
    """The place of the first word behind the options and their values, such as a subcommand, or of the last word."""
    places = operand_places([*map(literal, words)])
    if places is None:
        places = {at for at, word in enumerate(words) if at and not word.startswith("-")}
        return min(places, default=len(words) - 1)
    return min(max(places, default=len(words)), len(words) - 1)


def _first_words(command: str) -> list[str]:
    """The program with its first options and the first word after these; none if they could start another program."""
    if not _is_one_command(command):
        return []
    words = command.split(" ")
    if runs_operands(tuple(words)) or "=" in words[0]:
        return []
    first = words[: _first_operand(words) + 1]
    return first if len(first) <= _MAX_WORDS and all(map(_PLAIN_WORD.fullmatch, first)) else []
