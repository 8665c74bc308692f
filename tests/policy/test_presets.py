"""The presets: names that hooks for Claude Code know, no tool twice, and each server recognised by its command line."""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest

from hookproxy.config.models import ConfigFile, ToolTable
from hookproxy.policy.matchers import JUDGED_ARGUMENT
from hookproxy.policy.presets import PRESETS, preset_aliases, preset_for

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


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_has_names_that_hooks_know(name: str) -> None:
    for one in PRESETS[name].tools:
        ToolTable.model_validate({"as": one.name or None, "arguments": dict(one.arguments)})
        assert not one.name or set(one.arguments) <= CLAUDE[one.name]
        assert all(known != own for known, own in one.arguments.items())
        assert len(set(one.arguments.values())) == len(one.arguments)


@pytest.mark.parametrize("name", PRESETS)
def test_each_tool_is_in_a_preset_once(name: str) -> None:
    tools = [one.tool for one in PRESETS[name].tools]
    assert len({*tools, *PRESETS[name].others}) == len(tools) + len(PRESETS[name].others)


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
    text = ConfigFile.model_fields["preset"].description or ""
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
