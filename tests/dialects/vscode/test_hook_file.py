"""Hook files of VS Code's local agent: the shapes of published ones, recognition, and what is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.dialects.dialect import HookFile
from hookproxy.dialects.vscode import DIALECT as VSCODE
from hookproxy.dialects.vscode import mcp_tool_name
from hookproxy.model.errors import ConfigError
from tests.dialects.calls import read, recognised

COMMAND: Final = {"type": "command", "command": "guard"}
PUBLISHED: Final[dict[str, tuple[Any, int]]] = {
    # the shapes of 1Password's file, of a demo's and of the documentation's own repository
    "without types": ({"hooks": {"PreToolUse": [{"command": "./guard.sh", "timeout": 30}]}}, 1),
    "by system": (
        {"hooks": {"PreToolUse": [{"type": "command", "windows": "g.ps1", "linux": "./guard.sh", "osx": "./b.sh"}]}},
        1,
    ),
    "several events": (
        {
            "hooks": {
                "SessionStart": [{"type": "command", "command": "./guard.sh", "env": {"A": "b"}}],
                "PostToolUse": [{"type": "command", "command": "./b.sh"}],
                "Stop": [{"type": "command", "command": "./guard.sh"}],
            }
        },
        3,  # PostToolUse also occurs after a result with isError
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_shapes_of_published_files_load_whole(name: str, tmp_path: Path) -> None:
    content, hooks = PUBLISHED[name]
    found = read("vscode", content)
    assert len(found.hooks) == hooks
    assert found.notes == ()
    assert recognised(tmp_path / ".github/hooks/hooks.json", content) == "vscode"


def test_groups_of_claude_in_its_own_folder_are_read_without_their_matchers(tmp_path: Path) -> None:
    content = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [COMMAND]}]}}
    assert recognised(tmp_path / ".github/hooks/hooks.json", content) == "vscode"
    assert recognised(tmp_path / "hooks.json", content) == "claude"
    found = read("vscode", content)
    assert [hook.matches("anything") for hook in found.hooks] == [True]
    (note,) = found.notes
    assert "matcher 'Bash' is ignored, as in VS Code: the hook runs for every tool" in note


@pytest.mark.parametrize("folder", [".github/hooks/hooks.json", "hooks.json"])
def test_a_file_of_copilot_that_lacks_its_version_is_not_taken_for_one_of_vs_code(folder: str, tmp_path: Path) -> None:
    """Its hook would get another system's document, find no tool in it and let the call pass."""
    entry = {"type": "command", "bash": "guard", "timeoutSec": 10}
    with pytest.raises(ConfigError, match="version is missing"):
        recognised(tmp_path / folder, {"hooks": {"preToolUse": [entry]}})
    assert len(read("vscode", {"hooks": {"preToolUse": [entry]}}).hooks) == 1


def test_a_file_of_version_1_is_copilots(tmp_path: Path) -> None:
    content = {"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "guard"}]}}
    assert recognised(tmp_path / ".github/hooks/hooks.json", content) == "copilot"


@pytest.mark.parametrize(
    ("entry", "command"),
    [
        ({"command": "c", "bash": "b", "linux": "l"}, "l"),
        ({"command": "c", "bash": "b"}, "b"),
        ({"command": "c", "windows": "w"}, "c"),
        ({"command": "c", "linux": ""}, "c"),
    ],
)
def test_the_command_for_linux_counts(entry: dict[str, str], command: str) -> None:
    (hook,) = read("vscode", {"hooks": {"PreToolUse": [entry]}}).hooks
    assert hook.shell == command


@pytest.mark.parametrize(
    ("entry", "note"),
    [
        ({"windows": "w"}, "does not run: it has no command for Linux"),
        ({}, "is left out: command is missing"),
        ({"type": "prompt", "prompt": "?"}, "'prompt' cannot run behind MCP"),
        ({"command": "c", "timeout": "5"}, "`timeout` is not a number, so it is ignored, as in VS Code"),
        ({"command": "c", "timeout": 0}, "timeout must be more than 0 seconds"),
        ({"command": "c", "timout": 5}, "timout is unknown and ignored: did you mean 'timeout'?"),
        ({"command": "c", "timeout": 30000}, "a timeout of 30000 is read as seconds"),
    ],
)
def test_what_does_not_run_as_written_is_reported(entry: dict[str, object], note: str) -> None:
    notes = read("vscode", {"hooks": {"PreToolUse": [entry]}}).notes
    assert any(note in one for one in notes), notes


def test_folders_variables_and_timeouts_are_the_entrys() -> None:
    entry = {"command": "c", "cwd": "tools", "env": {"A": "b"}, "timeoutSec": 5}
    (hook,) = read("vscode", {"hooks": {"PreToolUse": [entry]}}).hooks
    assert (hook.cwd, hook.env, hook.timeout) == ("/repo/tools", (("A", "b"),), 5.0)


def test_a_timeout_that_is_no_number_is_ignored_and_the_hook_runs() -> None:
    entries = [{"command": "c", "timeout": "5"}, {"command": "c", "timeout": [], "timeoutSec": 7}]
    found = read("vscode", {"hooks": {"PreToolUse": entries}})
    assert [hook.timeout for hook in found.hooks] == [30.0, 7.0]
    assert len(found.notes) == 2


@pytest.mark.parametrize(("cwd", "folder"), [("~", "/home/you"), ("~/x", "/home/you/x"), ("~x", "/repo/~x")])
def test_a_tilde_is_the_home_folder(cwd: str, folder: str) -> None:
    text = json.dumps({"hooks": {"PreToolUse": [{"command": "c", "cwd": cwd}]}})
    (hook,) = VSCODE.read_hook_file(HookFile("/repo/a.json", text, "/repo", environ={"HOME": "/home/you"})).hooks
    assert hook.cwd == folder


def test_names_of_servers_tools_are_composed_and_cut_as_vs_code_does() -> None:
    assert mcp_tool_name("My Files", "read.it") == "mcp_my_files_read_it"
    assert mcp_tool_name("a-very-long-server", "t") == "mcp_a-very-long-s_t"
    assert len(mcp_tool_name("server", "t" * 99)) == 64


def test_a_file_of_vs_code_in_another_systems_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has the format of .*vscode, but is in a folder of"):
        recognised(tmp_path / ".gemini/settings.json", {"hooks": {"preToolUse": [COMMAND]}})
