"""Ends sessions that were not used for long. A session is looked at when its time may have come, and not before."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import anyio

from ..session.change_event import ChangeEvent


class Usable(Protocol):
    """A session that ends if it is not used."""

    @property
    def idle_seconds(self) -> float:
        """How long it may be unused."""

    @property
    def unused_since(self) -> float | None:
        """When it was used last, in seconds of the loop's clock; None: it is in use now."""


_S = TypeVar("_S", bound=Usable)


class UnusedSessions(Generic[_S]):
    """The sessions, by the whole second at which each one is looked at next."""

    def __init__(self, end: Callable[[_S], None]) -> None:
        """`end` gets a session that was unused for too long; it is discarded then."""
        self._end = end
        self._due: dict[int, set[_S]] = {}
        self._places: dict[_S, int] = {}
        self._changes = ChangeEvent()
        self._changed = False

    def add(self, session: _S) -> None:
        """Look at this session when it may have been unused for too long."""
        self._place(session, anyio.current_time())
        self._wake()

    def discard(self, session: _S) -> None:
        """The session has ended. It may have been discarded already."""
        second = self._places.pop(session, None)
        if second is not None:
            self._due[second].discard(session)
            if not self._due[second]:
                del self._due[second]

    def look_again(self) -> None:
        """The times of all sessions may be others now."""
        for session in list(self._places):
            self.discard(session)
            self._place(session, session.unused_since or anyio.current_time())
        self._wake()

    async def end_unused(self) -> None:
        """End sessions until it is cancelled."""
        while True:
            self._changed = False
            with anyio.move_on_after(min(self._due, default=math.inf) - anyio.current_time()):
                await self._changes.until(lambda: self._changed)
            self.look(anyio.current_time())

    def _wake(self) -> None:
        self._changed = True
        self._changes.notify()

    def _place(self, session: _S, since: float) -> None:
        second = math.ceil(since + session.idle_seconds)
        self._places[session] = second
        self._due.setdefault(second, set()).add(session)

    def look(self, now: float) -> None:
        """End those that were unused for too long at this time."""
        for second in [due for due in self._due if due <= now]:
            for session in self._due.pop(second):
                del self._places[session]
                since = session.unused_since
                if since is None:
                    self._place(session, now)
                elif math.ceil(since + session.idle_seconds) > now:
                    self._place(session, since)
                else:
                    self._end(session)
