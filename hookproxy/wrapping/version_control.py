"""Finds out whether a file is shared through version control: such a file should not name paths of one machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
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
    real = Path(path).resolve()
    if not any(os.path.lexists(folder / ".git") for folder in real.parents):  # in linked work trees it is a file
        return False
    git = shutil.which("git", path=environ.get("PATH"))
    if git is None or not os.path.isabs(git):
        return True
    argv = (git, "-c", "core.fsmonitor=false", "check-ignore", "--quiet", "--", str(real))
    variables = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
    return exit_status(argv, str(real.parent), variables, SECONDS) != _IGNORED
