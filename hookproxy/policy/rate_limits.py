"""Limits of calls: a sliding window for each limit, with the clock passed in.

No window of a limit's length has more forwarded calls than the limit allows, wherever the window begins. What is known
only after a call, its seconds and the bytes of its result, counts then: a call may begin as long as less is counted
than the limit allows, so the last call may exceed it, and so may those that are in flight with it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from time import monotonic
from typing import Final
from weakref import WeakValueDictionary

from msgspec import Struct

from ..model.limits import ANY_CALL, Beyond, CountedCall, Limit, Measure, Within
from . import same_calls
from .matchers import Rule
from .rules import parsed

HINT: Final = 'write a glob that matches names of tools, such as tool = "search_*"'

_PARTS: Final = 64  # of a period, in which amounts are counted: so exactly a limit of bytes is kept, in 2 KB
_MANY_WINDOWS: Final = 1000  # shared windows of 1.3 KB, before it is looked for some that can be forgotten
_MOST_COUNTS: Final = 1024  # different calls or subagents that one limit distinguishes: one megabyte


class LimitReached(Struct, frozen=True):
    """A limit that allows no more calls for now."""

    limit: Limit
    retry_after: int
    """Whole seconds after which it allows the next call; 0: not in this session."""


def count_key(limit: Limit, call: CountedCall) -> bytes:
    """The calls with the same key count together against this limit; empty: all of them."""
    parts: list[bytes] = []
    if limit.within is Within.SUBAGENT:
        parts.append(call.subagent.encode("utf-8", "surrogatepass"))
    if limit.measure is Measure.SAME:
        parts += call.tool.encode("utf-8", "surrogatepass"), same_calls.canonical(call.arguments)
    if not parts:
        return b""
    return sha256(b"".join(b"%d " % len(part) + part for part in parts)).digest()


class RateLimits:
    """All limits of one run, and what they have counted."""

    def __init__(
        self, limits: Sequence[Limit], clock: Callable[[], float] = monotonic, window_of: WindowOf | None = None
    ) -> None:
        """`clock` returns seconds and never goes back; `window_of` gives windows that several runs share.

        Raises ValueError for a limit that names no tool.
        """
        self._windows = [(window_of or Window)(limit) for limit in limits]
        self._measures_results = any(limit.measure.known_after for limit in limits)
        self.only_denies = all(limit.beyond is Beyond.DENY for limit in limits)
        """No limit has another consequence than a refusal."""
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
        """The limits that apply to a tool with these names, and count when a call begins."""
        return [window.limit for window in self._windows_for(names) if not window.limit.measure.known_after]

    def measures_results(self, names: Sequence[str]) -> bool:
        """True if some limit that applies to a tool with these names must know how its calls end."""
        return self._measures_results and any(window.limit.measure.known_after for window in self._windows_for(names))

    def note_end(self, names: Sequence[str], size: int, seconds: float, call: CountedCall = ANY_CALL) -> None:
        """Count how a call has ended: the bytes of its result, and how long it took."""
        amounts = {Measure.BYTES: size, Measure.RESULT_BYTES: size, Measure.SECONDS: seconds}
        self._add(names, call, amounts)

    def exceeded(
        self, names: Sequence[str], call: CountedCall = ANY_CALL, *, known_after: bool = False
    ) -> list[LimitReached]:
        """The limits that a call of a tool with these names would exceed.

        `known_after`: only those that count when a call has ended; the others are counted elsewhere.
        """
        now = self._clock()
        windows = [window for window in self._windows_for(names) if window.limit.measure.known_after or not known_after]
        waits = [(window.limit, window.wait(now, count_key(window.limit, call))) for window in windows]
        return [limit_reached(limit, wait) for limit, wait in waits if wait > 0]

    def count(
        self, names: Sequence[str], size: int = 0, call: CountedCall = ANY_CALL, approved: Iterable[str] = ()
    ) -> LimitReached | None:
        """Count a call with arguments of so many bytes that is about to be forwarded. One that is refused is not.

        `approved` are the keys of limits beyond which it may go.
        """
        if (reached := refusing(self.exceeded(names, call), approved)) is None:
            self._add(names, call, {Measure.CALLS: 1, Measure.SAME: 1, Measure.BYTES: size})
        return reached

    def note_size(self, names: Sequence[str], size: int, call: CountedCall = ANY_CALL) -> None:
        """Count the bytes of the arguments of a call that is counted elsewhere."""
        self._add(names, call, {Measure.BYTES: size})

    def rules(self) -> Iterator[tuple[Limit, Rule]]:
        """Each limit with the rule for its tools."""
        return ((window.limit, window.rule) for window in self._windows)

    def _add(self, names: Sequence[str], call: CountedCall, amounts: Mapping[Measure, float]) -> None:
        now = self._clock()
        for window in self._windows_for(names):
            if (amount := amounts.get(window.limit.measure)) is not None:
                window.add(now, amount, count_key(window.limit, call))

    def _windows_for(self, names: Sequence[str]) -> Iterator[Window]:
        return (window for window in self._windows if window.rule.named(names))


def limit_reached(limit: Limit, wait: float) -> LimitReached:
    """A limit that allows the next call after so many seconds."""
    return LimitReached(limit, 0 if math.isinf(wait) else math.ceil(wait))


def refusing(exceeded: Sequence[LimitReached], approved: Iterable[str] = ()) -> LimitReached | None:
    """Return the limit that refuses a call which exceeds these, with the longest wait; None: none does.

    One that asks refuses, too, unless its key is among the `approved`.
    """
    approved = frozenset(approved)
    against = [
        reached
        for reached in exceeded
        if reached.limit.beyond is Beyond.DENY
        or (reached.limit.beyond is Beyond.ASK and reached.limit.key not in approved)
    ]
    return max(against, key=lambda reached: reached.retry_after or math.inf, default=None)


class Window:
    """What one limit has counted; of each different call and each subagent alone, if the limit says so.

    Of very many, the one that was counted longest ago is forgotten.
    """

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self.rule = tool_rule(limit.tool)
        self._counts: dict[bytes, _Times | _Amounts] = {}  # the one that was added to last is the last one

    def wait(self, now: float, key: bytes = b"") -> float:
        """Return the seconds until a call is allowed; 0 or less: it is allowed now."""
        counts = self._counts.get(key)
        return 0.0 if counts is None else counts.wait(now)

    def add(self, now: float, amount: float, key: bytes = b"") -> None:
        """Count a call, or what it has taken."""
        if (counts := self._counts.pop(key, None)) is None:
            if len(self._counts) >= _MOST_COUNTS:
                del self._counts[next(iter(self._counts))]
            counts = _Amounts(self.limit) if self.limit.measure.known_after else _Times(self.limit)
        self._counts[key] = counts
        counts.add(now, amount)

    def is_over(self, now: float) -> bool:
        """Whether nothing of it counts any more."""
        return all(counts.is_over(now) for counts in self._counts.values())


class _Times:
    """When the last calls were made, as many as the limit allows."""

    def __init__(self, limit: Limit) -> None:
        self._period = limit.period
        self._most = int(limit.most)
        self._times: deque[float] = deque(maxlen=self._most)

    def wait(self, now: float) -> float:
        """As in Window."""
        if len(self._times) < self._most:
            return 0.0
        # In floating point, the sum less `now` may be a trace more than the period.
        return min(self._times[0] + self._period - now, self._period)

    def add(self, now: float, _amount: float) -> None:
        """As in Window."""
        self._times.append(now)

    def is_over(self, now: float) -> bool:
        """As in Window."""
        return not self._times or self._times[-1] + self._period <= now


class _Amounts:
    """The seconds or bytes of calls, in a bounded number of parts of the period: each counts until its last is over.

    A call is allowed as long as less is counted than the limit allows.
    """

    def __init__(self, limit: Limit) -> None:
        self._period = limit.period
        self._most = limit.most
        self._parts: deque[list[float]] = deque()  # when each part has ended, and how much it has
        self._begun = 0.0  # the last part

    def wait(self, now: float) -> float:
        """As in Window."""
        while self._parts and self._parts[0][0] + self._period <= now:
            self._parts.popleft()
        left = math.fsum(amount for _, amount in self._parts)
        if left < self._most:
            return 0.0
        for ended, amount in self._parts:
            left -= amount
            if left < self._most:
                return min(ended + self._period - now, self._period)
        return self._period

    def add(self, now: float, amount: float) -> None:
        """As in Window."""
        if self._parts and now - self._begun < self._period / _PARTS:
            self._parts[-1][0] = now
            self._parts[-1][1] += amount
        else:
            self._begun = now
            self._parts.append([now, amount])
            if len(self._parts) > _PARTS + 1:  # nobody has asked for a while: the first one is over
                self._parts.popleft()

    def is_over(self, now: float) -> bool:
        """As in Window."""
        return not self._parts or self._parts[-1][0] + self._period <= now


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
            self._windows[owner, limit] = window = Window(limit)
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
