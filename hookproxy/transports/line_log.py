"""Reports what a server prints on standard error line by line, so that no line looks like one of the gateway's own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final

from ..model.errors import printable

_READ_SIZE: Final = 4096  # bytes: in one turn of the loop, even if all of them are line ends
_FEW_LINES: Final = 16  # in one piece: no flood
_SECONDS_PER_LINE: Final = 5e-5
"""How long a flood of lines waits for each line that was reported, which takes 10 µs at most: a server that prints
without end takes a fifth of the time, and others are served meanwhile. It waits itself when its pipe is full."""

_LONGEST_LINE: Final = 4096  # bytes of a line that are reported at once: a longer one becomes several


def relay_lines(
    source: int, report: Callable[[str], None], remove: Callable[[bytes], bytes] = bytes, longest: int = 0
) -> None:
    """Report each line that comes from this descriptor, until its end; then it is closed.

    `remove` removes what must not be in the report, of at most `longest` bytes, wherever a long line is cut.
    """
    _LineLog(source, report, remove, max(longest - 1, 0))


class _LineLog:
    def __init__(
        self, source: int, report: Callable[[str], None], remove: Callable[[bytes], bytes], overlap: int
    ) -> None:
        self._remove = remove
        self._overlap = overlap  # what may be the beginning of something to remove
        self._source = source
        self._report = report
        self._rest = b""
        self._loop = asyncio.get_running_loop()
        os.set_blocking(source, False)
        self._loop.add_reader(source, self._readable)

    def _readable(self) -> None:
        try:
            piece = os.read(self._source, _READ_SIZE)
        except BlockingIOError:
            return
        *lines, self._rest = (self._rest + piece).split(b"\n")
        lines = [self._remove(line) for line in lines]
        if not piece:
            lines, self._rest = [*lines, self._remove(self._rest)], b""
        elif len(self._rest) > _LONGEST_LINE + self._overlap:
            rest = self._remove(self._rest)
            end = max(len(rest) - self._overlap, 0)
            lines, self._rest = [*lines, rest[:end]], rest[end:]
        for line in lines:
            for start in range(0, len(line), _LONGEST_LINE):
                self._report(printable(line[start : start + _LONGEST_LINE].decode(errors="replace")))
        if not piece:
            self._loop.remove_reader(self._source)
            os.close(self._source)
        elif len(lines) > _FEW_LINES:
            self._loop.remove_reader(self._source)
            self._loop.call_later(len(lines) * _SECONDS_PER_LINE, self._resume)

    def _resume(self) -> None:
        self._loop.add_reader(self._source, self._readable)
