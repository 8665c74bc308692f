"""Merging one hookproxy.toml into another: what is there keeps its bytes, and nothing is changed silently."""

from __future__ import annotations

import tomllib

import pytest

from hookproxy.model.errors import ConfigError
from hookproxy.wrapping.merge_toml import merge

POLICY = """# No pushes: history stays.

[[hooks.PreToolUse]]
name = "pushes"
matcher = "Bash"   # any shell
type = "python"
call = "pushes:check"

[permissions]      # also rules
deny = ["Bash(git push --force:*)", "Bash(git push --mirror:*)"]
hide_denied = false
"""


def added(text: str, addition: str = POLICY) -> str:
    """The merged text, in which all lines of the first one are still there, in their order."""
    merged = merge("x.toml", text, addition, "no-push").text
    rest = iter(merged.splitlines())
    assert merge("x.toml", merged, addition, "no-push").text == merged, "a second time changes nothing"
    for line in text.splitlines():
        if not any(part in line for part in ("deny", '"x"', "'''")):  # lines of the list itself
            assert line in rest, line
    return merged


@pytest.mark.parametrize("text", ["", "# mine\n", "# mine", '\ufeffon_ask = "deny"\n', "[audit]\nenabled = true\n\n\n"])
def test_missing_tables_are_appended_with_their_comments(text: str) -> None:
    merged = added(text)
    assert merged.startswith(text)
    assert "# No pushes: history stays." in merged
    assert 'matcher = "Bash"   # any shell' in merged
    assert "[permissions]      # also rules" in merged


def test_a_list_that_is_there_gets_what_it_lacks() -> None:
    merged = added('[permissions]\ndeny = ["x", "Bash(git push --force:*)"]  # why\n')
    assert 'deny = ["x", "Bash(git push --force:*)", "Bash(git push --mirror:*)"]  # why\n' in merged
    assert "hide_denied = false\n" in merged


@pytest.mark.parametrize(
    "text",
    [
        "[permissions]\ndeny = []\n",
        "[permissions]\ndeny = [ ]\n",
        '[permissions]\ndeny = ["x",]\n',
        '[permissions]\ndeny = [\n  "x",  # why\n  # the end\n]\n',
        '[permissions]\ndeny = [\n  "x"  # why, or ] not\n]\n',
        '[permissions]\ndeny = [\n  "x" ] # all\nask = ["y"]\n',
        "[permissions]\ndeny = [ \"x\", '''y]\n''' ]",
        "permissions.deny = ['x']\n\n[audit]\nenabled = true\n",
        "[audit]\nenabled = true\n[permissions]\n# nothing\n\n[otel]\nenabled = false\n",
        '["permissions"]\n"deny" = [\'x\']\n',
        '[[hooks.PreToolUse]]\ncommand = "x"\n\n[hooks]\nnotifications = "pass"\n',
        '[hooks]\nnotifications = "pass"\n\n[[hooks.PreToolUse]]\ncommand = "x"\n[hooks.PreToolUse.env]\nA = "b"\n',
        '[permissions]\r\n# mine\r\ndeny = [\r\n  "x",\r\n]\r\n',
        f'[permissions]\ndeny = ["{"x" * 100}"]\n',
    ],
)
def test_every_layout_of_what_is_there_is_kept(text: str) -> None:
    merged = added(text)
    values, before = tomllib.loads(merged), tomllib.loads(text)
    old = before.get("permissions", {}).get("deny", [])
    assert values["permissions"]["deny"] == [*old, "Bash(git push --force:*)", "Bash(git push --mirror:*)"]
    assert values["hooks"]["PreToolUse"][-1]["name"] == "pushes"
    assert ("\r\n" in text) == ("\r\n" in merged)
    assert merged.count("\n") == merged.count("\r\n") or "\r\n" not in text
    for comment in ("# why", "# the end", "# mine", "# all", "# nothing"):
        assert (comment in text) == (comment in merged)


def test_keys_of_no_table_come_before_the_first_table() -> None:
    merged = added("#:schema x\n\n# about the audit\n[audit]\nenabled = true\n", 'on_failure = "deny"\n')
    assert merged == '#:schema x\n\non_failure = "deny"\n\n# about the audit\n[audit]\nenabled = true\n'
    merged = added("strict = true\n\n[audit]\nenabled = true\n", 'on_failure = "deny"\n')
    assert merged == 'strict = true\non_failure = "deny"\n\n[audit]\nenabled = true\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "[permissions]\n\nhide_denied = true\n",
            "x.toml:3: permissions.hide_denied is true here, and no-push needs false",
        ),
        ("permissions = 5\n", "x.toml:1: permissions is 5 here"),
        ("[permissions]\ndeny = 'x'\n", 'x.toml:2: permissions.deny is "x" here'),
        (
            '[[hooks.PreToolUse]]\nname = "pushes"\nmatcher = "mine"\ntype = "python"\ncall = "pushes:check"\n',
            "x.toml:1: hooks.PreToolUse is .* here, and no-push has it with other values",
        ),
        ("[permissions\n", "x.toml:1"),
    ],
)
def test_another_value_is_an_error_that_names_the_line(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as raised:
        merge("x.toml", text, POLICY, "no-push")
    assert raised.value.hint


@pytest.mark.parametrize(
    "text",
    ["permissions = { ask = ['x'] }\n", "hooks = { PreToolUse = [ { command = 'x' } ] }\n", "hooks.PreToolUse = []"],
)
def test_a_layout_that_cannot_be_extended_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"laid out|header of its own") as raised:
        merge("x.toml", text, POLICY, "no-push")
    assert "by hand" in raised.value.hint


def test_a_limit_with_another_number_is_not_added_beside_it() -> None:
    mine = '[[limits]]\ntool = "*search*"\ncalls = 5\nper = "hour"\n'
    with pytest.raises(ConfigError, match="limits is"):
        merge("x.toml", mine, mine.replace("5", "20"), "cost-limits")


def test_limits_of_other_measures_or_times_stand_beside_each_other() -> None:
    mine = '[[limits]]\ncalls = 200\n\n[[limits]]\nsame = 3\nwindow = "10m"\n'
    other = '[[limits]]\nsame = 6\nwindow = "30m"\n\n[[limits]]\nseconds = 60\n'
    merged = merge("x.toml", mine, other, "loops")
    assert merged.text.startswith(mine)
    assert len(tomllib.loads(merged.text)["limits"]) == 4
    with pytest.raises(ConfigError, match="limits is"):
        merge("x.toml", mine, '[[limits]]\nsame = 6\nwindow = "10m"\n', "loops")
