"""Rate limits: a sliding window for each limit, with the clock passed in.

No window of a limit's length has more forwarded calls than the limit allows, wherever the window begins.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Final
from weakref import WeakValueDictionary

from msgspec import Struct

from ..model.settings import Limit, Per
from .matchers import Rule
from .rules import parsed

HINT: Final = 'write a glob that matches names of tools, such as tool = "search_*"'
SECONDS: Final = {Per.SECOND: 1.0, Per.MINUTE: 60.0, Per.HOUR: 3600.0, Per.DAY: 86_400.0, Per.SESSION: math.inf}
"""The length of each period."""

_PARTS: Final = 64  # of a period, in which bytes are counted: so exactly a limit of bytes is kept, in 2 KB
_MANY_WINDOWS: Final = 1000  # shared windows of 1.3 KB, before it is looked for some that can be forgotten


class LimitReached(Struct, frozen=True):
    """A limit that allows no more calls for now."""

    limit: Limit
    retry_after: int
    """Whole seconds after which it allows the next call; 0: not in this session."""


class RateLimits:
    """All rate limits of one run, and the calls that they have counted."""

    def __init__(
        self, limits: Sequence[Limit], clock: Callable[[], float] = monotonic, window_of: WindowOf | None = None
    ) -> None:
        """`clock` returns seconds and never goes back; `window_of` gives windows that several runs share.

        Raises ValueError for a limit that names no tool.
        """
        self._windows = [(window_of or window_for)(limit) for limit in limits]
        self._has_sizes = any(limit.size for limit in limits)
        self._clock = clock

    def use_clock(self, clock: Callable[[], float]) -> None:
        """Take the time from another clock from now on, as `clock` of the constructor: a trial has a time of its own.

        To be called before any call is counted.
        """
        self._clock = clock

    def concerns(self, names: Sequence[str]) -> bool:
        """True if some limit applies to a tool with these names."""
        return any(True for _ in self._windows_for(names))

    def applicable(self, names: Sequence[str]) -> list[Limit]:
        """The limits of calls that apply to a tool with these names."""
        return [window.limit for window in self._windows_for(names) if not window.limit.size]

    def counts_bytes(self, names: Sequence[str]) -> bool:
        """True if some limit of bytes applies to a tool with these names."""
        return self._has_sizes and any(window.limit.size for window in self._windows_for(names))

    def note_bytes(self, names: Sequence[str], size: int) -> None:
        """Count the response to a call."""
        now = self._clock()
        for window in self._windows_for(names):
            if window.limit.size:
                window.add(now, size)

    def reached(self, names: Sequence[str], *, of_bytes: bool = False) -> LimitReached | None:
        """Return the limit that a call of a tool with these names would exceed, with the longest wait; None: none.

        `of_bytes`: the limits of calls are counted elsewhere.
        """
        now = self._clock()
        windows = [window for window in self._windows_for(names) if window.limit.size or not of_bytes]
        waits = [(window.wait(now), window.limit) for window in windows]
        longest, limit = max(waits, key=lambda waiting: waiting[0], default=(0.0, None))
        return None if limit is None or longest <= 0 else limit_reached(limit, longest)

    def count(self, names: Sequence[str], size: int = 0) -> LimitReached | None:
        """Count a call with so many bytes that is about to be forwarded. One that exceeds a limit is not counted."""
        reached = self.reached(names)
        if reached is None:
            now = self._clock()
            for window in self._windows_for(names):
                window.add(now, size)
        return reached

    def _windows_for(self, names: Sequence[str]) -> Iterator[Window]:
        return (window for window in self._windows if window.rule.named(names))


def limit_reached(limit: Limit, wait: float) -> LimitReached:
    """A limit that allows the next call after so many seconds."""
    return LimitReached(limit, 0 if math.isinf(wait) else math.ceil(wait))


class Window:
    """The last calls that one limit has counted, as many as it allows."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self.rule = tool_rule(limit.tool)
        self.times: deque[float] = deque(maxlen=limit.calls)

    def wait(self, now: float) -> float:
        """Return the seconds until a call is allowed; 0 or less: it is allowed now."""
        if len(self.times) < self.limit.calls:
            return 0.0
        # In floating point, the sum less `now` may be a trace more than the period.
        period = SECONDS[self.limit.per]
        return min(self.times[0] + period - now, period)

    def add(self, now: float, _size: int) -> None:
        """Count a call."""
        self.times.append(now)

    def is_over(self, now: float) -> bool:
        """Whether none of its calls counts any more."""
        return not self.times or self.times[-1] + SECONDS[self.limit.per] <= now


class ByteWindow(Window):
    """The bytes of the last calls, in a bounded number of parts of the period: each counts until its last one is over.

    A call is allowed as long as fewer bytes are counted than the limit allows: nobody knows before how long a response
    will be.
    """

    def __init__(self, limit: Limit) -> None:
        super().__init__(limit)
        self.times = deque()  # when each part has ended, beside its bytes
        self._sizes: deque[int] = deque()
        self._total = 0

    def wait(self, now: float) -> float:
        """As in Window."""
        period = SECONDS[self.limit.per]
        while self.times and self.times[0] + period <= now:
            self.times.popleft()
            self._total -= self._sizes.popleft()
        left = self._total
        if left < self.limit.size:
            return 0.0
        for ended, size in zip(self.times, self._sizes, strict=True):
            left -= size
            if left < self.limit.size:
                return min(ended + period - now, period)
        return period

    def add(self, now: float, size: int) -> None:
        """As in Window."""
        if self.times and now - self._begun < SECONDS[self.limit.per] / _PARTS:
            self.times[-1] = now
            self._sizes[-1] += size
        else:
            self._begun = now
            self.times.append(now)
            self._sizes.append(size)
        self._total += size

    _begun = 0.0


def window_for(limit: Limit) -> Window:
    """A new window of a limit."""
    return ByteWindow(limit) if limit.size else Window(limit)


WindowOf = Callable[[Limit], Window]
"""Returns the window of a limit, the same one for all runs that share it."""


class SharedWindows:
    """The windows that several runs share: for each limit one for all runs of an owner.

    A window stays as long as a run uses it, or one of its calls counts: nobody gets more calls by opening runs anew.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """`clock` as in RateLimits."""
        self._clock = clock
        self._windows: dict[tuple[tuple[str, ...], Limit], Window] = {}
        self._many = _MANY_WINDOWS

    def __len__(self) -> int:
        """How many windows are kept."""
        return len(self._windows)

    def of(self, owner: tuple[str, ...], limit: Limit) -> Window:
        """Return the window of this owner."""
        window = self._windows.get((owner, limit))
        if window is None:
            if len(self._windows) >= self._many:
                self._forget_unused()
            self._windows[owner, limit] = window = window_for(limit)
        return window

    def _forget_unused(self) -> None:
        now = self._clock()
        over = [key for key, window in self._windows.items() if window.is_over(now)]
        unowned = WeakValueDictionary((key, self._windows.pop(key)) for key in over)
        self._windows.update(unowned)  # those that a run uses are still there
        self._many = 2 * len(self._windows) + _MANY_WINDOWS


def tool_rule(text: str) -> Rule:
    """Return the rule for the tools that a limit applies to. Raises ValueError for a text that names no tools."""
    try:
        rule = parsed(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a glob that matches names of tools") from None
    if "(" in rule.text:
        raise ValueError(f"{text!r} is a rule about arguments: a rate limit counts calls of tools with any arguments")
    return rule
