"""Limits the bytes of calls that wait for hooks: beyond it nothing more is read from the agent, to bound memory."""

from __future__ import annotations

from collections.abc import Callable

from ..protocol.calls import Call


class Backpressure:
    """The waiting calls. `pause` is called with True beyond `limit` bytes, and with False when they fall below it."""

    def __init__(self, limit: int, pause: Callable[[bool], None]) -> None:
        self._limit = limit
        self._pause = pause
        self._calls: set[Call] = set()
        self._bytes = 0
        self._full = False

    def add(self, call: Call) -> None:
        """The call begins to wait."""
        self._calls.add(call)
        self._bytes += len(call.line)
        if self._bytes > self._limit:
            self._full = True
            self._pause(True)

    def remove(self, call: Call) -> None:
        """The call waits no longer. May be called again for the same call."""
        if call in self._calls:
            self._calls.remove(call)
            self._bytes -= len(call.line)
            if self._full and self._bytes <= self._limit:
                self._full = False
                self._pause(False)
