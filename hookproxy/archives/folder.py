"""Reads a folder whose files are to be in an archive, or that somebody else has made: plain files, and no others.

Files and folders whose names begin with a dot are left out, and so is what Python compiles; not so where a folder is to
have nothing but what a manifest names.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import Final

from ..files.open_flags import READ_FILE
from ..model.errors import ConfigError, UserError, file_hint
from . import archive, names

_PRIVATE_KEY: Final = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")


def files_of(folder: str, *, leave_out: bool = True) -> tuple[dict[str, bytes], frozenset[str]]:
    """The files of the folder, and which of them are executable. Raises UserError."""
    files: dict[str, bytes] = {}
    executable = set()
    room = archive.MOST_BYTES
    for path in _paths(folder, leave_out=leave_out):
        name = os.path.relpath(path, folder)
        state = os.lstat(path)
        if not stat.S_ISREG(state.st_mode):
            raise ConfigError(path, "is not a plain file", "put the file itself there: no link is followed")
        try:
            names.check(name)
            with open(os.open(path, READ_FILE), "rb") as file:
                files[name] = file.read(room + 1)
        except names.BadName as problem:
            raise UserError(f"{folder}: {problem}", "rename it") from None
        except OSError as error:
            raise ConfigError(path, f"cannot be read: {error.strerror}", file_hint(path, error)) from None
        room -= len(files[name])
        if room < 0 or len(files) > archive.MOST_FILES:
            limits = f"has more than {archive.MOST_BYTES} bytes, or more than {archive.MOST_FILES} files"
            raise ConfigError(folder, limits, "name the folder of the policy alone")
        if _PRIVATE_KEY.match(files[name]):
            hint = "move it elsewhere: everybody who gets the files would have it"
            raise ConfigError(path, "is a private key", hint)
        if state.st_mode & stat.S_IXUSR:
            executable.add(name)
    return files, frozenset(executable)


def _paths(folder: str, *, leave_out: bool) -> Iterator[str]:
    def fail(error: OSError) -> None:
        raise ConfigError(error.filename or folder, f"cannot be read: {error.strerror}", "name one that you can read")

    for here, folders, present in os.walk(folder, onerror=fail):
        if leave_out:
            folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
            present = [name for name in present if not name.startswith(".")]
        folders.sort()
        links = [name for name in folders if os.path.islink(os.path.join(here, name))]
        yield from (os.path.join(here, name) for name in sorted((*links, *present)))
