"""Chooses the event loop: over epoll on Linux, else asyncio's own (kqueue on a Mac)."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, runtime_checkable

from ..model.errors import resource_shortage
from ..network.epoll_loop import DirectLoop, DirectSelector
from ..processes import platforms
from ..processes.loop_callbacks import LoopCallbacks


def new_loop() -> asyncio.AbstractEventLoop:
    """The fastest loop of this platform."""
    loop = DirectLoop() if platforms.linux else asyncio.SelectorEventLoop()
    loop.set_exception_handler(_report_exception)
    return loop


def _report_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """As asyncio does, except for tasks that fail when a shortage of resources ends the loop: its caller reports it."""
    ends = "shutdown" in context["message"]
    if not (ends and "exception" in context and resource_shortage(context["exception"])):
        loop.default_exception_handler(context)


def direct_callbacks(loop: asyncio.AbstractEventLoop) -> DirectSelector | LoopCallbacks:
    """What calls back for the descriptors of channels in this loop, whatever it is."""
    return loop.direct if isinstance(loop, DirectLoop) else LoopCallbacks(loop)


@runtime_checkable
class EndsByFailure(Protocol):
    """Whatever reads or writes in direct callbacks and can end without the process."""

    def fail(self) -> None:
        """A callback of it has raised: end, so that whoever uses it learns that nothing more comes."""


def contain_failures(report: Callable[[str], None]) -> None:
    """From now on, a direct callback of this loop that raises ends what it belongs to, and is reported; others go on.

    In other loops than our own, asyncio reports it, and the loop goes on in any case.
    """
    loop = asyncio.get_running_loop()
    if isinstance(loop, DirectLoop):
        loop.direct.on_failure = partial(_end_owner, report)


def _end_owner(report: Callable[[str], None], callback: Callable[[], None], problem: Exception) -> None:
    text = "".join(traceback.format_exception(problem)).rstrip()
    report(f"a connection has failed, and ends; all others go on: {text}")
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, EndsByFailure):
        try:
            owner.fail()
        except Exception as another:  # whoever is told has failed as well
            report(f"its end has failed, too: {''.join(traceback.format_exception(another)).rstrip()}")
