"""Finds out whether a file is shared through version control: such a file should not name paths of one machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Final

from ..processes.short_command import exit_status

SECONDS: Final = 5.0
"""How long git may take: it answers in some milliseconds, except on a slow network drive."""

_IGNORED: Final = 0
"""The status of `git check-ignore` for a file that is ignored; 1: it is not; 128: git cannot tell."""


def is_shared(path: str, environ: Mapping[str, str]) -> bool:
    """True if the file is in the work tree of a git repository that does not ignore it.

    If git is not installed or cannot tell, the file counts as shared. The repository may be anybody's: of its settings,
    the one that names a program to run is switched off.
    """
    real = os.path.realpath(path)
    folder = os.path.dirname(real)
    if not _in_work_tree(folder):
        return False
    git = shutil.which("git", path=environ.get("PATH"))
    if git is None or not os.path.isabs(git):
        return True
    argv = (git, "-c", "core.fsmonitor=false", "check-ignore", "--quiet", "--", real)
    variables = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
    return exit_status(argv, folder, variables, SECONDS) != _IGNORED


def _in_work_tree(folder: str) -> bool:
    """True if the folder or one above it has an entry `.git`: a folder, or in linked work trees a file."""
    while True:
        if os.path.lexists(os.path.join(folder, ".git")):
            return True
        parent = os.path.dirname(folder)
        if parent == folder:
            return False
        folder = parent
