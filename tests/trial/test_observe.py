"""Observed hooks decide the same as others, and every run of a hook and of a group is recorded."""

from __future__ import annotations

import os
import sys

import anyio
import pytest
from msgspec.structs import replace

from hookproxy.hooks.evaluate import Hooks
from hookproxy.model.hooks import Ended, Event, EventContext, HookResult, HookRun, Verdict
from hookproxy.model.settings import Settings
from hookproxy.trial.observe import ObservedHooks
from tests.support.proxy_rig import DIRECT_LOOP, SESSION, group, hook, stub, stub_group

pytestmark = pytest.mark.anyio

PRE = EventContext(Event.PRE_TOOL_USE, SESSION, tool="write", tool_name="write", arguments=b'{"a":1}')


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


async def test_observed_hooks_decide_the_same_as_others() -> None:
    groups = (stub_group(stub(PRE.event, permission="ask", arguments={"b": 2})), group(hook("exit 2")))
    plain = await Hooks(groups, Settings(), "files", os.environ).run_pre_hooks(PRE, None, [])
    observed = ObservedHooks(groups, Settings(), "files", os.environ)
    assert await observed.run_pre_hooks(PRE, None, []) == plain
    assert observed.observation.evaluation == plain


async def test_each_group_run_is_recorded_with_the_hooks_that_apply() -> None:
    here, there = hook("exit 0"), replace(hook("exit 1"), only_if="other")
    observed = ObservedHooks((group(here, there),), Settings(), "files", os.environ)
    await observed.run_pre_hooks(PRE, None, [])
    (group_run,) = observed.observation.group_runs
    assert group_run.hooks == (here,)
    assert group_run.event_context.arguments == b'{"a":1}'


async def test_runs_are_recorded_in_the_order_of_their_start_with_their_own_output() -> None:
    slow, quick = hook("read x; sleep 0.2; echo slow >&2; exit 2"), hook("echo quick >&2; exit 2")
    observed = ObservedHooks((group(slow, quick),), Settings(), "files", os.environ)
    async with anyio.create_task_group() as tasks:
        observed.open(tasks, observed.note, lambda: None)
        await observed.run_pre_hooks(PRE, None, [])
    reasons = [run.hook_run.verdict.reason if run.hook_run else "" for run in observed.observation.runs]
    assert reasons == ["slow", "quick"]


async def test_a_worker_run_is_recorded_and_a_message_about_it_is_a_remark() -> None:
    worker = replace(hook(""), type="worker", shell="", argv=(sys.executable, "-c", "input(); print('no JSON')"))
    observed = ObservedHooks((group(worker),), Settings(), "files", os.environ)
    async with observed.runners, anyio.create_task_group() as tasks:
        observed.open(tasks, observed.note, lambda: None)
        await observed.run_pre_hooks(PRE, None, [])
    (run,) = observed.observation.runs
    assert run.result is not None
    assert run.result.ended is Ended.FAILED
    observed.note(HookRun(worker, HookResult(Ended.EXITED), Verdict(messages=("was started again",))))
    assert observed.observation.remarks == ["guard: was started again"]


@pytest.mark.usefixtures("forgets_hooks")
async def test_a_hook_that_is_not_a_process_gets_no_variables() -> None:
    spec = replace(hook(""), shell="", type="python", call="json:loads", cwd="/")
    observed = ObservedHooks((group(spec),), Settings(), "files", os.environ)
    async with observed.runners:
        await observed.run_pre_hooks(PRE, None, [])
    assert observed.observation.runs[0].variables == {}
