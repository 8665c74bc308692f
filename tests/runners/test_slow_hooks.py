"""People are told about hooks that run for long, each run once, by one timer."""

from __future__ import annotations

from weakref import ref

import anyio
import pytest

from hookproxy.model.hooks import Event, HookSpec
from hookproxy.runners.slow_hooks import SlowHooks
from tests.support.proxy_rig import DIRECT_LOOP

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def spec(label: str) -> HookSpec:
    return HookSpec("claude", "hooks.json: 0", Event.PRE_TOOL_USE, label, argv=("x",), timeout=60)


async def test_a_run_is_reported_once_while_it_runs_and_a_short_one_never() -> None:
    told: list[str] = []
    changed = anyio.Event()

    def tell(one: HookSpec, text: str) -> None:
        told.append(f"{one.label} {text}")
        changed.set()

    slow = SlowHooks(tell, seconds=0.01)
    slow.end(slow.begin(spec("short")))
    first = slow.begin(spec("first"))
    with anyio.fail_after(30):
        await changed.wait()
        changed = anyio.Event()
        second = slow.begin(spec("second"))
        await changed.wait()
    slow.end(first)
    slow.end(second)
    assert told == [f"{name} has been running for 0 s; its timeout is 60 s" for name in ("first", "second")]


async def test_runs_that_begin_at_the_same_time_are_kept_apart() -> None:
    slow = SlowHooks(lambda _spec, _text: None)
    begun = [slow.begin(spec("x")) for _ in range(1000)]
    assert len(set(begun)) == 1000
    for one in begun:
        slow.end(one)


async def test_the_timer_keeps_no_hooks_whose_session_has_ended() -> None:
    slow = SlowHooks(lambda _spec, _text: None)
    slow.end(slow.begin(spec("x")))
    kept = ref(slow)
    del slow
    assert kept() is None
