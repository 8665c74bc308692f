"""What an agent cannot express never lets a call pass that a hook wanted changed, shown to a person or refused."""

from __future__ import annotations

from functools import reduce
from operator import or_

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.convert import hook_decision as decisions
from hookproxy.dialects.agent_side import Can, HookDecision
from hookproxy.model.decision import ApprovalRequest, Comments, Proceed, RefusalCause, Refuse
from hookproxy.model.hooks import Ended, Event, HookResult, HookRun, Permission, Verdict
from tests.support.proxy_rig import hook


def run(verdict: Verdict, event: Event = Event.PRE_TOOL_USE) -> HookRun:
    return HookRun(hook("guard", event), HookResult(Ended.EXITED), verdict)


def test_a_denial_keeps_the_hooks_own_reason() -> None:
    assert decisions.before_call(Refuse("guard", "no rm"), []) == HookDecision(Permission.DENY, "no rm")


def test_a_failure_that_blocks_says_that_the_hook_failed() -> None:
    refuse = Refuse("guard", "crashed", cause=RefusalCause.FAILED_CLOSED)
    found = decisions.before_call(refuse, [])
    assert found.permission is Permission.DENY
    assert "the PreToolUse hook guard failed: crashed" in found.reason


def test_a_call_is_only_allowed_if_a_hook_allows_it() -> None:
    assert decisions.before_call(Proceed(), []) == HookDecision()
    allowing = [run(Verdict(permission=Permission.ALLOW))]
    assert decisions.before_call(Proceed(), allowing).permission is Permission.ALLOW
    asking = Proceed(approval_request=ApprovalRequest("guard", "sure?"))
    assert decisions.before_call(asking, allowing) == HookDecision(Permission.ASK, "sure?")


def test_rewritten_arguments_are_on_one_line() -> None:
    assert decisions.before_call(Proceed(b'{\n "a":\r 1}'), []).arguments == b'{  "a":  1}'


def test_a_hidden_output_is_replaced_by_a_sentence() -> None:
    found = decisions.after_call(Comments(hidden_by="redact"), [])
    assert found.permission is Permission.DENY
    assert "the hook redact hides its output" in found.reason
    assert found.replacement is not None


def test_where_no_hook_can_have_the_person_asked_the_call_is_refused() -> None:
    found, problems = decisions.within(HookDecision(Permission.ASK, "sure?"), Can.REWRITE, "codex")
    assert found.permission is Permission.DENY
    assert found.reason.startswith("sure?\nA person must approve this call, but codex does not let hooks ask")
    assert len(problems) == 1


def test_where_no_hook_can_rewrite_the_call_is_refused() -> None:
    found, _ = decisions.within(HookDecision(arguments=b"{}"), Can.ASK, "cascade")
    assert (found.permission, found.arguments) == (Permission.DENY, None)


def test_where_arguments_are_merged_a_hook_cannot_remove_one() -> None:
    kept = HookDecision(arguments=b'{"a":2,"b":1}')
    assert decisions.without_removals(kept, b'{"a":1}', "droid") is kept
    found = decisions.without_removals(HookDecision(arguments=b'{"a":2}'), b'{"a":1,"b":2}', "droid")
    assert found.permission is Permission.DENY
    assert "'b'" in found.reason


def test_feedback_that_has_no_place_becomes_a_reason_or_is_reported() -> None:
    told = HookDecision(feedback="look")
    assert decisions.within_after(told, Can.BLOCK_AFTER, "x")[0] == HookDecision(Permission.DENY, "look")
    found, problems = decisions.within_after(told, Can.NOTHING, "cascade")
    assert found == HookDecision()
    assert problems == ["cascade does not pass on what hooks tell the model after a call: look"]


def test_feedback_before_a_call_is_reported_or_becomes_part_of_the_reason() -> None:
    found, problems = decisions.within(HookDecision(feedback="look"), Can.NOTHING, "gemini")
    problem = "gemini does not pass on what hooks tell the model before a call: look"
    assert (found, problems) == (HookDecision(), [problem])
    assert decisions.within(HookDecision(Permission.DENY, "no", feedback="look"), Can.NOTHING, "gemini") == (
        HookDecision(Permission.DENY, "no\n\nlook"),
        [],
    )


CANS = st.lists(st.sampled_from(list(Can)), unique=True).map(lambda some: reduce(or_, some, Can.NOTHING))
DECISIONS = st.builds(
    HookDecision,
    st.sampled_from([None, *Permission]),
    st.sampled_from(["", "why"]),
    st.sampled_from([None, b'{"a":1}']),
    st.sampled_from(["", "text"]),
    st.sampled_from([None, b'"other"']),
)


@given(DECISIONS, CANS)
def test_an_agent_gets_only_what_it_can_express_and_never_more_than_the_hook_allowed(
    decision: HookDecision, can: Can
) -> None:
    found, _ = decisions.within(decision, can, "x")
    assert found.permission is not Permission.ASK or Can.ASK in can
    assert found.arguments is None or found.permission is Permission.DENY or Can.REWRITE in can
    restricted = decision.permission in (Permission.ASK, Permission.DENY) or decision.arguments is not None
    passes_freely = found.permission in (None, Permission.ALLOW) and found.arguments is None
    assert not (restricted and passes_freely)
    after, _ = decisions.within_after(decision, can, "x")
    assert after.replacement is None or Can.REPLACE in can
    assert not after.feedback or Can.TELL_AFTER in can


@pytest.mark.parametrize(
    ("permissions", "permission"),
    [
        ((Permission.ALLOW, Permission.DENY, None), Permission.DENY),
        ((Permission.ALLOW, Permission.ASK), Permission.ASK),
        ((Permission.ALLOW, Permission.ALLOW), Permission.ALLOW),
        ((Permission.ALLOW, None), None),
        ((None, None), None),
    ],
)
def test_a_call_of_several_parts_is_allowed_only_if_each_part_is(
    permissions: tuple[Permission | None, ...], permission: Permission | None
) -> None:
    assert decisions.combined([HookDecision(one) for one in permissions]).permission is permission


def test_a_call_of_several_parts_keeps_what_each_part_says_once() -> None:
    parts = [
        HookDecision(feedback="a", message="m"),
        HookDecision(Permission.DENY, "no", feedback="b"),
        HookDecision(feedback="a"),
    ]
    assert decisions.combined(parts) == HookDecision(Permission.DENY, "no", feedback="a\n\nb", message="m")
    assert decisions.combined([HookDecision(arguments=b"{}"), HookDecision(stop=True)]) == HookDecision(
        arguments=b"{}", stop=True
    )
