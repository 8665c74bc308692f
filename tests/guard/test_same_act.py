"""An act that comes by several entries is judged once, and no other act is taken for it."""

from __future__ import annotations

import anyio
import pytest

from hookproxy.dialects.agent_side import HookOutput
from hookproxy.guard.same_act import Key, SameActs

pytestmark = pytest.mark.anyio

WITH_ID: Key = ("claude", "s", "PreToolUse", "t1", b"a")
WITHOUT: Key = ("claude", "s", "PreToolUse", "", b"a")


class Judged:
    """Counts how often it is asked; each output is another one."""

    def __init__(self) -> None:
        self.count = 0
        self.go_on = anyio.Event()

    async def __call__(self) -> HookOutput:
        self.count += 1
        number = self.count
        await self.go_on.wait()
        return HookOutput(status=number)


@pytest.fixture
def judge() -> Judged:
    return Judged()


@pytest.mark.parametrize(
    ("key", "entry", "count"),
    [(WITH_ID, "claude", 1), (WITH_ID, "cursor", 1), (WITHOUT, "cursor", 1), (WITHOUT, "claude", 2)],
)
async def test_entries_of_one_act_get_one_judgement(key: Key, entry: str, count: int, judge: Judged) -> None:
    acts, outputs = SameActs(), []

    async def ask(name: str) -> None:
        outputs.append((await acts.judged(key, name, judge)).status)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "claude")
        tasks.start_soon(ask, entry)
        await anyio.wait_all_tasks_blocked()
        judge.go_on.set()
    assert sorted(outputs) == ([1, 1] if count == 1 else [1, 2])


@pytest.mark.parametrize("part", range(5))
async def test_whatever_differs_is_another_act(part: int, judge: Judged) -> None:
    acts = SameActs()
    judge.go_on.set()
    other = list(WITH_ID)
    other[part] = b"b" if part == 4 else "other"
    assert (await acts.judged(WITH_ID, "claude", judge)).status == 1
    assert (await acts.judged(tuple(other), "claude", judge)).status == 2  # type: ignore[arg-type]  # the same types


async def test_after_a_moment_it_is_another_act(judge: Judged) -> None:
    now = [0.0]
    acts = SameActs(lambda: now[0])
    judge.go_on.set()
    assert (await acts.judged(WITH_ID, "claude", judge)).status == 1
    now[0] = 1.9
    assert (await acts.judged(WITH_ID, "claude", judge)).status == 1
    now[0] = 4.0
    assert (await acts.judged(WITH_ID, "claude", judge)).status == 2


async def test_if_judging_is_cancelled_the_other_entry_judges_anew(judge: Judged) -> None:
    acts, outputs = SameActs(), []

    async def ask(name: str) -> None:
        outputs.append((await acts.judged(WITH_ID, name, judge)).status)

    async with anyio.create_task_group() as tasks, anyio.create_task_group() as first:
        first.start_soon(ask, "claude")
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(ask, "cursor")
        await anyio.wait_all_tasks_blocked()
        first.cancel_scope.cancel()
        judge.go_on.set()
    assert outputs == [2]


async def test_many_acts_take_bounded_memory(judge: Judged) -> None:
    acts = SameActs(lambda: 0.0)
    judge.go_on.set()
    for number in range(3000):
        await acts.judged((*WITH_ID[:3], str(number), b""), "claude", judge)
    assert len(acts._acts) <= 1026


async def test_an_id_that_is_used_again_after_its_call_names_another_act(judge: Judged) -> None:
    acts = SameActs()
    judge.go_on.set()
    after: Key = ("claude", "s", "PostToolUse", "t1", b"a")
    assert (await acts.judged(WITH_ID, "claude", judge)).status == 1
    assert (await acts.judged(WITH_ID, "cursor", judge)).status == 1
    assert (await acts.judged(after, "claude", judge)).status == 2
    assert (await acts.judged(after, "cursor", judge)).status == 2
    assert (await acts.judged(WITH_ID, "claude", judge)).status == 3
    assert (await acts.judged(WITH_ID, "cursor", judge)).status == 3
    assert (await acts.judged(after, "claude", judge)).status == 4
