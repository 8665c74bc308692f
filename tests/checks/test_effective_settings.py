"""The effect of a hook's failure, and findings about matchers, rules, timeouts and aliases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from hookproxy.checks.effective_settings import (
    alias_remarks,
    failure_effect,
    is_awaited,
    matching_only_aliases,
    never_matching,
    never_matching_if,
    suspicious_timeout,
)
from hookproxy.checks.report import ConfiguredHook, FailureEffect
from hookproxy.dialects.dialect import Group
from hookproxy.dialects.own import OWN
from hookproxy.dialects.registry import DIALECTS
from hookproxy.model.aliases import Alias
from hookproxy.model.decision import Refuse
from hookproxy.model.hooks import Ended, Event, HookResult, HookRun, HookSpec, Verdict
from hookproxy.model.settings import OnFailure, Settings, ToolNames
from hookproxy.policy import decide, matchers
from hookproxy.policy.presets import PRESETS

SPEC: Final = HookSpec(dialect="claude", source="x", event=Event.PRE_TOOL_USE, label="x", shell="true", timeout=5)
CLAUDE: Final = Group(DIALECTS["claude"], "x", (SPEC,), ToolNames.MCP)
BARE: Final = replace(CLAUDE, tool_names=ToolNames.BARE)
OURS: Final = Group(OWN, "x", (SPEC,), ToolNames.BARE, match_all_names=True)

ALLOW, DENY, DIALECT = OnFailure.ALLOW, OnFailure.DENY, OnFailure.DIALECT


def hook(spec: HookSpec = SPEC, group: Group = CLAUDE, rule: OnFailure = DIALECT, auto: bool = False) -> ConfiguredHook:
    """A hook with the settings; `auto`: tools get familiar names."""
    return ConfiguredHook(spec, group, Settings(on_failure=rule, auto_aliases=auto), {})


def matched(matcher: str, group: Group = CLAUDE, event: Event = Event.PRE_TOOL_USE) -> list[str]:
    """The findings about a matcher with the rules of Claude Code."""
    spec = replace(SPEC, matcher=matcher, matches=matchers.claude_matcher(matcher), event=event)
    return list(never_matching(hook(spec, group)))


def matched_as(matches: Callable[[str], bool], matcher: str, group: Group) -> list[str]:
    return list(never_matching(hook(replace(SPEC, matcher=matcher, matches=matches), group)))


@pytest.mark.parametrize("event", [Event.PRE_TOOL_USE, Event.PERMISSION_REQUEST])
@pytest.mark.parametrize(("fails_closed", "wanted"), [(False, FailureEffect.CONTINUE), (True, FailureEffect.BLOCK)])
def test_before_a_call_a_failure_blocks_where_the_hook_fails_closed(
    event: Event, fails_closed: bool, wanted: FailureEffect
) -> None:
    spec = replace(SPEC, event=event, fails_closed=fails_closed)
    assert failure_effect(hook(spec)) is wanted
    assert failure_effect(hook(spec, rule=DENY)) is FailureEffect.BLOCK
    assert failure_effect(hook(spec, rule=ALLOW)) is FailureEffect.CONTINUE


@pytest.mark.parametrize("event", [Event.POST_TOOL_USE, Event.POST_TOOL_USE_FAILURE])
@pytest.mark.parametrize(
    ("fails_closed", "withholds", "wanted"),
    [
        (False, False, FailureEffect.CONTINUE),
        (True, False, FailureEffect.INFORM_MODEL),
        (False, True, FailureEffect.WITHHOLD),
        (True, True, FailureEffect.WITHHOLD),
    ],
)
def test_after_a_call_a_failure_may_withhold_the_result(
    event: Event, fails_closed: bool, withholds: bool, wanted: FailureEffect
) -> None:
    spec = replace(SPEC, event=event, fails_closed=fails_closed, withholds=withholds)
    assert failure_effect(hook(spec)) is wanted
    assert failure_effect(hook(spec, rule=DENY)) is FailureEffect.WITHHOLD
    assert failure_effect(hook(spec, rule=ALLOW)) is FailureEffect.CONTINUE


def test_on_failure_of_a_hook_beats_its_file_which_beats_the_configuration() -> None:
    spec, group = replace(SPEC, on_failure=ALLOW), replace(CLAUDE, on_failure=DENY)
    assert failure_effect(hook(SPEC, group, ALLOW)) is FailureEffect.BLOCK
    assert failure_effect(hook(spec, group, DENY)) is FailureEffect.CONTINUE


@pytest.mark.parametrize("event", [Event.SESSION_START, Event.SESSION_END, Event.PERMISSION_DENIED])
def test_at_other_events_a_failure_has_no_effect(event: Event) -> None:
    assert failure_effect(hook(replace(SPEC, event=event, fails_closed=True), rule=DENY)) is FailureEffect.CONTINUE


def test_a_failure_of_a_background_hook_has_no_effect() -> None:
    assert failure_effect(hook(replace(SPEC, background=True, fails_closed=True), rule=DENY)) is FailureEffect.CONTINUE


def test_background_hooks_and_hooks_of_past_events_are_not_awaited() -> None:
    awaited = {event for event in Event if is_awaited(hook(replace(SPEC, event=event)))}
    assert {event.value for event in awaited} == {
        "PreToolUse", "PreMcpToolCall", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "SessionStart",
        "SessionEnd", "Elicitation", "ElicitationResult",
    }  # fmt: skip
    assert not any(is_awaited(hook(replace(SPEC, event=event, background=True))) for event in Event)


@pytest.mark.parametrize("rule", list(OnFailure))
@pytest.mark.parametrize("group_rule", [None, *OnFailure])
@pytest.mark.parametrize("own_rule", [None, *OnFailure])
@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("withholds", [False, True])
def test_the_reported_effect_is_what_the_policy_does(
    rule: OnFailure, group_rule: OnFailure | None, own_rule: OnFailure | None, closed: bool, withholds: bool
) -> None:
    spec = replace(SPEC, on_failure=own_rule, fails_closed=closed, withholds=withholds)
    group = replace(CLAUDE, on_failure=group_rule)
    after = replace(spec, event=Event.POST_TOOL_USE)

    def failed(one: HookSpec) -> Sequence[HookRun]:
        return [HookRun(one, HookResult(Ended.EXITED, 1), Verdict(failure="it crashed"))]

    decided = decide.decide(failed(spec), Settings(rule), group_rule)
    assert isinstance(decided, Refuse) == (failure_effect(hook(spec, group, rule)) is FailureEffect.BLOCK)
    comments = decide.comments(failed(after), Settings(rule), group_rule)
    effect = failure_effect(hook(after, group, rule))
    assert (bool(comments.withheld), bool(comments.noted)) == (
        effect is FailureEffect.WITHHOLD,
        effect is FailureEffect.INFORM_MODEL,
    )


@pytest.mark.parametrize("group", [CLAUDE, BARE, OURS], ids=["mcp", "bare", "own"])
def test_a_matcher_with_only_a_server_name_never_matches(group: Group) -> None:
    assert matched("mcp__memory", group) == [
        "matcher 'mcp__memory' never matches mcp__memory's tools: write mcp__memory__.*"
    ]
    assert len(matched("mcp__a|Bash,mcp__b", group)) == 2
    assert matched("mcp__memory__.*", OURS) == []


def test_a_matcher_of_a_dialect_that_matches_by_server_has_no_finding() -> None:
    assert matched_as(lambda name: name.startswith("mcp__memory"), "mcp__memory", CLAUDE) == []


@pytest.mark.parametrize("matcher", ["Bash", "Edit|Write", "Bash, Edit"])
def test_a_bare_name_never_matches_mcp_names(matcher: str) -> None:
    text = f'matcher {matcher!r} never matches: hooks of this file see mcp__SERVER__TOOL, unless tool_names is "bare"'
    assert matched(matcher) == [text]
    assert matched(matcher, BARE) == matched(matcher, OURS) == []


@pytest.mark.parametrize("matcher", ["mcp__git__commit", "^mcp__git__.*", "mcp__a__b|mcp__c__.*"])
def test_an_mcp_name_never_matches_bare_names(matcher: str) -> None:
    assert matched(matcher, BARE) == [f"matcher {matcher!r} never matches: hooks of this file see only TOOL"]
    assert matched(matcher) == matched(matcher, OURS) == []


@pytest.mark.parametrize("matcher", ["", "*", ".*", "Bash|mcp__git__commit", "Notebook.*", "git_commit$", "mcp__.*|.*"])
def test_a_matcher_that_may_match_has_no_finding(matcher: str) -> None:
    assert matched(matcher) == matched(matcher, BARE) == matched(matcher, OURS) == []


@pytest.mark.parametrize("matcher", ["Bash", "Edit|Write", "^Read$|WebFetch", "Grep, Glob", "LS", "MultiEdit"])
def test_a_familiar_name_may_match_where_tools_get_such_names_and_is_remarked(matcher: str) -> None:
    spec = replace(SPEC, matcher=matcher, matches=matchers.claude_matcher(matcher))
    assert list(never_matching(hook(spec, auto=True))) == []
    remarks = list(matching_only_aliases(hook(spec, auto=True)))
    assert len(remarks) == (0 if matcher.startswith("^") else 1)  # what a regular expression matches is not known
    assert all(text.startswith("it runs only for tools that are known as ") for text in remarks)
    assert list(matching_only_aliases(hook(spec, OURS, auto=True))) == []


def test_a_remark_on_familiar_names_lists_those_that_the_matcher_matches() -> None:
    spec = replace(SPEC, matcher="Edit|Write|Task", matches=matchers.claude_matcher("Edit|Write|Task"))
    (text,) = matching_only_aliases(hook(spec, auto=True))
    assert text.startswith("it runs only for tools that are known as Write or Edit: ")


@pytest.mark.parametrize("matcher", ["Task", "TodoWrite|NotebookEdit", "ExitPlanMode"])
def test_other_tools_of_claude_code_never_match_even_where_tools_get_familiar_names(matcher: str) -> None:
    spec = replace(SPEC, matcher=matcher, matches=matchers.claude_matcher(matcher))
    assert len(list(never_matching(hook(spec, auto=True)))) == 1
    assert list(matching_only_aliases(hook(spec, auto=True))) == []


def test_managed_hooks_have_the_managed_setting_of_familiar_names() -> None:
    spec = replace(SPEC, matcher="Bash", matches=matchers.claude_matcher("Bash"))
    settings = Settings(auto_aliases=False, managed=Settings(auto_aliases=True))
    assert list(never_matching(ConfiguredHook(spec, replace(CLAUDE, managed=True), settings, {}))) == []
    assert len(list(never_matching(ConfiguredHook(spec, CLAUDE, settings, {})))) == 1


def test_an_if_with_a_familiar_name_may_match_where_tools_get_such_names() -> None:
    assert list(never_matching_if(hook(replace(SPEC, only_if="Bash(rm *)"), auto=True))) == []
    assert len(list(never_matching_if(hook(replace(SPEC, only_if="Task(rm *)"), auto=True)))) == 1


def test_a_search_within_the_name_has_no_finding() -> None:
    assert matched_as(lambda name: "Bash" in name, "Bash", CLAUDE) == []
    assert matched_as(lambda name: True, "mcp__git__commit", BARE) == []


def test_matchers_of_sessions_are_not_tried_on_tools() -> None:
    assert matched("startup", event=Event.SESSION_START) == []
    assert matched("mcp__memory", event=Event.SESSION_END) == []


@pytest.mark.parametrize(
    ("rule", "group", "text"),
    [
        ("Bash(git *)", CLAUDE, 'hooks of this file see mcp__SERVER__TOOL, unless tool_names is "bare"'),
        ("Bash", CLAUDE, 'hooks of this file see mcp__SERVER__TOOL, unless tool_names is "bare"'),
        ("mcp__git__commit(x)", BARE, "hooks of this file see only TOOL"),
        ("mcp__git__commit(x)", OURS, "hooks of this file see only TOOL"),
    ],
)
def test_an_if_with_the_other_kind_of_tool_name_never_matches(rule: str, group: Group, text: str) -> None:
    assert list(never_matching_if(hook(replace(SPEC, only_if=rule), group))) == [f"`if` {rule!r} never matches: {text}"]


@pytest.mark.parametrize(
    ("rule", "group"),
    [("", CLAUDE), ("mcp__git", CLAUDE), ("mcp__git__commit(x)", CLAUDE), ("*(x)", CLAUDE), ("commit(x)", BARE)],
)
def test_an_if_that_may_match_has_no_finding(rule: str, group: Group) -> None:
    assert list(never_matching_if(hook(replace(SPEC, only_if=rule), group))) == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.05, "a timeout of 0.05 seconds is too short for a program to answer: is another unit meant?"),
        (5000, "a timeout of 5000 seconds is longer than agents wait for a call: are milliseconds meant?"),
        (1000, "a timeout of 1000 seconds is longer than agents wait for a call: are milliseconds meant?"),
    ],
)
def test_a_timeout_in_another_unit_is_a_finding(seconds: float, text: str) -> None:
    assert list(suspicious_timeout(hook(replace(SPEC, timeout=seconds)))) == [text]


@pytest.mark.parametrize("seconds", [0.1, 1.5, 60, 600, 999])
def test_an_ordinary_timeout_has_no_finding(seconds: float) -> None:
    assert list(suspicious_timeout(hook(replace(SPEC, timeout=seconds)))) == []


def test_a_long_timeout_of_a_background_hook_or_a_default_has_no_finding() -> None:
    long = replace(SPEC, timeout=7200)
    assert list(suspicious_timeout(hook(replace(long, background=True)))) == []
    group = replace(CLAUDE, dialect=replace(CLAUDE.dialect, default_timeout=7200))
    assert list(suspicious_timeout(hook(long, group))) == []


def test_a_matcher_and_an_if_that_name_an_alias_have_no_finding() -> None:
    aliased = Settings(aliases=(Alias("run", "Bash"), Alias("quiet", "", {"path": "p"})), auto_aliases=False)
    for matcher, rule, group in (
        ("Bash|Edit", "Bash(rm *)", CLAUDE),
        ("^Bash$", "Bash", CLAUDE),
        ("Bash", "Bash", BARE),
    ):
        spec = replace(SPEC, matcher=matcher, matches=matchers.claude_matcher(matcher), only_if=rule)
        one = ConfiguredHook(spec, group, aliased, {})
        assert [*never_matching(one), *never_matching_if(one)] == []
        if group is CLAUDE and matcher != "^Bash$":
            assert len([*never_matching(hook(spec, group)), *never_matching_if(hook(spec, group))]) == 2


# --- aliases ---


def alias_texts(*aliases: Alias) -> list[str]:
    return [one.text for one in alias_remarks(Settings(aliases=aliases))]


def test_an_alias_that_is_the_name_of_another_tool_is_remarked() -> None:
    assert alias_texts(Alias("run", "Bash"), Alias("do", "Bash")) == []
    (text,) = alias_texts(Alias("run", "write"), Alias("write", "Write"))
    assert text == "hooks see run as write, which is also another tool's name: hooks for one run for both"
    assert alias_texts(Alias("write", "write")) == []


def test_a_preset_lists_the_tools_that_it_does_not_rename() -> None:
    texts = alias_texts(*(replace(one, preset="filesystem") for one in PRESETS["filesystem"].tools))
    assert texts[0].startswith(
        "preset filesystem: hooks see these tools of @modelcontextprotocol/server-filesystem under"
    )
    assert "read_multiple_files" in texts[0]


def test_a_preset_lists_what_is_spelled_differently() -> None:
    texts = alias_texts(*(replace(one, preset="text-editor") for one in PRESETS["text-editor"].tools))
    assert "patches have `start`, `end` and `contents`" in texts[1]
