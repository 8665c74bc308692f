"""A file to which several processes append lines: lines stay whole, none is lost, and a hash chain may link them.

How a line is written: if the file is chained, shared or to be rotated, its lock is taken first (`LockFile`). Then the
file that has the name now is opened, unless it is open (`OpenedFile`). If the line does not fit below the limit, the
file gets a number behind its name, and a new one begins. The line gets its hash, number and mac, and is one write. If a
writer was killed in the middle of a line, the next writer ends that line first, and its own line has the hash of the
torn one. With a key, the number of lines is noted beside the file from time to time: the checkpoint.

What must hold: `_tail` is the end of the open file if the file's size is still `own_end`; otherwise another process has
written, and the tail is read again.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from ..files.replace import replace_file
from .hash_chain import (
    CHECKPOINT,
    CHECKPOINT_LINES,
    LAST,
    Tail,
    backwards,
    checkpoint_of,
    continued,
    count_of,
    is_whole,
    line_hash,
    predecessor,
    read_key,
    rotations,
    tail_of,
    with_mac,
)
from .lock_file import LockFile
from .opened_file import PRIVATE_MODE, SHARED_MODE, FileOptions, OpenedFile

_NEEDED_SPACE: Final = 1024 * 1024  # bytes that a file must be allowed to grow: more than nearly all lines have
_TOGETHER: Final = 64 * 1024  # bytes of lines that are appended in one write: other writers wait for its end
_CHAIN_SIZE: Final = 160  # bytes that the chain's members add to a line
_MAC_SIZE: Final = 100  # bytes that a number and a mac add


class Segment(msgspec.Struct, frozen=True):
    """The end of the audit, from the last signed checkpoint on."""

    lines: Sequence[bytes]
    """The lines, that of the checkpoint included, without their line feeds."""
    begins: bool
    """The first of them is a checkpoint: else the log has none, or it is too far back."""


class AppendFile:
    """An audit file, opened when the first line is to be written."""

    def __init__(self, path: str, options: FileOptions) -> None:
        self._path = path
        self._options = options
        added = _CHAIN_SIZE * options.chain + _MAC_SIZE * bool(options.key_file)
        self._limit = max(options.limit - added, 1) if options.limit > 0 else 0  # bytes of lines as they come
        self._lock = LockFile(f"{path}.lock", options)
        self._file: OpenedFile | None = None
        self._tail = Tail()
        self._key = b""  # read with the first line
        self.rotation_error = ""
        """Why the file could not be rotated; empty if it could, or need not be."""
        self.was_removed = False
        """The file that was open before the present one has no name any more: it was not moved, but removed."""

    def ready(self) -> None:
        """Raise OSError if a line cannot be written now, as far as that can be known."""
        if self._options.needs_lock:
            file, size = self._locked()
            self._lock.release()
        else:
            file, size = self._opened()
        _check_space(file, size)

    def append(self, line: bytes, *, leave_space: bool = False) -> None:
        """Append a line, a JSON object with a line feed. Raises OSError; a part of it may be in the file then.

        With `leave_space`, it is not written unless `ready` would be fine: a second line must have room after it.
        """
        if not self._options.needs_lock:
            file, size = self._opened()
            if not (file.is_regular and self._is_full(size + len(line))):
                if leave_space:
                    _check_space(file, size)
                _append(file, line, size)
                return
        file, size = self._locked()
        try:
            self._write(line, file, size, leave_space)
        finally:
            self._lock.release()

    def append_some(self, lines: Sequence[bytes]) -> int:
        """Append the first of these lines, and more of them if one write can append them. Returns how many.

        Otherwise as `append`: what is not returned is to be appended again.
        """
        if len(lines) > 1 and not self._options.needs_lock:
            file, size = self._opened()
            together = b"".join(lines)
            if file.is_regular and len(together) <= _TOGETHER and not self._is_full(size + len(together)):
                whole = together.count(b"\n", 0, file.append(together, size))
                if not whole:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return whole
        self.append(lines[0])
        return 1

    def append_after(self, is_start: Callable[[bytes], bool], make: Callable[[Segment], bytes], most: int) -> bytes:
        """Append a line that `make` makes of the lines since the last one that `is_start` finds.

        Somewhat more than `most` bytes are read at most. Returns the line as it was written; nothing if `make` makes
        none. Raises OSError.
        """
        file, size = self._locked()
        try:
            lines: list[bytes] = []
            read, begins = 0, False
            for line in self._lines_back(file, size):
                if not is_whole(line):  # a torn one: the line after it confirms it
                    continue
                read += len(line)
                lines.append(line)
                if begins := is_start(line):
                    break
                if read > most:
                    break
            line = make(Segment(lines[::-1], begins))
            return self._write(line, file, size, leave_space=False) if line else b""
        finally:
            self._lock.release()

    def lines_back(self) -> Iterator[bytes]:
        """All lines from the last to the first, without the lock: others may write meanwhile. Raises OSError."""
        return self._lines_back(*self._opened())

    def sync(self) -> None:
        """Wait until all lines are on the disk. Raises OSError."""
        file, _ = self._opened()
        if file.is_regular:
            os.fdatasync(file.fd) if hasattr(os, "fdatasync") else os.fsync(file.fd)

    def _lines_back(self, file: OpenedFile, size: int) -> Iterator[bytes]:
        """All lines from the last to the first, those of rotated files too. Raises OSError."""
        yield from (line for _, line in backwards(file.fd, size))
        for number in sorted(rotations(self._path), reverse=True):
            fd = self._open_older(f"{self._path}.{number}")
            try:
                yield from (line for _, line in backwards(fd, os.fstat(fd).st_size))
            finally:
                os.close(fd)

    def close(self) -> None:
        """Close what is open, and write a checkpoint. The next line opens it again."""
        if self._file is not None:
            if self._key and self._tail.count:
                with suppress(OSError):  # the checkpoint before stays: it only names fewer lines
                    file, size = self._locked()
                    try:
                        if size == file.own_end:  # otherwise another writer has a later one
                            self._write_checkpoint()
                    finally:
                        self._lock.release()
            self._file.close()
            self._file = None
        self._lock.close()

    # --- writing a line ---

    def _write(self, line: bytes, file: OpenedFile, size: int, leave_space: bool) -> bytes:
        """Append a line to the open file, which has this size. Returns it as it was written, without a line feed."""
        if leave_space:
            _check_space(file, size)
        if size > 0 and self._is_full(size + len(line)) and self._rotate(file):
            file, size = self._opened()[0], 0
        if self._options.chain:
            line = self._with_chain(line, file, size)
        _append(file, line, size)
        if self._options.chain:
            self._tail = Tail(line_hash(line[:-1]), count=count_of(line))
            if self._key and self._tail.count % CHECKPOINT_LINES == 0:
                with suppress(OSError):  # the line is written; that the checkpoint is old shows when it is verified
                    self._write_checkpoint()
        return line[:-1]

    def _is_full(self, size: int) -> bool:
        return 0 < self._limit < size

    def _with_chain(self, line: bytes, file: OpenedFile, size: int) -> bytes:
        if not file.is_regular:
            raise OSError(errno.EINVAL, "is not a regular file: lines cannot be chained in it")
        tail = self._tail if size == file.own_end else self._read_tail(file, size)
        torn = f'"torn":"{tail.torn}",' if tail.torn else ""
        continues = f'"continues":{msgspec.json.encode(tail.continues).decode()},' if tail.continues else ""
        head = f'{{"previous":"{tail.previous}",{torn}{continues}'.encode()
        return with_mac(head, line[1:], tail.count + 1, self._key) if self._key else head + line[1:]

    def _write_checkpoint(self) -> None:
        """Replace the checkpoint, a file that says how many lines there are. Raises OSError."""
        mode = SHARED_MODE if self._options.shared else PRIVATE_MODE
        checkpoint = checkpoint_of(self._tail, self._key)
        replace_file(f"{self._path}{CHECKPOINT}", checkpoint, mode=mode, durable=False)  # calls wait for this

    def _read_tail(self, file: OpenedFile, size: int) -> Tail:
        """The tail of the file; if it has no whole line yet, that of the file before it."""
        tail = tail_of(file.fd, size)
        if tail.previous:
            return tail
        before = predecessor(self._path)
        if not before:
            return tail
        fd = self._open_older(before)
        try:
            last = tail_of(fd, os.fstat(fd).st_size)
        finally:
            os.close(fd)
        return Tail(last.previous, tail.torn, os.path.basename(before), last.count)

    def _open_older(self, path: str) -> int:
        links = 0 if self._options.follows_links else os.O_NOFOLLOW  # rotation renames a link, not the linked file
        return os.open(path, os.O_RDONLY | links | os.O_NONBLOCK | os.O_CLOEXEC)

    def _rotate(self, file: OpenedFile) -> bool:
        """Rename the full file; False: that is not possible, and the file goes on."""
        last = max(rotations(self._path), default=0)
        if self._options.chain:
            last = max(last, continued(file.fd))  # which may have been moved away; its number is not reused
        if last >= LAST:  # whoever may create files here can create one with the last number
            self.rotation_error = f"{self._path}.{last} has the last possible number"
            return False
        try:
            os.rename(self._path, f"{self._path}.{last + 1}")
        except OSError as error:  # for example in a folder of another account, such as /var/log
            self.rotation_error = f"{self._path} cannot be renamed: {error.strerror}"
            return False
        self._remove_oldest()
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

    # --- the open file ---

    def _opened(self) -> tuple[OpenedFile, int]:
        """The file that has the name now, and its size (0 for a pipe or a device). Raises OSError."""
        if self._file is not None:
            size = self._file.size_by_name()
            if size >= 0:
                return self._file, size
            self.was_removed = self._file.is_removed
            self._file.close()  # another process has rotated or moved it
            self._file = None
        if self._options.key_file and not self._key:
            self._key = read_key(self._options.key_file)
        self._file = OpenedFile(self._path, self._options)
        return self._file, self._file.size

    def _locked(self) -> tuple[OpenedFile, int]:
        """Take the lock, which the caller releases. The file and its size as from `_opened`. Raises OSError."""
        self._lock.take()
        try:
            return self._opened()
        except OSError:
            self._lock.release()
            raise


def _append(file: OpenedFile, line: bytes, size: int) -> None:
    """Append a line to a file of this size as a whole. Raises OSError."""
    if file.append(line, size) < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _check_space(file: OpenedFile, size: int) -> None:
    """Raise OSError if a file of this size may not grow, so that no call runs that could not be recorded."""
    if not file.is_regular:
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit != resource.RLIM_INFINITY and size + _NEEDED_SPACE > limit:
        raise OSError(errno.EFBIG, f"cannot grow beyond {limit} bytes, the limit of ulimit -f")
    space = os.fstatvfs(file.fd)
    if space.f_blocks and not (space.f_bavail if os.geteuid() else space.f_bfree):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
