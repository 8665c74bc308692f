"""Cases on real hooks and rules: what passes, what fails and why, and what no case notices."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from hookproxy.policy_tests.cases import read_cases
from hookproxy.policy_tests.policies import FilesNamed, isolated_environment, policy_of_files, policy_of_gateway
from hookproxy.policy_tests.run import PolicyResult, run_policy
from tests.support.proxy_rig import DIRECT_LOOP

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


async def result_of(folder: Path, policy: str, cases: str, *, mutate: bool = False) -> PolicyResult:
    (folder / "hookproxy.toml").write_text(policy, "utf-8")
    (folder / "tests.toml").write_text(cases, "utf-8")
    environ = isolated_environment(os.environ, str(folder / "state"))
    loaded = policy_of_files(FilesNamed(str(folder / "hookproxy.toml")), environ, str(folder))
    return await run_policy(loaded, read_cases(str(folder / "tests.toml")).cases, mutate=mutate)


def differences(result: PolicyResult) -> list[tuple[str, str, str]]:
    """Of all cases."""
    return [
        (one.what, one.expected, one.actual)
        for case in result.results
        for step in case.steps
        for one in step.differences
    ]


def case(expect: str, more: str = "", tool: str = "send", arguments: str = "") -> str:
    return f'[[case]]\ncall = {{ tool = "{tool}", arguments = {{ {arguments} }} }}\nexpect = {{ {expect} }}\n{more}\n'


def unnoticed(result: PolicyResult) -> list[str]:
    assert result.mutation is not None
    return [f"{one.mutant.part.words}: {one.mutant.change}" for one in result.mutation.unnoticed]


# --- decisions ---


ASK = '[permissions]\nask = ["send"]\ndeny = ["drop"]\n'


@pytest.mark.parametrize(
    ("expect", "more", "tool"),
    [
        ('decision = "ask"', "", "send"),
        ('decision = "ask"', 'answer = "allow"', "send"),
        ('decision = "allow"', 'answer = "allow"', "send"),
        ('decision = "deny"', 'answer = "deny"', "send"),
        ('decision = "deny"', 'answer = "allow"', "drop"),
        ('decision = "allow"', "", "read"),
    ],
)
async def test_a_decision_is_as_expected(tmp_path: Path, expect: str, more: str, tool: str) -> None:
    assert (await result_of(tmp_path, ASK, case(expect, more, tool))).passed


@pytest.mark.parametrize(
    ("expect", "more", "tool", "actual"),
    [
        ('decision = "allow"', "", "send", "ask, by the permission rule send of hookproxy.toml"),
        ('decision = "deny"', 'answer = "allow"', "send", "ask, then allow"),
        ('decision = "ask"', "", "drop", "deny, by the permission rule drop: it is about every call of this tool"),
        ('decision = "ask"', "", "read", "allow"),
    ],
)
async def test_a_decision_that_is_not_as_expected_says_who_decided(
    tmp_path: Path, expect: str, more: str, tool: str, actual: str
) -> None:
    [(what, _, was)] = differences(await result_of(tmp_path, ASK, case(expect, more, tool)))
    assert (what, was.startswith(actual)) == ("decision", True), was


async def test_a_person_is_not_asked_where_the_policy_says_no(tmp_path: Path) -> None:
    cases = case('decision = "deny"', 'answer = "allow"') + case('decision = "deny"')
    assert (await result_of(tmp_path, 'on_ask = "deny"\n' + ASK, cases)).passed


async def test_only_what_is_named_is_compared(tmp_path: Path) -> None:
    expect = 'reason = "it is about every call of this tool"'
    assert (await result_of(tmp_path, ASK, case(expect, "", "drop"))).passed


HOOK = """
[[hooks.PreToolUse]]
name = "guard"
type = "python"
call = "guard:check"
"""
GUARD = """
def check(hook_input: dict):
    value = hook_input["tool_input"].get("value")
    if value == "crash":
        raise ValueError("oops")
    if value == "deny":
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                "permissionDecisionReason": "it is denied"}}
    if value == "rewrite":
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"value": "rewritten"}}}
    return None
"""


async def with_guard(folder: Path, cases: str, *, mutate: bool = False, guard: str = GUARD) -> PolicyResult:
    (folder / "guard.py").write_text(guard, "utf-8")
    return await result_of(folder, HOOK, cases, mutate=mutate)


async def test_arguments_reason_and_what_the_agent_reads_are_compared(tmp_path: Path) -> None:
    cases = case('arguments = { value = "rewritten" }, decision = "allow"', "", arguments='value = "rewrite"')
    cases += case('reason = "it is denied", reads = { contains = "Blocked by" }', "", arguments='value = "deny"')
    cases += case('reads = "done"', 'result = "done"')
    assert (await with_guard(tmp_path, cases)).passed


async def test_what_is_not_as_expected_is_shown_whole(tmp_path: Path) -> None:
    cases = case('arguments = { value = "other" }', "", arguments='value = "rewrite"')
    cases += case('arguments = { value = "deny" }', "", arguments='value = "deny"')
    cases += case('reason = "it"', "", arguments='value = "deny"')
    cases += case('reads = { contains = "a", lacks = "done" }', 'result = "done"')
    cases += case('reads = "done"')
    result = await with_guard(tmp_path, cases)
    assert differences(result) == [
        ("arguments", '{"value":"other"}', '{"value":"rewritten"}'),
        ("arguments", '{"value":"deny"}', "none: it does not run"),
        ("reason", "it", "it is denied"),
        ("reads", "contains 'a'", "done"),
        ("reads", "lacks 'done'", "done"),
        ("reads", "done", "nothing: add result = …, which the server responds"),
    ]


async def test_what_must_be_lacking_may_not_be_in_the_structured_part_either(tmp_path: Path) -> None:
    result = 'result = { content = [], structuredContent = { users = [{ mail = "secret" }] } }'
    [(what, expected, _)] = differences(await with_guard(tmp_path, case('reads = { lacks = "secret" }', result)))
    assert (what, expected) == ("reads", "lacks 'secret'")


async def test_a_hook_that_fails_fails_the_case_whatever_it_expects(tmp_path: Path) -> None:
    cases = case('decision = "deny"', "", arguments='value = "crash"')
    [(what, expected, actual)] = differences(await with_guard(tmp_path, cases))
    assert (what, expected) == ("failure", "no hook fails")
    assert "raised ValueError: oops" in actual
    assert (
        await with_guard(tmp_path, case('failure = true, decision = "deny"', "", arguments='value = "crash"'))
    ).passed
    [(_, expected, actual)] = differences(await with_guard(tmp_path, case("failure = true")))
    assert (expected, actual) == ("a hook fails", "no hook failed")


# --- sessions ---


LIMIT = '[[limits]]\ntool = "send"\ncalls = 2\nper = "hour"\n'


async def test_steps_are_one_session_and_cases_are_not(tmp_path: Path) -> None:
    step = '[[case.steps]]\ncall = { tool = "send" }\n'
    steps = f'{step}times = 2\nexpect = {{ decision = "allow" }}\n{step}expect = {{ decision = "deny" }}\n'
    result = await result_of(tmp_path, LIMIT, f"[[case]]\n{steps}" * 3)
    assert result.passed


async def test_cases_run_at_the_same_time(tmp_path: Path) -> None:
    guard = """
import threading
together = threading.Barrier(2)
def check(hook_input: dict):
    together.wait(30)
"""
    assert (await with_guard(tmp_path, case('decision = "allow"') * 2, guard=guard)).passed


async def test_what_a_hook_allows_in_one_case_it_does_not_in_another(tmp_path: Path) -> None:
    again = '[[case.steps]]\ncall = { tool = "send" }\nanswer = "allow"\nexpect = { decision = "ask" }\n'
    result = await result_of(tmp_path, ASK, f"[[case]]\n{again * 2}" + case('decision = "ask"'))
    assert (result.passed, differences(result)) == (True, [])


async def test_a_repeated_step_says_which_time_it_was(tmp_path: Path) -> None:
    result = await result_of(tmp_path, LIMIT, case('decision = "allow"', "times = 5"))
    [step] = result.results[0].steps
    assert (step.time, [one.what for one in step.differences]) == (3, ["decision"])


async def test_a_case_may_have_files_and_a_setup_of_its_own(tmp_path: Path) -> None:
    guard = """
import os
def check(hook_input: dict):
    folder = hook_input["cwd"]
    assert hook_input["tool_input"] == {"path": folder + "/a/b.txt"}
    assert sorted(os.listdir(folder)) == ["a", "made"], os.listdir(folder)
"""
    more = 'files = { "a/b.txt" = "x" }\nsetup = "touch made"\n'
    cases = case('decision = "allow"', more, arguments='path = "${FOLDER}/a/b.txt"') * 2
    result = await with_guard(tmp_path, cases, guard=guard)
    assert (result.passed, differences(result)) == (True, [])


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
@pytest.mark.parametrize(
    "start", ["{} &", "setsid {} &", "nohup {} >/dev/null 2>&1 &", "(setsid sh -c '{} & {} & wait' &) ", "{} & exit 3"]
)
async def test_what_a_setup_leaves_running_ends_with_its_case(tmp_path: Path, start: str) -> None:
    sleep = f"sleep 8{os.getpid()}.5"
    more = f'setup = "{start.replace("{}", sleep)}"\n'
    result = await with_guard(tmp_path, case('decision = "allow"', more))
    assert result.passed is not start.endswith("exit 3")
    with anyio.fail_after(30):  # a killed process is there for a moment
        while sleep.replace(" ", "\0").encode() in command_lines():  # noqa: ASYNC110 - nothing says that it has ended
            await anyio.sleep(0.01)


def command_lines() -> bytes:
    """Of all processes."""
    texts = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            texts.append(path.read_bytes())
    return b"\n".join(texts)


async def test_a_setup_that_fails_fails_its_case(tmp_path: Path) -> None:
    [result] = (
        await with_guard(tmp_path, case('decision = "allow"', 'setup = "echo no such thing >&2; exit 3"'))
    ).results
    assert (result.passed, result.problem) == (False, "its setup ended with status 3: no such thing")


async def test_hooks_get_the_time_of_the_case(tmp_path: Path) -> None:
    guard = """
from hookproxy.hooks.api import HookInput, deny
def check(hook_input: HookInput):
    return deny(f"{hook_input.time:%H:%M}")
"""
    result = await with_guard(tmp_path, case('reason = "11:30"', "time = 2026-11-23T12:30:00+01:00"), guard=guard)
    assert (result.passed, differences(result)) == (True, [])


# --- isolation ---


async def test_nothing_of_the_machine_decides(tmp_path: Path, home: Path, etc: Path) -> None:
    (etc / "managed.toml").write_text('[permissions]\ndeny = ["*"]\n')
    own = home / ".config" / "hookproxy" / "hookproxy.toml"
    own.parent.mkdir(parents=True)
    own.write_text('require_trust = true\n[permissions]\ndeny = ["*"]\n')
    assert (await with_guard(tmp_path, case('decision = "allow"'))).passed
    assert (await result_of(tmp_path, "require_trust = true\n" + ASK, case('decision = "allow"', "", "read"))).passed


async def test_hooks_do_not_see_what_an_agent_has_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "mine")
    monkeypatch.setenv("HOOKPROXY_SOMETHING", "mine")
    policy = '[[hooks.PreToolUse]]\ncommand = """env | grep -c mine >&2 && exit 2; exit 0"""\n'
    assert (await result_of(tmp_path, policy, case('decision = "allow"'))).passed


async def test_modules_of_one_policy_are_not_those_of_the_next(tmp_path: Path) -> None:
    for name, decision in (("one", "deny"), ("two", "allow")):
        (tmp_path / name).mkdir()
        guard = GUARD if name == "one" else "def check(hook_input: dict):\n    return None\n"
        cases = case(f'decision = "{decision}"', "", arguments='value = "deny"')
        assert (await with_guard(tmp_path / name, cases, guard=guard)).passed


# --- gateways ---


GATEWAY = """
[gateway]
listen = ["127.0.0.1:0"]
[permissions]
deny = ["drop"]
[[permissions.for]]
users = ["@interns"]
deny = ["send"]
[servers.mail]
command = ["true"]
allow = ["ann", "@interns"]
"""


async def test_a_gateway_is_tested_for_its_users(tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(GATEWAY)
    intern = 'user = "bob"\ngroups = ["@interns"]'
    cases = case('decision = "deny"', intern) + case('decision = "allow"', 'user = "ann"')
    cases += case('decision = "deny", reason = "servers.mail.allow leaves out eve"', 'user = "eve"')
    cases += case('decision = "deny"', 'user = "ann"', "drop") + case('decision = "allow"', intern, "read")
    result = await gateway_result(tmp_path, GATEWAY, cases)
    assert (result.passed, differences(result), result.undecided, unnoticed(result)) == (True, [], [], [])


async def gateway_result(folder: Path, policy: str, cases: str) -> PolicyResult:
    (folder / "gateway.toml").write_text(policy)
    (folder / "tests.toml").write_text(cases)
    tested = policy_of_gateway(str(folder / "gateway.toml"), isolated_environment(os.environ, str(folder)), str(folder))
    return await run_policy(tested, read_cases(str(folder / "tests.toml")).cases, mutate=True)


async def test_each_name_in_a_list_of_people_needs_a_case_and_so_do_all_others(tmp_path: Path) -> None:
    policy = GATEWAY.replace('users = ["@interns"]', 'users = ["@interns", "joe"]\ndefault = "ask"')
    result = await gateway_result(tmp_path, policy, case('decision = "allow"', 'user = "ann"'))
    assert set(unnoticed(result)) > {
        "servers.mail.allow: without @interns",
        "servers.mail.allow: for everybody",
        "permissions.for[0].users: without @interns",
        "permissions.for[0].users: without joe",
        "default ask: allow instead",
    }
    assert "servers.mail.allow: without ann" not in unnoticed(result)
    assert result.undecided[-1].words == "default ask"


async def test_who_else_might_be_meant_needs_a_case(tmp_path: Path) -> None:
    intern = case('decision = "deny"', 'user = "bob"\ngroups = ["interns"]')
    result = await gateway_result(tmp_path, GATEWAY, intern)
    assert "permissions.for[0].users: for everybody" in unnoticed(result)
    result = await gateway_result(tmp_path, GATEWAY, intern + case('decision = "allow"', 'user = "ann"'))
    assert not any(text.startswith("permissions.for") for text in unnoticed(result))


# --- coverage and mutants ---


async def test_what_is_only_watched_decides_nothing_and_has_no_mutants(tmp_path: Path) -> None:
    policy = '[permissions]\nmode = "monitor"\ndeny = ["drop"]\n' + LIMIT
    result = await result_of(tmp_path, policy, case('decision = "allow"', "", "drop"), mutate=True)
    assert [part.words for part in result.parts] == ["the limit on send: 2 calls per hour"]
    assert (result.results[0].passed, result.policy.is_empty) == (True, False)
    [watched] = result.policy.only_watched
    assert watched.startswith("1 rule: only watched")


async def test_an_allow_rule_counts_where_a_line_cannot_be_read_and_the_default_denies(tmp_path: Path) -> None:
    policy = '[permissions]\ndefault = "deny"\nallow = ["run_command"]\nask = ["Bash(rm:*)"]\n'
    cases = case('decision = "ask"', "", "run_command", """command = '"$X" a'""")
    result = await result_of(tmp_path, policy, cases + case('decision = "deny"'), mutate=True)
    assert differences(result) == []
    assert "allow run_command: taken out" not in unnoticed(result)


async def test_rules_and_hooks_that_decide_no_case_are_known(tmp_path: Path) -> None:
    (tmp_path / "guard.py").write_text(GUARD)
    result = await result_of(tmp_path, HOOK + ASK + LIMIT, case('decision = "ask"'))
    assert [part.words for part in result.undecided] == [
        "deny drop",
        "the limit on send: 2 calls per hour",
        "the PreToolUse hook guard",
    ]
    assert [part.words for part in result.ran] == ["the PreToolUse hook guard"]
    assert result.undecided[0].place == f"{tmp_path / 'hookproxy.toml'}:8: permissions.deny[0]"


async def test_a_case_for_each_rule_notices_all_mutants(tmp_path: Path) -> None:
    cases = case('decision = "ask"') + case('decision = "deny"', "", "drop") + case('decision = "allow"', "", "read")
    result = await result_of(tmp_path, ASK, cases, mutate=True)
    assert result.mutation is not None
    assert (result.passed, result.mutation.total, unnoticed(result)) == (True, 6, [])


async def test_a_case_that_compares_too_little_notices_too_little(tmp_path: Path) -> None:
    result = await result_of(tmp_path, ASK, case('decision = "allow"', 'answer = "allow"'), mutate=True)
    assert not result.passed
    assert unnoticed(result) == [
        "deny drop: taken out",
        "deny drop: weakened: an ask rule",
        "deny drop: swapped: an allow rule",
        "ask send: taken out",
        "ask send: weakened: an allow rule",
    ]


async def test_a_rule_that_another_one_covers_is_not_needed(tmp_path: Path) -> None:
    policy = '[permissions]\ndeny = ["drop_*", "drop_table"]\n'
    result = await result_of(tmp_path, policy, case('decision = "deny"', "", "drop_table"), mutate=True)
    assert [part.text for part in result.undecided] == ["drop_table"]
    assert {one.partition(":")[0] for one in unnoticed(result)} == {"deny drop_*", "deny drop_table"}


async def test_a_hook_is_taken_out_and_weakened(tmp_path: Path) -> None:
    cases = case('decision = "deny"', "", arguments='value = "deny"')
    result = await with_guard(tmp_path, cases, mutate=True)
    assert result.mutation is not None
    assert (result.mutation.total, unnoticed(result)) == (2, [])
    blind = case('reads = { contains = "it is denied" }', "", arguments='value = "deny"')
    assert unnoticed(await with_guard(tmp_path, blind, mutate=True)) == [
        "the PreToolUse hook guard: weakened: asks where it denies, allows where it asks"
    ]


async def test_a_hook_that_only_rewrites_cannot_be_weakened(tmp_path: Path) -> None:
    cases = case('arguments = { value = "rewritten" }', "", arguments='value = "rewrite"')
    result = await with_guard(tmp_path, cases, mutate=True)
    assert result.mutation is not None
    assert (result.mutation.total, unnoticed(result)) == (1, [])


async def test_each_tool_of_a_matcher_needs_a_case(tmp_path: Path) -> None:
    policy = HOOK.replace("[[hooks.PreToolUse]]\n", '[[hooks.PreToolUse]]\nmatcher = "send|drop"\n')
    (tmp_path / "guard.py").write_text(GUARD)
    cases = case('decision = "deny"', "", "send", 'value = "deny"')
    without_drop = ["the PreToolUse hook guard: without drop in its matcher"]
    assert unnoticed(await result_of(tmp_path, policy, cases, mutate=True)) == without_drop
    cases += case('decision = "deny"', "", "drop", 'value = "deny"')
    assert unnoticed(await result_of(tmp_path, policy, cases, mutate=True)) == []


ALIAS = """
[tools.frob]
as = "Write"
arguments = { value = "what", mode = "how" }
[tools.other]
as = "Write"
"""


async def test_an_alias_needs_a_case_and_so_does_each_of_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "guard.py").write_text(GUARD)
    cases = case('decision = "deny"', "", "frob", 'what = "deny"')
    result = await result_of(tmp_path, HOOK + ALIAS, cases, mutate=True)
    assert [part.words for part in result.undecided] == ["the alias of other"]
    assert unnoticed(result) == [
        "the alias of frob: without its argument mode",
        "the alias of other: taken out",
    ]
    assert result.parts[0].place == f"{tmp_path / 'hookproxy.toml'}: tools.frob"


FLOW = """
[[flow.sources]]
tool = ["read", "peek"]
labels = ["secret", "private"]
[[flow.sources]]
tool = "other"
labels = ["strange"]
[[flow.sinks]]
tool = ["send", "post"]
labels = ["secret"]
"""


async def test_each_source_and_each_value_of_a_source_or_sink_needs_a_case(tmp_path: Path) -> None:
    steps = '[[case]]\n[[case.steps]]\ncall = { tool = "read" }\nresult = "x"\nexpect = { decision = "allow" }\n'
    steps += '[[case.steps]]\ncall = { tool = "send" }\nexpect = { decision = "ask" }\n'
    result = await result_of(tmp_path, FLOW, steps, mutate=True)
    assert [part.words for part in result.undecided] == ["the source flow.sources[1]"]
    assert unnoticed(result) == [
        "the source flow.sources[0]: without peek in its tools",
        "the source flow.sources[0]: without the label private",
        "the source flow.sources[1]: taken out",
        "the sink flow.sinks[0]: without post in its tools",
    ]


async def test_a_limit_is_tested_at_its_bound_and_over_its_period(tmp_path: Path) -> None:
    step = '[[case.steps]]\ncall = { tool = "send" }\n'
    at = "time = 2026-11-23T{}Z\n"
    full = f'[[case]]\n{step}times = 2\n{at.format("12:00:00")}expect = {{ decision = "allow" }}\n'
    refused = 'expect = { decision = "deny" }\n'
    later = f'{step}{at.format("13:00:00")}expect = {{ decision = "allow" }}\n'
    all_of_it = f"{full}{step}{at.format('12:59:59')}{refused}{later}"
    result = await result_of(tmp_path, LIMIT, all_of_it, mutate=True)
    assert (differences(result), unnoticed(result)) == ([], [])
    at_once = f"{full}{step}{at.format('12:00:00')}{refused}"
    assert unnoticed(await result_of(tmp_path, LIMIT, at_once, mutate=True)) == [
        "the limit on send: 2 calls per hour: weakened: a shorter period"
    ]
    assert unnoticed(await result_of(tmp_path, LIMIT, full, mutate=True)) == [
        "the limit on send: 2 calls per hour: taken out",
        "the limit on send: 2 calls per hour: weakened: one call more",
        "the limit on send: 2 calls per hour: weakened: a shorter period",
    ]


async def test_a_default_is_a_rule(tmp_path: Path) -> None:
    policy = '[permissions]\ndefault = "deny"\nallow = ["read"]\n'
    result = await result_of(tmp_path, policy, case('decision = "allow"', "", "read"), mutate=True)
    assert unnoticed(result) == ["default deny: allow instead", "default deny: ask instead"]
    both = case('decision = "allow"', "", "read") + case('decision = "deny"')
    assert unnoticed(await result_of(tmp_path, policy, both, mutate=True)) == []


async def test_rules_of_an_agents_settings_are_rules(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text('{"permissions": {"deny": ["Bash(rm:*)"]}}')
    policy = '[[use]]\nfile = "settings.json"\ndialect = "claude"\npermissions = true\n'
    cases = case('decision = "deny"', "", "execute_command", 'command = "rm x"')
    result = await result_of(tmp_path, policy, cases, mutate=True)
    assert result.mutation is not None
    assert (result.mutation.total, unnoticed(result)) == (3, [])


async def test_no_mutant_is_tried_while_a_case_fails(tmp_path: Path) -> None:
    result = await result_of(tmp_path, ASK, case('decision = "deny"'), mutate=True)
    assert (result.passed, result.mutation) == (False, None)
