"""Bytes of calls that wait for hooks: beyond a limit nothing more is read from the agent, to keep memory bounded."""

from __future__ import annotations

from collections.abc import Callable

from ..protocol.calls import Call


class Backpressure:
    """The calls whose lines are kept. `pause` is called with True beyond `limit` bytes, with False below it again."""

    def __init__(self, limit: int, pause: Callable[[bool], None]) -> None:
        self._limit = limit
        self._pause = pause
        self._calls: set[Call] = set()
        self._bytes = 0
        self._full = False

    def add(self, call: Call) -> None:
        """The call waits."""
        self._calls.add(call)
        self._bytes += len(call.line)
        if self._bytes > self._limit:
            self._full = True
            self._pause(True)

    def remove(self, call: Call) -> None:
        """The call waits no more; this may be said again."""
        if call in self._calls:
            self._calls.remove(call)
            self._bytes -= len(call.line)
            if self._full and self._bytes <= self._limit:
                self._full = False
                self._pause(False)
