"""Creates files together: all of them, or none."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def create_files(texts: Mapping[str, str], below: str = "") -> list[str]:
    """Create these files, by their absolute paths, or none of them. Returns the folders that were made for them.

    One that begins with `#!` is executable. Inside of the folder `below` no link is followed: anybody may have made it.
    Raises OSError, for a file that exists too: nothing is overwritten.
    """
    created: list[str] = []
    folders: list[str] = []
    try:
        for path, text in texts.items():
            folder = os.path.dirname(path)
            for missing in missing_folders(folder):
                os.mkdir(missing)
                folders.append(missing)
            inside = os.path.relpath(folder, below) if below else ""
            if below and os.path.realpath(folder) != os.path.normpath(os.path.join(os.path.realpath(below), inside)):
                raise NotADirectoryError(errno.ENOTDIR, "its folder is a link", path)
            mode = 0o777 if text.startswith("#!") else 0o666  # the umask removes some of these bits
            fd = os.open(path, _NEW_FILE, mode)
            created.append(path)
            with open(fd, "w", encoding="utf-8", newline="") as file:
                file.write(text)
    except BaseException:
        for path in created:
            with suppress(OSError):
                os.unlink(path)
        remove_empty(folders)
        raise
    return folders


def missing_folders(folder: str) -> list[str]:
    """The folder and those above it that do not exist, the outer ones first."""
    return [] if os.path.isdir(folder) else [*missing_folders(os.path.dirname(folder)), folder]


def remove_empty(folders: Sequence[str]) -> None:
    """Remove those of the folders that are empty, the inner ones first."""
    for folder in sorted(folders, key=len, reverse=True):
        with suppress(OSError):
            os.rmdir(folder)
