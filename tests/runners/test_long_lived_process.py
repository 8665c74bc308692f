"""A long-lived process: its input, its output, its end. The tests of workers have its misbehaviour."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import anyio
import pytest

from hookproxy.model.hooks import Document, Event, HookSpec
from hookproxy.runners import command
from hookproxy.runners.event_watch import get_watch
from hookproxy.runners.long_lived_process import LongLivedProcess
from hookproxy.transports.event_loop import new_loop

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[{}, {"loop_factory": new_loop}], ids=["any loop", "our loop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", request.param


def lives(pid: int) -> bool:
    """It has neither ended nor been reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_process_gets_its_input_and_its_output_and_errors_are_read() -> None:
    spec = HookSpec("claude", "f: k", Event.PRE_TOOL_USE, "c", shell="cat; echo oops >&2; exit 3")
    pid, fds, _ = command.start(command.prepare(spec, Document(b"", {}), dict(os.environ)))
    ends: list[str] = []
    printed = anyio.Event()

    def on_output(child: LongLivedProcess) -> None:
        if len(child.output) == 300_001:
            printed.set()

    child = LongLivedProcess(
        get_watch(asyncio.get_running_loop()), pid, fds, on_output, lambda _one, how: ends.append(how)
    )
    child.write(b"x" * 300_000)
    child.write(b"y")
    with anyio.fail_after(30):
        await printed.wait()
        await child.aclose(5)
    assert child.reaped.done()
    assert ends == []  # who ends it knows
    assert child.take_stderr() == b"oops\n"


async def test_a_process_that_does_not_end_with_its_input_is_killed() -> None:
    printed = anyio.Event()
    spec = HookSpec("claude", "f: k", Event.PRE_TOOL_USE, "c", shell="sleep 60 & echo $!; sleep 60")
    pid, fds, _ = command.start(command.prepare(spec, Document(b"", {}), dict(os.environ)))
    child = LongLivedProcess(
        get_watch(asyncio.get_running_loop()), pid, fds, lambda _one: printed.set(), lambda _one, _how: None
    )
    with anyio.fail_after(30):
        await printed.wait()
        await child.aclose(0.05)
    with anyio.fail_after(30):
        while lives(int(child.output)):  # noqa: ASYNC110 - killed, and dead soon; there is no event for it
            await anyio.sleep(0.001)
