"""Tells people about hooks that run for long, while they run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf, nextafter
from time import monotonic
from typing import Final

from ..model.hooks import HookSpec

SLOW_SECONDS: Final = 10.0
"""Seconds after which people are told that a hook still runs: by then they wonder what they wait for."""


class SlowHooks:
    """The hooks that run. One timer serves them all, so that a short run costs none; each run is told once."""

    def __init__(self, tell: Callable[[HookSpec, str], None], seconds: float = SLOW_SECONDS) -> None:
        self._tell = tell
        self._seconds = seconds
        self._running: dict[float, HookSpec] = {}  # by the time of the start, so in its order
        self._told = 0.0  # runs that began by then have been told
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, spec: HookSpec) -> float:
        """Note that a hook starts to run. Returns when, by the monotonic clock, which `end` takes."""
        now = monotonic()
        while now in self._running:  # a clock may be coarse, and each run needs its own key
            now = nextafter(now, inf)
        self._running[now] = spec
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._check)
        return now

    def end(self, begun: float) -> None:
        """Note that the run has ended."""
        del self._running[begun]

    def _check(self) -> None:
        """Tell about the runs that are slow by now, and come back for the next one, if any runs."""
        self._timer = None
        now = monotonic()
        for begun, spec in self._running.items():
            if begun <= self._told:
                continue
            if (left := begun + self._seconds - now) > 0:
                self._timer = asyncio.get_running_loop().call_later(left, self._check)
                return
            self._told = begun
            self._tell(spec, f"has been running for {now - begun:.0f} s; its timeout is {spec.timeout:g} s")
