"""What is proposed in place of a text that is not a rule is one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookproxy.policy.rule_repairs import glob_meant, rule_repair
from hookproxy.policy.rules import parsed
from tests.support.examples import examples


@pytest.mark.parametrize(
    ("name", "glob"),
    [
        ("write_.*", "write_*"),
        (".*_file", "*_file"),
        ("^write", "write*"),
        ("^write$", "write"),
        ("write_.+", "write_*"),
        (r"git\.commit", "git.commit"),
        (r"get_\w+", "get_*"),
        ("write_*", ""),
        ("fs.*", ""),  # tools may have a dot in their names
        ("fs.read", ""),
        ("a?", ""),
        ("[ab]*", ""),
        ("*", ""),
    ],
)
def test_a_regular_expression_is_told_from_a_glob(name: str, glob: str) -> None:
    assert glob_meant(name) == glob


@pytest.mark.parametrize(
    "text",
    [
        "^write",
        "(write|edit)_file",
        "a|b",
        "Bash(rm:*",
        "Bash(a) && Edit(b)",
        "a, b(c)",
        "write file",
        "x_.*(a)",
        "get_(a|b)",
    ],
)
def test_what_is_proposed_is_a_rule(text: str) -> None:
    repair = rule_repair(text)
    proposed = re.findall("'([^']*)'", repair.replace("tool's", "tool"))
    assert proposed, repair
    for rule in proposed:
        parsed(rule)


@pytest.mark.parametrize(
    ("text", "repair"),
    [
        ("Bash(", "remove the parenthesis: 'Bash', or name an argument in it"),
        ("Bash((", "close the parenthesis: 'Bash(())'"),
        ("Bash rm -rf x", "write what it is about in parentheses: 'Bash(rm -rf x)'"),
        ("write my file", "a tool's name has no blanks: write 'write_my_file'"),
        ("write file(a b)", "a tool's name has no blanks: write 'write_file(a b)'"),
        ("write-file!", ""),
    ],
)
def test_a_repair_keeps_what_was_written(text: str, repair: str) -> None:
    assert rule_repair(text) == repair


@examples(200)
@given(st.text(st.sampled_from("ab_.*+?^$|(), &\\{}[]:"), max_size=12))
def test_any_text_is_answered_at_once(text: str) -> None:
    rule_repair(text)
    glob_meant(text)
