"""Which hooks are selected for an event, and under which tool names."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from hookproxy.dialects.dialect import Group
from hookproxy.dialects.registry import DIALECTS
from hookproxy.hooks import select
from hookproxy.hooks.select import HookGroups
from hookproxy.jsonrpc.raw_json import Unreadable
from hookproxy.model.aliases import Alias, ToolSpelling, with_command_line
from hookproxy.model.hooks import Event, EventContext, HookSpec
from hookproxy.model.settings import OnFailure, SeenNames, ToolNames
from tests.support.proxy_rig import SESSION, group, hook, stub, stub_group

PRE, POST = Event.PRE_TOOL_USE, Event.POST_TOOL_USE


def groups(*each: Group) -> HookGroups:
    return HookGroups(each, "my files")


def test_hooks_before_and_after_a_call_concern_its_tool() -> None:
    hook_groups = groups(group(hook("true", matcher="write"), hook("true", POST, matcher="read")))
    assert hook_groups
    assert (hook_groups.concerns("write"), hook_groups.concerns("read"), hook_groups.concerns("list")) == (
        True,
        True,
        False,
    )
    assert (hook_groups.has_post_hooks_for("write"), hook_groups.has_post_hooks_for("read")) == (False, True)
    assert (hook_groups.has_hooks_for(PRE), hook_groups.has_hooks_for(Event.SESSION_START)) == (True, False)
    nobody = groups()
    assert not nobody
    assert not nobody.concerns("write")


@pytest.mark.parametrize(
    "event",
    [
        Event.ERROR_OCCURRED,
        Event.STOP,
        Event.ELICITATION,
        Event.ELICITATION_RESULT,
        Event.NOTIFICATION,
        Event.USER_INPUT,
    ],
)
def test_a_hook_of_an_event_that_any_call_may_cause_concerns_every_call(event: Event) -> None:
    assert groups(stub_group(stub(event))).concerns("anything")


def test_permission_request_hooks_concern_calls_only_if_they_run_on_every_call() -> None:
    one = stub(Event.PERMISSION_REQUEST)
    assert not groups(stub_group(one)).concerns("write")
    assert groups(stub_group(replace(one, every_call=True))).concerns("write")


def test_which_hooks_observe_elicitations() -> None:
    assert groups(stub_group(stub(Event.USER_INPUT))).observes_elicitations
    assert not groups(stub_group(stub(Event.STOP))).observes_elicitations


@pytest.mark.parametrize(
    ("names", "both", "matcher", "seen"),
    [
        (ToolNames.MCP, False, "mcp__my_files__.*", "mcp__my_files__write"),
        (ToolNames.MCP, False, "write", None),
        (ToolNames.BARE, False, "write", "write"),
        (ToolNames.BARE, False, "mcp__my_files__write", None),
        (ToolNames.BARE, True, "mcp__my_files__write", "write"),
        (ToolNames.BARE, True, "write", "write"),
    ],
)
def test_a_group_sees_a_tool_under_the_name_it_expects(
    names: ToolNames, both: bool, matcher: str, seen: str | None
) -> None:
    one = replace(group(hook("true", matcher=matcher)), tool_names=names, match_all_names=both)
    hook_groups = groups(one)
    assert hook_groups.concerns("write") is (seen is not None)
    assert hook_groups.first_tool_name("write", None) == (seen or "write")
    assert [one.hooks[0].tool_name for one in hook_groups.select(PRE, "write", None)] == ([seen] if seen else [])


def test_matchers_of_tool_events_are_tried_on_the_tool_and_others_on_the_trigger() -> None:
    start = Event.SESSION_START
    hook_groups = groups(
        group(hook("true", start, matcher="startup"), hook("echo", start, matcher="resume"), hook(":", start)),
        group(hook("true", Event.PERMISSION_DENIED, matcher="write"), hook(":", Event.PERMISSION_DENIED, "read")),
    )
    (selected,) = hook_groups.select_for(EventContext(start, SESSION, trigger="startup"))
    assert [one.spec.matcher for one in selected.hooks] == ["startup", ""]
    (selected,) = hook_groups.select_for(EventContext(Event.PERMISSION_DENIED, SESSION, tool="write", trigger="read"))
    assert [one.spec.matcher for one in selected.hooks] == ["write"]


def test_the_cache_of_tools_is_bounded() -> None:
    hook_groups = groups(group(hook("true", matcher="write")))
    for number in range(10_000):
        hook_groups.concerns(f"tool{number}")
    assert len(hook_groups._selected) <= 4096 + 3
    assert hook_groups.concerns("write")


def test_rules_of_earlier_policies_do_not_fill_memory() -> None:
    for number in range(5000):
        select._permission_rule(f"x{number}")
    assert select._permission_rule.cache_info().currsize < 5000


def test_an_agent_that_runs_these_hooks_itself_is_known() -> None:
    hook_groups = groups(group(hook("true")))
    assert hook_groups.sources_run_by("some-agent 1.0") == []
    assert hook_groups.sources_run_by("claude-codex 1.0") == []
    for agent in DIALECTS["claude"].agents:
        assert hook_groups.sources_run_by(agent) == hook_groups.sources_run_by(f"{agent} 2.1") == ["hooks.json"]
    docker = replace(group(hook("true")), dialect=replace(DIALECTS["claude"], agents=("docker agent",)))
    assert groups(docker).sources_run_by("docker agent 1.2") == ["hooks.json"]


@pytest.mark.parametrize(
    "stricter",
    [
        {"fails_closed": True},
        {"withholds": True},
        {"on_failure": OnFailure.DENY},
        {"timeout": 99.0},
        {"max_retries": 2},
    ],
)
def test_of_two_entries_that_differ_in_the_consequence_of_a_failure_both_run(stricter: dict[str, Any]) -> None:
    lenient = hook("guard")
    (selected,) = groups(group(lenient, replace(lenient, **stricter), lenient)).select(PRE, "write", None)
    assert len(selected.hooks) == 2


def test_a_hook_of_two_files_runs_once_only_if_both_configure_it_the_same() -> None:
    one = group(hook("guard"))
    assert len(groups(one, one).select(PRE, "write", None)) == 1
    assert len(groups(one, replace(one, on_failure=OnFailure.DENY)).select(PRE, "write", None)) == 2
    assert len(groups(one, replace(one, tool_names=ToolNames.MCP)).select(PRE, "write", None)) == 2


BASH = Alias("run", "Bash", {"command": "cmd"})


@pytest.mark.parametrize("names", list(ToolNames))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_hooks_of_each_system_see_an_alias_and_match_it(dialect: str, names: ToolNames) -> None:
    one = replace(group(hook("true", matcher="Bash")), dialect=DIALECTS[dialect], tool_names=names)
    hook_groups = HookGroups([one], "my files", [BASH])
    assert [one.hooks[0].tool_name for one in hook_groups.select(PRE, "run", BASH)] == ["Bash"]
    assert hook_groups.first_tool_name("run", BASH) == "Bash"
    assert (
        hook_groups.concerns("run"),
        hook_groups.concerns("Run"),
        hook_groups.concerns("Bash"),
        hook_groups.concerns("other"),
    ) == (
        True,
        True,  # servers may ignore the case of a tool's name
        names is ToolNames.BARE,  # a tool that is called so
        False,
    )


@pytest.mark.parametrize(
    ("names", "both", "matcher", "matches"),
    [
        (ToolNames.MCP, False, "mcp__my_files__run", True),
        (ToolNames.MCP, False, "run", False),
        (ToolNames.BARE, False, "run", True),
        (ToolNames.BARE, False, "mcp__my_files__run", False),
        (ToolNames.BARE, True, "run", True),
        (ToolNames.BARE, True, "Bash", True),
        (ToolNames.BARE, True, "mcp__my_files__run", True),
    ],
)
def test_an_alias_disables_no_guard_and_is_the_name_that_guards_see(
    names: ToolNames, both: bool, matcher: str, matches: bool
) -> None:
    one = replace(group(hook("true", matcher=matcher)), tool_names=names, match_all_names=both)
    hook_groups = HookGroups([one], "my files", [BASH])
    assert [one.hooks[0].tool_name for one in hook_groups.select(PRE, "run", BASH)] == (["Bash"] if matches else [])


@pytest.mark.parametrize(
    ("rule", "applies"),
    [
        ("Bash(rm *)", True),
        ("Bash(ls *)", False),
        ("run(rm *)", True),
        ("mcp__my_files__run(rm *)", False),
        ("Edit", False),
    ],
)
def test_an_if_may_name_the_tool_by_its_alias_or_its_own_name(rule: str, applies: bool) -> None:
    hook_groups = HookGroups([group(replace(hook("true"), only_if=rule))], "my files", [BASH])
    (selected,) = hook_groups.select(PRE, "run", BASH)
    context = EventContext(PRE, SESSION, tool="run", alias=BASH, arguments=b'{"cmd":"rm x"}')
    assert bool(selected.applicable(context)) is applies


def test_the_names_of_a_call_are_those_of_its_alias() -> None:
    hook_groups = HookGroups([], "my files", [BASH, Alias("quiet", "", {"path": "p"})])
    assert hook_groups.possible_names("run") == ("run", "mcp__my_files__run", "Bash")
    assert hook_groups.possible_names("quiet") == ("quiet", "mcp__my_files__quiet")
    assert hook_groups.alias("run", b'{"cmd":1}') == with_command_line(BASH)
    assert hook_groups.alias("other", b"{}") is None
    with pytest.raises(Unreadable):
        hook_groups.alias("run", b'{"cmd":1,"command":2}')


@pytest.mark.parametrize("matchers", [("run_.*", "Bash"), ("Bash", "run_it"), ("", "Bash")])
def test_a_command_that_is_configured_for_both_names_of_a_tool_sees_both(matchers: tuple[str, str]) -> None:
    alias = Alias("run_it", "Bash", automatic=True)
    hook_groups = groups(group(*(hook("true", matcher=matcher) for matcher in matchers)))
    seen = [one.tool_name for selected in hook_groups.select(PRE, "run_it", alias) for one in selected.hooks]
    assert sorted(seen) == ["Bash", "run_it"]
    twice = groups(group(hook("true", matcher="Bash"), hook("true", matcher="Bash|Write")))
    assert [len(selected.hooks) for selected in twice.select(PRE, "run_it", alias)] == [1]


SPELLED = {"Bash": (ToolSpelling("Shell", {"command": "line"}),)}


def of_another_system(*hooks: HookSpec) -> Group:
    """A group of a system that spells tools in its own way."""
    dialect = replace(
        DIALECTS["claude"], name="other", mcp_tool_name=lambda server, tool: f"{server}/{tool}", tool_spellings=SPELLED
    )
    return replace(group(*hooks), dialect=dialect, tool_names=ToolNames.MCP)


def test_a_hook_sees_a_tool_as_its_system_spells_it() -> None:
    one = of_another_system(
        hook("true", matcher="my files/run"), hook("echo", matcher="Shell"), hook(":", matcher="Bash")
    )
    hook_groups = HookGroups([one], "my files", [])
    recognised = replace(BASH, automatic=True)
    (selected,) = hook_groups.select(PRE, "run", recognised)
    assert [each.tool_name for each in selected.hooks] == ["my files/run", "Shell"]
    context = EventContext(PRE, SESSION, tool="run", arguments=b'{"cmd":"ls"}', alias=recognised)
    assert [each.context(context).arguments for each in selected.hooks] == [b'{"cmd":"ls"}', b'{"line":"ls"}']
    assert {"my files/run", "run", "mcp__my_files__run"} <= set(hook_groups.possible_names("run"))


def test_arguments_that_are_ambiguous_in_the_spelling_of_a_hooks_system_are_refused() -> None:
    hook_groups = HookGroups([of_another_system(hook("true"))], "my files", [BASH])
    found = hook_groups.alias("run", b'{"cmd":"ls"}')
    assert found is not None
    assert found.names == ("Bash",)
    with pytest.raises(Unreadable, match="'cmd' and 'line' are the same argument"):
        hook_groups.alias("run", b'{"cmd":"ls","line":"rm"}')


def test_a_hook_with_a_condition_on_the_arguments_runs_only_if_it_holds() -> None:
    some = replace(hook("true", matcher="Shell"), accepts=lambda arguments: b"rm" in arguments)
    (selected,) = HookGroups([of_another_system(some)], "x", []).select(PRE, "run", BASH)
    context = EventContext(PRE, SESSION, tool="run", arguments=b'{"cmd":"ls"}', alias=BASH)
    assert selected.conditional
    assert list(selected.applicable(context)) == []
    assert len(selected.applicable(replace(context, arguments=b'{"cmd":"rm"}'))) == 1


def test_two_conditions_on_the_arguments_of_one_command_are_two_hooks() -> None:
    one, other = (
        replace(hook("true"), accepts=lambda arguments, word=word: word in arguments) for word in (b"a", b"b")
    )
    (selected,) = groups(group(one, other)).select(PRE, "write", None)
    assert len(selected.hooks) == 2


def test_an_agent_may_be_known_by_the_beginning_of_its_name() -> None:
    agent = replace(group(hook("true")), dialect=replace(DIALECTS["claude"], agents=("qwen-client-*",)))
    assert groups(agent).sources_run_by("qwen-client-files 1.0") == ["hooks.json"]
    assert groups(agent).sources_run_by("qwen 1.0") == []


class Counted:
    """A matcher that counts how often it is tried."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, _name: str) -> bool:
        self.times += 1
        return True


def test_a_matcher_is_tried_once_for_each_name_of_a_tool_until_more_is_known_of_the_tools() -> None:
    before, after = Counted(), Counted()
    hook_groups = groups(group(replace(hook("a"), matches=before), replace(hook("b", POST), matches=after)))
    for _ in range(3):
        assert hook_groups.concerns("write")
        assert hook_groups.observes_outcome("write")
        assert hook_groups.select(PRE, "write", None)
    assert (before.times, after.times) == (1, 1)
    hook_groups.forget_tools()
    for _ in range(3):
        assert hook_groups.observes_outcome("write")
        assert hook_groups.concerns("write")
    assert (before.times, after.times) == (2, 2)


def test_what_concerns_a_tool_is_decided_once() -> None:
    nothing = groups(group(hook("true", matcher="read")))
    assert not nothing.concerns("write")
    assert not nothing.observes_outcome("write")
    nothing._concerned["write"] = nothing._outcome_observed["write"] = True
    assert nothing.concerns("write")
    assert nothing.observes_outcome("write")


@pytest.mark.parametrize("event", [Event.PRE_MCP_TOOL_CALL, Event.POST_TOOL_USE_FAILURE, PRE, POST])
def test_a_hook_of_any_tool_event_concerns_the_tools_that_it_matches_and_no_others(event: Event) -> None:
    hook_groups = groups(group(hook("true", event, "write")))
    assert (hook_groups.concerns("write"), hook_groups.concerns("read")) == (True, False)
    assert hook_groups.has_post_hooks_for("write") is (event in (POST, Event.POST_TOOL_USE_FAILURE))
    assert not hook_groups.has_post_hooks_for("read")


@pytest.mark.parametrize("event", [Event.STOP, Event.ERROR_OCCURRED, Event.ELICITATION])
def test_a_hook_of_an_event_that_any_call_may_cause_needs_each_outcome(event: Event) -> None:
    assert groups(stub_group(stub(event))).observes_outcome("anything")
    assert not groups(group(hook("true"))).observes_outcome("anything")


def test_permission_request_hooks_for_every_call_concern_only_the_tools_that_they_match() -> None:
    always = replace(hook("true", Event.PERMISSION_REQUEST, "write"), every_call=True)
    assert (groups(group(always)).concerns("write"), groups(group(always)).concerns("read")) == (True, False)
    by_alias = HookGroups([group(replace(always, matches="Bash".__eq__))], "my files", [BASH])
    assert (by_alias.concerns("run"), by_alias.concerns("read")) == (True, False)
    both = groups(group(always, hook("true", Event.PERMISSION_REQUEST, "read")))
    assert (both.concerns("write"), both.concerns("read")) == (True, False)


def test_which_hooks_are_tools_of_the_server() -> None:
    ours = replace(hook("", POST), type="mcp_tool")
    assert (groups(group(ours)).has_mcp_tool_hooks, groups(group(hook("true"))).has_mcp_tool_hooks) == (True, False)
    hook_groups = groups(group(ours, hook("true")))
    assert (hook_groups.has_mcp_tool_hooks_for(POST), hook_groups.has_mcp_tool_hooks_for(PRE)) == (True, False)


def test_hooks_that_are_tools_of_another_server_are_told() -> None:
    ours, other = (replace(hook(""), type="mcp_tool", server=server, source=server) for server in ("files", "git"))
    assert list(groups(group(hook("true"), ours, other)).unreachable_server_notes("files")) == [
        "git calls a tool of the server 'git', which cannot be called: the server of this session is 'files' (--name)"
    ]


def test_the_first_name_of_a_tool_is_that_of_its_first_hook_or_else_the_configured_one() -> None:
    quiet = HookGroups([group(hook("true", POST))], "my files", [BASH])
    assert quiet.first_tool_name("run", BASH) == "Bash"
    assert quiet.first_tool_name("run", replace(BASH, automatic=True)) == "run"
    by_name = HookGroups([group(hook("true", matcher="Bash"))], "my files")
    assert by_name.first_tool_name("run", replace(BASH, automatic=True)) == "Bash"


def test_the_names_of_a_call_have_the_spellings_of_each_system() -> None:
    hook_groups = HookGroups([of_another_system(hook("true"))], "my files", [BASH])
    assert hook_groups.possible_names("run") == ("run", "mcp__my_files__run", "my files/run", "Bash", "Shell")


def test_an_alias_of_another_spelling_of_a_tools_name_only_adds_a_name() -> None:
    (alias,) = HookGroups([], "my files", [BASH]).aliases(" RUN ")
    assert (alias.tool, alias.name, alias.guessed) == (" RUN ", "Bash", True)


def test_the_values_that_matchers_are_tried_on() -> None:
    one = of_another_system(hook("true"))
    hook_groups = HookGroups([one], "my files", [])
    own = EventContext(PRE, SESSION, tool="run")
    assert hook_groups.match_values(one, own) == ("my files/run",)
    assert hook_groups.match_values(one, replace(own, alias=BASH)) == ("Shell", "Bash", "my files/run")
    plain = group(hook("true"))
    assert hook_groups.match_values(plain, replace(own, alias=BASH)) == ("Bash", "run")
    elicitation = EventContext(Event.ELICITATION, SESSION, trigger="form")
    assert hook_groups.match_values(one, elicitation) == (SESSION.server,)
    assert hook_groups.match_values(one, replace(elicitation, event=Event.STOP)) == ("form",)


@pytest.mark.parametrize(
    ("tool", "alias", "name", "sees_alias"),
    [
        ("run", BASH, "Bash", True),
        ("run", replace(BASH, name=""), "my files/run", True),
        ("run", replace(BASH, automatic=True), "my files/run", False),
        ("run", None, "my files/run", False),
        ("", None, "", False),
    ],
)
def test_a_hook_of_another_event_sees_the_tool_that_it_is_about(
    tool: str, alias: Alias | None, name: str, sees_alias: bool
) -> None:
    stop = of_another_system(hook("true", Event.STOP))
    (selected,) = HookGroups([stop], "my files").select_for(EventContext(Event.STOP, SESSION, tool=tool, alias=alias))
    assert [(each.tool_name, each.sees_alias) for each in selected.hooks] == [(name, sees_alias)]


@pytest.mark.parametrize(
    ("matcher", "rule", "seen"),
    [
        ("run|Shell", "Shell(rm *)", ["Shell"]),
        ("run|Shell", "Shell(ls *)", []),
        ("run", "Shell(rm *)", []),
        ("run|Bash", "Bash(rm *)", []),
        ("run", "run(rm *)", ["run"]),
    ],
)
def test_an_if_may_name_each_familiar_name_that_the_matcher_matches_as_the_system_spells_it(
    matcher: str, rule: str, seen: list[str]
) -> None:
    recognised = replace(BASH, automatic=True)
    spec = replace(hook("true", matcher=matcher), only_if=rule)
    one = replace(of_another_system(spec), tool_names=ToolNames.BARE, names=SeenNames.OWN)
    (selected,) = HookGroups([one], "my files").select(PRE, "run", recognised)
    context = EventContext(PRE, SESSION, tool="run", arguments=b'{"cmd":"rm x"}', alias=recognised)
    assert [each.tool_name for each in selected.applicable(context)] == seen


def test_the_beginning_of_an_agents_name_is_the_whole_text_before_the_star() -> None:
    agent = replace(group(hook("true")), dialect=replace(DIALECTS["claude"], agents=("qwen-client-*",)))
    assert groups(agent).sources_run_by("qwen-clientx") == []


def test_a_hook_of_a_configured_alias_sees_the_spelling_of_its_system() -> None:
    own = of_another_system(hook("true", matcher="my files/run"))
    (selected,) = HookGroups([own], "my files").select(PRE, "run", BASH)
    assert [each.tool_name for each in selected.hooks] == ["Shell"]
    context = EventContext(PRE, SESSION, tool="run", arguments=b'{"cmd":"ls"}', alias=BASH)
    assert [each.context(context).arguments for each in selected.hooks] == [b'{"line":"ls"}']
    after = of_another_system(hook("true", POST, matcher="my files/run"))
    (selected,) = HookGroups([after], "my files").select(POST, "run", BASH)
    assert [(each.tool_name, each.own_name) for each in selected.hooks] == [("Shell", "my files/run")]
    nameless = replace(BASH, name="")
    (selected,) = HookGroups([own], "my files").select(PRE, "run", nameless)
    assert [each.tool_name for each in selected.hooks] == ["my files/run"]


def test_a_configured_alias_with_two_names_is_seen_by_both_before_a_call_and_by_one_after_it() -> None:
    two = replace(BASH, alternatives=(Alias("run", "Write"),))

    def names(event: Event, seen: SeenNames) -> list[str]:
        one = replace(group(hook("true", event)), names=seen)
        return [each.tool_name for selected in groups(one).select(event, "run", two) for each in selected.hooks]

    assert names(PRE, SeenNames.BOTH) == ["Bash", "Write"]
    assert names(PRE, SeenNames.OWN) == ["Bash"]
    assert names(POST, SeenNames.BOTH) == ["Bash"]
