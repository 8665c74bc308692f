"""Reports hooks that run for a long time to people, while they run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from math import inf, nextafter
from time import monotonic
from typing import Final
from weakref import ReferenceType, ref

from ..model.hooks import HookSpec

SLOW_SECONDS: Final = 10.0
"""Seconds after which a hook that still runs is reported: by then people wonder why they have to wait."""


class SlowHooks:
    """The hooks that run. One timer serves them all, so that a short run costs none; each run is reported once."""

    def __init__(self, report: Callable[[HookSpec, str], None], seconds: float = SLOW_SECONDS) -> None:
        self._report = report
        self._seconds = seconds
        self._running: dict[float, tuple[HookSpec, str]] = {}  # by the time of the start, so in its order
        self._reported_until = 0.0  # runs that began by then have been reported
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, spec: HookSpec, request_id: str = "") -> float:
        """Note that a hook starts to run, for this request. Returns the time of the start, on the monotonic clock."""
        now = monotonic()
        while now in self._running:  # a clock may be coarse, and each run needs its own key
            now = nextafter(now, inf)
        self._running[now] = spec, request_id
        if self._timer is None:
            self._check_after(self._seconds)
        return now

    def end(self, begun: float) -> None:
        """Note that the run has ended; `begun` is what `begin` has returned."""
        del self._running[begun]

    def running(self) -> Iterator[tuple[float, HookSpec, str]]:
        """The hooks that run now: since when on the monotonic clock, and for which request; empty: for none."""
        for begun, (spec, request_id) in self._running.items():
            yield begun, spec, request_id

    def _check_after(self, seconds: float) -> None:
        """Set the timer. It keeps nothing in memory: the session of these hooks may end before."""
        self._timer = asyncio.get_running_loop().call_later(seconds, _check, ref(self))

    def check(self) -> None:
        """Report the runs that are slow by now, and set the timer for the next one, if there is one."""
        self._timer = None
        now = monotonic()
        for begun, (spec, _) in self._running.items():
            if begun <= self._reported_until:
                continue
            if (left := begun + self._seconds - now) > 0:
                self._check_after(left)
                return
            self._reported_until = begun
            self._report(spec, f"has been running for {now - begun:.0f} s; its timeout is {spec.timeout:g} s")


def _check(hooks: ReferenceType[SlowHooks]) -> None:
    if (hooks_ := hooks()) is not None:
        hooks_.check()
