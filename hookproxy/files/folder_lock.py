"""Locks a folder against other processes that change the same files: no lock file is left behind."""

from __future__ import annotations

import fcntl
import os


def lock_folder(folder: str) -> int:
    """Make the folder for its owner alone if it does not exist, and wait for its lock, which ends with the descriptor.

    Raises OSError.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
    except BaseException:
        os.close(lock)
        raise
    return lock
