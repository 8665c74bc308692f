"""Descriptors that are kept in reserve: for whoever must be served even when all others are in use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

SPARE: Final = 64
"""Enough for some probes at a time, and for an administrator's reload, which opens a few files at once."""


class SpareDescriptors:
    """Open descriptors that mean nothing, and are closed when one is needed."""

    def __init__(self, count: int = SPARE) -> None:
        self._count = count
        self._lent = 0
        self._fds: list[int] = []
        self.refill()

    @property
    def is_short(self) -> bool:
        """Some are given away: no others were left."""
        return len(self._fds) < self._count - self._lent

    def are_needed(self) -> bool:
        """Whoever takes one more now takes one that is lent."""
        if not self._lent:
            return False
        left = list[int]()
        try:
            for _ in range(self._lent + 1):
                left.append(_open())
        except OSError:
            return True
        finally:
            for fd in left:
                os.close(fd)
        return False

    def give(self, count: int = 1) -> bool:
        """Close so many, so that others can be opened. False: there are none."""
        given = [self._fds.pop() for _ in range(min(count, len(self._fds)))]
        for fd in given:
            os.close(fd)
        return bool(given)

    def refill(self) -> None:
        """Take back what there is by now, apart from what is lent."""
        with suppress(OSError):
            while len(self._fds) < self._count - self._lent:
                self._fds.append(_open())

    @contextmanager
    def lent(self, count: int) -> Iterator[None]:
        """While the block runs, so many more can be opened."""
        self.give(count)
        self._lent += count
        try:
            yield
        finally:
            self._lent -= count
            self.refill()

    def close(self) -> None:
        """Keep none any more."""
        self.give(len(self._fds))


def _open() -> int:
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
