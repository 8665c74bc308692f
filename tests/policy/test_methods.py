"""Which patterns of rules and matchers are about methods, and which about tools only."""

from __future__ import annotations

import re

import pytest

from hookproxy.model.hooks import Permission
from hookproxy.model.limits import Limit, Per
from hookproxy.model.settings import Settings
from hookproxy.policy import methods
from hookproxy.policy.matchers import claude_matcher, permission_rule
from hookproxy.policy.rate_limits import RateLimits
from hookproxy.policy.rules import Rules

READ = "resources/read"


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("resources/read", True),
        ("resources/*", True),
        ("*/*", True),
        ("Bash|resources/read", True),
        ("Bash, resources/read", True),
        ("prompts/get|resources/?ead", True),
        ("^resources/(read|subscribe)$", True),
        (r"resources\/read", True),
        (".*/.*", True),
        ("prompts/*", False),
        ("", False),
        ("*", False),
        (".*", False),
        (".*/?.*", False),
        ("Read", False),
        ("resources_read", False),
        ("mcp__files__.*", False),
        ("[/", False),
        ("(resources/read", False),
    ],
)
def test_a_matcher_is_about_a_method_only_if_it_names_it(pattern: str, named: bool) -> None:
    assert methods.pattern_names_method(pattern, READ) is named


@pytest.mark.parametrize("pattern", ["*/*", "resources/*", "prompts/*|resources/read"])
def test_a_matcher_of_globs_for_methods_matches_no_tool(pattern: str) -> None:
    matches = claude_matcher(pattern)
    assert not any(map(matches, ["Bash", "resources", "prompts", "list_prompts", "*/*", ""]))


def test_a_matcher_may_name_tools_beside_methods() -> None:
    matches = claude_matcher("write_file|prompts/*")
    assert matches("write_file")
    assert not matches("prompts")
    assert claude_matcher("resources/read|*")("anything")


def test_a_slash_that_names_no_method_stays_a_part_of_the_matcher() -> None:
    assert claude_matcher("repo/issues")("repo/issues")
    assert claude_matcher("a/b|c.*")("ccc")
    with pytest.raises(re.error):
        claude_matcher("*/nothing(")


@pytest.mark.parametrize("rule", ["resources/read", "Resources/*", "*/*", "re*/*"])
def test_a_rule_with_a_slash_names_methods(rule: str) -> None:
    rules = Rules.of(Settings(deny=(rule,)))
    assert rules.concerns((READ,))
    decision = rules.judge((READ,), b'{"uri":"file:///a"}')
    assert decision is not None
    assert decision.permission is Permission.DENY


@pytest.mark.parametrize("rule", ["*", "re*", "*read*", "r?sources*", "prompts/*", "*(**/a)"])
def test_other_rules_are_about_tools_only(rule: str) -> None:
    rules = Rules.of(Settings(deny=(rule,)))
    assert not rules.concerns((READ,))
    assert rules.judge((READ,), b'{"uri":"file:///a"}') is None


def test_an_allow_rule_for_all_tools_allows_no_method() -> None:
    assert Rules.of(Settings(allow=("*",))).judge((READ,), b"{}") is None
    decision = Rules.of(Settings(allow=("resources/*",))).judge((READ,), b"{}")
    assert decision is not None
    assert decision.permission is Permission.ALLOW


def test_a_familiar_name_means_the_method_unless_the_rule_is_about_every_name() -> None:
    arguments = b'{"file_path":"/home/a/.env"}'
    assert Rules.of(Settings(deny=("Read(**/.env)",))).judge((READ, "Read"), arguments) is not None
    assert Rules.of(Settings(deny=("Re*(**/.env)",))).judge((READ, "Read"), arguments) is not None
    assert Rules.of(Settings(deny=("*(**/.env)",))).judge((READ, "Read"), arguments) is None


def test_a_rate_limit_counts_a_method_only_if_it_names_it() -> None:
    limits = RateLimits([Limit("*", 1, Per.HOUR, "all"), Limit("prompts/*", 1, Per.HOUR, "prompts")], lambda: 0.0)
    assert not limits.concerns((READ,))
    assert [limit.tool for limit in limits.applicable(("prompts/get",))] == ["prompts/*"]


def test_a_condition_on_a_hook_asks_for_the_method_by_its_name() -> None:
    assert permission_rule("resources/read")(READ, b"{}")
    assert not permission_rule("*")(READ, b"{}")


def test_each_method_has_a_direction_and_none_is_a_tool_call() -> None:
    assert methods.TOOLS_CALL not in methods.JUDGED
    assert all(name.count("/") == 1 for name in methods.JUDGED)
