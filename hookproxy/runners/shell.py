"""Finds what to execute for a hook: a command without shell syntax costs half when no shell is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from ..model.hooks import HookSpec
from ..processes.process import SHELL, find_program

_PLAIN: Final = re.compile(r"[A-Za-z0-9_@%+=:,./ \t-]+")  # means nothing to a shell inside a word

# First words that a shell takes for itself: reserved words, builtins of dash, bash, busybox, ksh, mksh, zsh.
_SHELLS_OWN: Final = frozenset(
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
    """The words of a command that a shell would only split at blanks and execute; None: it takes a shell.

    Careful rather than complete: quotes, `~`, `$`, globs, assignments and the like are the shell's.
    """
    command = command.strip(" \t\n")
    if not _PLAIN.fullmatch(command):
        return None
    words = tuple(command.split())
    first = words[0]
    if "=" in first or first[0] in "-+%" or first in _SHELLS_OWN:
        return None
    return words


def ways(spec: HookSpec, env: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Programs and their arguments, to be tried until one can be started; none where no command is found.

    For a command string the shell comes last: it finds the usual words for what is wrong with the program.
    """
    words = plain_words(spec.shell) if spec.shell else spec.argv
    if words:
        for program in _programs(words[0], env.get("PATH"), spec.cwd):
            yield program, words
    if spec.shell:
        yield SHELL, (SHELL, "-c", spec.shell)


_found: dict[
    tuple[str, str | None, str], str
] = {}  # searching PATH costs some 20 us; grows with the configuration only


def _programs(word: str, path: str | None, cwd: str) -> Iterator[str]:
    if "/" in word:
        yield word  # the system knows best whether it can be executed
        return
    key = (word, path, cwd)
    before = _found.get(key)
    if before is not None:
        yield before  # asked for more: it cannot be started any longer
        del _found[key]
    now = find_program(word, path, cwd)
    if now is not None and now != before:
        _found[key] = now
        yield now
