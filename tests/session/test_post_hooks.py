"""Post hooks run on the outcome of a call; `test_mcp_task.py` tests the rest from outside."""

from __future__ import annotations

import json

import pytest

from hookproxy.model.decision import Comments
from hookproxy.model.hooks import Event, HookRun, Outcome
from hookproxy.model.settings import Delivery
from hookproxy.protocol.calls import Call
from hookproxy.protocol.router import Router
from hookproxy.session import post_hooks
from hookproxy.session.call_context import event_context_of
from tests.support.proxy_rig import DIRECT_LOOP, rig, stub, stub_group

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


@pytest.fixture
def call() -> Call:
    router = Router(lambda _tool: True)
    router.from_agent(b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"write"}}\n')
    return router.calls[b"7"]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome(has_result=True), "success"),
        (Outcome(has_result=True, error="no"), "failure"),
        (Outcome(error="no", interrupted=True), "failure"),
    ],
)
async def test_the_hooks_of_a_success_or_of_a_failure_run(call: Call, outcome: Outcome, expected: str) -> None:
    hooks = (
        stub(Event.POST_TOOL_USE, feedback=["success"]),
        stub(Event.POST_TOOL_USE_FAILURE, feedback=["failure"]),
    )
    hook_runs: list[HookRun] = []
    async with rig(stub_group(*hooks)) as one:
        policy, calls = one.proxy.policy, one.proxy.calls
        context = event_context_of(call, policy, calls)
        comments = await post_hooks.run_post_hooks(call, policy, calls, context, outcome, hook_runs)
    assert comments.feedback == (expected,)
    assert len(hook_runs) == 1


@pytest.mark.parametrize(("member", "result"), [('"result":{"content":[]}', True), ('"error":{"message":""}', False)])
async def test_feedback_is_added_to_results_and_errors(call: Call, member: str, result: bool) -> None:
    line, delivery = b'{"id":7,%b}\n' % member.encode(), Delivery.AUTO if result else None
    async with rig() as one:
        edited = post_hooks.add_feedback(call, one.proxy.calls, line, Comments(), ("noted",), delivery)
        assert b"noted" in edited
        assert json.loads(edited)["id"] == 7
        assert post_hooks.add_feedback(call, one.proxy.calls, line, Comments(), (), delivery) is line


async def test_feedback_that_the_model_cannot_get_is_reported_once(call: Call) -> None:
    line = b'{"id":7,"result":{}}\n'
    async with rig() as one:
        for _ in range(2):
            assert post_hooks.add_feedback(call, one.proxy.calls, line, Comments(), ("noted",), Delivery.AUTO) == line
    assert len(one.reports) == 1
