"""Creates files together: all of them, or none."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from errno import ENOTDIR
from typing import Final

from .open_flags import NEW_FILE

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def create_files(texts: Mapping[str, str], below: str = "") -> list[str]:
    """Create these files, by their absolute paths, or none of them. Returns the folders that were made for them.

    One that begins with `#!` is executable. Inside of the folder `below` no link is followed: anybody may have made it.
    Raises OSError, for a file that exists too: nothing is overwritten.
    """
    created: list[tuple[str, int]] = []
    folders: list[str] = []
    path = ""
    with ExitStack() as opened:
        try:
            for path, text in texts.items():
                folder, name = os.path.split(path)
                for missing in missing_folders(folder):
                    _make_folder(missing)
                    folders.append(missing)
                folder_fd = _open_folder(folder, below)
                opened.callback(os.close, folder_fd)
                mode = 0o777 if text.startswith("#!") else 0o666  # the umask removes some of these bits
                fd = os.open(name, NEW_FILE, mode, dir_fd=folder_fd)
                created.append((name, folder_fd))
                with open(fd, "w", encoding="utf-8", newline="") as file:
                    file.write(text)
        except BaseException as error:
            if isinstance(error, OSError) and not os.path.isabs(str(error.filename or "")):  # a name in a folder
                error.filename = path
            for name, folder_fd in created:
                with suppress(OSError):
                    os.unlink(name, dir_fd=folder_fd)
            remove_empty(folders)
            raise
    return folders


def _make_folder(path: str) -> None:
    """Make a folder. Raises NotADirectoryError if something else has its name, and other OSErrors."""
    try:
        os.mkdir(path)
    except FileExistsError:
        raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), path) from None


def _open_folder(folder: str, below: str) -> int:
    """A descriptor of the folder. Below the other folder each step is opened in the one before: no link can get in."""
    if not below:
        return os.open(folder, _FOLDER)
    fd = os.open(below, _FOLDER)
    for name in os.path.relpath(folder, below).split(os.sep):
        outer = fd
        try:
            fd = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=outer)
        finally:
            os.close(outer)
    return fd


def missing_folders(folder: str) -> list[str]:
    """The folder and those above it that do not exist, the outer ones first."""
    return [] if os.path.isdir(folder) else [*missing_folders(os.path.dirname(folder)), folder]


def remove_empty(folders: Sequence[str]) -> None:
    """Remove those of the folders that are empty, the inner ones first."""
    for folder in sorted(folders, key=len, reverse=True):
        with suppress(OSError):
            os.rmdir(folder)
