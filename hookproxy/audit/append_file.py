"""A file of lines that several processes append to: whole lines, none lost, and each one's hash in the next.

A line is one write. What a killed writer left half written is closed before the next line, and covered by its hash.
Where files are chained, shared or rotated, a lock beside the file makes writers take turns; nobody waits long for it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import select
import stat
from contextlib import suppress
from time import monotonic
from typing import Final

import msgspec

from .hash_chain import LAST, Tail, continued, line_hash, predecessor, rotations, tail_of

PATIENCE: Final = 1.0
"""Seconds that are waited for the lock, once: a turn takes 0.1 ms, but who has it may get no processor meanwhile."""

IMPATIENCE: Final = 0.005
"""Seconds that are waited from then on until it is free again: all calls wait with us."""

_NAP: Final = 0.0005  # seconds between two looks at the lock: some turns
_LOOKS: Final = 5  # at a line without an end, before it is taken for one that was cut
_MOMENT: Final = 0.002  # seconds between two of them: another process writes a line in less, unless it is made to wait
_FLAGS: Final = os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_ROOM: Final = 1024 * 1024  # bytes that a file must be allowed to grow: more than nearly all lines have
_CHAINED: Final = 160  # bytes that a chain adds to a line
_OWN: Final = 0o600  # arguments may hold secrets: for their owner alone
_SHARED: Final = 0o660  # for the group of the folder


class Ways(msgspec.Struct, frozen=True):
    """How a file is kept."""

    chain: bool = False
    shared: bool = False
    """Several people write to it: it is their group's, and no link."""
    private: bool = False
    """It lies where others may create files: it must be ours, and no link."""
    limit: int = 0
    """Bytes after which a new file is begun; 0: never."""

    @property
    def follows(self) -> bool:
        """The file may be a link."""
        return not (self.shared or self.private)

    @property
    def locks(self) -> bool:
        """Writers take turns."""
        return self.chain or self.shared or self.limit > 0


class Ledger:
    """One such file, opened when the first line is due."""

    def __init__(self, path: str, ways: Ways) -> None:
        self._path = path
        self._ways = ways
        self._fd = -1
        self._regular = self._readable = False
        self._lock_fd = -1
        self._half = False  # our own last write was cut short, in what cannot be looked at
        self._size = -1  # where the file ended when `_tail` was its tail
        self._tail = Tail()
        self._impatient = False
        self.stuck = ""
        """Why the file is not rotated although it should be; empty: it is."""

    def ready(self) -> None:
        """Raise OSError unless a line could be written now, as far as can be known."""
        if self._ways.locks:
            self._lock()
            self._unlock()
        else:
            self._open()
        if self._regular:
            self._check_room()

    def _check_room(self) -> None:
        """Else the first call of each process would run, and only then be found to leave no line."""
        limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        if limit != resource.RLIM_INFINITY and os.fstat(self._fd).st_size + _ROOM > limit:
            raise OSError(errno.EFBIG, f"may not grow over {limit} bytes: ulimit -f says so")
        space = os.fstatvfs(self._fd)
        if space.f_blocks and not (space.f_bavail if os.geteuid() else space.f_bfree):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def append(self, line: bytes) -> None:
        """Append a line with its end, a JSON object. Raises OSError; a part of it may be in the file then."""
        if not self._ways.locks:
            self._open()
            self._write(line)
            return
        self._lock()
        try:
            self._write(line)
        finally:
            self._unlock()

    def close(self) -> None:
        """Close what is open. The next line would open it again."""
        for fd in (self._fd, self._lock_fd):
            if fd >= 0:
                os.close(fd)
        self._fd = self._lock_fd = self._size = -1

    # --- one line ---

    def _write(self, line: bytes) -> None:
        size = os.fstat(self._fd).st_size if self._regular else 0
        if size > 0 and self._is_full(size + len(line)) and self._rotate():
            size = 0
        if self._ways.chain:
            line = self._chained(line, size)
        whole = b"\n" + line if self._half or self._ends_amid(size) else line
        written = os.write(self._fd, whole)
        self._half = not self._readable and written < len(whole)
        if written < len(whole):  # the disk is full
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self._ways.chain:
            self._tail, self._size = Tail(line_hash(line[:-1])), size + written

    def _is_full(self, size: int) -> bool:
        return 0 < self._ways.limit < size + _CHAINED * self._ways.chain

    def _ends_amid(self, size: int) -> bool:
        """The file's last line has no end, and does not get one either: another process may be writing it."""
        if not self._readable:
            return False
        for _ in range(_LOOKS):
            if size == 0 or os.pread(self._fd, 1, size - 1) == b"\n":
                return False
            if self._ways.locks:
                break
            select.select((), (), (), _MOMENT)
            size = os.fstat(self._fd).st_size
        return True

    def _chained(self, line: bytes, size: int) -> bytes:
        if not self._regular:
            raise OSError(errno.EINVAL, "is no ordinary file: lines cannot be chained in it")
        tail = self._tail if size == self._size else self._look_back(size)
        torn = f'"torn":"{tail.torn}",' if tail.torn else ""
        continues = f'"continues":{msgspec.json.encode(tail.continues).decode()},' if tail.continues else ""
        return f'{{"previous":"{tail.previous}",{torn}{continues}'.encode() + line[1:]

    def _look_back(self, size: int) -> Tail:
        """The tail of our file; where it has no whole line yet, that of the file before it."""
        tail = tail_of(self._fd, size)
        if tail.previous:
            return tail
        before = predecessor(self._path)
        if not before:
            return tail
        links = 0 if self._ways.follows else os.O_NOFOLLOW  # of a file that was a link, the link has the number
        fd = os.open(before, os.O_RDONLY | links | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            previous = tail_of(fd, os.fstat(fd).st_size).previous
        finally:
            os.close(fd)
        return Tail(previous, tail.torn, os.path.basename(before))

    def _rotate(self) -> bool:
        """Give the full file another name and begin a new one; False: we may not, and go on in it."""
        last = max(rotations(self._path), default=0)
        if self._ways.chain:
            last = max(last, continued(self._fd))  # that file may have been put away, and its name is taken for ever
        if last >= LAST:  # whoever may create files here can make one with that number
            self.stuck = f"{self._path}.{last} has the last number that there is"
            return False
        try:
            os.rename(self._path, f"{self._path}.{last + 1}")
        except OSError as problem:  # a folder that others own, such as /var/log
            self.stuck = f"{self._path} cannot be renamed: {problem.strerror}"
            return False
        self._open()
        return True

    # --- files ---

    def _open(self) -> None:
        if self._fd >= 0 and (not self._regular or _is_at(self._fd, self._path, self._ways.follows)):
            return
        if self._fd >= 0:  # rotated away: what is written there nobody reads
            os.close(self._fd)
            self._fd = -1
        folder = os.path.dirname(self._path) or "."
        if not self._ways.shared:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        self._half, self._size = False, -1
        self._fd = self._opened_for_lines()
        self._regular = stat.S_ISREG(os.fstat(self._fd).st_mode)

    def _opened_for_lines(self) -> int:
        """To be read, too, where it can be: whether its last line is finished, and what it says."""
        self._readable = not _is_special(self._path)  # to read a pipe would keep it open for nobody
        if self._readable:
            try:
                return self._opened(self._path, os.O_RDWR)
            except PermissionError:
                if self._ways.chain:
                    raise
                self._readable = False
        return self._opened(self._path, os.O_WRONLY)

    def _opened(self, path: str, flags: int) -> int:
        """A descriptor of the file, which is made if it is not there. Raises OSError where it is not to be trusted."""
        ways = self._ways
        flags |= _FLAGS | (0 if ways.follows else os.O_NOFOLLOW)
        try:
            fd, fresh = os.open(path, flags), False
        except FileNotFoundError:  # only then: Linux has rules of its own for O_CREAT in folders of many
            fd, fresh = os.open(path, flags | os.O_CREAT, _SHARED if ways.shared else _OWN), True
        try:
            if fresh and ways.shared:
                with suppress(PermissionError):  # somebody else has made it in the same moment
                    os.fchmod(fd, _SHARED)  # whatever the umask says
            self._check(os.fstat(fd))
        except OSError:
            os.close(fd)
            raise
        return fd

    def _check(self, status: os.stat_result) -> None:
        if self._ways.shared and not (stat.S_ISREG(status.st_mode) and status.st_nlink <= 1):
            raise OSError(errno.EPERM, "is no ordinary file, or has a second name: somebody may have put it there")
        if self._ways.private and status.st_uid != os.geteuid():
            raise OSError(errno.EPERM, "belongs to somebody else")

    # --- turns ---

    def _lock(self) -> None:
        """Wait for our turn, and open what is to be written then. Raises OSError."""
        path = f"{self._path}.lock"
        until = monotonic() + (IMPATIENCE if self._impatient else PATIENCE)
        while True:
            if self._lock_fd < 0:
                if not self._ways.shared:
                    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
                self._lock_fd = self._opened(path, os.O_RDWR | os.O_NOFOLLOW)
            if self._try_lock():
                if _is_at(self._lock_fd, path, follows=False):
                    break
                os.close(self._lock_fd)  # somebody has removed it: whoever comes next takes another
                self._lock_fd = -1
            if monotonic() >= until:
                self._impatient = True
                raise OSError(errno.ETIMEDOUT, "another process holds the lock", path)
            select.select((), (), (), _NAP)  # there is nothing that would tell us
        self._impatient = False
        try:
            self._open()
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
    """True for what is there and is no ordinary file: a pipe, a device."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _is_at(fd: int, path: str, follows: bool) -> bool:
    """True if the path still names the open file."""
    try:
        there, ours = os.stat(path, follow_symlinks=follows), os.fstat(fd)
    except FileNotFoundError:
        return False
    return (there.st_ino, there.st_dev) == (ours.st_ino, ours.st_dev)
