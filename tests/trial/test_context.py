"""The services of a trial return the given result, write nothing, and record what a proxy would send."""

from __future__ import annotations

import json
import os
from pathlib import Path

import anyio
import pytest

from hookproxy.audit.call_record import Record
from hookproxy.hooks.evaluate import Hooks
from hookproxy.model.decision import Refuse
from hookproxy.model.hooks import Event, EventContext
from hookproxy.model.settings import Settings
from hookproxy.protocol import actions
from hookproxy.protocol.router import Router
from hookproxy.session.call_context import Ending
from hookproxy.trial.context import LastRecordAudit, TrialServices, response
from hookproxy.trial.run import TrialCall
from tests.support.proxy_rig import DIRECT_LOOP, SESSION, stub, stub_group

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def test_the_audit_of_a_trial_writes_nothing_and_never_fails(tmp_path: Path) -> None:
    audit = LastRecordAudit(Settings(audit_file=str(tmp_path / "audit"), audit_required=True))
    record = Record("s", "server", "tool", b"1", b"{}")
    assert (audit.failure(), audit.write(record), audit.record) == ("", "", record)
    assert list(tmp_path.iterdir()) == []


def test_a_response_is_one_line_whatever_the_spelling_of_the_result() -> None:
    line = response(b'"7"', b'{\n "content":\r\n [],"a":"\xe2\x80\xa8"}')
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"jsonrpc": "2.0", "id": "7", "result": {"content": [], "a": "\u2028"}}


async def test_a_trial_forwards_nothing_and_returns_the_given_result() -> None:
    hooks = Hooks((), Settings(), "files", os.environ)
    for given, expected in ((None, Ending.INTERRUPTED), (b"{}", b'{"jsonrpc":"2.0","id":1,"result":{}}\n')):
        router = Router(lambda _tool: True)
        effect = router.from_agent(TrialCall("write").line)
        assert isinstance(effect, actions.StartCall)
        async with anyio.create_task_group() as tasks:
            services = TrialServices(hooks, Settings(), SESSION, router, tasks, given)
            assert await services.forward(effect.call, effect.call.line) == expected
            assert services.approvals.may_ask(effect.call, Settings())
            assert (
                services.agent(),
                services.tool("write"),
                await services.take_feedback(),
                await services.answer_elicitations({}),
            ) == (
                "",
                None,
                (),
                None,
            )


async def test_other_effects_of_a_call_are_remarked_once() -> None:
    hooks = Hooks((stub_group(stub(Event.NOTIFICATION)),), Settings(), "files", os.environ)
    router = Router(lambda _tool: True)
    effect = router.from_agent(TrialCall("write").line)
    assert isinstance(effect, actions.StartCall)
    async with anyio.create_task_group() as tasks:
        services = TrialServices(hooks, Settings(), SESSION, router, tasks, b"{}")
        services.refuse_other_calls(effect.call, Refuse("guard", ""))
        services.report_of_tool("read", "twice")
        services.report_of_tool("read", "twice")
        services.start_hooks(EventContext(Event.NOTIFICATION, SESSION, message="Allow it?"))
    assert services.remarks == ["guard would also deny all other calls that wait for their hooks", "read: twice"]
    assert services.approval_message == "Allow it?"
