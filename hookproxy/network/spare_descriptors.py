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
        self._fds: list[int] = []
        self.refill()

    @property
    def is_short(self) -> bool:
        """Some are given away: no others were left."""
        return len(self._fds) < self._count

    def give(self, count: int = 1) -> bool:
        """Close so many, so that others can be opened. False: there are none."""
        given = [self._fds.pop() for _ in range(min(count, len(self._fds)))]
        for fd in given:
            os.close(fd)
        return bool(given)

    def refill(self) -> None:
        """Take back what there is by now."""
        with suppress(OSError):
            while len(self._fds) < self._count:
                self._fds.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    @contextmanager
    def lent(self, count: int) -> Iterator[None]:
        """While the block runs, so many more can be opened."""
        self.give(count)
        try:
            yield
        finally:
            self.refill()

    def close(self) -> None:
        """Keep none any more."""
        self.give(len(self._fds))
