"""Rules about what `Read` reads hold for tools that search and list files, where these are given the path itself."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from hookproxy.model.hooks import Permission
from hookproxy.model.settings import Settings
from hookproxy.policy.rules import Rules

ENV, FOLDER = "Read(**/.env)", "Read(/srv/keys/**)"


def judged(rule: str, names: tuple[str, ...], arguments: dict[str, object], *, fast: bool = True) -> bool:
    tool_rules = Rules.of(Settings(deny=(rule,))).about(names)
    if not fast:
        tool_rules = replace(tool_rules, words=None)
    decision = tool_rules.judge(json.dumps(arguments, separators=(",", ":")).encode())
    return decision is not None and decision.permission is Permission.DENY


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    ("rule", "names", "arguments"),
    [
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
    ],
)
def test_a_rule_for_read_holds_for_a_search_of_the_path(
    rule: str, names: tuple[str, ...], arguments: dict[str, object], fast: bool
) -> None:
    assert judged(rule, names, arguments, fast=fast)


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    ("rule", "names", "arguments"),
    [
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
    ],
)
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
