"""Hooks read the labels of a session; those of the administrator set them, and others are told that they do not."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from msgspec.structs import replace

from hookproxy.model.flow import FlowMatch, Sink, Source
from hookproxy.model.hooks import Event, HookSpec
from hookproxy.model.settings import Settings
from tests.support.data_flow import answer, call, own_group, text_of
from tests.support.proxy_rig import DIRECT_LOOP, hook, rig

pytestmark = pytest.mark.anyio

PRE, POST = Event.PRE_TOOL_USE, Event.POST_TOOL_USE
SINK = Sink(FlowMatch(tools=("send",)), ("secret",), "flow.sinks[0]", "deny")
SINKS = Settings(flow_sinks=(SINK,))
SOURCES = replace(SINKS, flow_sources=(Source(FlowMatch(tools=("read",)), ("secret",), "flow.sources[0]"),))


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def sets(event: Event, matcher: str, **labels: object) -> HookSpec:
    output = {"hookSpecificOutput": {"hookEventName": event, **labels}}
    return hook(f"echo {shlex.quote(json.dumps(output))}", event, matcher)


@pytest.mark.parametrize("event", [PRE, POST])
async def test_a_managed_hook_adds_a_label(event: Event) -> None:
    async with rig(own_group(sets(event, "read", addLabels=["secret"])), settings=SINKS) as proxy:
        await call(proxy, 1, "read", path="a")
        await answer(proxy, "x")
        await call(proxy, 2, "send")
        assert "what `read` read from `a` (label secret, " in text_of(await proxy.agent.message())


@pytest.mark.parametrize("event", [PRE, POST])
async def test_a_managed_hook_removes_a_label(event: Event) -> None:
    async with rig(own_group(sets(event, "wipe", removeLabels=["secret"])), settings=SOURCES) as proxy:
        await call(proxy, 1, "read", path="a")
        await answer(proxy, "x")
        await call(proxy, 2, "wipe")
        await answer(proxy, "done")
        await call(proxy, 3, "send")
        assert text_of(await answer(proxy, "sent")) == "sent"


async def test_a_hook_of_the_user_sets_no_labels_and_people_are_told() -> None:
    user = own_group(sets(PRE, "send", removeLabels=["secret"]), managed=False)
    async with rig(user, settings=SOURCES) as proxy:
        await call(proxy, 1, "read", path="a")
        await answer(proxy, "x")
        await call(proxy, 2, "send")
        assert "Blocked" in text_of(await proxy.agent.message())
        assert any("only hooks of the administrator's files set labels" in report for report in proxy.reports)


async def test_labels_that_cannot_be_read_are_a_failure() -> None:
    async with rig(own_group(sets(PRE, "send", removeLabels="secret")), settings=SOURCES) as proxy:
        await call(proxy, 2, "send")
        assert "printed labels that cannot be read" in text_of(await proxy.agent.message())


async def test_hooks_read_the_labels(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    observer = own_group(hook(f"cat >>{seen}; echo >>{seen}", PRE), managed=False)
    async with rig(observer, settings=SOURCES) as proxy:
        await call(proxy, 1, "read", path="a")
        await answer(proxy, "x")
        await call(proxy, 2, "other")
        await answer(proxy, "x")
    first, second = [json.loads(line)["labels"] for line in seen.read_text().splitlines() if line]
    assert (first, second) == ([], ["secret"])


async def test_without_a_flow_documents_have_no_labels(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    async with rig(own_group(hook(f"cat >>{seen}", PRE), managed=False)) as proxy:
        await call(proxy, 1, "read", path="a")
        await answer(proxy, "x")
    assert "labels" not in json.loads(seen.read_text())
