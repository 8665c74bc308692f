"""Reads a secret key of the audit from its file: only if no other account can read it."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

_LONGEST: Final = 4096  # bytes: a longer file is not a key
_OTHERS: Final = stat.S_IRWXO | stat.S_IWGRP | stat.S_IXGRP


def read_private(path: str) -> bytes:
    """The content of a key's file. Raises OSError, also if others may read it.

    Root's may be readable for its group: systemd's and Kubernetes' secrets belong to root, and are given so.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", path)
        own = status.st_uid == os.geteuid()
        if not own and status.st_uid != 0:
            raise OSError(errno.EPERM, "belongs to another account", path)
        if status.st_mode & (0o077 if own else _OTHERS):
            raise OSError(errno.EPERM, "may be read by other accounts: chmod 600 it", path)
        return os.read(fd, _LONGEST)
    finally:
        os.close(fd)
