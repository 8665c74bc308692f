"""Replaces a file as a whole: whoever opens its name gets all of the old text or all of the new one, and never nothing.

The new text is written into a new file in the same folder, which then takes the name by one rename. What must hold:

- The new file's name did not exist and cannot be guessed, and no link is followed: a link that has the name is itself
  replaced. A caller that is to follow a link resolves the path first.
- The new file is readable by its owner alone until it is complete and has its final owner and mode.
- It is on the disk before it takes the name (`durable`): after a crash of the machine there is one of the two texts.
- If anything fails, the old file is as it was, and the new one is removed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from .open_flags import NEW_FILE

PRIVATE: Final = 0o600
"""The mode of a file for its owner alone."""

_PREFIX: Final = ".hookproxy-"  # of new files: what a killed process leaves behind can be recognised


def replace_file(path: str, data: bytes, *, mode: int = PRIVATE, durable: bool = True) -> None:
    """Replace the file, or create it, with this content and this mode, whatever the umask is. Raises OSError.

    `durable=False` does not wait for the disk: after a crash of the machine, the file may be empty.
    """
    set_mode = None if mode == PRIVATE else lambda fd: os.fchmod(fd, mode)
    with written_beside(path, data, set_mode, durable=durable) as new:
        os.replace(new, path)
    if durable:
        sync_folder(os.path.dirname(path) or ".")


def sync_folder(folder: str) -> None:
    """Wait until the names in the folder are on the disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_in_folder(folder: int, name: str, data: bytes, set_access: Callable[[int], None] | None = None) -> None:
    """Replace the file of this name in the open folder, or create it. Raises OSError.

    `set_access` gives the new file, by its descriptor, another owner or mode than our own and `PRIVATE`.
    """
    with written_beside(name, data, set_access, folder=folder) as new:
        os.replace(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    os.fsync(folder)


@contextmanager
def written_beside(
    path: str,
    data: bytes,
    set_access: Callable[[int], None] | None = None,
    *,
    folder: int | None = None,
    durable: bool = True,
) -> Iterator[str]:
    """A new file with this content beside `path`, which is relative to the open `folder` if there is one.

    The block gets its path. After the block it is removed, unless the block has renamed it. Raises OSError.
    """
    new = os.path.join(os.path.dirname(path), f"{_PREFIX}{os.urandom(8).hex()}")
    fd = os.open(new, NEW_FILE, PRIVATE, dir_fd=folder)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            if set_access is not None:
                set_access(fd)
            if durable:
                os.fsync(fd)
        yield new
    finally:
        with suppress(OSError):  # it already has its final name
            os.unlink(new, dir_fd=folder)
