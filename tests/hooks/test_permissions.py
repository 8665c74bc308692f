"""Permission rules and limits of one layer; `test_evaluate` tests their effect on calls."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from hookproxy.hooks.permissions import Permissions
from hookproxy.hooks.select import HookGroups
from hookproxy.model.aliases import Alias
from hookproxy.model.decision import ApprovalRequest, Decision, Proceed, RefusalCause, Refuse
from hookproxy.model.hooks import AgentState, Event, EventContext, Permission, Verdict
from hookproxy.model.limits import Beyond, Limit, Measure, Per, Within
from hookproxy.model.settings import AgentRule, Settings
from hookproxy.protocol.feedback import refusal_sentence
from tests.support.proxy_rig import SESSION

EVERY_CALL = "it is about every call of this tool"


def permissions(**rules: Any) -> Permissions:  # noqa: ANN401  # tuples of texts, or a flag
    return Permissions(HookGroups((), "my files"), Settings(**rules))


def call(arguments: bytes = b'{"path":"a"}', tool: str = "write") -> EventContext:
    return EventContext(Event.PRE_TOOL_USE, SESSION, tool=tool, arguments=arguments)


async def apply_limits(layer: Permissions, proceed: Proceed, context: EventContext) -> Decision:
    assert layer.limits is not None
    return await layer.limits.count_call(proceed, context)


@pytest.mark.parametrize("name", ["write", "mcp__my_files__write", "mcp__my_files", "wr*"])
def test_a_rule_names_a_tool_by_any_of_its_names(name: str) -> None:
    assert permissions(deny=(name,)).apply_rules(Proceed(), call()) == Refuse(name, EVERY_CALL, cause=RefusalCause.RULE)
    assert permissions(deny=(name,)).concerns("write")
    assert permissions(deny=(name,)).hides("write")
    assert not permissions(deny=(name,), hide_denied=False).hides("write")


def test_a_hooks_approval_request_keeps_its_reason_if_a_rule_asks_too() -> None:
    own = Proceed(approval_request=ApprovalRequest("the hook", "why"))
    assert permissions(ask=("write",)).apply_rules(own, call()) == own
    assert permissions(allow=("write",)).apply_rules(own, call()) == Proceed(asked=True)
    assert permissions().apply_rules(own, call()) is own


@pytest.mark.parametrize("rules", [{"deny": ("Bash(rm *)",)}, {"ask": ("Bash(rm *)",)}])
def test_who_is_asked_about_a_command_that_cannot_be_read_learns_why(rules: dict[str, tuple[str, ...]]) -> None:
    """Otherwise the rule `Bash(rm *)` asks about a line without any `rm`, and nobody knows why."""
    asked = permissions(**rules).apply_rules(Proceed(), call(b'{"command":"eval \\"$X\\""}', tool="Bash"))
    assert isinstance(asked, Proceed)
    assert asked.approval_request is not None
    assert asked.approval_request.reason.startswith(
        "its argument 'command' cannot be read, so it may run such a command"
    )
    plain = permissions(ask=("Bash(rm *)",)).apply_rules(Proceed(), call(b'{"command":"rm x"}', tool="Bash"))
    assert isinstance(plain, Proceed)
    assert plain.approval_request is not None
    assert plain.approval_request.reason == ""


def test_rules_of_hooks_count_for_the_session_and_are_bounded() -> None:
    one = permissions()
    assert not one.approvals.allow(call())
    assert one.approvals.add_allowed_rules(Verdict(allows=("mcp__my_files__write(a)",))).failure == ""
    assert one.approvals.allow(call())
    assert not one.approvals.allow(call(b'{"path":"b"}'))
    many = Verdict(allows=tuple(f"tool{number}" for number in range(1100)))
    assert one.approvals.add_allowed_rules(many).failure == "gave more than 1024 permission rules"
    assert not one.approvals.allow(call(tool="tool1"))
    assert "gave an invalid permission rule" in one.approvals.add_allowed_rules(Verdict(allows=("a b",))).failure


async def test_a_tool_that_a_person_allows_is_allowed_whatever_its_arguments() -> None:
    one = permissions()
    await one.approvals.allow_tool("write")
    assert one.approvals.allow(call(b'{"path":"/etc/passwd"}'))
    assert not one.approvals.allow(call(tool="delete"))


@pytest.mark.parametrize(
    "verdict", [Verdict(failure="failed", allows=("write",)), Verdict(Permission.DENY, allows=("write",))]
)
def test_a_hook_that_failed_or_denies_allows_nothing_else(verdict: Verdict) -> None:
    one = permissions()
    assert one.approvals.add_allowed_rules(verdict) is verdict
    assert not one.approvals.allow(call())


def test_a_tool_cannot_pose_as_one_of_another_server() -> None:
    one = Permissions(HookGroups((), "evil"), Settings(allow=("mcp__github",)))
    one.approvals.add_allowed_rules(Verdict(allows=("mcp__github",)))
    posing = call(tool="mcp__github__wipe")
    assert not one.approvals.allow(posing)
    own = Proceed(approval_request=ApprovalRequest("the hook", "why"))
    assert one.apply_rules(own, posing) == own


BASH = Alias("run", "Bash", {"command": "cmd"})


def aliased(arguments: bytes) -> EventContext:
    return EventContext(Event.PRE_TOOL_USE, SESSION, tool="run", arguments=arguments, alias=BASH)


def of_bash(**rules: Any) -> Permissions:  # noqa: ANN401  # as above
    return Permissions(HookGroups((), "my files", [BASH]), Settings(**rules))


@pytest.mark.parametrize("rule", ["Bash(rm *)", "run(rm *)", "mcp__my_files__run(rm *)", "Bash", "run", "*(rm *)"])
def test_a_call_is_denied_by_either_name_of_its_tool(rule: str) -> None:
    one = of_bash(deny=(rule,))
    assert one.concerns("run")
    assert one.hides("run") is ("(" not in rule)
    refused = one.apply_rules(Proceed(), aliased(b'{"cmd":"rm -rf x"}'))
    assert isinstance(refused, Refuse)
    assert refused == Refuse(rule, refused.reason, cause=RefusalCause.RULE)
    assert (refused.reason == EVERY_CALL) is ("(" not in rule)
    if "(" in rule:
        assert one.apply_rules(Proceed(), aliased(b'{"cmd":"ls"}')) == Proceed()


def test_of_two_names_the_stricter_rule_counts() -> None:
    context = aliased(b'{"cmd":"rm x"}')
    assert isinstance(of_bash(deny=("Bash(rm *)",), allow=("run",)).apply_rules(Proceed(), context), Refuse)
    assert isinstance(of_bash(deny=("run",), allow=("Bash",)).apply_rules(Proceed(), context), Refuse)
    asked = of_bash(ask=("run(rm *)",), allow=("Bash",)).apply_rules(Proceed(), context)
    assert isinstance(asked, Proceed)
    assert asked.approval_request is not None


def test_a_path_rule_is_about_the_argument_that_hooks_know() -> None:
    edit = Alias("change", "Edit", {"file_path": "target"})
    one = Permissions(HookGroups((), "my files", [edit]), Settings(deny=("Edit(/etc/**)",)))

    def decision_on(arguments: bytes) -> object:
        told = EventContext(Event.PRE_TOOL_USE, SESSION, tool="change", arguments=arguments, alias=edit)
        return one.apply_rules(Proceed(), told)

    assert isinstance(decision_on(b'{"target":"/etc/passwd","text":"x"}'), Refuse)
    assert decision_on(b'{"target":"/home/x","text":"about /etc/passwd"}') == Proceed()


def test_a_rule_of_a_hook_for_the_alias_covers_the_call() -> None:
    one = of_bash()
    one.approvals.add_allowed_rules(Verdict(allows=("Bash(ls *)",)))
    assert one.approvals.allow(aliased(b'{"cmd":"ls -l"}'))
    assert not one.approvals.allow(aliased(b'{"cmd":"rm x"}'))


def limited(calls: int = 1, **rules: Any) -> Permissions:  # noqa: ANN401  # as above
    limits = (Limit("Bash", calls, Per.SESSION, "limits[0]"),)
    return Permissions(HookGroups((), "my files", [BASH]), Settings(limits=limits, **rules))


async def test_a_limit_concerns_a_tool_by_its_alias_and_refuses_by_its_key() -> None:
    one = limited()
    assert one
    assert not permissions()
    assert (one.concerns("run"), one.concerns("other"), one.hides("run")) == (True, False, False)
    context, proceed = aliased(b'{"cmd":"ls"}'), Proceed(feedback=("a",))
    assert one.apply_rules(proceed, context) is proceed
    assert await apply_limits(one, proceed, context) is proceed
    refused = Refuse("limits[0]", "no more than 1 call of Bash per session", cause=RefusalCause.LIMIT, feedback=("a",))
    assert one.apply_rules(proceed, context) == await apply_limits(one, proceed, context) == refused
    assert await apply_limits(one, proceed, EventContext(Event.PRE_TOOL_USE, SESSION, tool="other")) is proceed


async def test_a_deny_rule_is_reported_before_a_limit_and_an_allow_rule_lifts_no_limit() -> None:
    one = limited(deny=("Bash(rm *)",), allow=("Bash",))
    await apply_limits(one, Proceed(), aliased(b'{"cmd":"ls"}'))
    denied, refused = (
        one.apply_rules(Proceed(), aliased(b'{"cmd":"rm x"}')),
        one.apply_rules(Proceed(), aliased(b'{"cmd":"ls"}')),
    )
    assert isinstance(denied, Refuse)
    assert isinstance(refused, Refuse)
    assert (denied.cause, refused.cause) == (RefusalCause.RULE, RefusalCause.LIMIT)


def test_a_rule_of_an_agents_settings_file_applies_to_a_tool_with_a_familiar_name() -> None:
    alias = Alias("get_file", "Read", {"file_path": "path"})
    rule = AgentRule("deny", "Read(./.env)", "/repo/s.json:3", ("Read",), "./.env", ("/repo",), ("/repo",))
    one = Permissions(HookGroups((), "my files", [alias]), Settings(agent_rules=(rule,), aliases=(alias,)))
    assert one.concerns("get_file")
    assert not one.hides("get_file")
    denied = EventContext(Event.PRE_TOOL_USE, SESSION, "get_file", arguments=b'{"file_path":"/repo/.env"}', alias=alias)
    place, why = "/repo/s.json:3", "one of the arguments matches it"
    refuse = Refuse("Read(./.env)", why, cause=RefusalCause.RULE, where=place, place=place)
    assert one.apply_rules(Proceed(), denied) == refuse
    other = EventContext(Event.PRE_TOOL_USE, SESSION, "get_file", arguments=b'{"file_path":"/repo/a"}', alias=alias)
    assert one.apply_rules(Proceed(), other) == Proceed()


def test_a_rule_of_a_hook_allows_nothing_by_a_name_that_was_only_recognised() -> None:
    one = permissions()
    one.approvals.add_allowed_rules(Verdict(allows=("Bash(ls:*)",)))
    recognised = Alias("run_it", "Bash", {"command": "cmd"}, automatic=True)
    context = replace(call(b'{"cmd":"ls"}', "run_it"), alias=recognised)
    assert not one.approvals.allow(context)
    assert one.approvals.allow(replace(context, alias=replace(recognised, automatic=False)))


async def test_a_person_who_allows_calls_like_one_allows_those_of_its_tool_only() -> None:
    def ls(tool: str, folder: str) -> EventContext:
        alias = Alias(tool, "Bash", {"command": "cmd"}, automatic=True)
        return replace(call(f'{{"cmd":"ls {folder}"}}'.encode(), tool), alias=alias)

    one = permissions()
    await one.approvals.allow_similar(ls("run_it", "a"), ApprovalRequest("rule", "", rule="Bash(ls:*)"))
    assert one.approvals.allow(ls("run_it", "b"))
    assert not one.approvals.allow(ls("run_elsewhere", "b"))


def beyond(limit: Limit, server: str = "my files") -> Permissions:
    return Permissions(HookGroups((), server), Settings(limits=(limit,), ask=("rm",)))


ASKS = Limit("*", 1, Per.SESSION, "limits[0]", "f:1: limits[0]", beyond=Beyond.ASK)


async def test_a_person_is_asked_about_a_call_beyond_a_limit_that_asks() -> None:
    one = beyond(ASKS)
    assert await apply_limits(one, Proceed(), call()) == Proceed()
    asked = one.apply_rules(Proceed(), call())
    assert isinstance(asked, Proceed)
    why = "more than 1 call per session"
    assert asked.approval_request == ApprovalRequest("limits[0] of hookproxy.toml", why, limits=(ASKS.key,))
    approved = replace(asked, approval_request=None, asked=True)
    assert await apply_limits(one, approved, call()) == approved
    assert one.apply_rules(Proceed(), call()) == asked, "each further call is asked about"


async def test_a_call_that_came_first_takes_the_last_place_and_the_other_is_sent_again() -> None:
    one = beyond(ASKS)
    assert [one.apply_rules(Proceed(), call()) for _ in range(2)] == [Proceed(), Proceed()], "none is counted yet"
    assert await apply_limits(one, Proceed(), call()) == Proceed()
    refused = await apply_limits(one, Proceed(), call())
    assert isinstance(refused, Refuse)
    assert (refused.cause, refused.retry_after) == (RefusalCause.LIMIT, 1)


async def test_one_approval_is_asked_for_a_rule_and_a_limit_and_names_both() -> None:
    one = beyond(ASKS)
    await apply_limits(one, Proceed(), call(tool="rm"))
    asked = one.apply_rules(Proceed(), call(tool="rm"))
    assert isinstance(asked, Proceed)
    assert asked.approval_request is not None
    assert "more than 1 call" in asked.approval_request.reason
    assert "the permission rule rm" in asked.approval_request.reason


async def test_what_is_allowed_for_the_session_says_nothing_of_a_limit_nor_the_other_way_round() -> None:
    one = beyond(ASKS)
    await one.approvals.allow_tool("write")
    assert one.approvals.allow(call())
    assert not one.approvals.allow(call(), [ASKS.key])
    other = beyond(ASKS)
    await other.approvals.allow_tool("write", (ASKS.key,))
    assert not other.approvals.allow(call())
    assert other.approvals.allow(call(), [ASKS.key])
    assert not other.approvals.allow(call(), [ASKS.key, "f:9: limits[1]: calls"]), "nobody was asked about that limit"


async def test_calls_like_one_beyond_a_limit_are_not_offered() -> None:
    request = ApprovalRequest("limits[0]", "", limits=(ASKS.key,))
    context = call(b'{"command":"ls -l"}', tool="Bash")
    assert permissions().approvals.similar_calls(context, replace(request, limits=())) != ""
    assert permissions().approvals.similar_calls(context, request) == ""


async def test_the_model_reads_of_a_call_beyond_a_limit_that_comments() -> None:
    limit = Limit("*", 2, Per.SESSION, "limits[0]", measure=Measure.SAME, window=600.0, beyond=Beyond.COMMENT)
    one = beyond(limit)
    for _ in range(2):
        assert one.apply_rules(Proceed(), call()) == Proceed()
        await apply_limits(one, Proceed(), call())
    commented = one.apply_rules(Proceed(feedback=("a",)), call())
    assert isinstance(commented, Proceed)
    assert commented.approval_request is None
    first, note = commented.feedback
    assert first == "a"
    assert "more than 2 times the same call within 10 minutes" in note
    assert "change your approach" in note
    assert one.apply_rules(commented, call()) == commented, "it is said once, though rules are applied again"


async def test_a_repeated_call_is_refused_with_what_to_do_instead() -> None:
    one = beyond(Limit("*", 1, Per.SESSION, "limits[0]", measure=Measure.SAME, window=600.0))
    await apply_limits(one, Proceed(), call())
    refused = one.apply_rules(Proceed(), call())
    assert isinstance(refused, Refuse)
    sentence = refusal_sentence(refused)
    assert sentence.startswith("Blocked by limits[0] of hookproxy.toml: no more than once the same call within 10 ")
    assert "change your approach" in sentence
    assert "The same call is possible again in 600 seconds." in sentence
    assert one.apply_rules(Proceed(), call(b'{"path":"b"}')) == Proceed()


async def test_a_subagent_has_a_budget_of_its_own() -> None:
    one = beyond(Limit("*", 1, Per.SESSION, "limits[0]", within=Within.SUBAGENT))

    def by(subagent: str) -> EventContext:
        return replace(call(), agent_state=AgentState(agent_id=subagent))

    for context in (by("a"), by("b"), call()):
        assert await apply_limits(one, Proceed(), context) == Proceed()
    assert isinstance(await apply_limits(one, Proceed(), by("")), Refuse), "without a subagent it is the main agent's"
    refused = one.apply_rules(Proceed(), by("b"))
    assert isinstance(refused, Refuse)
    assert refused.reason == "no more than 1 call per session by each subagent"
