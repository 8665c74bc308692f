"""Whether a root of an agent lies in an allowed folder, on this machine's disk, and what a server gets of its roots."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ..model.settings import RootsRule
from ..policy.file_addresses import meant_paths
from ..protocol.roots import Roots


def roots_of(rule: RootsRule) -> Roots | None:
    """What stands between the agent and the server by this rule; None: nothing does."""
    if rule.passes_all:
        return None
    if not rule.allowed:
        return Roots(rule.given)
    lists = [AllowedFolders(folders) for folders in rule.allowed]
    return Roots(rule.given, lambda address: all(folders.hold(address) for folders in lists))


class AllowedFolders:
    """Folders, of which each is one place however it is spelled: with links, `..`, percent signs, or in another case.

    Places are compared on the disk whenever an agent names one, because links may change.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = folders

    def hold(self, address: str) -> bool:
        """True if whatever a reader takes the address for is certainly one of the folders, or below one."""
        paths = meant_paths(address)
        return bool(paths) and all(self._holds(path) for path in paths)

    def _holds(self, path: str) -> bool:
        # readers take `link/..` for the folder of the link, or for the folder above the one that it leads to
        try:
            return all(self._is_below(os.path.realpath(spelled)) for spelled in {path, os.path.normpath(path)})
        except (OSError, ValueError):  # a NUL, or a loop of links
            return False

    def _is_below(self, path: str) -> bool:
        ancestors = list(_with_ancestors(path))
        real = {os.path.realpath(folder) for folder in self._folders}
        if not real.isdisjoint(ancestors):
            return True
        return any(_same_place(above, folder) for above in ancestors for folder in real)


def _with_ancestors(path: str) -> Iterator[str]:
    while True:
        yield path
        above = os.path.dirname(path)
        if above == path:
            return
        path = above


def _same_place(path: str, folder: str) -> bool:
    """True if both are one folder of the disk, such as one whose file system ignores the case of names."""
    return path.casefold() == folder.casefold() and os.path.exists(path) and os.path.samefile(path, folder)
