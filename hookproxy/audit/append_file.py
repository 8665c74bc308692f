"""A file to which several processes append lines: lines stay whole, none is lost, and a hash chain may link them.

A line is one write, or a part of one. If a writer was killed in the middle of a line, the next writer ends that line
first, and its own line has the hash of the torn one. If files are chained, shared or rotated, writers lock a file next
to it; they do not wait long for it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import select
import stat
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import Final

import msgspec

from ..files.replace import replace_file
from .hash_chain import (
    CHECKPOINT,
    CHECKPOINT_LINES,
    LAST,
    Tail,
    checkpoint_of,
    continued,
    count_of,
    line_hash,
    predecessor,
    read_key,
    rotations,
    tail_of,
    with_mac,
)

LOCK_TIMEOUT: Final = 1.0
"""Seconds to wait for the lock: it is held for 0.1 ms, but its holder may get no processor meanwhile."""

BUSY_LOCK_TIMEOUT: Final = 0.005
"""Seconds to wait for the lock after a timeout, until it was free once: all calls wait meanwhile."""

_LOCK_POLL: Final = 0.0005  # seconds between two tries to take the lock
_END_CHECKS: Final = 5  # looks at a line without an end, before it counts as torn
_END_CHECK_PAUSE: Final = 0.002  # seconds between two looks: usually enough for another process to finish its line
_FLAGS: Final = os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_NEEDED_SPACE: Final = 1024 * 1024  # bytes that a file must be allowed to grow: more than nearly all lines have
_TOGETHER: Final = 64 * 1024  # bytes of lines that are appended in one write: other writers wait for its end
_CHAIN_SIZE: Final = 160  # bytes that the chain's members add to a line
_MAC_SIZE: Final = 100  # bytes that a number and a mac add
_PRIVATE_MODE: Final = 0o600  # for the owner only: arguments may hold secrets
_SHARED_MODE: Final = 0o660  # for the folder's group


class FileOptions(msgspec.Struct, frozen=True):
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


class AppendFile:
    """An audit file, opened when the first line is to be written."""

    def __init__(self, path: str, options: FileOptions) -> None:
        self._path = path
        self._options = options
        self._fd = -1
        self._identity = (0, 0)  # device and inode of the open file
        self._regular = self._readable = False
        self._lock_fd = -1
        self._cut_short = False  # our last write was incomplete, and the file cannot be read
        self._size = -1  # the file's size after our last line, whose hash is in `_tail`
        self._tail = Tail()
        self._lock_is_busy = False
        self._key = b""  # read with the first line
        self.rotation_error = ""
        """Why the file could not be rotated; empty if it could, or need not be."""

    def ready(self) -> None:
        """Raise OSError if a line cannot be written now, as far as that can be known."""
        if self._options.needs_lock:
            size = self._lock()
            self._unlock()
        else:
            size = self._open()
        self._check_space(size)

    def _check_space(self, size: int) -> None:
        """Raise OSError if a file of this size may not grow, so that no call runs that could not be recorded."""
        if not self._regular:
            return
        limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        if limit != resource.RLIM_INFINITY and size + _NEEDED_SPACE > limit:
            raise OSError(errno.EFBIG, f"cannot grow beyond {limit} bytes, the limit of ulimit -f")
        space = os.fstatvfs(self._fd)
        if space.f_blocks and not (space.f_bavail if os.geteuid() else space.f_bfree):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def append(self, line: bytes, *, leave_space: bool = False) -> None:
        """Append a line, a JSON object with a line feed. Raises OSError; a part of it may be in the file then.

        With `leave_space`, it is not written unless `ready` would be fine: a second line must have room after it.
        """
        if not self._options.needs_lock:
            size = self._open()
            if not (self._regular and self._is_full(size + len(line))):
                self._write(line, size, leave_space)
                return
        size = self._lock()
        try:
            self._write(line, size, leave_space)
        finally:
            self._unlock()

    def append_some(self, lines: Sequence[bytes]) -> int:
        """Append the first of these lines, and more of them if one write can append them. Returns how many.

        Otherwise as `append`: what is not returned is to be appended again.
        """
        if len(lines) > 1 and not self._options.needs_lock:
            size, together = self._open(), b"".join(lines)
            if self._regular and len(together) <= _TOGETHER and not self._is_full(size + len(together)):
                return self._write_together(together, size)
        self.append(lines[0])
        return 1

    def _write_together(self, lines: bytes, size: int) -> int:
        """Append lines in one write. Returns how many are whole. Raises OSError if none is."""
        start = b"\n" if self._cut_short or self._ends_unfinished(size) else b""
        written = os.write(self._fd, start + lines) - len(start)
        if written == len(lines):
            self._cut_short, self._size = False, size + len(start) + written
            return lines.count(b"\n")
        whole = lines.count(b"\n", 0, max(written, 0))  # the disk is full
        self._cut_short = not self._readable and not lines[: max(written, 0)].endswith(b"\n")
        if not whole:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return whole

    def close(self) -> None:
        """Close what is open, and write a checkpoint. The next line opens it again."""
        if self._key and self._tail.count:
            with suppress(OSError):  # the one before stays: it only names fewer lines
                self._lock()
                try:
                    if self._size == os.fstat(self._fd).st_size:  # otherwise another writer has a later one
                        self._write_checkpoint()
                finally:
                    self._unlock()
        for fd in (self._fd, self._lock_fd):
            if fd >= 0:
                os.close(fd)
        self._fd = self._lock_fd = self._size = -1

    # --- writing a line ---

    def _write(self, line: bytes, size: int, leave_space: bool) -> None:
        """Append a line to the open file, which has this size."""
        if leave_space:
            self._check_space(size)
        if size > 0 and self._is_full(size + len(line)) and self._rotate():
            size = 0
        if self._options.chain:
            line = self._with_chain(line, size)
        whole = b"\n" + line if self._cut_short or self._ends_unfinished(size) else line
        written = os.write(self._fd, whole)
        self._cut_short = not self._readable and written < len(whole)
        if written < len(whole):  # the disk is full
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size = size + written
        if self._options.chain:
            self._tail = Tail(line_hash(line[:-1]), count=count_of(line))
            if self._key and self._tail.count % CHECKPOINT_LINES == 0:
                with suppress(OSError):  # the line is written; that the checkpoint is old shows when it is verified
                    self._write_checkpoint()

    def _is_full(self, size: int) -> bool:
        added = _CHAIN_SIZE * self._options.chain + _MAC_SIZE * bool(self._options.key_file)
        return 0 < self._options.limit < size + added

    def _ends_unfinished(self, size: int) -> bool:
        """True if the file's last line has no end, after some time in which another process may have finished it."""
        if not self._readable or size == self._size:  # our own line is the last one
            return False
        for _ in range(_END_CHECKS):
            if size == 0 or os.pread(self._fd, 1, size - 1) == b"\n":
                return False
            if self._options.needs_lock:
                break
            select.select((), (), (), _END_CHECK_PAUSE)
            size = os.fstat(self._fd).st_size
        return True

    def _with_chain(self, line: bytes, size: int) -> bytes:
        if not self._regular:
            raise OSError(errno.EINVAL, "is not a regular file: lines cannot be chained in it")
        tail = self._tail if size == self._size else self._read_tail(size)
        torn = f'"torn":"{tail.torn}",' if tail.torn else ""
        continues = f'"continues":{msgspec.json.encode(tail.continues).decode()},' if tail.continues else ""
        head = f'{{"previous":"{tail.previous}",{torn}{continues}'.encode()
        return with_mac(head, line[1:], tail.count + 1, self._key) if self._key else head + line[1:]

    def _write_checkpoint(self) -> None:
        """Replace the checkpoint, a file that says how many lines there are. Raises OSError."""
        mode = _SHARED_MODE if self._options.shared else _PRIVATE_MODE
        checkpoint = checkpoint_of(self._tail, self._key)
        replace_file(f"{self._path}{CHECKPOINT}", checkpoint, mode=mode, durable=False)  # calls wait for this

    def _read_tail(self, size: int) -> Tail:
        """The tail of the file; if it has no whole line yet, that of the file before it."""
        tail = tail_of(self._fd, size)
        if tail.previous:
            return tail
        before = predecessor(self._path)
        if not before:
            return tail
        links = 0 if self._options.follows_links else os.O_NOFOLLOW  # rotation renames a link, not the linked file
        fd = os.open(before, os.O_RDONLY | links | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            last = tail_of(fd, os.fstat(fd).st_size)
        finally:
            os.close(fd)
        return Tail(last.previous, tail.torn, os.path.basename(before), last.count)

    def _rotate(self) -> bool:
        """Rename the full file and begin a new one; False: that is not possible, and the file goes on."""
        last = max(rotations(self._path), default=0)
        if self._options.chain:
            last = max(last, continued(self._fd))  # which may have been moved away; its number is not reused
        if last >= LAST:  # whoever may create files here can create one with the last number
            self.rotation_error = f"{self._path}.{last} has the last possible number"
            return False
        try:
            os.rename(self._path, f"{self._path}.{last + 1}")
        except OSError as error:  # for example in a folder of another account, such as /var/log
            self.rotation_error = f"{self._path} cannot be renamed: {error.strerror}"
            return False
        self._remove_oldest()
        self._open()
        return True

    def _remove_oldest(self) -> None:
        """Remove the rotated files beyond the number that is kept."""
        if not self._options.keep:
            return
        for number in sorted(rotations(self._path))[: -self._options.keep]:
            try:
                os.unlink(f"{self._path}.{number}")
            except OSError as error:
                self.rotation_error = f"{self._path}.{number} cannot be removed: {error.strerror}"

    # --- opening files ---

    def _open(self) -> int:
        """Open the file that has the name now, unless it is open. Returns its size; 0 for a pipe or a device."""
        if self._fd >= 0:
            if not self._regular:
                return 0
            size = self._size_by_name()
            if size >= 0:
                return size
            os.close(self._fd)  # another process has rotated or moved it
            self._fd = -1
        folder = os.path.dirname(self._path) or "."
        if not self._options.shared:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        self._cut_short, self._size = False, -1
        if self._options.key_file and not self._key:
            self._key = read_key(self._options.key_file)
        self._fd = self._open_for_appending()
        status = os.fstat(self._fd)
        self._regular, self._identity = stat.S_ISREG(status.st_mode), (status.st_dev, status.st_ino)
        return status.st_size if self._regular else 0

    def _size_by_name(self) -> int:
        """The size of the open file; -1: its name is that of another file, or of none."""
        try:
            there = os.stat(self._path, follow_symlinks=self._options.follows_links)
        except FileNotFoundError:
            return -1
        return there.st_size if (there.st_dev, there.st_ino) == self._identity else -1

    def _open_for_appending(self) -> int:
        """Open the file for appending, and for reading if possible: that shows whether its last line is finished."""
        self._readable = not _is_special(self._path)  # reading a pipe would keep it open without a reader
        if self._readable:
            try:
                return self._open_checked(self._path, os.O_RDWR)
            except PermissionError:
                if self._options.chain:
                    raise
                self._readable = False
        return self._open_checked(self._path, os.O_WRONLY)

    def _open_checked(self, path: str, flags: int) -> int:
        """Open the file, or create it. Raises OSError if it cannot be trusted."""
        options = self._options
        flags |= _FLAGS | (0 if options.follows_links else os.O_NOFOLLOW)
        try:
            fd, fresh = os.open(path, flags), False
        except FileNotFoundError:  # not earlier: Linux restricts O_CREAT in shared folders (protected_regular)
            fd, fresh = os.open(path, flags | os.O_CREAT, _SHARED_MODE if options.shared else _PRIVATE_MODE), True
        try:
            if fresh and options.shared:
                with suppress(PermissionError):  # another account created it at the same time
                    os.fchmod(fd, _SHARED_MODE)  # whatever the umask is
            self._check(os.fstat(fd))
        except OSError:
            os.close(fd)
            raise
        return fd

    def _check(self, status: os.stat_result) -> None:
        if self._options.shared and not (stat.S_ISREG(status.st_mode) and status.st_nlink <= 1):
            why = "is not a regular file, or has a second name (a hard link): somebody may have put it there"
            raise OSError(errno.EPERM, why)
        if self._options.private and status.st_uid != os.geteuid():
            raise OSError(errno.EPERM, "belongs to another account")

    # --- locking ---

    def _lock(self) -> int:
        """Take the lock, and open the file that has the name then. Returns its size as `_open`. Raises OSError."""
        path = f"{self._path}.lock"
        until = monotonic() + (BUSY_LOCK_TIMEOUT if self._lock_is_busy else LOCK_TIMEOUT)
        while True:
            if self._lock_fd < 0:
                if not self._options.shared:
                    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
                self._lock_fd = self._open_checked(path, os.O_RDWR | os.O_NOFOLLOW)
            if self._try_lock():
                if _names_open_file(self._lock_fd, path):
                    break
                os.close(self._lock_fd)  # the lock file was removed: other writers use a new one
                self._lock_fd = -1
            if monotonic() >= until:
                self._lock_is_busy = True
                raise OSError(errno.ETIMEDOUT, "another process holds the lock", path)
            select.select((), (), (), _LOCK_POLL)  # sleep
        self._lock_is_busy = False
        try:
            return self._open()
        except OSError:
            self._unlock()
            raise

    def _try_lock(self) -> bool:
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(self) -> None:
        fcntl.flock(self._lock_fd, fcntl.LOCK_UN)


def _is_special(path: str) -> bool:
    """True if there is something other than a regular file, such as a pipe or a device."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _names_open_file(fd: int, path: str) -> bool:
    """True if the path, which is no link, still names the open file."""
    try:
        there, ours = os.stat(path, follow_symlinks=False), os.fstat(fd)
    except FileNotFoundError:
        return False
    return (there.st_ino, there.st_dev) == (ours.st_ino, ours.st_dev)
