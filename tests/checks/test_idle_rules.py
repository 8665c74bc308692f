"""Rules that decide nothing are named, and rules that may decide something are not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from hookproxy.checks.idle_rules import default_that_refuses_all, rules_of_no_method, shadowed_rules
from hookproxy.checks.inspect import inspect
from hookproxy.config.load import load
from hookproxy.model.limits import Limit, Per
from hookproxy.model.settings import Settings


@pytest.mark.parametrize(
    ("deny", "ask", "allow", "idle"),
    [
        (("git_*",), ("git_push",), (), ["git_push"]),
        (("*",), ("a",), ("b(c:*)",), ["a", "b(c:*)"]),
        ((), ("write_*",), ("write_file",), ["write_file"]),
        (("x", "x"), (), (), ["x"]),
        (("Bash(rm:*)",), ("Bash(rm:*)",), (), ["Bash(rm:*)"]),
        (("Bash(rm:*)",), ("Bash",), ("Bash(ls)",), ["Bash(ls)"]),
        (("git_push",), ("git_*",), ("other",), []),
        (("Bash(rm:*)",), ("Bash(rm -r:*)", "Bash"), (), []),  # no claim about what two specifiers cover
        ((), (), ("a", "b"), []),
    ],
)
def test_a_rule_that_a_stronger_one_covers_is_named(
    deny: tuple[str, ...], ask: tuple[str, ...], allow: tuple[str, ...], idle: list[str]
) -> None:
    found = list(shadowed_rules(Settings(deny=deny, ask=ask, allow=allow)))
    assert [text.split("'")[1] for text in found] == idle
    assert all("(remove one of both" in text or "twice (remove one)" in text for text in found)
    assert all(('write default = "deny"' in text) is ("*" in deny and "b(c" in text) for text in found)


@pytest.mark.parametrize(
    ("of_deny", "of_ask", "is_named"),
    [
        ("permissions.deny[0]", "permissions.ask[0]", True),
        ("permissions.deny[0]", "servers.git.permissions.ask[0]", True),
        ("servers.git.permissions.deny[0]", "servers.git.permissions.ask[0]", True),
        ("servers.git.permissions.deny[0]", "permissions.ask[0]", False),  # it asks at other servers
    ],
)
def test_a_rule_for_all_servers_that_one_server_tightens_is_not_idle(of_deny: str, of_ask: str, is_named: bool) -> None:
    places = {"deny write_*": f"/g.toml:9: {of_deny}", "ask write_*": f"/g.toml:2: {of_ask}"}
    found = list(shadowed_rules(Settings(deny=("write_*",), ask=("write_*",), rule_places=places)))
    assert bool(found) is is_named
    assert all(text.startswith(f"/g.toml:2: {of_ask}: ") and "of /g.toml:9 refuses" in text for text in found)


@pytest.mark.parametrize(
    ("rule", "hint"),
    [
        ("resources/templates/list", "it always passes"),
        ("tools/call", "by the name of its tool"),
        ("subscriptions/listen(file:///a)", "write resources/subscribe"),
        ("resource/read(**/.env)", "did you mean 'resources/read'?"),
        ("resources/Read", ""),  # rules ignore case
        ("prompts/*", ""),
        ("*/*", ""),
        ("Read(**/.env)", ""),
        ("my_tool", ""),
        ("files/grep", ""),
    ],
)
def test_a_rule_about_a_method_that_is_not_judged_is_named(rule: str, hint: str) -> None:
    limits = (Limit(rule.partition("(")[0], 1, Per.MINUTE, "limits[0]"),)
    for found in (list(rules_of_no_method(Settings(deny=(rule,)))), list(rules_of_no_method(Settings(limits=limits)))):
        assert len(found) == bool(hint)
        assert all(hint in text for text in found)


HOOK: Final = '[[hooks.PreToolUse]]\ncommand = "true"'


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ('allow = ["a", "b"]', True),
        ('allow = ["a"]\nask = ["c"]', False),
        ('allow = ["a"]\ndeny = ["d"]', False),
        ('allow = ["a"]\ndefault = "deny"', False),
        ('allow = ["a"]\ndefault = "ask"', False),
        ('deny = ["a"]', False),
        (f'allow = ["a"]\n{HOOK}', False),  # it stands over a hook that asks
    ],
)
def test_an_allow_list_beside_which_everything_is_allowed_is_named(text: str, is_named: bool, tmp_path: Path) -> None:
    file = tmp_path / "hookproxy.toml"
    file.write_text(f"[permissions]\n{text}\n")
    remarks = load(str(file), [], None, os.environ, str(tmp_path)).remarks
    found = [text for text in remarks if "allow refuses nothing" in text]
    assert [text.startswith(f"{file}:2: ") and 'write default = "deny"' in text for text in found] == [True] * is_named


@pytest.mark.parametrize(
    ("settings", "has_hooks", "is_named"),
    [
        (Settings(default_permission="deny"), False, True),
        (Settings(default_permission="deny", deny=("x",)), False, True),
        (Settings(default_permission="deny", allow=("x",)), False, False),
        (Settings(default_permission="deny", ask=("x",)), False, False),
        (Settings(default_permission="deny"), True, False),
        (Settings(default_permission="ask"), False, False),
        (Settings(), False, False),
    ],
)
def test_a_default_that_refuses_all_is_named(settings: Settings, has_hooks: bool, is_named: bool) -> None:
    found = list(default_that_refuses_all(settings, has_hooks=has_hooks))
    assert len(found) == is_named
    assert all('allow = ["read_*"]' in text for text in found)


@pytest.mark.parametrize(("only_if", "repair"), [("Bash(^rm.*)", "write 'Bash(rm *)'"), ("Bash(rm *)", ""), ("", "")])
def test_an_if_that_can_match_nothing_is_named(tmp_path: Path, only_if: str, repair: str) -> None:
    path = tmp_path / "hookproxy.toml"
    path.write_text(f"[[hooks.PreToolUse]]\n{f'if = {only_if!r}' * bool(only_if)}\ncommand = 'true'\n")
    report = inspect(load(str(path), [], None, os.environ, str(tmp_path)), os.environ)
    assert [repair in finding.text for finding in report.findings if "matches no arguments" in finding.text] == (
        [True] * bool(repair)
    )
