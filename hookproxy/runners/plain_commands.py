"""Knows the command lines that need no shell: those of which every shell makes the same words."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ..model.late_pattern import late_pattern

_PLAIN_COMMAND: Final = late_pattern(r"[A-Za-z0-9_@%+=:,./ \t-]+")  # characters without a meaning to a shell

# First words that a shell handles itself: reserved words, and builtins of dash, bash, busybox, ksh, mksh, zsh.
_SHELL_WORDS: Final = frozenset(
    """
    case coproc do done elif else end esac fi for foreach function if in nocorrect repeat select then time
    until while . : alias autoload bg bind break builtin bye caller cat cd chdir command compgen complete
    compopt continue declare dirs disown echo emulate enable eval exec exit export false fc fg float
    functions getopts hash help hist history integer jobs kill let local log logout mapfile mknod nameref
    newgrp noglob popd print printf pushd pushln pwd r read readarray readonly realpath rehash rename return
    sched set setopt shift shopt sleep source stop suspend test times trap true ttyctl type typeset ulimit
    umask unalias unfunction unhash unset unsetopt vared wait whence where which zcompile zmodload
    """.split()  # noqa: SIM905 - for the eye
)


@lru_cache(maxsize=1024)
def plain_words(command: str) -> tuple[str, ...] | None:
    """The words of a command that a shell would only split at blanks and execute; None: it needs a shell.

    Anything doubtful needs a shell: quotes, `~`, `$`, globs, assignments and the like.
    """
    command = command.strip(" \t\n")
    if not _PLAIN_COMMAND.fullmatch(command):
        return None
    words = tuple(command.split())
    first = words[0]
    if "=" in first or first[0] in "-+%" or first in _SHELL_WORDS:
        return None
    return words
