"""Rules about what `Read` reads hold for tools that search and list files, where these are given the path itself."""

from __future__ import annotations

import json
from typing import Final

import pytest
from msgspec.structs import replace

from hookproxy.model.hooks import Permission
from hookproxy.model.settings import AgentRule, Settings
from hookproxy.policy.rules import Rules

ENV, FOLDER = "Read(**/.env)", "Read(/srv/keys/**)"


SEARCHES: Final[list[tuple[str, tuple[str, ...], dict[str, object]]]] = [
    (ENV, ("Grep",), {"pattern": "KEY", "path": "/srv/app/.env"}),
    (ENV, ("Grep",), {"pattern": "KEY", "path": "/srv/app", "glob": ".env"}),
    (ENV, ("Grep",), {"pattern": "KEY", "path": "/srv/app/x/../.ENV"}),
    (ENV, ("grep_search", "Grep"), {"query": "KEY", "includePattern": "app/.env"}),
    (ENV, ("Glob",), {"pattern": "**/.env"}),
    (ENV, ("Glob",), {"pattern": ".env", "path": "/srv/app"}),
    (ENV, ("list_directory", "LS"), {"path": "/srv/app/.env"}),
    (ENV, ("list_directory", "LS"), {"dir_path": ["a", "/srv/app/.env"]}),
    (FOLDER, ("LS",), {"path": "/srv/keys"}),
    (FOLDER, ("Grep",), {"pattern": "KEY", "path": "/srv/keys/"}),
    (FOLDER, ("Glob",), {"path": "/srv", "pattern": "keys/*"}),
    ("Read(~/.ssh/id_rsa)", ("Glob",), {"path": "~/.ssh", "pattern": "id_rsa"}),
    (
        "Read(/srv/keys/id_rsa)",
        ("Glob",),
        {**{f"a{i}": "x" for i in range(40)}, "path": "/srv/keys", "p": "id_rsa"},
    ),
    ("Rea*(**/.env)", ("Grep",), {"pattern": "KEY", "path": ".env"}),
]
OTHERS: Final[list[tuple[str, tuple[str, ...], dict[str, object]]]] = [
    (ENV, ("Grep",), {"pattern": ".env"}),  # what is searched for is not a path
    (ENV, ("Grep",), {"pattern": "a/.env", "path": "/srv/app"}),
    (ENV, ("Grep",), {"pattern": "KEY"}),
    (ENV, ("LS",), {}),
    (ENV, ("LS",), {"path": "/srv/app"}),  # a folder above
    (ENV, ("Glob",), {"pattern": "**/*.py", "path": "/srv/app"}),
    (ENV, ("Glob",), {"pattern": "env", "path": "/srv/app"}),
    (FOLDER, ("LS",), {"path": "/srv"}),
    (FOLDER, ("Write",), {"file_path": "/srv/keys/a"}),  # as before: only Claude Code's own files deny that, too
    ("Read", ("Grep",), {"pattern": "KEY", "path": "/srv"}),  # a rule without a path is about the tool
]


def judged(rule: str, names: tuple[str, ...], arguments: dict[str, object], *, fast: bool = True) -> bool:
    tool_rules = Rules.of(Settings(deny=(rule,))).about(names)
    if not fast:
        tool_rules = replace(tool_rules, words=None)
    decision = tool_rules.judge(json.dumps(arguments, separators=(",", ":")).encode())
    return decision is not None and decision.permission is Permission.DENY


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(("rule", "names", "arguments"), SEARCHES)
def test_a_rule_for_read_holds_for_a_search_of_the_path(
    rule: str, names: tuple[str, ...], arguments: dict[str, object], fast: bool
) -> None:
    assert judged(rule, names, arguments, fast=fast)


SAME = {ENV: (".env", "/"), FOLDER: ("/keys/**", "/srv"), "Read(/srv/keys/id_rsa)": ("/keys/id_rsa", "/srv")}
"""Patterns of an agent's settings file that say the same as a rule, with the folder from which they start."""


def judged_by_agent(rule: str, names: tuple[str, ...], arguments: dict[str, object]) -> bool:
    pattern, base = SAME[rule]
    searched = ("Read", "Grep", "Glob", "LS")
    agent_rule = AgentRule("deny", f"Read({pattern})", "s:1", searched, pattern, (base,), ("/work",), "/home/kim")
    decision = Rules.of(Settings(agent_rules=(agent_rule,))).judge(names, json.dumps(arguments).encode())
    return decision is not None and decision.permission is Permission.DENY


@pytest.mark.parametrize(("rule", "names", "arguments"), [case for case in SEARCHES if case[0] in SAME])
def test_a_rule_of_an_agents_settings_file_holds_for_the_same_searches(
    rule: str, names: tuple[str, ...], arguments: dict[str, object]
) -> None:
    assert judged_by_agent(rule, names, arguments)


@pytest.mark.parametrize(("rule", "names", "arguments"), [case for case in OTHERS if case[0] in SAME])
def test_other_searches_pass_a_rule_of_an_agents_settings_file(
    rule: str, names: tuple[str, ...], arguments: dict[str, object]
) -> None:
    assert not judged_by_agent(rule, names, arguments)


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(("rule", "names", "arguments"), OTHERS)
def test_other_searches_pass(rule: str, names: tuple[str, ...], arguments: dict[str, object], fast: bool) -> None:
    assert not judged(rule, names, arguments, fast=fast)


def test_an_allow_rule_for_read_allows_no_search() -> None:
    rules = Rules.of(Settings(allow=("Read(/srv/**)",), default_permission="deny"))
    assert rules.judge(("Grep",), b'{"pattern":"x","path":"/srv/a"}') is None


def test_tools_that_search_are_concerned_by_a_rule_about_paths_of_read() -> None:
    rules = Rules.of(Settings(deny=(ENV,)))
    assert all(rules.concerns((name,)) for name in ("Read", "Grep", "Glob", "LS"))
    assert not rules.concerns(("Bash",))
    assert not rules.hides(("Grep",))


def test_many_rules_leave_an_ordinary_search_alone() -> None:
    rules = Rules.of(Settings(deny=tuple(f"Read(**/secret{number}/**)" for number in range(200))))
    search = {"pattern": "a", "path": "/srv/app", "glob": "*.py", "type": "py", "output_mode": "content", "-n": True}
    assert rules.judge(("Grep",), json.dumps(search).encode()) is None


def test_many_rules_of_an_agents_settings_file_leave_an_ordinary_search_alone() -> None:
    searched = ("Read", "Grep", "Glob", "LS")
    agent_rules = tuple(
        AgentRule(
            "deny", f"Read(s{number})", "s:1", searched, f"secret{number}/**", ("/work",), ("/work",), "/home/kim"
        )
        for number in range(200)
    )
    rules = Rules.of(Settings(agent_rules=agent_rules))
    search = {"pattern": "a", "path": "/srv/app", "glob": "*.py", "type": "py", "output_mode": "content", "-n": True}
    assert rules.judge(("Grep",), json.dumps(search).encode()) is None


@pytest.mark.parametrize(
    ("pattern", "arguments"),
    [
        ("[s]ecrets/**", {"path": "secrets", "pattern": "*"}),
        ("work/**", {"pattern": "x"}),
        ("/**", {"path": "src", "pattern": "*.py"}),
        (".env", {"path": "file:///srv/%2e%65nv", "pattern": "x"}),
        (".env", {"path": "/srv/app/..", "pattern": ".env"}),
    ],
)
def test_what_a_pattern_spells_is_not_always_in_the_arguments(pattern: str, arguments: dict[str, str]) -> None:
    searched = ("Read", "Grep", "Glob", "LS")
    rule = AgentRule("deny", f"Read({pattern})", "s:1", searched, pattern, ("/work", "/"), ("/work",), "/home/kim")
    assert Rules.of(Settings(agent_rules=(rule,))).judge(("Glob",), json.dumps(arguments).encode()) is not None
