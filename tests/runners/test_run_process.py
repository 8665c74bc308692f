"""One run of a process. Its behaviour in every case is tested where it is used: test_command, test_warm."""

from __future__ import annotations

import asyncio
import os
from time import monotonic

import pytest

from hookproxy.model.hooks import Document, Ended, Event, HookSpec
from hookproxy.runners import command
from hookproxy.runners.event_watch import get_watch
from hookproxy.runners.run_process import HookProcess

pytestmark = pytest.mark.anyio


async def test_a_run_can_begin_with_a_process_that_waits_for_its_document() -> None:
    spec = HookSpec("claude", "f: k", Event.PRE_TOOL_USE, "c", shell="cat; exit 2")
    pid, fds, _ = command.start(command.prepare(spec, Document(b"", {}), dict(os.environ)))
    hook_process = HookProcess(get_watch(asyncio.get_running_loop()), (pid, fds, 0), b"hello", 10, monotonic())
    await hook_process.wait()
    result = hook_process.result()
    assert (result.ended, result.code, result.stdout) == (Ended.EXITED, 2, b"hello")
