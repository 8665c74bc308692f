"""Scripts with which shells complete our command lines: one file and one line for each shell.

They are made from the parsers that read the command lines, so that neither knows what the other does not. A script
knows verbs, options, the words that an option takes, dialects and files; tool names only a server knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from . import bash, fish, zsh
from .command_line import Verb

SHELLS: Final[Mapping[str, Callable[[Sequence[Verb], Sequence[str]], str]]] = {
    "bash": bash.script,
    "zsh": zsh.script,
    "fish": fish.script,
}
"""A function of the verbs and the names of the dialects gives the script."""
