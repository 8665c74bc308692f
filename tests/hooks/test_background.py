"""Background hooks are bounded in number and bytes."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from hookproxy.dialects.dialect import Group
from hookproxy.hooks.background import BackgroundHooks
from hookproxy.hooks.select import MatchedHook
from hookproxy.model.hooks import Event, EventContext, HookRun, Outcome
from tests.support.proxy_rig import SESSION, stub, stub_group

pytestmark = pytest.mark.anyio

POST = Event.POST_TOOL_USE
SPEC = replace(stub(POST), background=True)
GROUP = stub_group(SPEC)
MATCHED = MatchedHook(SPEC, "")


def context_of(size: int = 0) -> EventContext:
    return EventContext(POST, SESSION, outcome=Outcome(content=b"x" * size, has_result=True))


async def test_one_hook_too_many_is_reported_and_not_run() -> None:
    release, told, reported = anyio.Event(), [0], list[HookRun]()

    async def run(_group: Group, _hook: MatchedHook, _context: EventContext) -> None:
        await release.wait()

    def notify() -> None:
        told[0] += 1

    background = BackgroundHooks(run)
    async with anyio.create_task_group() as tasks:
        background.open(tasks, reported.append, notify)
        assert all(background.start(GROUP, MATCHED, context_of()) for _ in range(300))
        assert background.running == 256
        assert len(reported) == 44
        assert reported[0].verdict.failure.startswith("was not run, because too many background hooks")
        release.set()
    assert (background.running, told[0]) == (0, 256)


async def test_the_bytes_of_their_contexts_are_bounded() -> None:
    reported = list[HookRun]()

    async def run(_group: Group, _hook: MatchedHook, _context: EventContext) -> None:
        await anyio.lowlevel.checkpoint()

    background = BackgroundHooks(run)
    async with anyio.create_task_group() as tasks:
        background.open(tasks, reported.append, lambda: None)
        for _ in range(3):
            background.start(GROUP, MATCHED, context_of(30 * 1024 * 1024))
        assert (background.running, len(reported)) == (2, 1)
    assert background.running == 0


async def test_a_hook_that_is_not_a_background_hook_is_not_started_here() -> None:
    async def run(_group: Group, _hook: MatchedHook, _context: EventContext) -> None:
        raise OSError(24, "Too many open files")

    background = BackgroundHooks(run)
    assert not background.start(GROUP, MATCHED, context_of()), "before begin"
    reported = list[HookRun]()
    async with anyio.create_task_group() as tasks:
        background.open(tasks, reported.append, lambda: None)
        assert not background.start(GROUP, replace(MATCHED, spec=replace(SPEC, background=False)), context_of())
        assert background.start(GROUP, MATCHED, context_of())
    assert [one.verdict.failure for one in reported] == ["could not be run: Too many open files"]
