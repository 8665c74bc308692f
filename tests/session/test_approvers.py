"""Where only some people approve calls, the agent's user does not: neither in a dialog, nor by a state from before."""

from __future__ import annotations

import json
from typing import Final

import pytest
from msgspec.structs import replace

from hookproxy.model.decision import ApprovalRequest, Proceed, RefusalCause, Refuse
from hookproxy.model.settings import OnAsk, OnFailure, Settings
from hookproxy.policy import decide
from hookproxy.protocol import feedback
from hookproxy.protocol.approval_messages import Approval
from hookproxy.session.approval_details import ApprovalResult
from tests.session.test_approval import (
    ALLOW,
    ASKS,
    accepted,
    answer_to,
    approval_request,
    call,
    handshake,
    stateless,
)
from tests.support.proxy_rig import DIRECT_LOOP, Rig, rig, stub_group

pytestmark = pytest.mark.anyio

APPROVERS: Final = Settings(approvers=("@leads",))


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def text_of(message: object) -> str:
    return str(json.loads(json.dumps(message))["result"]["content"][0]["text"])


def use(one: Rig, settings: Settings) -> None:
    """Put other settings into force, as a reload does."""
    one.proxy._context.policy = replace(one.proxy.policy, settings=settings)
    one.proxy.calls.policies.add(one.proxy.policy)


async def test_an_agent_with_forms_is_not_asked() -> None:
    async with rig(stub_group(ASKS), settings=APPROVERS) as one:
        await handshake(one)
        await one.agent.send(call(1))
        text = text_of(await one.agent.message())
    assert "requires approval by another person (@leads)" in text
    assert "user was asked" not in text
    assert "This agent cannot ask" not in text


async def test_a_stateless_agent_is_not_asked() -> None:
    async with rig(stub_group(ASKS), settings=APPROVERS) as one:
        await one.agent.send(stateless(1))
        response = (await one.agent.message())["result"]
    assert (response["isError"], response["resultType"]) == (True, "complete")


async def test_a_yes_to_a_request_from_before_there_were_approvers_lets_nothing_pass() -> None:
    async with rig(stub_group(ASKS)) as one:
        seal = await approval_request(one)
        use(one, APPROVERS)
        await one.agent.send(stateless(2, inputResponses=accepted(ALLOW), requestState=seal))
        response = (await one.agent.message())["result"]
        assert response["isError"]
        assert await one.finish() == (b"", b"")


async def test_a_yes_in_a_dialog_from_before_there_were_approvers_lets_nothing_pass() -> None:
    async with rig(stub_group(ASKS)) as one:
        await handshake(one)
        await one.agent.send(call(1))
        question = await one.agent.message()
        use(one, APPROVERS)
        await one.agent.send(answer_to(question, ALLOW))
        assert "another person (@leads)" in text_of(await one.agent.message())
        assert await one.finish() == (b"", b"")


@pytest.mark.parametrize(
    "settings",
    [Settings(on_ask=OnAsk.ALLOW), Settings(on_ask=OnAsk.DENY), Settings(on_ask_fallback=OnFailure.ALLOW)],
)
def test_nothing_but_the_answer_of_an_approver_approves(settings: Settings) -> None:
    proceed = Proceed(approval_request=ApprovalRequest("the rule", "sure?"))
    decision = decide.without_person(proceed, replace(settings, approvers=("@leads",)), can_ask=False)
    assert isinstance(decision, Refuse)
    assert decision.approvers == "@leads"


@pytest.mark.parametrize("managed", [Settings(), Settings(on_ask_fallback=OnFailure.ALLOW)])
def test_a_managed_rule_does_not_go_around_the_approvers(managed: Settings) -> None:
    proceed = Proceed(approval_request=ApprovalRequest("the rule", "", managed=True))
    settings = Settings(approvers=("lena",), managed=managed)
    assert isinstance(decide.without_person(proceed, settings, can_ask=False), Refuse)


@pytest.mark.parametrize("approval", [Approval.NO, Approval.NOT_ANSWERED, Approval.NOT_ASKED])
async def test_no_refusal_claims_that_the_user_was_asked(approval: Approval, monkeypatch: pytest.MonkeyPatch) -> None:
    async with rig(stub_group(ASKS), settings=replace(APPROVERS, on_ask=OnAsk.CONSOLE)) as one:
        approvals = one.proxy.calls.approvals
        monkeypatch.setattr(approvals, "has_fallback", lambda *_arguments: True)  # as while a console is open

        async def answered(*_arguments: object) -> ApprovalResult:
            return ApprovalResult(approval, "deny by lena")

        monkeypatch.setattr(approvals, "ask", answered)
        await handshake(one)
        await one.agent.send(call(1))
        text = text_of(await one.agent.message())
    assert "@leads" in text
    assert "user was asked" not in text
    assert "user's approval" not in text


def test_without_approvers_the_sentences_are_about_the_user() -> None:
    proceed = Proceed(approval_request=ApprovalRequest("the rule", ""))
    refuse = decide.declined(proceed, RefusalCause.DECLINED)
    assert "The user was asked and did not allow it" in feedback.refusal_sentence(refuse)
