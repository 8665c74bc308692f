"""What limits have counted in one session, whichever of its runs and events the calls were in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from time import monotonic
from typing import Final

from ..model.limits import Limit
from ..policy.rate_limits import LimitReached, Window, limit_reached, refusing

_MOST: Final = 1024  # limits: a configuration has a few, and each run of the session may have another one


class LimitWindows:
    """A window for each limit that has been asked for.

    A call has a key for each limit (`rate_limits.count_key`). Functions raise ValueError for a limit that names no
    tools, and for too many limits.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """`clock` returns seconds and never goes back."""
        self._clock = clock
        self._windows: dict[Limit, Window] = {}

    def forget_all_but(self, limits: Collection[Limit]) -> None:
        """Forget limits that are not among these, if there are many: a configuration may change again and again."""
        if len(self._windows) > _MOST // 2:
            self._windows = {limit: window for limit, window in self._windows.items() if limit in limits}

    def window(self, limit: Limit) -> Window:
        """The window of this limit."""
        if limit not in self._windows:
            if len(self._windows) >= _MOST:
                raise ValueError(f"there are more than {_MOST} limits")
            self._windows[limit] = Window(limit)
        return self._windows[limit]

    def exceeded(self, limits: Sequence[Limit], keys: Sequence[bytes]) -> list[LimitReached]:
        """The limits among these that one more call would exceed, which has these keys."""
        now = self._clock()
        waits = [(limit, self.window(limit).wait(now, key)) for limit, key in zip(limits, keys, strict=True)]
        return [limit_reached(limit, wait) for limit, wait in waits if wait > 0]

    def count(
        self, limits: Sequence[Limit], keys: Sequence[bytes], approved: Iterable[str] = ()
    ) -> LimitReached | None:
        """Count a call that is about to be forwarded, as `RateLimits.count`."""
        if (reached := refusing(self.exceeded(limits, keys), approved)) is None:
            now = self._clock()
            for limit, key in zip(limits, keys, strict=True):
                self.window(limit).add(now, 1, key)
        return reached
