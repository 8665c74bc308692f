"""For verbs that run hooks and print something: hooks run as under `run` and end with us; standard output is ours."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import anyio

from ..processes import process
from ..transports.epoll_loop import new_loop
from .common import show

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

_Result = TypeVar("_Result")

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
"""Signals that would end us and leave hooks behind; of an interrupt, `anyio.run` takes care."""


def run(act: Callable[[], Awaitable[_Result]]) -> _Result:
    """What `act` comes to. Whatever ends us, but KILL, ends its hooks first."""
    process.prepare_for_children()  # else a file that `act` opens takes the place of a standard stream that is closed
    return anyio.run(_ended_by_signals, act, backend_options={"loop_factory": new_loop})


async def _ended_by_signals(act: Callable[[], Awaitable[_Result]]) -> _Result:
    problem: Exception | None = None
    heard: list[int] = []
    async with anyio.create_task_group() as tasks:
        await tasks.start(_listen, tasks.cancel_scope, heard)
        try:
            result = await act()
        except Exception as caught:  # told as it is, not as a group of one
            problem = caught
        tasks.cancel_scope.cancel()
    if heard:
        raise SystemExit(128 + heard[0])
    if problem is not None:
        raise problem
    return result


async def _listen(scope: anyio.CancelScope, heard: list[int], *, task_status: TaskStatus[None]) -> None:
    with anyio.open_signal_receiver(*_ENDING) as signals:
        task_status.started()
        async for number in signals:
            heard.append(number)
            scope.cancel()


@contextmanager
def hooks_at_work() -> Iterator[None]:
    """What hooks in our own process print, and what these start, goes to standard error, as in a run."""
    process.prepare_for_children()
    show("")  # what is still in the buffer is ours
    ours = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        show("")  # … and is now theirs
        os.dup2(ours, 1)
        os.close(ours)
