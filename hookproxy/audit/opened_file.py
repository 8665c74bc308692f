"""A file that is opened for appending only if it can be trusted, and what is known of its end while it is open."""

from __future__ import annotations

import errno
import os
import select
import stat
from contextlib import suppress
from typing import Final

from msgspec import Struct

_END_CHECKS: Final = 5  # looks at a line without an end, before it counts as torn
_END_CHECK_PAUSE: Final = 0.002  # seconds between two looks: usually enough for another process to finish its line
_FLAGS: Final = os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
PRIVATE_MODE: Final = 0o600
"""For the owner only: arguments may hold secrets."""
SHARED_MODE: Final = 0o660
"""For the folder's group."""


class FileOptions(Struct, frozen=True):
    """How an audit file is written."""

    chain: bool = False
    """Each line has the hash of the line before it."""
    key_file: str = ""
    """The file with the key of the chain: each line has a number and a mac as well. Empty: there is none."""
    shared: bool = False
    """Several accounts write to it: it belongs to their group, and must not be a link."""
    private: bool = False
    """It is in a folder where others may create files: it must belong to this account, and must not be a link."""
    limit: int = 0
    """Bytes at which the file is rotated; 0: never."""
    keep: int = 0
    """How many rotated files are kept; 0: all."""

    @property
    def follows_links(self) -> bool:
        """The file may be a link."""
        return not (self.shared or self.private)

    @property
    def needs_lock(self) -> bool:
        """Writers take a lock for each line; otherwise only to rotate the file: it would cost a third of a line."""
        return self.chain or self.shared


class OpenedFile:
    """One file that is open for appending. Where its name leads to another file, a new object is needed."""

    __slots__ = ("_identity", "_is_cut_short", "_is_readable", "_options", "_path", "fd", "is_regular", "own_end")

    def __init__(self, path: str, options: FileOptions) -> None:
        """Raises OSError, also if the file cannot be trusted."""
        self._path = path
        self._options = options
        if not options.shared:
            make_folder(path)
        self._is_readable = not is_special(path)  # reading a pipe would keep it open without a reader
        self.fd = self._open()
        status = os.fstat(self.fd)
        self.is_regular = stat.S_ISREG(status.st_mode)
        self._identity = status.st_dev, status.st_ino
        self._is_cut_short = False  # our last write was incomplete, and the file cannot be read
        self.own_end = -1
        """The size of the file after our last line, if that was written whole."""

    def _open(self) -> int:
        """Open it for reading, too, if possible: that shows whether its last line is finished."""
        if self._is_readable:
            try:
                return open_checked(self._path, os.O_RDWR, self._options)
            except PermissionError:
                if self._options.chain:
                    raise
                self._is_readable = False
        return open_checked(self._path, os.O_WRONLY, self._options)

    def close(self) -> None:
        """Close it."""
        os.close(self.fd)

    @property
    def size(self) -> int:
        """Its size; 0 for a pipe or a device."""
        return os.fstat(self.fd).st_size if self.is_regular else 0

    @property
    def is_removed(self) -> bool:
        """It has no name any more."""
        return os.fstat(self.fd).st_nlink == 0

    def size_by_name(self) -> int:
        """Its size; -1: its name is now that of another file, or of none: it was rotated or moved."""
        if not self.is_regular:
            return 0
        try:
            there = os.stat(self._path, follow_symlinks=self._options.follows_links)
        except FileNotFoundError:
            return -1
        return there.st_size if (there.st_dev, there.st_ino) == self._identity else -1

    def append(self, lines: bytes, size: int) -> int:
        """Append lines to the file of this size in one write, after the end of a torn line. Raises OSError.

        Returns how many bytes of them were written: fewer if the disk is full.
        """
        start = b"\n" if self._is_cut_short or self._ends_unfinished(size) else b""
        written = max(os.write(self.fd, start + lines) - len(start), 0)
        if written == len(lines):
            self._is_cut_short, self.own_end = False, size + len(start) + written
        else:
            self._is_cut_short = not self._is_readable and not lines[:written].endswith(b"\n")
        return written

    def _ends_unfinished(self, size: int) -> bool:
        """True if the file's last line has no end, after some time in which another process may have finished it."""
        if not self._is_readable or size == self.own_end:  # our own line is the last one
            return False
        for _ in range(_END_CHECKS):
            if size == 0 or os.pread(self.fd, 1, size - 1) == b"\n":
                return False
            if self._options.needs_lock:
                break
            select.select((), (), (), _END_CHECK_PAUSE)
            size = os.fstat(self.fd).st_size
        return True


def make_folder(path: str) -> None:
    """Make the folder of this file for its owner alone, if it does not exist. Raises OSError."""
    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)


def open_checked(path: str, flags: int, options: FileOptions) -> int:
    """Open the file, or create it. Raises OSError if it cannot be trusted."""
    flags |= _FLAGS | (0 if options.follows_links else os.O_NOFOLLOW)
    try:
        fd, fresh = os.open(path, flags), False
    except FileNotFoundError:  # not earlier: Linux restricts O_CREAT in shared folders (protected_regular)
        fd, fresh = os.open(path, flags | os.O_CREAT, SHARED_MODE if options.shared else PRIVATE_MODE), True
    try:
        if fresh and options.shared:
            with suppress(PermissionError):  # another account created it at the same time
                os.fchmod(fd, SHARED_MODE)  # whatever the umask is
        _check(os.fstat(fd), options)
    except OSError:
        os.close(fd)
        raise
    return fd


def _check(status: os.stat_result, options: FileOptions) -> None:
    if options.shared and not (stat.S_ISREG(status.st_mode) and status.st_nlink <= 1):
        why = "is not a regular file, or has a second name (a hard link): somebody may have put it there"
        raise OSError(errno.EPERM, why)
    if options.private and status.st_uid != os.geteuid():
        raise OSError(errno.EPERM, "belongs to another account")


def is_special(path: str) -> bool:
    """True if there is something other than a regular file or a folder, such as a pipe or a device."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
