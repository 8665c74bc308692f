"""Runs hooks for verbs that print something: as under `run`, but nothing that hooks print reaches standard output."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from ..processes import process
from .common import show

if TYPE_CHECKING:
    import anyio
    from anyio.abc import TaskStatus

_Result = TypeVar("_Result")

_ENDING_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
"""Signals that would end us and leave hooks running. `anyio.run` handles an interrupt."""


def run_until_done(action: Callable[[], Awaitable[_Result]]) -> _Result:
    """Run the action in an event loop and return its result. Whatever ends us, except KILL, ends its hooks first."""
    import anyio

    from ..transports.event_loop import new_loop

    process.prepare_for_children()  # otherwise a file of the action could get the number of a closed standard stream
    return anyio.run(_run_until_signal, action, backend_options={"loop_factory": new_loop})


async def _run_until_signal(action: Callable[[], Awaitable[_Result]]) -> _Result:
    import anyio

    error: Exception | None = None
    received: list[int] = []
    async with anyio.create_task_group() as tasks:
        await tasks.start(_receive_signals, tasks.cancel_scope, received)
        try:
            result = await action()
        except Exception as caught:  # raised below, so that it is not wrapped in a group of one
            error = caught
        tasks.cancel_scope.cancel()
    if received:
        raise SystemExit(128 + received[0])
    if error is not None:
        raise error
    return result


async def _receive_signals(scope: anyio.CancelScope, received: list[int], *, task_status: TaskStatus[None]) -> None:
    import anyio

    with anyio.open_signal_receiver(*_ENDING_SIGNALS) as signals:
        task_status.started()
        async for number in signals:
            received.append(number)
            scope.cancel()


@contextmanager
def redirected_output() -> Iterator[None]:
    """While hooks run, what they or their children write to standard output goes to standard error, as under `run`."""
    process.prepare_for_children()
    show("")  # what is still buffered is our own output
    saved_output = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        show("")  # what is now buffered was printed by hooks
        os.dup2(saved_output, 1)
        os.close(saved_output)
