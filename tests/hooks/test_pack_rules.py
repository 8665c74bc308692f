"""The rules of packs with a default of their own: they only narrow, whatever else there is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hookproxy.dialects.dialect import Group
from hookproxy.dialects.registry import DIALECTS
from hookproxy.hooks.evaluate import Hooks
from hookproxy.hooks.explain import Answer, explain
from hookproxy.model.decision import ApprovalRequest, Decision, Proceed, Refuse
from hookproxy.model.flow import FlowMatch, Sink
from hookproxy.model.hooks import AgentState, Event, EventContext, HookRun, Tool
from hookproxy.model.limits import Beyond, Limit, Per
from hookproxy.model.reported_call import ReportedCall
from hookproxy.model.settings import Settings, ToolNames
from hookproxy.protocol.tool_results import NO_OUTCOME
from tests.support.examples import examples
from tests.support.proxy_rig import SESSION, hook, stub, stub_group

pytestmark = pytest.mark.anyio

PRE: Final = Event.PRE_TOOL_USE
ORDER: Final = ("allow", "ask", "deny")
LIST: Final = Settings(default_permission="deny", allow=("read_*",), called="the pack quiet")


def hooks(settings: Settings, *groups: Group) -> Hooks:
    return Hooks(groups, settings, "files", dict(os.environ))


async def decision(judging: Hooks, tool: str = "write", arguments: bytes = b'{"path":"a"}') -> Decision:
    alias = judging.groups.alias(tool, arguments)
    context = judging.keep_managed_alias(EventContext(PRE, SESSION, tool=tool, arguments=arguments, alias=alias))
    with anyio.fail_after(30):
        return (await judging.run_pre_hooks(context, None, [])).decision


async def decided(judging: Hooks, tool: str = "write", arguments: bytes = b'{"path":"a"}') -> str:
    made = await decision(judging, tool, arguments)
    return "deny" if isinstance(made, Refuse) else "ask" if made.approval_request else "allow"


RULES: Final = st.lists(
    st.sampled_from(["write", "read", "w*", "write(a)", "write(b)", "Read", "Read(a)", "*", "mcp__files__read"]),
    max_size=2,
).map(tuple)
OF_ONE: Final = st.builds(
    Settings,
    deny=RULES,
    ask=RULES,
    allow=RULES,
    default_permission=st.sampled_from(ORDER),
    unreadable=st.sampled_from(ORDER),
)
VERDICTS: Final = st.lists(st.sampled_from([None, *ORDER]), max_size=2)


def groups_of(verdicts: Sequence[str | None]) -> tuple[Group, ...]:
    return tuple(
        stub_group(stub(PRE) if verdict is None else stub(PRE, permission=verdict, reason="why"))
        for verdict in verdicts
    )


@examples(100)
@given(
    own=OF_ONE,
    packs=st.lists(OF_ONE, min_size=1, max_size=2),
    managed=st.none() | OF_ONE,
    verdicts=VERDICTS,
    tool=st.sampled_from(["write", "read", "read_file"]),
    path=st.sampled_from(["a", "b"]),
)
async def test_a_call_is_decided_as_the_strictest_of_the_policy_and_each_pack_would(
    own: Settings, packs: list[Settings], managed: Settings | None, verdicts: list[str | None], tool: str, path: str
) -> None:
    arguments = b'{"path":"%s"}' % path.encode()
    whole = replace(own, managed=managed)
    without = await decided(hooks(whole, *groups_of(verdicts)), tool, arguments)
    alone = [await decided(hooks(pack), tool, arguments) for pack in packs]
    both = await decided(hooks(replace(whole, pack_rules=tuple(packs)), *groups_of(verdicts)), tool, arguments)
    assert both == max((without, *alone), key=ORDER.index)


async def test_the_refusal_says_which_pack_refuses_and_where_it_is_written() -> None:
    of_pack = replace(LIST, rule_places={"default": "/p/hookproxy.toml:2: permissions.default"})
    made = await decision(hooks(Settings(pack_rules=(of_pack,))))
    assert isinstance(made, Refuse)
    assert (made.by, made.where) == ('default = "deny"', "the pack quiet")
    assert made.place == "/p/hookproxy.toml:2: permissions.default"


async def test_what_a_person_allows_for_the_session_does_not_open_a_packs_default() -> None:
    judging = hooks(Settings(ask=("write", "read_it"), pack_rules=(LIST,)))
    asked = await decision(judging, "read_it")
    assert isinstance(asked, Proceed)
    await judging.allow_tool("write", asked.approval_request)
    await judging.allow_tool("read_it", asked.approval_request)
    assert await decided(judging, "write") == "deny"
    assert await decided(judging, "read_it") == "allow"


async def test_what_a_person_allows_for_the_session_answers_what_a_pack_asks() -> None:
    judging = hooks(Settings(pack_rules=(Settings(default_permission="ask"),)))
    asked = await decision(judging)
    assert isinstance(asked, Proceed)
    assert asked.approval_request is not None
    assert not asked.approval_request.managed
    await judging.allow_tool("write", asked.approval_request)
    assert await decided(judging) == "allow"


async def test_an_approval_beyond_a_limit_answers_nothing_that_a_pack_asks() -> None:
    limit = Limit("write", 1, Per.SESSION, "limits[0]", "f:1: limits[0]", beyond=Beyond.ASK)
    of_a = Settings(default_permission="ask", allow=("write(a)",))
    judging = hooks(Settings(limits=(limit,), pack_rules=(of_a,)))
    await judging.apply_limits(Proceed(), EventContext(PRE, SESSION, tool="write", arguments=b"{}"))
    request = _request(await decision(judging))
    assert request.is_about_limits_alone
    await judging.allow_tool("write", request)
    assert await decided(judging) == "allow"
    other = _request(await decision(judging, arguments=b'{"path":"b"}'))
    assert not other.limits, "that is answered, and what the pack asks is not"


def _request(made: Decision) -> ApprovalRequest:
    assert isinstance(made, Proceed)
    assert made.approval_request is not None
    return made.approval_request


def of_pack(permission: str) -> Group:
    return narrowing(stub_group(stub(PRE, permission=permission, reason="the pack says so")))


def narrowing(group: Group) -> Group:
    hooks = tuple(replace(spec, only_narrows=True) for spec in group.hooks)
    return replace(group, hooks=hooks, source="pack.toml")


async def test_a_pack_that_asks_does_not_open_a_default() -> None:
    settings = Settings(default_permission="deny")
    assert await decided(hooks(replace(settings, pack_rules=(Settings(ask=("write",)),)))) == "deny"
    assert await decided(hooks(settings, of_pack("ask"))) == "deny"
    own = stub_group(stub(PRE, permission="ask", reason="mine"))
    assert await decided(hooks(settings, own)) == "ask", "a hook of the user's own does"
    made = await decision(hooks(settings, of_pack("ask"), own))
    assert (_request(made).reason, _request(made).only_narrows) == ("mine\nthe pack says so", False)


async def test_what_the_users_rule_asks_is_what_calls_like_this_one_are() -> None:
    rules = Settings(ask=("write(a)",), pack_rules=(Settings(ask=("write(*)",)),))
    judging = hooks(rules, of_pack("ask"))
    request = _request(await decision(judging))
    assert request.rule == "write(a)"
    assert request.reason == "the pack says so"


async def test_an_approval_beyond_a_limit_answers_nothing_that_a_rule_asks() -> None:
    limit = Limit("write", 1, Per.SESSION, "limits[0]", "f:1: limits[0]", beyond=Beyond.ASK)
    judging = hooks(Settings(limits=(limit,), ask=("write(b)",)))
    await judging.apply_limits(Proceed(), EventContext(PRE, SESSION, tool="write", arguments=b"{}"))
    await judging.allow_tool("write", _request(await decision(judging)))
    assert await decided(judging) == "allow"
    both = _request(await decision(judging, arguments=b'{"path":"b"}'))
    assert both.limits
    await judging.allow_tool("write", both)
    assert await decided(judging, arguments=b'{"path":"b"}') == "allow", "both were asked"


async def test_a_rewrite_is_judged_by_a_pack_as_it_will_be_sent() -> None:
    of_pack = Settings(default_permission="deny", allow=("write(a)",))
    rewriting = stub_group(stub(PRE, permission="allow", arguments={"path": "b"}))
    assert await decided(hooks(Settings(pack_rules=(of_pack,)))) == "allow"
    assert await decided(hooks(Settings(pack_rules=(of_pack,)), rewriting)) == "deny"


async def test_tools_that_a_pack_leaves_to_nobody_are_hidden() -> None:
    allowing = stub_group(stub(PRE, permission="allow"))
    judging = hooks(Settings(pack_rules=(LIST,)), allowing)
    assert [judging.hides(tool) for tool in ("write", "read_it")] == [True, False]
    assert judging.concerns("write")
    assert judging.has_rules
    shown = hooks(Settings(hide_denied=False, pack_rules=(LIST,)))
    assert not shown.hides("write")


async def test_a_call_that_was_reported_elsewhere_is_judged_by_packs_again() -> None:
    judging = hooks(Settings(pack_rules=(LIST,)))
    context = EventContext(PRE, SESSION, tool="write", arguments=b"{}")
    assert isinstance(await judging.judge_again(context, None, ReportedCall("s", "/", "/", "t", AgentState())), Refuse)


async def test_sinks_of_data_stand_beside_packs() -> None:
    sink = Sink(FlowMatch(tools=("write",)), ("x",), "flow.sinks[0]")
    judging = hooks(Settings(flow_sinks=(sink,), pack_rules=(LIST,)))
    assert await decided(judging, "read_it") == "allow"
    assert await decided(judging, "write") == "deny"


def test_explain_says_what_packs_decide() -> None:
    settings = Settings(allow=("write",), pack_rules=(LIST,))
    write, read = explain((), settings, "files", [Tool("write"), Tool("read_it")])
    assert (write.decision, write.is_hidden) == (Answer.DENY, True)
    assert (read.decision, read.is_hidden) == (Answer.ALLOW, False)


async def test_no_call_is_repeated_because_a_hook_of_a_pack_wants_it() -> None:
    post = Event.POST_TOOL_USE_FAILURE
    context = EventContext(post, SESSION, tool="write", arguments=b"{}", outcome=NO_OUTCOME)
    repeating = stub_group(stub(post, retry=True))
    for group, repeats in ((repeating, True), (narrowing(repeating), False)):
        runs: list[HookRun] = []
        await hooks(Settings(), group).run_post_hooks(context, runs)
        assert [run.verdict.retry for run in runs] == [repeats]


async def test_variables_that_a_pack_sets_are_for_its_own_hooks() -> None:
    sets = replace(
        hook('echo \'{"env": {"EVIL": "x"}}\'', Event.SESSION_START), dialect="cursor", event_name="sessionStart"
    )
    shows = replace(
        hook('echo "{\\"permission\\": \\"deny\\", \\"agent_message\\": \\"<$EVIL>\\"}"'),
        dialect="cursor",
        event_name="beforeMCPExecution",
    )
    pack = narrowing(Group(DIALECTS["cursor"], "pack.toml", (sets, shows), ToolNames.BARE))
    own = Group(DIALECTS["cursor"], "own.toml", (shows,), ToolNames.BARE)
    start = EventContext(Event.SESSION_START, SESSION)
    for groups, said in (((pack, own), "<x>"), ((own, pack), "<>"), ((replace(own, hooks=(sets, shows)),), "<x>")):
        judging = hooks(Settings(), *groups)
        await judging.run_event_hooks(start)
        made = await decision(judging)
        assert isinstance(made, Refuse)
        assert made.reason == said
