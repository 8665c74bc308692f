"""Spells the paths in the command line of a hook: absolute for this machine, or relative for a file to commit.

Only words that are literal are changed, quoted or not; variables, substitutions and everything else stay as written.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import Final

from ..model.hooks import HookSpec

_WORD: Final = re.compile(r"""(?<![^\s;|&(<])(["']?)([\w./@%+:,~-][\w./@%+:,~ -]*?)\1(?=[\s;|&)]|$)""")
"""A literal word of a shell command line, with blanks in it only inside quotation marks."""

_SCRIPT: Final = (".sh", ".bash", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua")
"""The endings of files that a word without a slash may name: `python3 guard.py`. Any other such word may be a text."""

_SHELL_OPTION: Final = "-c"


def absolute(spec: HookSpec, folder: str) -> str:
    """The hook's command line, with the files in `folder` by their absolute paths."""
    if spec.shell:
        return _absolute_line(spec.shell, folder)
    return shlex.join(_absolute_words(spec.argv, folder))


def _absolute_words(argv: tuple[str, ...], folder: str) -> list[str]:
    """The words of a program without a shell; after `-c` stands a line for a shell."""
    return [
        _absolute_line(word, folder) if before == _SHELL_OPTION else _absolute_word(word, folder) or word
        for before, word in zip(("", *argv), argv, strict=False)
    ]


def _absolute_line(line: str, folder: str) -> str:
    def spelled(found: re.Match[str]) -> str:
        path = _absolute_word(found[2], folder)
        return shlex.quote(path) if path else found[0]

    return _WORD.sub(spelled, line)


def _absolute_word(word: str, folder: str) -> str:
    """The absolute path of the file that a word names; empty if it names none."""
    if not word or word.startswith(("/", "~", "-")) or not ("/" in word or word.endswith(_SCRIPT)):
        return ""
    path = os.path.normpath(os.path.join(folder, word))
    return path if os.path.isfile(path) else ""


def relative(line: str, project: str) -> str:
    """A command line, with the paths below the project relative to it, as agents start hooks there."""
    return re.sub(rf"(?<![\w./~-]){re.escape(project.rstrip('/'))}/(?=[\w.])", "./", line)


def names_machine(line: str, home: str) -> bool:
    """Whether a command line names a path in the home folder, which other people have not."""
    return home not in ("", "/") and re.search(rf"(?<![\w./-]){re.escape(home)}\b", line) is not None
