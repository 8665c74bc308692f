"""Aliases and rate limits are read; a rule or pattern that cannot be used stops start-up."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookproxy.config.load import load
from hookproxy.config.parse import parse
from hookproxy.config.validate import aliases, limits
from hookproxy.model.aliases import Alias
from hookproxy.model.durations import seconds_of, shown_duration
from hookproxy.model.errors import ConfigError
from hookproxy.model.limits import Beyond, Limit, Per, Within


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ('[permissions]\ndeny = ["a", "b("]', "permissions.deny[1]", ""),
        ('[audit]\nredact = ["fine", "(half"]', "audit.redact[1]", "not a regular expression"),
        ('[audit]\nredact = ["x*"]', "audit.redact[0]", "empty text"),
        (f'[audit]\nredact = ["a{{{10**12}}}"]', "audit.redact[0]", "not a regular expression"),
    ],
)
def test_an_invalid_pattern_is_an_error_with_its_key(tmp_path: Path, text: str, where: str, why: str) -> None:
    file = tmp_path / "hookproxy.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load(str(file), [], None, {}, str(tmp_path))
    assert raised.value.message.startswith(f"{file}: {where}: ")
    assert why in raised.value.message


def test_audit_settings_are_read(tmp_path: Path) -> None:
    file = tmp_path / "hookproxy.toml"
    file.write_text('[audit]\nredact = ["sk-[a-z]+"]\nredact_keys = ["token"]\nchain = true\nmax_file_bytes = 65536\n')
    settings = load(str(file), [], None, {}, str(tmp_path)).settings
    assert (settings.audit_redact, settings.audit_redact_keys) == (("sk-[a-z]+",), ("token",))
    assert (settings.audit_chain, settings.audit_shared, settings.audit_max_file_bytes) == (True, False, 65536)
    assert not settings.otel


# --- aliases and rate limits ---

PATH = "/x/hookproxy.toml"


def named(text: str) -> dict[str, Alias]:
    return {one.tool: one for one in aliases(parse(PATH, text), PATH)}


def test_a_tool_table_gives_an_alias_and_argument_names() -> None:
    found = named('[tools.execute_command]\nas = "Bash"\narguments = { command = "cmd", x = "x" }\n[tools.y]\nas = "Y"')
    assert found == {
        "execute_command": Alias("execute_command", "Bash", {"command": "cmd"}),
        "y": Alias("y", "Y"),
    }


def test_arguments_may_be_renamed_without_renaming_the_tool() -> None:
    assert named('[tools."git.log"]\narguments = { path = "repo_path" }') == {
        "git.log": Alias("git.log", "", {"path": "repo_path"})
    }


def test_an_empty_table_says_that_a_tool_has_no_other_name() -> None:
    assert named('preset = "filesystem"')["read_file"].name == "Read"
    assert named('preset = "filesystem"\n[tools.read_file]')["read_file"] == Alias("read_file")
    assert named("[tools.execute_command]") == {"execute_command": Alias("execute_command")}


def test_a_tool_table_beats_a_preset_and_a_later_preset_beats_an_earlier_one() -> None:
    text = 'preset = ["filesystem", "desktop-commander"]\n[tools.write_file]\nas = "Save"'
    found = named(text)
    assert found["write_file"] == Alias("write_file", "Save")
    assert found["read_file"].preset == "desktop-commander"
    assert found["read_text_file"] == Alias("read_text_file", "Read", {"file_path": "path"}, preset="filesystem")


def test_two_tools_may_have_one_name() -> None:
    found = named('[tools.a]\nas = "Bash"\n[tools.b]\nas = "Bash"')
    assert [one.name for one in found.values()] == ["Bash", "Bash"]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('preset = "filesystm"', "preset: there is no preset 'filesystm'", "did you mean 'filesystem'?"),
        ('preset = ["git", "zzz"]', "preset: there is no preset 'zzz'", "docs/reference.md has the list of presets"),
        (
            '[tools.x]\narguments = { a = "c", b = "c" }',
            "tools.x.arguments: 'a' and 'b' both name the tool's argument 'c'",
            "use one name for each argument",
        ),
    ],
)
def test_an_invalid_alias_or_preset_is_an_error_with_its_key(text: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        named(text)
    assert raised.value.message == f"{PATH}: {message}"
    assert raised.value.hint.startswith(hint)


def test_limits_keep_the_order_of_the_file() -> None:
    text = '[[limits]]\ntool = "a*"\ncalls = 1\nper = "second"\n[[limits]]\ntool = "*"\ncalls = 9\nper = "session"'
    assert limits(parse(PATH, text), PATH, text) == (
        Limit("a*", 1, Per.SECOND, "limits[0]", f"{PATH}:1: limits[0]"),
        Limit("*", 9, Per.SESSION, "limits[1]", f"{PATH}:5: limits[1]"),
    )


@pytest.mark.parametrize("tool", ["Bash(rm *)", "read|write", "a b"])
def test_a_limit_with_an_invalid_tool_pattern_is_an_error_with_its_key(tool: str) -> None:
    with pytest.raises(ConfigError) as raised:
        limits(parse(PATH, f'[[limits]]\ntool = "{tool}"\ncalls = 1\nper = "day"'), PATH, "")
    assert raised.value.message.startswith(f"{PATH}: limits[0].tool: '{tool}'")
    assert raised.value.hint


def test_a_table_has_a_limit_for_each_of_its_measures() -> None:
    text = (
        '[[limits]]\nsame = 5\ncalls = 50\nseconds = 300\nresult_bytes = "5MiB"\nwindow = "10m"\n'
        'within = "subagent"\nthen = "ask"\nmode = "monitor"\n[[limits]]\ncalls = 9\n'
    )
    *several, bare = limits(parse(PATH, text), PATH, text)
    assert [(limit.measure, limit.most) for limit in several] == [
        ("calls", 50),
        ("same", 5),
        ("seconds", 300),
        ("result_bytes", 5 << 20),
    ]
    for limit in several:
        assert (limit.tool, limit.period, limit.within, limit.beyond, limit.watched) == (
            "*", 600.0, Within.SUBAGENT, Beyond.ASK, True,
        )  # fmt: skip
    assert len({limit.key for limit in several}) == 4
    assert bare == Limit("*", 9, Per.SESSION, "limits[1]", f"{PATH}:10: limits[1]")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "limits nothing", "calls = 100"),
        ('tool = "x"\nper = "hour"', "limits nothing", "same = 5"),
        ('calls = 1\nper = "hour"\nwindow = "10m"', "has a period twice", "remove one"),
    ],
)
def test_a_limit_that_says_too_little_or_too_much_is_an_error(text: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        limits(parse(PATH, f"[[limits]]\n{text}"), PATH, f"[[limits]]\n{text}")
    assert raised.value.message.startswith(f"{PATH}:1: limits[0]: ")
    assert hint in raised.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "same = 0", "same = 1001", "seconds = 0", "seconds = -1", 'result_bytes = "0MiB"', 'result_bytes = "much"',
        'calls = 1\nwindow = "10"', 'calls = 1\nwindow = "0m"', 'calls = 1\nwindow = "ten minutes"',
        'calls = 1\nwithin = "user"', 'calls = 1\nthen = "allow"',
    ],
)  # fmt: skip
def test_a_value_that_no_limit_can_have_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r"limits\[0\]\."):
        parse(PATH, f"[[limits]]\n{text}")


@pytest.mark.parametrize(
    ("text", "seconds", "shown"),
    [("90s", 90, "90 seconds"), ("10m", 600, "10 minutes"), ("1 h", 3600, "1 hour"), ("2d", 172_800, "2 days")],
)
def test_a_duration_is_a_number_with_its_unit(text: str, seconds: float, shown: str) -> None:
    assert seconds_of(text) == seconds
    assert shown_duration(seconds) == shown
