"""What hooks see of a server's tools, and why a hook sees none of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from hookproxy.dialects.dialect import Group
from hookproxy.dialects.own import OWN
from hookproxy.dialects.registry import DIALECTS
from hookproxy.hooks.coverage import Coverage, HookCoverage, SeenTool, coverage
from hookproxy.hooks.select import HookGroups
from hookproxy.model.aliases import Alias, with_command_line
from hookproxy.model.errors import printable
from hookproxy.model.hooks import Event, HookSpec, Tool
from hookproxy.model.limits import Limit, Per
from hookproxy.model.settings import SeenNames, Settings, ToolNames
from hookproxy.policy import matchers

GIT: Final = ("git_commit", "git_log")
ALIAS: Final = Alias("git_commit", "Bash", {"command": "message"})


def spec(matcher: str = "", event: Event = Event.PRE_TOOL_USE, only_if: str = "", shell: str = "true") -> HookSpec:
    matches = matchers.claude_matcher(matcher)
    return HookSpec("claude", "f.json: x", event, "true", matcher, matches, shell=shell, only_if=only_if)


def group(*hooks: HookSpec, names: ToolNames = ToolNames.MCP, managed: bool = False) -> Group:
    return Group(DIALECTS["claude"], "f.json", hooks, names, managed=managed)


def covered(*groups: Group, tools: Sequence[str] = GIT, settings: Settings | None = None) -> Coverage:
    settings = settings or Settings(auto_aliases=False)
    return coverage(groups, settings, "git", [Tool(name) for name in tools])


def only(found: Coverage) -> HookCoverage:
    (hook,) = found.hooks
    return hook


def test_a_hook_sees_the_names_that_its_dialect_uses() -> None:
    assert only(covered(group(spec("mcp__git__git_log")))).seen == (SeenTool("git_log", "mcp__git__git_log"),)
    assert only(covered(group(spec("git_log"), names=ToolNames.BARE))).seen == (SeenTool("git_log", "git_log"),)
    own = Group(OWN, "own.toml", (spec("mcp__git__git_log"),), ToolNames.BARE, match_all_names=True)
    assert only(covered(own)).seen == (SeenTool("git_log", "git_log"),)


def test_a_configured_alias_is_the_name_that_hooks_see() -> None:
    settings = Settings(aliases=(ALIAS,), auto_aliases=False)
    seen = (SeenTool("git_commit", "Bash", with_command_line(ALIAS)),)
    assert only(covered(group(spec("Bash")), settings=settings)).seen == seen


def test_coverage_is_what_hooks_are_selected_for() -> None:
    """For every hook, tool and alias the session's own selection gives the same."""
    hooks = (spec("Bash"), spec("mcp__git__.*"), spec(""), spec("git_log"), spec("mcp__git__git_log|Bash"))
    groups, settings = (group(*hooks),), Settings(aliases=(ALIAS,), auto_aliases=False)
    selection = HookGroups(groups, "git", settings.aliases)
    found = {
        id(one.spec): {(seen.tool, seen.name) for seen in one.seen} for one in covered(*groups, settings=settings).hooks
    }
    for tool in GIT:
        alias = selection.alias(tool, b"{}")
        selected = [one for each in selection.select(Event.PRE_TOOL_USE, tool, alias) for one in each.hooks]
        names = {id(one.spec): one.tool_name for one in selected}
        for one in hooks[1:3]:  # those that are not the same hook as another one
            assert names.get(id(one)) in {name for seen, name in found[id(one)] if seen == tool} or id(one) not in names
        assert {one for one in found if any(seen == tool for seen, _ in found[one])} >= names.keys()


@pytest.mark.parametrize(
    ("matcher", "names", "why"),
    [
        ("Task", ToolNames.MCP, "its matcher 'Task' matches none of the server's 2 tools"),
        ("mcp__github__git_log", ToolNames.MCP, "; the server is 'git' here, not 'github': --name github names it"),
        ("git_log", ToolNames.MCP, "; it sees 'mcp__git__git_log', not 'git_log'"),
        ("mcp__git__git_log", ToolNames.BARE, "; it sees 'git_log', not 'mcp__git__git_log'"),
        ("Bash|Task", ToolNames.MCP, '; none is known as Bash: [tools.X] with as = "Bash" names one'),
        ("Write|Edit", ToolNames.MCP, '; none is known as Write or Edit: [tools.X] with as = "Write" names one'),
    ],
)
def test_a_hook_whose_matcher_matches_no_tool_says_what_may_be_meant(matcher: str, names: ToolNames, why: str) -> None:
    hook = only(covered(group(spec(matcher), names=names)))
    assert hook.seen == ()
    assert hook.why_never.startswith(f"its matcher {matcher!r} matches none of the server's 2 tools")
    assert hook.why_never.endswith(why)


def test_an_if_that_names_no_tool_is_a_reason() -> None:
    hook = only(covered(group(spec("mcp__git__.*", only_if="Bash(rm *)"))))
    assert hook.why_never == "its `if` 'Bash(rm *)' names none of the server's 2 tools"
    settings = Settings(aliases=(ALIAS,), auto_aliases=False)
    assert [one.tool for one in only(covered(group(spec("", only_if="Bash(rm *)")), settings=settings)).seen] == [
        "git_commit"
    ]


def test_a_server_without_tools_is_a_reason() -> None:
    assert only(covered(group(spec("")), tools=())).why_never == "the server has no tools"


def test_the_same_hook_twice_sees_the_same_tools_and_is_no_finding() -> None:
    found = covered(group(spec("mcp__git__.*"), spec("mcp__git__git_log")))
    assert [[one.tool for one in hook.seen] for hook in found.hooks] == [list(GIT), ["git_log"]]
    assert found.summary() == "2 hooks on 2 of 2 tools"


def test_hooks_of_sessions_see_no_tool_and_have_no_reason() -> None:
    hook = only(covered(group(spec("", Event.SESSION_START))))
    assert (hook.seen, hook.why_never) == ((), "")


def test_hooks_of_elicitations_are_for_servers_whose_name_they_match() -> None:
    assert only(covered(group(spec("git", Event.ELICITATION)))).why_never == ""
    why = only(covered(group(spec("github", Event.ELICITATION)))).why_never
    assert why == "its matcher 'github' does not match the server's name 'git'"


def test_a_hook_that_is_a_tool_of_another_server_never_runs() -> None:
    hook = replace(spec(""), type="mcp_tool", shell="", server="files", tool="look")
    assert only(covered(group(hook))).why_never == (
        "it calls a tool of the server 'files', and this server is 'git' (--name)"
    )


def test_managed_hooks_see_the_managed_aliases_only() -> None:
    settings = Settings(aliases=(ALIAS,), auto_aliases=False, managed=Settings(auto_aliases=False))
    user, managed = covered(group(spec("Bash")), group(spec("Bash"), managed=True), settings=settings).hooks
    assert (len(user.seen), len(managed.seen)) == (1, 0)


def test_tools_that_rules_and_limits_apply_to_are_counted() -> None:
    settings = Settings(deny=("git_commit",), auto_aliases=False)
    assert covered(settings=settings).summary() == "no hooks on 2 tools, permission rules on 1"
    settings = Settings(limits=(Limit("git_*", 1, Per.DAY, "limits[0]"),), auto_aliases=False)
    assert covered(settings=settings).ruled == frozenset(GIT)


@pytest.mark.parametrize(
    ("hooks", "summary"),
    [
        ([""], "1 hook on 2 of 2 tools"),
        (["mcp__git__git_log", "mcp__git__.*og"], "2 hooks on 1 of 2 tools"),
        (["", "Task"], "1 hook on 2 of 2 tools; 1 hook never matches: see hookproxy check -- COMMAND"),
        (["Task", "TodoWrite"], "no hooks on 2 tools; 2 hooks never match: see hookproxy check -- COMMAND"),
        (
            ["Bash|Read"],
            "no hooks on 2 tools; 1 hook never matches, and no tool is known as Bash or Read "
            "([tools.X] in hookproxy.toml names one): see hookproxy check -- COMMAND",
        ),
    ],
)
def test_the_summary_counts_hooks_and_tools(hooks: Sequence[str], summary: str) -> None:
    specs = (spec(matcher, shell=f"true {number}") for number, matcher in enumerate(hooks))
    assert covered(group(*specs)).summary() == summary


def test_texts_of_a_server_are_quoted_and_cut() -> None:
    name = "\x1b[31m" + "x" * 10_000
    hook = only(covered(group(spec("^\x1b.*")), tools=[name]))
    assert "; it sees 'mcp__git__\\x1b[31mxxx" in hook.why_never
    assert hook.why_never == printable(hook.why_never)
    assert len(hook.why_never) < 400


SCHEMA: Final = b'{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}'


def test_a_recognised_tool_is_seen_under_its_familiar_name_only_by_hooks_for_that_name() -> None:
    tool = Tool("execute_command", SCHEMA, properties=frozenset({"command"}), by_loose_key={"command": "command"})
    found = coverage([group(spec("Bash"), spec("mcp__.*"))], Settings(), "shell", [tool])
    bash, all_tools = found.hooks
    assert [(one.name, one.alias is not None and one.alias.automatic) for one in bash.seen] == [("Bash", True)]
    assert all_tools.seen == (SeenTool("execute_command", "mcp__shell__execute_command"),)
    off = coverage([group(spec("Bash"))], Settings(auto_aliases=False), "shell", [tool])
    assert only(off).why_never


@pytest.mark.parametrize(
    ("names", "before", "after"),
    [
        (SeenNames.BOTH, ["mcp__shell__execute_command", "Bash"], ["Bash"]),
        (SeenNames.FAMILIAR, ["Bash"], ["Bash"]),
        (SeenNames.OWN, ["mcp__shell__execute_command"], ["mcp__shell__execute_command"]),
    ],
)
def test_a_hook_for_all_tools_sees_the_names_that_its_file_chooses(
    names: SeenNames, before: list[str], after: list[str]
) -> None:
    tool = Tool("execute_command", SCHEMA, properties=frozenset({"command"}), by_loose_key={"command": "command"})
    hooks = replace(group(spec(), spec(event=Event.POST_TOOL_USE)), names=names)
    found = coverage([hooks], Settings(), "shell", [tool])
    assert [[one.name for one in hook.seen] for hook in found.hooks] == [before, after]
    assert found.summary() == "2 hooks on 1 of 1 tool"


def test_names_that_hold_for_the_same_call_are_seen_together() -> None:
    schema = b'{"properties":{"path":{"type":"string"},"edits":{"type":"array"}},"required":["path","edits"]}'
    tool = Tool("edit_file", schema, properties=frozenset({"path", "edits"}))
    hooks = replace(group(spec(), spec(event=Event.POST_TOOL_USE)), names=SeenNames.BOTH)
    before, after = coverage([hooks], Settings(), "files", [tool]).hooks
    assert [one.name for one in before.seen] == ["mcp__files__edit_file", "MultiEdit", "Edit"]
    assert [one.name for one in after.seen] == ["MultiEdit"]


def of_gemini(matcher: str) -> Group:
    dialect = DIALECTS["gemini"]
    matches = matchers.javascript_regex(matcher)
    hook = HookSpec("gemini", "f.json: x", Event.PRE_TOOL_USE, "true", matcher, matches, shell="true")
    return Group(dialect, "f.json", (hook,), dialect.tool_names)


def test_a_hook_of_another_system_sees_that_systems_names() -> None:
    settings = Settings(aliases=(ALIAS,), auto_aliases=False)
    (seen,) = only(covered(of_gemini("^run_shell_command$"), settings=settings)).seen
    assert (seen.tool, seen.name) == ("git_commit", "run_shell_command")
    assert seen.alias is not None
    assert seen.alias.arguments == {"command": "message"}
    assert only(covered(of_gemini("^mcp_git_git_log$"))).seen == (SeenTool("git_log", "mcp_git_git_log"),)


def test_what_a_hook_of_another_system_waits_for_has_that_systems_names() -> None:
    why = only(covered(of_gemini("^(write_file|replace)$"))).why_never
    assert why.endswith('; none is known as write_file or replace: [tools.X] with as = "Write" names one')
    why = only(covered(of_gemini("^git_log$"))).why_never
    assert why.endswith("; it sees 'mcp_git_git_log', not 'git_log'")


LEFT_OUT: Final = (
    Tool("execute_sql", b'{"type":"object","properties":{"sql":{"type":"string"}}}'),
    Tool("redis_execute", b'{"type":"object","properties":{"command":{"type":"string"}}}'),
    Tool("do_it", b'{"type":"object","properties":{"shell_cmd":{"type":"string"}}}'),
    Tool("get_weather", b'{"type":"object","properties":{"city":{"type":"string"}}}'),
)


@pytest.mark.parametrize(
    ("hooks", "settings", "named"),
    [
        ([spec("Bash")], Settings(), True),
        ([], Settings(deny=("Bash(rm *)",)), True),
        ([], Settings(managed=Settings(deny=("Bash(rm *)",))), True),
        ([spec("Write|Bash")], Settings(), True),
        ([spec("execute_sql")], Settings(), False),
        ([spec("Bash")], Settings(auto_aliases=False), False),
        ([], Settings(deny=("Write(x)",)), True),  # it holds for files that commands name
        ([], Settings(deny=("Write",)), False),
    ],
)
def test_the_line_at_start_names_the_tools_that_look_like_commands_and_are_not_bash(
    hooks: list[HookSpec], settings: Settings, *, named: bool
) -> None:
    found = coverage((group(*hooks, names=ToolNames.BARE),), settings, "files", LEFT_OUT)
    assert found.left_out == (("execute_sql", "redis_execute") if named else ())
    text = """not counted as Bash: 'execute_sql', 'redis_execute' (as = "Bash" in [tools.NAME] changes that)"""
    assert (text in found.summary()) is named


def test_of_many_tools_the_line_at_start_names_a_few() -> None:
    tools = [Tool(f"execute_sql{number}", LEFT_OUT[0].input_schema) for number in range(9)]
    found = coverage((group(spec("Bash")),), Settings(), "files", tools)
    assert "not counted as Bash: 'execute_sql0', 'execute_sql1', 'execute_sql2' and 6 more" in found.summary()


def test_each_method_says_what_judges_it() -> None:
    settings = Settings(deny=("resources/list",))
    found = covered(group(spec("Read|prompts/get"), spec("*"), spec("")), settings=settings)
    names = {method.method: [name for _, name in method.seen] for method in found.methods}
    assert names["resources/read"] == ["Read"]
    assert names["prompts/get"] == ["prompts/get"]
    assert [method.method for method in found.methods if method.ruled] == ["resources/list"]
    assert not found.hooks[0].why_never
    assert not next(method for method in found.methods if method.method == "completion/complete").covered


def test_a_rule_about_files_is_about_tools_that_run_commands() -> None:
    """Its author may rely on it: it is not idle."""
    runs = Tool("run_command", b'{"type":"object","properties":{"command":{"type":"string"}}}')
    other = Tool("get_weather", b'{"type":"object","properties":{"city":{"type":"string"}}}')
    policy = Settings(deny=("Read(**/.env)",), ask=("Write",))
    assert [rule.text for rule in coverage([], policy, "server", [runs]).idle_rules] == ["Write"]
    assert [rule.text for rule in coverage([], policy, "server", [other]).idle_rules] == ["Read(**/.env)", "Write"]


@pytest.mark.parametrize("glob", ["read_*", "write_*", "fetch_*", "*_write", "lint_*", "mcp__mail__send_*"])
def test_a_glob_for_other_servers_is_not_taken_for_a_misspelt_name(glob: str) -> None:
    (rule,) = covered(tools=("git_log", "list_branches"), settings=Settings(deny=(glob,))).idle_rules
    assert (rule.near, rule.is_general) == ("", True)


@pytest.mark.parametrize(
    ("rules", "summary"),
    [
        (["Bash(rm *))"], "deny 'Bash(rm *))' matches no arguments as it is meant: write 'Bash(rm *)'"),
        (["Bash(^rm.*)"], "deny 'Bash(^rm.*)' matches no arguments as it is meant: write 'Bash(rm *)'"),
        (["git_comit(x)"], "deny 'git_comit(x)' is about no tool (did you mean 'git_commit'?)"),
        (
            ["git_lgo", "Bash('rm *')", "Bash(rm *))", "Bash(^rm.*)"],
            "deny 'git_lgo' is about no tool (did you mean 'git_log'?); "
            """deny "Bash('rm *')" matches no arguments as it is meant: write 'Bash(rm *)'; """
            "2 more rules match nothing",
        ),
    ],
)
def test_the_line_at_start_names_rules_that_can_match_nothing_as_they_are_written(
    rules: Sequence[str], summary: str
) -> None:
    found = covered(settings=Settings(deny=tuple(rules), auto_aliases=False))
    assert found.summary() == f"no hooks on 2 tools; {summary}: see hookproxy check -- COMMAND"


def test_the_line_at_start_does_not_name_rules_that_match() -> None:
    settings = Settings(deny=("Bash(rm *)", "git_log(*x*)"), ask=("mcp__git__git_log(x)",), auto_aliases=False)
    assert covered(settings=settings).summary() == "no hooks on 2 tools, permission rules on 1"


def test_the_line_at_start_names_what_a_matcher_that_matches_nothing_may_mean() -> None:
    found = covered(group(spec("mcp__git__gti_.*"), spec("Task"), spec("mcp__gti__git_log")))
    assert found.summary() == (
        "no hooks on 2 tools; 3 hooks never match "
        "(matcher 'mcp__git__gti_.*': did you mean 'mcp__git__git_commit'?; "
        "matcher 'mcp__gti__git_log': did you mean 'mcp__git__git_log'?): see hookproxy check -- COMMAND"
    )


@pytest.mark.parametrize(("names", "meant"), [(ToolNames.MCP, "mcp__git__git_commit"), (ToolNames.BARE, "git_commit")])
@pytest.mark.parametrize("matcher", ["gti_.*", "git_comit", "mcp__git__git_comit"])
def test_what_a_matcher_may_mean_is_a_name_that_the_hook_sees(matcher: str, names: ToolNames, meant: str) -> None:
    assert only(covered(group(spec(matcher), names=names))).near == f"did you mean {meant!r}?"
    assert only(covered(group(spec(meant), names=names))).seen
