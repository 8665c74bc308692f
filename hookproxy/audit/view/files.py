"""The lines of an audit, through all files that have had its name; and those that are still to come."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import BinaryIO

from ..hash_chain import rotations
from ..records import Line, lines, open_file, open_older, unreadable

Wait = Callable[[], None]
"""Waits a moment for more. Raises what ends the whole reading, such as BrokenPipeError when nobody reads any more."""


def _after(done: int, path: str) -> list[int]:
    return [number for number in _numbers(path) if number > done]


def _numbers(path: str) -> list[int]:
    try:
        return sorted(rotations(path))
    except OSError:
        return []  # what is wrong with the folder, reading the file will tell


def read_all(path: str) -> Iterator[tuple[str, Line]]:
    """The lines of all files, the oldest first, each with its file. Raises UserError for one that cannot be read."""
    with open_file(path) as last:  # before the others are counted: it may become one of them
        for number in _numbers(path):
            name = f"{path}.{number}"
            if _is_at(last, name):
                break
            with open_older(name) as file, unreadable(name):
                yield from ((name, line) for line in lines(file))
        with unreadable(path):
            yield from ((path, line) for line in lines(last))


def follow(path: str, wait: Wait) -> Iterator[tuple[str, Line]]:
    """As `read_all`, and then what comes, for ever: over rotation, from the beginning of a file that is cut to nothing.

    A file that is not there yet is waited for. Raises UserError, and what `wait` raises.
    """
    done = 0
    while True:
        for number in _after(done, path):
            with open_older(f"{path}.{number}") as old, unreadable(old.name):
                yield from ((path, line) for line in lines(old))
            done = number
        if not os.path.exists(path):
            wait()
            continue
        with open_file(path) as file, unreadable(path):
            if _after(done, path):
                continue  # the file that was there a moment ago has been rotated
            yield from ((path, line) for line in lines(_Growing(file, path, wait)))
            done = max(done, _number_of(file, path))


def _number_of(file: BinaryIO, path: str) -> int:
    """Under which number an open file lies now that its name is another's; 0: under none."""
    for number in _numbers(path):
        if _is_at(file, f"{path}.{number}"):
            return number
    return 0


def _is_at(file: BinaryIO, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        return False


class _Growing:
    """A file that ends when its path has become another's, and not before; what is unfinished is waited for."""

    def __init__(self, file: BinaryIO, path: str, wait: Wait) -> None:
        self._file = file
        self._path = path
        self._wait = wait
        self._at = 0

    def read(self, size: int, /) -> bytes:
        """At least one byte, unless the file is over."""
        while True:
            over = not _is_at(self._file, self._path)  # before it is read: what was written until then is all there is
            if os.fstat(self._file.fileno()).st_size < self._at:
                self._file.seek(0)
                self._at = 0
            if piece := self._file.read(size):
                self._at += len(piece)
                return piece
            if over:
                return b""
            self._wait()
