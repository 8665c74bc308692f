"""The trust store: records hash and text of each trusted file, in the user's state folder. Nobody else can read it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from msgspec import Struct, convert

from ..files.folder_lock import lock_folder
from ..files.open_flags import READ_FILE
from ..files.replace import replace_file
from ..model.errors import ConfigError, file_hint, not_written

VERSION: Final = 1
"""The version of the format."""

MAX_TEXT_LENGTH: Final = 128 * 1024
"""Characters. A longer text is not stored; texts are stored to show later what has changed, and guards are shorter."""

_MAX_TOTAL_TEXT: Final = 8 * 1024 * 1024  # characters of all texts together: the store is read at each start


class TrustEntry(Struct, frozen=True):
    """A file as it was trusted."""

    sha256: str
    text: str | None = None
    """None: the file is not text, or it is too long."""
    of: tuple[str, ...] = ()
    """The files given to `hookproxy trust` that led to this one."""
    hooks: bool = False
    """It is a hook file or a hookproxy.toml. If it is not read any more, guards are missing."""


def read_store(path: str) -> dict[str, TrustEntry]:
    """The trusted files by path; empty if there is no store. Raises ConfigError for a store that others may write."""
    try:
        opened = os.open(path, READ_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigError(path, f"cannot be read: {error.strerror}", file_hint(path, error)) from None
    with os.fdopen(opened, "rb") as file:
        for place, state in ((path, os.fstat(opened)), (os.path.dirname(path), os.stat(os.path.dirname(path)))):
            _check(place, state)
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise ConfigError(path, "is not a regular file", "move it away, and trust files again")
        raw = file.read()
    import json  # takes 2 ms: only if there is a store

    try:
        return convert(json.loads(raw)["files"], dict[str, TrustEntry])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ConfigError(path, "is not a trust store of hookproxy", "move it away, and trust files again") from None


def _check(place: str, state: os.stat_result) -> None:
    if state.st_uid not in (0, os.geteuid()):
        raise ConfigError(
            place, "belongs to another user, so its content cannot be trusted", f"chown {os.geteuid()} {place}"
        )
    if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        hint = f"check its content, then: chmod go-w {place}"
        raise ConfigError(place, "is writable by others, so its content cannot be trusted", hint)


@contextmanager
def locked_entries(path: str) -> Iterator[dict[str, TrustEntry]]:
    """The entries of the store, locked against other processes, and written back when the block ends without an error.

    Raises ConfigError and UserError.
    """
    folder = os.path.dirname(path)
    try:
        lock = lock_folder(folder)
    except OSError as error:
        raise not_written(folder, error, "cannot be used") from None
    try:
        entries = read_store(path)
        yield entries
        _write(path, entries)
    finally:
        os.close(lock)


def _write(path: str, entries: Mapping[str, TrustEntry]) -> None:
    """Replace the store atomically, readable by nobody else. Raises UserError."""
    import json

    remaining, files = _MAX_TOTAL_TEXT, {}
    for name, entry in entries.items():
        remaining -= len(entry.text or "")
        text = {"text": entry.text} if entry.text is not None and remaining >= 0 else {}
        files[name] = {"sha256": entry.sha256, **text, "of": list(entry.of), "hooks": entry.hooks}
    document = json.dumps({"v": VERSION, "files": files}, indent=1).encode()
    try:
        replace_file(path, document)
    except OSError as error:
        raise not_written(path, error) from None
