"""Reads a configuration and replaces it atomically with another text, keeping the old one as a backup beside it.

Configurations contain secrets, and their folder may belong to somebody else: the folder is opened once, new files are
created only under names that do not exist, and no link is followed except the one that was named.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from functools import partial
from typing import Final

from msgspec import Struct

from ..files.open_flags import READ_FILE
from ..files.replace import written_beside
from ..model.errors import ConfigError, file_hint, not_written
from ..model.similar_names import similar_file

MAX_BYTES: Final = 16 * 2**20
"""The largest file that is read: agents that keep their history in the same file have a few million bytes."""

BACKUP: Final = ".hookproxy-backup"
"""The ending of the backup's name. The backup is the file before the last change."""

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Snapshot(Struct, frozen=True):
    """A file as it was read."""

    path: str
    """The path that was named."""
    real: str
    """The path of the file itself, with symbolic links resolved."""
    raw: bytes
    text: str
    stat_result: os.stat_result


def read(path: str) -> Snapshot:
    """Read a file that can be a configuration. Raises ConfigError."""
    if "\0" in path:
        raise ConfigError(repr(path), "is not a path: it contains a NUL character", "remove it")
    try:
        real = os.path.realpath(path)
        fd = os.open(real, READ_FILE)
        try:
            raw, stat_result = _content(path, fd)
        finally:
            os.close(fd)
    except FileNotFoundError:
        hint = similar_file(path) or "hookproxy wrap without FILE lists the configurations on this machine"
        raise ConfigError(path, "there is no such file", hint) from None
    except OSError as error:
        raise ConfigError(path, f"cannot be read: {error.strerror}", file_hint(path, error)) from None
    try:
        return Snapshot(path, real, raw, raw.decode(), stat_result)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}", "is not UTF-8", "save it as UTF-8") from None


def _content(path: str, fd: int) -> tuple[bytes, os.stat_result]:
    stat_result = os.fstat(fd)
    if stat.S_ISDIR(stat_result.st_mode):
        raise ConfigError(path, "is a folder, not a file", "name the file in it")
    if not stat.S_ISREG(stat_result.st_mode):
        raise ConfigError(path, "is not a regular file", "name an agent's configuration")
    with open(fd, "rb", closefd=False) as file:
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise ConfigError(path, f"is larger than {MAX_BYTES // 2**20} MiB", "name an agent's configuration")
    return raw, stat_result


def replace(snapshot: Snapshot, text: str) -> str:
    """Replace the file's text. Returns the path of the backup.

    Mode, owner and extended attributes stay. Raises ConfigError if the file has changed since it was read, and
    UserError if it cannot be written; then the file is unchanged.
    """
    if snapshot.stat_result.st_nlink > 1:
        hint = "wrap a copy, and replace all of its names with it"
        raise ConfigError(snapshot.path, "has another name (a hard link), which would keep the old text", hint)
    folder, name = os.path.split(snapshot.real)
    try:
        folder_fd = os.open(folder, _FOLDER_FLAGS)
        try:
            _swap_files(folder_fd, name, snapshot, text)
        finally:
            os.close(folder_fd)
    except OSError as error:
        raise not_written(snapshot.path, error, "cannot be replaced", "nothing was changed") from None
    return snapshot.real + BACKUP


def _swap_files(folder_fd: int, name: str, snapshot: Snapshot, text: str) -> None:
    _check_unchanged(folder_fd, name, snapshot)  # first of all, because the folder may have been replaced
    copy_access = partial(_copy_access, original=snapshot)
    with (
        written_beside(name, snapshot.raw, copy_access, folder=folder_fd) as backup_name,
        written_beside(name, text.encode(), copy_access, folder=folder_fd) as new_name,
    ):
        _check_unchanged(folder_fd, name, snapshot)
        os.rename(backup_name, name + BACKUP, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
        os.rename(new_name, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    os.fsync(folder_fd)


def _copy_access(fd: int, original: Snapshot) -> None:
    """Copy owner, extended attributes and mode. The owner comes first: to change it clears some bits of the mode."""
    current_stat = os.fstat(fd)
    if (current_stat.st_uid, current_stat.st_gid) != (original.stat_result.st_uid, original.stat_result.st_gid):
        os.fchown(fd, original.stat_result.st_uid, original.stat_result.st_gid)
    if sys.platform == "linux":  # elsewhere Python has no functions for them
        with contextlib.suppress(OSError):  # not every file system has them, and some only the system may set
            for attribute in os.listxattr(original.real, follow_symlinks=False):
                with contextlib.suppress(OSError):
                    value = os.getxattr(original.real, attribute, follow_symlinks=False)
                    os.setxattr(fd, attribute, value)
    os.fchmod(fd, stat.S_IMODE(original.stat_result.st_mode))


def _check_unchanged(folder_fd: int, name: str, snapshot: Snapshot) -> None:
    """Raise ConfigError if the file is not the one that was read."""
    error = ConfigError(snapshot.path, "has changed since it was read", "nothing was changed; try again")
    try:
        fd = os.open(name, READ_FILE, dir_fd=folder_fd)
    except OSError:
        raise error from None
    with open(fd, "rb") as file:
        current_stat = os.fstat(fd)
        same = (current_stat.st_dev, current_stat.st_ino) == (snapshot.stat_result.st_dev, snapshot.stat_result.st_ino)
        if not same or file.read(len(snapshot.raw) + 1) != snapshot.raw:
            raise error
