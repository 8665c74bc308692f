"""Waits for a condition without looking at the clock: whoever changes something tells so."""

from __future__ import annotations

from collections.abc import Callable

import anyio


class ChangeEvent:
    """One event after another, made only while somebody waits."""

    def __init__(self) -> None:
        self._next: anyio.Event | None = None

    def notify(self) -> None:
        """Something has changed."""
        if self._next is not None:
            self._next.set()
            self._next = None

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds; it is looked at now, and whenever something has changed."""
        while not condition():
            self._next = self._next or anyio.Event()
            await self._next.wait()
