"""Why hooks did not run: each reason as a person reads it."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from hookproxy.dialects.dialect import Group
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.hooks import Event, HookSpec
from hookproxy.model.settings import OnFailure, Settings, ToolNames
from hookproxy.trial.run import TrialCall, TrialRunner, plan
from hookproxy.trial.why_not import skipped_hooks
from tests.support.proxy_rig import DIRECT_LOOP, SESSION, group, hook, stub, stub_group

pytestmark = pytest.mark.anyio

PRE, POST, FAILURE, REQUEST = (
    Event.PRE_TOOL_USE,
    Event.POST_TOOL_USE,
    Event.POST_TOOL_USE_FAILURE,
    Event.PERMISSION_REQUEST,
)
DENIES, ASKS = stub(PRE, permission="deny"), stub(PRE, permission="ask")
RESULT = b'{"content":[]}'
ERROR = b'{"content":[],"isError":true}'


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


async def reasons(
    *groups: Group, alone: Event | None = None, result: bytes | None = None, arguments: bytes = b"{}"
) -> list[str]:
    async with TrialRunner(groups, plan(alone, result is not None, Settings()), SESSION, os.environ) as trials:
        trial = await trials.call(TrialCall("write", arguments, result))
        return [one.why for one in skipped_hooks(groups, trials, trial, "write")]


def claw(*hooks: HookSpec) -> Group:
    specs = tuple(replace(one, dialect="claw") for one in hooks)
    return Group(DIALECTS["claw"], "claw.json", specs, ToolNames.BARE)


async def test_a_hook_that_ran_is_not_listed() -> None:
    assert await reasons(group(hook("exit 0"))) == []


CASES: Sequence[tuple[str, Sequence[Group], bytes | None]] = [
    ("its matcher 'other' does not match 'write'", [group(hook("", matcher="other"))], None),
    (
        "its matcher 'write' does not match 'mcp__files__write'",
        [replace(group(hook("", matcher="write")), tool_names=ToolNames.MCP)],
        None,
    ),
    (
        "its matcher 'x' does not match 'write' or 'mcp__files__write'",
        [replace(group(hook("", matcher="x")), match_all_names=True)],
        None,
    ),
    ("its `if` 'other' does not match this call", [group(replace(hook(""), only_if="other"))], None),
    (
        "it is for PostToolUse, and there is no result: give one with --result",
        [group(hook("", POST))],
        None,
    ),
    (
        "it is for SessionEnd, which is not part of this call: try it with --event SessionEnd",
        [group(hook("", Event.SESSION_END))],
        None,
    ),
    (
        "it is for Elicitation, an event of elicitations, which cannot be tried",
        [group(hook("", Event.ELICITATION))],
        None,
    ),
    (
        "it is the same hook as hooks.json: PreToolUse, which runs once",
        [group(hook("exit 0"), replace(hook("exit 0"), source="hooks.json: again"))],
        None,
    ),
    ("the call was not refused", [group(hook("exit 0")), stub_group(stub(Event.PERMISSION_DENIED))], None),
    ("no person would be asked", [group(hook("exit 0")), stub_group(stub(Event.USER_INPUT))], None),
    ("no hook or rule wants a person to be asked", [stub_group(stub(PRE), stub(REQUEST))], None),
    ("no hook or rule applies to the call", [stub_group(stub(REQUEST))], None),
    ("stub refused the call earlier", [stub_group(DENIES), group(hook(""))], None),
    ("stub refused the call earlier", [stub_group(DENIES, stub(REQUEST))], None),
    ("the call was refused before it ran", [stub_group(DENIES, stub(POST))], RESULT),
    ("a person would be asked first", [stub_group(ASKS, stub(POST))], RESULT),
    ("the result is an error", [stub_group(stub(POST))], ERROR),
    ("the result is not an error", [stub_group(stub(FAILURE))], RESULT),
    (
        "an earlier hook of its file refused the call",
        [claw(hook("exit 2"), hook("exit 0"))],
        None,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("why", "groups", "result"), CASES, ids=[f"{number}" for number in range(len(CASES))])
async def test_each_reason_is_explained(why: str, groups: Sequence[Group], result: bytes | None) -> None:
    assert await reasons(*groups, result=result) == [why]


async def test_trying_one_event_is_the_reason_for_hooks_of_other_events() -> None:
    found = await reasons(group(hook("exit 0"), hook("", POST)), alone=POST, result=RESULT)
    assert found == ["it is for PreToolUse, and only PostToolUse is tried"]


async def test_an_unreadable_call_is_the_reason_for_all_hooks() -> None:
    found = await reasons(group(hook("exit 0")), arguments=b'{"a":1,"a":1}')
    assert found == ["the call was refused before any hook ran"]


async def test_a_result_that_is_not_final_is_a_reason() -> None:
    result = b'{"resultType":"input_required","inputRequests":{}}'
    assert await reasons(stub_group(stub(POST)), result=result) == [
        "the final result is not known yet: the call continues in further requests"
    ]


async def test_a_hook_for_every_call_runs_without_a_question() -> None:
    assert await reasons(stub_group(stub(PRE), replace(stub(REQUEST), every_call=True))) == []


async def test_a_failed_hook_that_refuses_is_named() -> None:
    failing = replace(hook("exit 1"), on_failure=OnFailure.DENY)
    assert await reasons(group(failing), stub_group(stub(PRE))) == ["guard refused the call earlier"]
