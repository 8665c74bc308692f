"""What hookproxy.toml says about single tools, as values; and what a person is told about an unusable table."""

from __future__ import annotations

import pytest

from hookproxy.config.models import parse
from hookproxy.config.validate import aliases, limits
from hookproxy.model.aliases import Alias
from hookproxy.model.errors import ConfigError
from hookproxy.model.settings import Limit, Per

PATH = "/x/hookproxy.toml"


def named(text: str) -> dict[str, Alias]:
    return {one.tool: one for one in aliases(parse(PATH, text), PATH)}


def test_a_tool_has_a_name_and_arguments_for_hooks() -> None:
    found = named('[tools.execute_command]\nas = "Bash"\narguments = { command = "cmd", x = "x" }\n[tools.y]\nas = "Y"')
    assert found == {
        "execute_command": Alias("execute_command", "Bash", {"command": "cmd"}),
        "y": Alias("y", "Y"),
    }


def test_arguments_may_have_other_names_where_the_tool_has_not() -> None:
    assert named('[tools."git.log"]\narguments = { path = "repo_path" }') == {
        "git.log": Alias("git.log", "", {"path": "repo_path"})
    }


def test_an_empty_table_names_nothing_and_takes_a_presets_name_away() -> None:
    assert "read_file" in named('preset = "filesystem"')
    assert "read_file" not in named('preset = "filesystem"\n[tools.read_file]')


def test_what_is_said_of_a_tool_counts_before_a_preset_and_the_last_preset_before_others() -> None:
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
        ('preset = ["git", "zzz"]', "preset: there is no preset 'zzz'", "expected one of: filesystem, git, "),
        (
            '[tools.x]\narguments = { a = "c", b = "c" }',
            "tools.x.arguments: 'a' and 'b' both name the tool's argument 'c'",
            "use one name for each argument",
        ),
    ],
)
def test_a_name_that_cannot_be_used_is_told_with_its_key(text: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        named(text)
    assert raised.value.message == f"{PATH}: {message}"
    assert raised.value.hint.startswith(hint)


def test_limits_stand_in_the_files_order() -> None:
    text = '[[limits]]\ntool = "a*"\ncalls = 1\nper = "second"\n[[limits]]\ntool = "*"\ncalls = 9\nper = "session"'
    assert limits(parse(PATH, text), PATH) == (
        Limit("a*", 1, Per.SECOND, "limits[0]"),
        Limit("*", 9, Per.SESSION, "limits[1]"),
    )


@pytest.mark.parametrize("tool", ["Bash(rm *)", "read|write", "a b"])
def test_a_limit_on_what_names_no_tools_is_told_with_its_key(tool: str) -> None:
    with pytest.raises(ConfigError) as raised:
        limits(parse(PATH, f'[[limits]]\ntool = "{tool}"\ncalls = 1\nper = "day"'), PATH)
    assert raised.value.message.startswith(f"{PATH}: limits[0].tool: '{tool}'")
    assert raised.value.hint
