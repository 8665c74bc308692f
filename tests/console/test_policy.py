"""The policy page: settings and rules with their places, lines to add, rules that are only tried."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from msgspec.structs import replace

from hookproxy.config.load import Loaded, load
from hookproxy.console import policy
from hookproxy.hooks.permissions import Permissions
from hookproxy.hooks.select import HookGroups
from hookproxy.model.errors import ConfigError
from hookproxy.model.settings import Settings

TOML = """\
on_ask = "deny"

[permissions]
deny = ["delete_*"]
ask = ["write_*"]

[audit]
arguments = "digest"
"""


def loaded(folder: Path, text: str = TOML, hooks: tuple[str, ...] = ()) -> Loaded:
    path = folder / "hookproxy.toml"
    path.write_text(text)
    return load(str(path), hooks, None, {"HOME": str(folder)}, str(folder))


def test_settings_say_where_they_are_set(tmp_path: Path) -> None:
    found = {one.key: one for one in policy.settings_in_force(loaded(tmp_path))}
    file = f"{tmp_path}/hookproxy.toml"
    assert (found["on_ask"].value, found["on_ask"].place, found["on_ask"].layer) == (
        "deny",
        f"{file}:1",
        "hookproxy.toml",
    )
    assert (found["audit.arguments"].value, found["audit.arguments"].place) == ("digest", f"{file}:8")
    assert (found["max_depth"].value, found["max_depth"].place, found["max_depth"].layer) == ("64", "", "")


def test_one_key_is_one_setting_although_several_fields_hold_it(tmp_path: Path) -> None:
    for text, value in (
        ('"console"', "console"),
        ('"auto"', "auto"),
        ('"deny"', "deny"),
        ('{ command = ["./ask", "a b"] }', f"command {tmp_path}/ask 'a b'"),
    ):
        found = policy.settings_in_force(loaded(tmp_path, f"on_ask_fallback = {text}\n"))
        assert [one.value for one in found if one.key == "on_ask_fallback"] == [value]
    assert len({one.key for one in found}) == len(found)


def test_tables_are_shown_as_their_keys_and_no_secret_is(tmp_path: Path) -> None:
    hook = '[approvals.webhook]\nurl = "https://chat.example/x"\nsecret = "env:KEY"\n'
    found = policy.settings_in_force(loaded(tmp_path, f'{hook}[secrets.values]\nkey = "env:KEY"\n'))
    shown = {one.key: one.value for one in found}
    assert 'url = "https://chat.example/x"' in shown["approvals"]
    assert 'key = "env:KEY"' in shown["secrets"]
    plain = {one.key: one.value for one in policy.settings_in_force(loaded(tmp_path, ""))}
    assert (plain["approvals"], plain["secrets"], plain["lock"]) == ("none", "none", "none")


def test_rules_say_where_they_are_written(tmp_path: Path) -> None:
    rules = [(one.decision, one.text, one.place) for one in policy.rules_in_force(loaded(tmp_path))]
    file = f"{tmp_path}/hookproxy.toml"
    assert rules == [
        ("deny", "delete_*", f"{file}:4: permissions.deny[0]"),
        ("ask", "write_*", f"{file}:5: permissions.ask[0]"),
    ]


def test_rules_of_packs_are_shown_as_theirs(tmp_path: Path) -> None:
    with_pack = loaded(tmp_path)
    of_pack = Settings(allow=("read",), default_permission="deny", called="the pack quiet")
    with_pack = replace(with_pack, settings=replace(with_pack.settings, pack_rules=(of_pack,)))
    rules = [(one.decision, one.text, one.layer) for one in policy.rules_in_force(with_pack)]
    assert rules[:2] == [("allow", "read", "the pack quiet"), ("default", "deny", "the pack quiet")]
    assert len(rules) == 4


def test_lines_to_add_to_a_list_are_the_whole_new_list(tmp_path: Path) -> None:
    lines = policy.lines_for(loaded(tmp_path), "deny", 'na"me\\\x7f😀')
    assert tomllib.loads(lines.text) == {"deny": ["delete_*", 'na"me\\\x7f😀']}
    assert lines.where == f"in [permissions] of {tmp_path}/hookproxy.toml, in place of line 4"


def test_lines_for_a_new_list_have_its_table(tmp_path: Path) -> None:
    lines = policy.lines_for(loaded(tmp_path, ""), "allow", "read")
    assert tomllib.loads(lines.text) == {"permissions": {"allow": ["read"]}}


@pytest.mark.parametrize("tool", ["read", "a*b", "a?b", "a[b]", "run(x)"])
def test_the_name_of_a_rule_stands_for_that_tool(tmp_path: Path, tool: str) -> None:
    rules = policy.with_rules(
        loaded(tmp_path, ""), policy.lines_for(loaded(tmp_path, ""), "deny", policy.rule_name("files", tool)).text
    )
    permissions = Permissions(HookGroups((), "files"), rules.settings)
    assert permissions.concerns(tool)
    assert not permissions.concerns(f"{tool}2")


def test_rules_are_tried_without_being_written(tmp_path: Path) -> None:
    tried = policy.with_rules(loaded(tmp_path), '[permissions]\ndeny = ["read_*"]')
    assert tried.settings.deny == ("delete_*", "read_*")
    assert (tmp_path / "hookproxy.toml").read_text() == TOML


@pytest.mark.parametrize(
    "text",
    [
        '[[hooks.PreToolUse]]\ncommand = "touch /tmp/x"',
        'use = [{ file = "x.json" }]',
        'on_ask_fallback = { command = ["x"] }',
        '[permissions]\ndeny = ["a("]',
        "[permissions]\nunknown = 1",
        "not toml",
    ],
)
def test_nothing_but_permission_rules_is_tried(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        policy.with_rules(loaded(tmp_path), text)


def test_a_hook_file_of_the_command_line_is_its_layer(tmp_path: Path) -> None:
    (tmp_path / "hooks.json").write_text('{"hooks": {}}')
    found = loaded(tmp_path, TOML, ("claude=hooks.json",))
    assert policy.layer_of(found, f"{tmp_path}/hooks.json") == "command line"
    assert policy.layer_of(found, f"{tmp_path}/hookproxy.toml") == "hookproxy.toml"
