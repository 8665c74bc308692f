"""The completion scripts for shells: one file, and one line below, for each shell.

They are made from the parsers that read the command lines, so that both always agree. A script knows verbs, options,
the choices of an option, dialects and files. What only this machine knows, such as the names of servers, it asks
`hookproxy completion --values` for: see `known_values`.
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
"""For each shell, the function that makes its script from the verbs and the names of the dialects."""
