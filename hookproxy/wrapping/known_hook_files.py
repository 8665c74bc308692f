"""Finds the hook files of known systems on this machine, for `setup` to propose: nothing is loaded by being found.

The places follow each system's own document, as its dialect does. A project's hook files are code of whoever made the
project: they are kept apart from the person's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from glob import escape, glob
from typing import Final

from msgspec import Struct

from ..config.hook_files import parse_option, read_use
from ..dialects.registry import DIALECTS
from ..model.errors import UserError
from ..trust.sources import FileContext
from .files import read

_CONVERTED: Final = " hook --for "
"""What every command line has that `convert` writes."""


class FoundHookFile(Struct, frozen=True):
    """A hook file, or a folder with hook files, that exists."""

    path: str
    dialect: str
    in_project: bool
    """True if it is a file of the project in the working directory, and not the person's own."""
    hooks: int = 0
    """The number of its hooks that can run behind MCP."""
    sources: frozenset[str] = frozenset()
    """The files with these hooks."""
    notes: tuple[str, ...] = ()
    """What in it does not do what its author wrote."""
    error: UserError | None = None

    @property
    def option(self) -> str:
        """The value of `--hooks` that names it."""
        return f"{self.dialect}={self.path}"


def find(environ: Mapping[str, str], home: str, cwd: str) -> list[FoundHookFile]:
    """Every hook file with hooks that can run behind MCP, or with something to report."""
    file_context = FileContext(environ, cwd)
    found = [_read(path, dialect, in_project, file_context) for path, dialect, in_project in _paths(environ, home, cwd)]
    return [file for file in found if file.hooks or file.notes or file.error]


def starting_hookproxy(environ: Mapping[str, str], home: str, cwd: str) -> list[str]:
    """The files in these places that start `hookproxy hook`, as `convert` writes it, whoever wrote them there."""
    paths = []
    for path, _dialect, _in_project in _paths(environ, home, cwd):
        names = [os.path.join(path, name) for name in sorted(os.listdir(path))] if os.path.isdir(path) else [path]
        paths += [name for name in names if _starts_hookproxy(name)]
    return paths


def _starts_hookproxy(path: str) -> bool:
    try:
        return "hookproxy" in (text := read(path).text) and _CONVERTED in text
    except UserError:
        return False


def _paths(environ: Mapping[str, str], home: str, cwd: str) -> Iterator[tuple[str, str, bool]]:
    """The existing files, each once, with their dialects, and whether they belong to the project."""
    seen: set[str] = set()
    of_project = [
        (path, dialect.name, True)
        for dialect in DIALECTS.values()
        for files in dialect.project_files
        for path in _matching(cwd, files)
    ]
    for path, dialect, in_project in (*_user_paths(environ, home), *of_project):
        real = os.path.realpath(path)
        if real not in seen:
            seen.add(real)
            yield path, dialect, in_project
        if os.path.isdir(path):  # a folder that is named as a whole
            seen.update(os.path.realpath(os.path.join(path, name)) for name in os.listdir(path))


def _user_paths(environ: Mapping[str, str], home: str) -> Iterator[tuple[str, str, bool]]:
    for dialect in DIALECTS.values():
        for place in dialect.user_files:
            moved = environ.get(place.variable, "")
            folder = moved if os.path.isabs(moved) else place.folder and os.path.join(home, place.folder)
            if folder == moved or not place.whole_with:
                yield from ((path, dialect.name, False) for path in _matching(folder, place.files) if folder)
            elif any(os.path.isfile(os.path.join(folder, name)) for name in place.whole_with):
                yield folder, dialect.name, False


def _matching(folder: str, files: str) -> list[str]:
    return sorted(glob(os.path.join(escape(folder), files)))


def _read(path: str, dialect: str, in_project: bool, file_context: FileContext) -> FoundHookFile:
    found = FoundHookFile(path, dialect, in_project)
    try:
        loaded = list(read_use(parse_option(found.option, file_context.cwd), file_context))
    except UserError as error:
        return FoundHookFile(path, dialect, in_project, error=error)
    return FoundHookFile(
        path,
        dialect,
        in_project,
        sum(len(hook_file.group.hooks) for hook_file in loaded),
        frozenset(hook_file.group.source for hook_file in loaded if hook_file.group.hooks),
        tuple(note for hook_file in loaded for note in hook_file.notes),
    )
