"""The configuration as it is for each project in which agents work: one guard judges for all of them (law 1).

Hook files of a person are about the project in which an agent works: their hooks run in its folder, and their rules
name paths that begin there. The first event of a session says which project it is: where the guard was
started does not matter.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

from ..config.load import Loaded

_MOST: Final = 64  # projects: each is read again in some milliseconds

_VARIABLE: Final = "CLAUDE_PROJECT_DIR"
"""The variable by which an agent says where its hook files' commands start, as a run of the proxy reads it."""

ReadProject = Callable[[str, Mapping[str, str]], Loaded]
"""The configuration for a folder and for what variables say of the project. Raises UserError."""


class Projects:
    """The configurations of one state of the files."""

    def __init__(self, loaded: Loaded) -> None:
        """`loaded` is for sessions that no event has reported."""
        self.loaded = loaded
        self.read: ReadProject | None = None
        """None: it is the same for all projects."""
        self._known: OrderedDict[tuple[str, str], Loaded] = OrderedDict()

    def loaded_for(self, folder: str, environ: Mapping[str, str]) -> Loaded:
        """For an agent that works in this folder, with this environment. Raises UserError."""
        if self.read is None or not os.path.isabs(folder):
            return self.loaded
        given = environ.get(_VARIABLE, "")
        if (loaded := self._known.pop((folder, given), None)) is None:
            loaded = self.read(folder, {_VARIABLE: given} if given else {})
        self._known[folder, given] = loaded
        if len(self._known) > _MOST:
            self._known.popitem(last=False)
        return loaded


def without_project(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment without what it says of the project: that of the guard may be of any agent."""
    return {name: value for name, value in environ.items() if name != _VARIABLE}
