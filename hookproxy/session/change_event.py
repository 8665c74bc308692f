"""Waits for a condition without polling: whoever changes something calls `notify`."""

from __future__ import annotations

from collections.abc import Callable

import anyio


class ChangeEvent:
    """Wakes those who wait for a condition; it costs nothing while nobody waits."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: anyio.Event | None = None

    def notify(self) -> None:
        """Something has changed."""
        if self._next is not None:
            self._next.set()
            self._next = None

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds; it is checked now and after each `notify`."""
        while not condition():
            self._next = self._next or anyio.Event()
            await self._next.wait()
