"""The changes of the live page as events. A browser that reads slowly gets fewer and larger ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import anyio

from .live_view import LiveView
from .state import State

_PAUSE: Final = 0.2  # seconds between two events of a page: to a person, that is at once
_TICK: Final = 1.0  # second after which the times of calls in flight are shown anew
_SILENCE: Final = 15.0  # seconds after which an event is sent without a change: it finds pages that are gone


class ChangeStreams:
    """The streams of all pages that are open. They end with the console."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._waiting: set[anyio.Event] = set()  # one for each stream that waits for a change
        self._has_ended = False

    def close(self) -> None:
        """End all streams."""
        self._has_ended = True
        for changed in self._waiting:
            changed.set()

    async def events(self, view: LiveView) -> AsyncIterator[bytes]:
        """The events of one page."""
        while not self._has_ended:
            yield b"data: " + view.change().encoded + b"\n\n"
            await anyio.sleep(_PAUSE)
            if view.is_current and not self._has_ended:
                await self._next_change(_TICK if view.has_calls_in_flight else _SILENCE)

    async def _next_change(self, most: float) -> None:
        """Wait for a change of the state, at most so many seconds."""
        changed = anyio.Event()
        end = self._state.listen(changed.set)
        self._waiting.add(changed)
        try:
            with anyio.move_on_after(most):
                await changed.wait()
        finally:
            end()
            self._waiting.remove(changed)
