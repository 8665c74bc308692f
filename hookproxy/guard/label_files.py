"""What sessions have read, in files: a guard that was killed and started again still knows it (law 3).

How it works: each reading is appended to the file of its session before it counts, and so before the agent gets what
was read. The files are the person's alone, and have no texts: after a start any text may carry what was read before,
and what a person has allowed must be allowed anew. A file is found by the session's id, so another agent with the same
id has the same labels, which makes it no freer. While a file cannot be read or written, nothing of its session is
known, and sinks take no call. Of very many files, those that were written longest ago are removed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from errno import ENOSPC
from hashlib import sha256
from typing import Final

from msgspec import Struct
from msgspec.json import decode, encode

from ..files.replace import replace_file
from ..flow.session_labels import KeptLabels
from ..model.flow import Reading
from ..policy.shared_state import StoreUnavailable

_MOST_FILES: Final = 512  # sessions: those of some weeks
_LONGEST: Final = 1024 * 1024  # bytes of a file: some thousand readings, of which only the newest are kept one by one


class _Entry(Struct, omit_defaults=True):
    """A line of a file."""

    add: Reading | None = None
    remove: tuple[str, ...] = ()


def _lines(entries: Collection[_Entry]) -> bytes:
    return b"".join(encode(entry) + b"\n" for entry in entries)


class LabelFile:
    """The file of one session, as the journal of its labels."""

    def __init__(self, folder: str, session: str, labels: KeptLabels) -> None:
        """Let the labels have what the file says, and the file what they have."""
        name = sha256(session.encode("utf-8", "surrogatepass")).hexdigest()
        self._folder, self._path = folder, os.path.join(folder, name)
        self._problem = ""
        labels.journal = None
        known = labels.known(()).readings
        try:
            for entry in self._read():
                if entry.add is not None:
                    labels.add(entry.add, (), whole=True)
                if entry.remove:
                    labels.remove(entry.remove)
        except StoreUnavailable as problem:
            self._problem = str(problem)
        self._labels = labels
        labels.journal = self
        if known and not self._problem:
            with suppress(StoreUnavailable):  # then it is known that it cannot be written
                self._append([_Entry(reading) for reading in known])

    def check(self) -> None:
        """Raise StoreUnavailable if what it says is not known, or what was read is not in it."""
        if self._problem:
            raise StoreUnavailable(self._problem)

    def added(self, reading: Reading) -> None:
        """Append a reading. Raises StoreUnavailable."""
        self._append((_Entry(reading),))

    def removed(self, labels: Collection[str]) -> None:
        """Note that these labels were taken away. Raises StoreUnavailable."""
        self._append((_Entry(remove=tuple(labels)),))

    def _read(self) -> Sequence[_Entry]:
        try:
            with open(self._path, "rb") as file:
                return [decode(line, type=_Entry) for line in file]
        except FileNotFoundError:
            return ()
        except (OSError, ValueError) as problem:
            raise StoreUnavailable(f"the labels of this session cannot be read ({problem})") from problem

    def _append(self, entries: Collection[_Entry]) -> None:
        self.check()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            if not os.path.exists(self._path):
                self._make_room()
            descriptor = os.open(self._path, flags, 0o600)
            try:
                if os.fstat(descriptor).st_size > _LONGEST:
                    entries = [*(_Entry(reading) for reading in self._labels.known(()).readings), *entries]
                    replace_file(self._path, _lines(entries))  # as a whole: a guard that is killed now loses nothing
                elif os.write(descriptor, lines := _lines(entries)) < len(lines):
                    raise OSError(ENOSPC, os.strerror(ENOSPC))
            finally:
                os.close(descriptor)
        except OSError as problem:
            self._problem = f"the labels of this session cannot be written ({problem.strerror})"
            self.check()

    def _make_room(self) -> None:
        with suppress(FileExistsError):
            os.mkdir(self._folder, 0o700)
        with os.scandir(self._folder) as entries:
            files = [(entry.stat(follow_symlinks=False).st_mtime, entry.path) for entry in entries]
        for _, path in sorted(files)[: max(len(files) - _MOST_FILES, 0)]:
            os.unlink(path)
