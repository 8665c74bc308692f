"""The presets: names that hooks for Claude Code know, no tool twice, and each server recognised by its command line."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec
import pytest

from hookproxy.config.models import ConfigFile, ToolTable
from hookproxy.config.pydantic_models import model_of
from hookproxy.model.aliases import Alias
from hookproxy.policy import presets
from hookproxy.policy.matchers import JUDGED_ARGUMENT
from hookproxy.policy.presets import (
    PRESETS,
    Preset,
    SandboxProfile,
    names_in_any_preset,
    preset_aliases,
    preset_for,
    read_preset,
)

CLAUDE: Final = {
    "Bash": {"command", "timeout", "run_in_background"},
    "Edit": {"file_path", "old_string", "new_string", "replace_all"},
    "Glob": {"pattern", "path"},
    "Grep": {"pattern", "path", "glob"},
    "LS": {"path"},
    "MultiEdit": {"file_path", "edits"},
    "Read": {"file_path", "offset", "limit"},
    "WebFetch": {"url"},
    "WebSearch": {"query"},
    "Write": {"file_path", "content"},
}
"""Claude Code's own tools and what guards read of them."""


def faults(name: str, table: str) -> list[str]:
    """What is wrong with a table of `presets.toml`, for whoever has added it."""
    try:
        preset = read_preset(table)
    except msgspec.DecodeError as error:
        return [f"[{name}] {error}"]
    tools = [*(alias.tool for alias in preset.tools), *preset.others]
    lines = [line for alias in (*preset.tools, *preset.alternatives) for line in alias_faults(alias)]
    lines += [f"{tool} stands there {number} times" for tool, number in Counter(tools).items() if number > 1]
    lines += [
        f"{alias.tool}: an alternative says what it needs, and is one for a tool of `aliases`"
        for alias in preset.alternatives
        if not alias.needed or alias.tool not in tools
    ]
    lines += [
        f"{word!r} must stand in double quotes, without a backslash"
        for word in (*tools, *preset.packages, *preset.server_names)
        if f'"{word}"' not in table
    ]
    return [f"[{name}] {line}" for line in lines]


def alias_faults(alias: Alias) -> Iterator[str]:
    known = {**CLAUDE, "": {"path"}}.get(alias.name)
    if known is None:
        yield f"{alias.tool}: as = {alias.name!r} is not one of {', '.join(CLAUDE)}"
        return
    for seen, own in alias.arguments.items():
        if seen not in known:
            yield f"{alias.tool}: {alias.name} of Claude Code has no argument {seen!r}"
        if seen == own:
            yield f"{alias.tool}: the argument {seen!r} needs no other name"
    if len(set(alias.arguments.values())) < len(alias.arguments):
        yield f"{alias.tool}: two arguments are the same one of the server"


def test_every_preset_is_valid() -> None:
    tables = presets.tables()
    assert [fault for name, table in tables.items() for fault in faults(name, table)] == []
    assert list(tables) == list(tomllib.loads(presets.read_file()))  # each header was found, and nothing else is one


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ('aliases = [{ as = "Sh", tools = ["run"] }]', "run: as = 'Sh' is not one of Bash, Edit"),
        ('aliases = [{ tool = "run" }]', "Object contains unknown field `tool` - at `$.aliases[0]`"),
        ('aliases = [{ tools = ["run"], arg = 1 }]', "Object contains unknown field `arg` - at `$.aliases[0]`"),
        ('others = "run"', "Expected `array`, got `str` - at `$.others`"),
        ('others = ["run", "run"]', "run stands there 2 times"),
        ("others = ['run']", "'run' must stand in double quotes"),
        ('aliases = [{ as = "Bash", tools = ["run"], arguments = { cmd = "c" } }]', "run: Bash of Claude Code has no"),
        ('aliases = [{ as = "LS", tools = ["ls"], arguments = { path = "path" } }]', "'path' needs no other name"),
        ('alternatives = [{ as = "Bash", tools = ["run"] }]', "run: an alternative says what it needs"),
        ("others = [", "Invalid value"),
    ],
)
def test_whoever_writes_a_wrong_preset_is_told_what_and_where(lines: str, fault: str) -> None:
    (line,) = faults("mine", f'server = "mine"\npackages = ["mine"]\n{lines}\n')
    assert line.startswith("[mine] ")
    assert fault in line


def test_configured_aliases_may_say_what_presets_say() -> None:
    for preset in PRESETS.values():
        for alias in preset.tools:
            model_of(ToolTable).model_validate({"as": alias.name or None, "arguments": dict(alias.arguments)})


def test_only_the_presets_that_are_asked_for_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def note(table: str) -> Preset:
        read.append(table)
        return read_preset(table)

    monkeypatch.setattr(presets, "read_preset", note)
    presets._preset.cache_clear()
    assert preset_for(["npx", "mcp-server-git"], "") == "git"
    assert preset_for(["uvx", "a-server-of-my-own", "/srv"], "Mine") == ""
    assert [table for table in read if "mcp-server-git" not in table] == []


def test_an_argument_that_permission_rules_judge_is_one_that_presets_rename() -> None:
    assert {name: JUDGED_ARGUMENT[name] for name in ("Bash", "Edit", "Read", "WebFetch", "Write")} == {
        "Bash": "command",
        "Edit": "file_path",
        "Read": "file_path",
        "WebFetch": "url",
        "Write": "file_path",
    }
    assert all(JUDGED_ARGUMENT[name] in CLAUDE[name] for name in CLAUDE if name in JUDGED_ARGUMENT)


def test_the_documentation_of_the_key_says_where_the_presets_are_listed() -> None:
    text = model_of(ConfigFile).model_fields["preset"].description or ""
    assert "list of presets" in text


def test_no_word_identifies_two_servers() -> None:
    for field in ("packages", "server_names"):
        counted = Counter(word for preset in PRESETS.values() for word in getattr(preset, field))
        assert [word for word, number in counted.items() if number > 1] == []


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("npx -y @modelcontextprotocol/server-filesystem@latest /tmp", "filesystem"),
        ("npx -y @modelcontextprotocol/server-filesystem /srv/codemcp", "filesystem"),
        ("uvx mcp-server-git --repository .", "git"),
        ("uvx mcp-server-git==2025.1.1", "git"),
        ("uv --directory /srv/fetch run mcp-server-git", "git"),
        ("python -m mcp_server_fetch", "fetch"),
        ("/usr/local/bin/mcp-server-git -r .", "git"),
        ("docker run -i --rm -v /a:/b mcp/filesystem /b", "filesystem"),
        ("docker run ghcr.io/github/github-mcp-server:v1.0", "github"),
        ("node /opt/node_modules/@playwright/mcp/cli.js", "playwright"),
        (r"node C:\npm\node_modules\@playwright\mcp\cli.js", "playwright"),
        ("uvx --from git+https://github.com/oraios/serena serena start-mcp-server", "serena"),
        ("python server.py /srv/mcp-server-git", ""),
        ("other-server mcp-server-git", ""),
        ("git", ""),
        ("", ""),
    ],
)
def test_a_command_line_names_a_preset_and_arguments_of_other_servers_do_not(command: str, name: str) -> None:
    assert preset_for(command.split(), "") == name


def test_a_command_line_counts_before_the_name_that_a_server_gives_itself() -> None:
    assert preset_for(["./server"], "desktop-commander") == "desktop-commander"
    assert preset_for(["uvx", "mcp-server-git"], "desktop-commander") == "git"
    assert preset_for([], "unheard-of") == ""


def test_a_recognised_preset_fits_its_aliases_to_the_listed_arguments() -> None:
    (alias,) = preset_aliases("filesystem", "read_file", ["path", "head"]) or ()
    assert (alias.name, alias.arguments, alias.preset, alias.automatic) == (
        "Read",
        {"file_path": "path"},
        "filesystem",
        True,
    )
    (renamed,) = preset_aliases("filesystem", "read_file", ["file_path"]) or ()
    assert renamed.arguments == {}
    assert preset_aliases("filesystem", "move_file") == ()
    assert preset_aliases("filesystem", "unheard_of") is None
    assert preset_aliases("", "read_file") is None


def test_a_recognised_preset_leaves_tools_alone_that_only_get_other_names_for_arguments() -> None:
    assert preset_aliases("git", "git_status") == ()


@pytest.mark.parametrize(
    "command",
    [
        "python mcp-server-git.py",
        "node ./mcp-server-git",
        r"python .\mcp-server-git",
        r"C:\tools\mcp-server-git.exe",
        "uvx other mcp-server-git.py",
        "python -X/a/b mcp-server-git.py",
        "npx @scope/other mcp-server-git.py",
        "uvx /opt/other/x mcp-server-git",
    ],
)
def test_the_file_that_is_started_names_a_preset_behind_options_and_packages(command: str) -> None:
    assert preset_for(command.split(), "") == "git"


@pytest.mark.parametrize("command", ["python server.py mcp-server-git.py", "node ./x ./mcp-server-git"])
def test_a_second_file_is_an_argument_of_the_first(command: str) -> None:
    assert preset_for(command.split(), "") == ""


def test_a_table_is_read_with_everything_that_it_says() -> None:
    read = read_preset("""
        server = "s"
        packages = ["p"]
        server_names = ["n"]
        aliases = [
            { as = "Read", tools = ["r1", "r2"], arguments = { file_path = "path" } },
            { as = "MultiEdit", tools = ["e1"] },
            { as = "MultiEdit", tools = ["e2"], arguments = { edits = "changes" } },
        ]
        alternatives = [{ as = "Write", tools = ["r1"], needed = ["text"] }]
        others = ["o"]
        notes = ["a note"]
        sandbox = { folders = "write" }
    """)
    assert read == Preset(
        "s",
        (
            Alias("r1", "Read", {"file_path": "path"}),
            Alias("r2", "Read", {"file_path": "path"}),
            Alias("e1", "MultiEdit", edits="edits"),
            Alias("e2", "MultiEdit", {"edits": "changes"}, edits="changes"),
        ),
        ("o",),
        ("a note",),
        ("p",),
        (Alias("r1", "Write", needed=frozenset({"text"})),),
        ("n",),
        SandboxProfile("write"),
    )


def test_a_tool_has_the_familiar_names_that_any_preset_gives_to_its_name() -> None:
    assert names_in_any_preset("edit_file") >= {"Edit", "MultiEdit"}
    assert "Read" in names_in_any_preset("read_text_file")
    assert names_in_any_preset("git_status") == frozenset()
    assert names_in_any_preset("unheard_of") == frozenset()
    assert names_in_any_preset("mcp-server-git") == frozenset()


def test_an_argument_that_the_server_does_not_list_gets_no_other_name() -> None:
    (alias,) = preset_aliases("filesystem", "read_file", ["head"]) or ()
    assert alias.arguments == {}


def test_the_command_of_a_recognised_preset_has_the_listed_words() -> None:
    alias = (preset_aliases("desktop-commander", "start_process", ["command", "args"]) or ())[0]
    assert alias.parts is not None
    assert alias.parts.words == ("args",)
