"""The simple commands of a line of shell: `plain` reads most lines, `statements` the others with a grammar of bash.

What is not read: the value of a variable, an alias that is defined elsewhere, a script that is started by name.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from . import statements
from .plain import read_plain
from .words import PRIVATE, Command

LONGEST: Final = 65_536
"""Characters of a line: ten times the longest that an agent writes by hand; reading it takes some 20 ms."""


class Script(Struct, frozen=True):
    """What a text of shell consists of."""

    commands: tuple[Command, ...]
    unreadable: str = ""
    """Why it cannot be read for certain; empty: it can."""


def read(line: str) -> Script:
    """Return the simple commands of a line, those inside of substitutions included."""
    if len(line) > LONGEST:
        return Script((), "it is too long")
    if PRIVATE.search(line) or "\0" in line:
        return Script((), "it has a character that no command has")
    plain = read_plain(line)
    if plain is not None:
        return Script(plain)
    return read_with_grammar(line)


def read_with_grammar(line: str) -> Script:
    """Return what `read` does, but slower."""
    found = statements.read(line)
    return Script(tuple(found.commands), found.unreadable)
