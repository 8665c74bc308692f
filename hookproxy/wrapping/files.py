"""Reads a configuration and puts another text in its place: at once or not at all, with what it was kept beside it.

Configurations hold secrets, and their folder may be somebody else's: everything happens in a folder that is opened
once, nothing that is created is there before, and no link is followed but the one that was named.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from typing import Final

from msgspec import Struct

from ..model.errors import ConfigError, UserError, file_hint

LARGEST: Final = 16 * 2**20
"""Bytes: agents that keep their history in the same file have a few million."""

BACKUP: Final = ".hookproxy-backup"
"""What the name of the copy ends with: it is the file before the last change."""

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Snapshot(Struct, frozen=True):
    """A file as it was read."""

    path: str
    """What was named."""
    real: str
    """The file itself, behind symbolic links."""
    raw: bytes
    text: str
    seen: os.stat_result


def read(path: str) -> Snapshot:
    """The file, if it is one that can be taken for a configuration. Raises ConfigError."""
    if "\0" in path:
        raise ConfigError(repr(path), "is not a path: a NUL character is in it", "take it out")
    try:
        real = os.path.realpath(path)
        # A pipe that nobody writes to would be waited for, and a terminal could become ours.
        number = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            raw, seen = _content(path, number)
        finally:
            os.close(number)
    except FileNotFoundError:
        raise ConfigError(path, "there is no such file", "hookproxy wrap, alone, lists those that are here") from None
    except OSError as error:
        raise ConfigError(path, f"cannot be read: {error.strerror}", file_hint(path, error)) from None
    try:
        return Snapshot(path, real, raw, raw.decode(), seen)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}", "is not UTF-8", "save it as UTF-8") from None


def _content(path: str, number: int) -> tuple[bytes, os.stat_result]:
    seen = os.fstat(number)
    if stat.S_ISDIR(seen.st_mode):
        raise ConfigError(path, "is a folder, not a file", "name the file in it")
    if not stat.S_ISREG(seen.st_mode):
        raise ConfigError(path, "is no ordinary file", "name an agent's configuration")
    if seen.st_size > LARGEST:
        raise ConfigError(path, f"is larger than {LARGEST // 2**20} MiB", "name an agent's configuration")
    parts = []
    while piece := os.read(number, LARGEST):
        parts.append(piece)
        if sum(map(len, parts)) > LARGEST:  # it grows while it is read
            raise ConfigError(path, f"is larger than {LARGEST // 2**20} MiB", "name an agent's configuration")
    return b"".join(parts), seen


def replace(before: Snapshot, text: str) -> str:
    """Put the text in the file's place; gives the path of the backup.

    Mode, owner and extended attributes stay. Raises ConfigError if the file has changed since it was read, and
    UserError for what cannot be written; the file is as it was then.
    """
    if before.seen.st_nlink > 1:
        hint = "wrap a copy, and move it into the place of all of them"
        raise ConfigError(before.path, "has another name (a hard link), which would keep the old text", hint)
    folder, name = os.path.split(before.real)
    try:
        place = os.open(folder, _FOLDER)
        try:
            _exchange(place, name, before, text)
        finally:
            os.close(place)
    except OSError as error:
        raise UserError(
            f"{before.path}: cannot be replaced: {error.strerror}",
            f"nothing was changed; {folder} must be writable, and the file yours",
        ) from None
    return before.real + BACKUP


def _exchange(place: int, name: str, before: Snapshot, text: str) -> None:
    made: list[str] = []
    _check_unchanged(place, name, before)  # before a copy of it is written: the folder may be another one by now
    try:
        made.append(copy := _written(place, name, before, before.raw))
        made.append(new := _written(place, name, before, text.encode()))
        _check_unchanged(place, name, before)
        os.rename(copy, name + BACKUP, src_dir_fd=place, dst_dir_fd=place)
        os.rename(new, name, src_dir_fd=place, dst_dir_fd=place)
    finally:
        for left in made:
            with contextlib.suppress(OSError):  # it has its final name by now
                os.unlink(left, dir_fd=place)
    os.fsync(place)


def _written(place: int, name: str, like: Snapshot, raw: bytes) -> str:
    """A new file beside it, for nobody else's eyes until it is as the old one is; gives its name."""
    new = f".{name[:100]}.{secrets.token_hex(8)}"
    number = os.open(new, _NEW, 0o600, dir_fd=place)
    try:
        with open(number, "wb") as file:
            file.write(raw)
            file.flush()
            _same_access(file.fileno(), like)
            os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new, dir_fd=place)
        raise
    return new


def _same_access(number: int, like: Snapshot) -> None:
    """Owner first: giving a file away takes some bits of its mode."""
    now = os.fstat(number)
    if (now.st_uid, now.st_gid) != (like.seen.st_uid, like.seen.st_gid):
        os.fchown(number, like.seen.st_uid, like.seen.st_gid)
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):  # not every file system has them, and some are the system's alone
            for attribute in os.listxattr(like.real, follow_symlinks=False):
                with contextlib.suppress(OSError):
                    value = os.getxattr(like.real, attribute, follow_symlinks=False)
                    os.setxattr(number, attribute, value)
    os.fchmod(number, stat.S_IMODE(like.seen.st_mode))


def _check_unchanged(place: int, name: str, before: Snapshot) -> None:
    """Raise ConfigError if the file is not the one that was read."""
    changed = ConfigError(before.path, "has changed since it was read", "nothing was changed; try again")
    try:
        number = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
    except OSError:
        raise changed from None
    with open(number, "rb") as file:
        now = os.fstat(number)
        same = (now.st_dev, now.st_ino) == (before.seen.st_dev, before.seen.st_ino)
        if not same or file.read(len(before.raw) + 1) != before.raw:
            raise changed
