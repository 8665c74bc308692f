"""Rules of an agent's settings file about paths: deny and ask rules take what cannot be judged, allow rules do not."""

from __future__ import annotations

import json
from typing import Final, Literal

import pytest

from hookproxy.model.hooks import Permission
from hookproxy.model.settings import AgentRule, Settings
from hookproxy.policy.call_texts import MOST_TEXTS, NO_PATH
from hookproxy.policy.rules import RuleDecision, Rules

READS: Final = ("Read", "Grep", "Glob")
EDITS: Final = ("Edit", "Write", "MultiEdit", "NotebookEdit")


def rule(decision: Literal["deny", "ask", "allow"], path: str, names: tuple[str, ...] = READS) -> AgentRule:
    text = f"{names[0]}({path})"
    return AgentRule(decision, text, "settings.json:3", names, path, ("/project",), ("/project",), "/home/kim")


def judge(agent_rule: AgentRule, tool: str, arguments: object) -> RuleDecision | None:
    raw = arguments if isinstance(arguments, bytes) else json.dumps(arguments).encode()
    return Rules.of(Settings(agent_rules=(agent_rule,))).judge((tool,), raw)


@pytest.mark.parametrize(
    ("tool", "arguments", "applies"),
    [
        ("Read", {"file_path": "/project/.env"}, True),
        ("Read", {"file_path": "src/.env"}, True),
        ("Read", {"file_path": "/project/SRC/.ENV"}, True),
        ("read", {"file_path": "/project/.env"}, True),
        ("Read", {"file_path": "/project/readme"}, False),
        ("Read", {"file_path": "/other/.env"}, False),
        ("Read", {"file_path": ["/other"]}, True),
        ("Read", {"file_path": 7}, True),
        ("Read", {"file_path": "/other", "extra": "/project/.env"}, False),
        ("Read", {"File_Path": {"deep": ["/project/.env"]}}, True),
        ("Read", {"File_Path": {"deep": ["/other"]}}, False),
        ("Read", {}, True),
        ("Read", {"file_path": "$HOME/.env"}, True),
        ("Read", {"file_path": "/project/a\0"}, True),
        ("Read", b'{"file_path":"\\ud800"}', True),
        ("Read", b'{"file_path":"/other","file_path":"/project/.env"}', True),
        ("Read", b"[]", True),
        ("Write", {"file_path": "/project/.env"}, False),
        ("Grep", {"path": "/project/.env", "pattern": "x"}, True),
        ("Grep", {"path": "/project/src", "pattern": "x"}, False),
        ("Grep", {"PATH": "/project/src", "pattern": "x"}, False),
        ("Read", {"file_path": "/" + "x" * NO_PATH + "/../project/.env"}, True),
        ("Read", {"file_path": "/other", "text": "x" * (NO_PATH + 1)}, False),
        ("Read", {"File_Path": ["x"] * 100}, False),
        ("Read", {"File_Path": ["x"] * (MOST_TEXTS + 1)}, True),
    ],
)
@pytest.mark.parametrize("decision", ["deny", "ask"])
def test_a_rule_about_paths_applies_to_what_may_be_such_a_path(
    decision: Literal["deny", "ask"], tool: str, arguments: object, applies: bool
) -> None:
    ruling = judge(rule(decision, ".env"), tool, arguments)
    if not applies:
        assert ruling is None
        return
    assert ruling is not None
    assert (ruling.permission, ruling.rule, ruling.place) == (
        Permission.DENY if decision == "deny" else Permission.ASK,
        "Read(.env)",
        "settings.json:3",
    )
    assert ruling.reason


def test_a_search_without_a_path_is_one_in_the_folder_itself() -> None:
    assert judge(rule("deny", "**"), "Grep", {"pattern": "x"}) is not None
    assert judge(rule("deny", "/project/**"), "Grep", {"pattern": "x"}) is None, "it starts from another folder"
    assert judge(rule("deny", "src/**"), "Grep", {"pattern": "x"}) is None


@pytest.mark.parametrize(
    ("tool", "argument"),
    [("Edit", "file_path"), ("Write", "file_path"), ("MultiEdit", "file_path"), ("NotebookEdit", "notebook_path")],
)
def test_the_argument_with_the_path_is_that_of_the_tool(tool: str, argument: str) -> None:
    denied = rule("deny", "a", EDITS)
    assert judge(denied, tool, {argument: "/project/a"}) is not None
    assert judge(denied, tool, {argument: "/project/b"}) is None
    allowed = rule("allow", "a", EDITS)
    assert judge(allowed, tool, {argument: "/project/a"}) is not None
    assert judge(allowed, tool, {"path": "/project/a"}) is None


def test_one_tool_with_two_names_is_judged_by_both() -> None:
    rules = Rules.of(Settings(agent_rules=(rule("deny", "a"),)))
    for name in ("read_file", "mcp__files__read"):
        assert rules.judge((name, "Read"), b'{"file_path":"/project/a"}') is not None
        assert rules.judge((name, "Read"), b'{"file_path":"/project/b"}') is None
        assert rules.judge((name,), b'{"file_path":"/project/a"}') is None


@pytest.mark.parametrize(
    ("tool", "arguments", "covered"),
    [
        ("Read", {"file_path": "/project/src/a.py"}, True),
        ("Read", {"file_path": "src/a.py", "limit": 3}, True),
        ("Grep", {"path": "/project/src", "pattern": 3}, True),
        ("Read", {"file_path": "/project/SRC/a.py"}, False),
        ("read", {"file_path": "/project/src/a.py"}, False),
        ("Read", {"file_path": "/project/src/../a.py"}, False),
        ("Read", {"file_path": "/project/src/a.py", "other": "/etc"}, False),
        ("Read", {"file_path": "/project/a.py"}, False),
        ("Read", {"file_path": 3}, False),
        ("Read", {}, False),
        ("Write", {"file_path": "/project/src/a.py"}, False),
        ("Read", b"[]", False),
    ],
)
def test_an_allow_rule_covers_only_what_certainly_is_such_a_path(tool: str, arguments: object, covered: bool) -> None:
    ruling = judge(rule("allow", "/src"), tool, arguments)
    assert (ruling is not None) is covered
    if ruling is not None:
        assert (ruling.permission, ruling.rule, ruling.place) == (Permission.ALLOW, "Read(/src)", "settings.json:3")


def test_a_rule_of_an_agent_without_a_path_is_like_ours_and_names_its_place() -> None:
    for decision, permission in (("deny", Permission.DENY), ("ask", Permission.ASK), ("allow", Permission.ALLOW)):
        plain = AgentRule(decision, "Bash(git status)", "settings.json:4")  # type: ignore[arg-type]  # one of the three
        ruling = judge(plain, "Bash", {"command": "git status"})
        assert ruling is not None
        assert (ruling.permission, ruling.rule, ruling.place) == (permission, "Bash(git status)", "settings.json:4")
        assert judge(plain, "Bash", {"command": "ls"}) is None
        assert judge(plain, "Write", {"command": "git status"}) is None


def test_an_agents_rules_come_after_our_own() -> None:
    both = Settings(deny=("Read",), agent_rules=(rule("deny", ".env"),))
    ruling = Rules.of(both).judge(("Read",), b'{"file_path":"/project/.env"}')
    assert ruling is not None
    assert (ruling.rule, ruling.place) == ("Read", "")


def in_folder(folder: str, tool: str, arguments: dict[str, str]) -> bool:
    searched = AgentRule("deny", "Grep(x)", "s:1", READS, "secrets/**", ("/project",), (folder,), "/home/kim")
    return judge(searched, tool, arguments) is not None


def test_a_search_is_one_in_the_folder_only_if_no_path_is_named() -> None:
    assert in_folder("/project/secrets", "Grep", {"pattern": "/zz"})
    assert not in_folder("/project", "Grep", {"pattern": "/zz"})
    assert not in_folder("/project/secrets", "Grep", {"pattern": "/zz", "path": "/other"})
    assert not in_folder("/project/secrets", "Grep", {"pattern": "/zz", "PATH": "/other"})
    assert not in_folder("/project/secrets", "Read", {"file_path": "/other"})


def test_a_rule_about_paths_knows_the_home_folder_and_hides_no_tool() -> None:
    home = AgentRule("deny", "Read(~/x)", "s:1", READS, "x", ("/home/kim",), ("/project",), "/home/kim")
    assert judge(home, "Read", {"file_path": "~/x"}) is not None
    assert not Rules.of(Settings(agent_rules=(home,))).hides(("Read",))
    whole = AgentRule("deny", "Read", "s:1")
    assert Rules.of(Settings(agent_rules=(whole,))).hides(("Read",))


def test_a_tool_that_a_rule_of_an_agent_allows_is_not_hidden_by_the_default() -> None:
    for allowed in (rule("allow", "**"), AgentRule("allow", "Read(x)", "settings.json:4")):
        rules = Rules.of(Settings(agent_rules=(allowed,), default_permission="deny"))
        assert not rules.hides_by_default(("x", "Read"), ("x", "Read"))
        assert rules.hides_by_default(("x", "Bash"), ("x", "Bash"))
