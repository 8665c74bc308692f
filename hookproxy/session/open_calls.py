"""The calls of one user that are judged, in all sessions together, and how many there may be at a time.

A further call gets an error. Reading from the agent does not pause: calls in flight may wait for what the agent sends.
"""

from __future__ import annotations

from collections.abc import Callable, Sized


class OpenCalls:
    """The calls of one user that are judged and have no response yet."""

    def __init__(self, most: Callable[[], int]) -> None:
        """`most` returns how many there may be now."""
        self._most = most
        self._sessions: list[Sized] = []

    @property
    def most(self) -> int:
        """How many there may be."""
        return self._most()

    @property
    def is_full(self) -> bool:
        """No further one may begin."""
        return sum(map(len, self._sessions)) >= self._most()

    def add(self, calls: Sized) -> None:
        """Count the calls of one more session, as many as it has at the time."""
        self._sessions.append(calls)

    def remove(self, calls: Sized) -> None:
        """The session has ended."""
        self._sessions = [one for one in self._sessions if one is not calls]
