"""How much of the event loop's time the longer messages of each user take: a user of more of it waits, nobody else."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final

MEDIUM_BYTES: Final = 16 * 1024
"""Of a request whose time is counted: what nobody judges passes faster, and what is shorter takes less than a
millisecond."""

_CREDIT_SECONDS: Final = 0.1
"""Of the event loop that a user's longer requests may take at once: two messages of 8 MB, twenty of one, or hundreds of
pages. More would be seen in the slowest hundredth of the calls that another user makes in a few seconds."""

_SHARE: Final = 0.005
"""Of the event loop's time that they may take then: so few of the others' calls meet one of them that the slowest
hundredth of these is not slower."""

_LONGEST_WAIT: Final = 30.0  # seconds: agents wait longer than that for a response


class Pace:
    """How much of the event loop's time the longer requests of each user have taken."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._credits: dict[str, tuple[float, float]] = {}  # seconds, and when that was

    def delay(self, user: str) -> float:
        """Seconds that the next request of a user has to wait."""
        return max(0.0, -self._credit(user) / _SHARE)

    def spend(self, user: str, seconds: float) -> None:
        """A request has taken so long."""
        left = max(self._credit(user) - seconds, -_LONGEST_WAIT * _SHARE)
        self._credits[user] = left, self._clock()

    def _credit(self, user: str) -> float:
        before, at = self._credits.get(user, (_CREDIT_SECONDS, 0.0))
        now = before + (self._clock() - at) * _SHARE
        if now < _CREDIT_SECONDS:
            return now
        self._credits.pop(user, None)
        return _CREDIT_SECONDS
