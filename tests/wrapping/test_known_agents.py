"""Where agents keep their configurations: on Linux, on macOS, in folders that variables name, and in a project."""

from __future__ import annotations

from pathlib import Path

from hookproxy.dialects.registry import DIALECTS
from hookproxy.wrapping.known_agents import AGENTS, AGENTS_BY_NAME, SHAPES, config_files


def paths(platform: str, **environ: str) -> set[tuple[str, str]]:
    found = config_files(environ, "/home/x", "/work", platform=platform)
    return {(config_file.titles, config_file.path) for config_file in found}


def test_agents_on_linux() -> None:
    assert {
        ("Claude Code", "/home/x/.claude.json"),
        ("Claude Code, Copilot CLI", "/work/.mcp.json"),
        ("Claude Desktop", "/home/x/.config/Claude/claude_desktop_config.json"),
        ("VS Code", "/home/x/.config/Code/User/mcp.json"),
        ("VS Code", "/work/.vscode/mcp.json"),
        ("Cursor", "/home/x/.cursor/mcp.json"),
        ("Codex", "/home/x/.codex/config.toml"),
        ("Copilot CLI", "/work/.github/mcp.json"),
        ("goose", "/home/x/.config/goose/config.yaml"),
        ("Zed", "/home/x/.config/zed/settings.json"),
        ("opencode", "/work/.opencode/opencode.jsonc"),
    } <= paths("linux")


def test_desktop_applications_on_macos() -> None:
    assert {
        ("Claude Desktop", "/home/x/Library/Application Support/Claude/claude_desktop_config.json"),
        ("VS Code", "/home/x/Library/Application Support/Code/User/mcp.json"),
        ("Zed", "/home/x/.config/zed/settings.json"),
    } <= paths("darwin")


def test_variables_name_other_folders_and_relative_paths_are_ignored() -> None:
    moved = paths("linux", XDG_CONFIG_HOME="/c", CODEX_HOME="/d", CLAUDE_CONFIG_DIR="e", OPENCODE_CONFIG="/o.json")
    assert {
        ("VS Code", "/c/Code/User/mcp.json"),
        ("goose", "/c/goose/config.yaml"),
        ("Codex", "/d/config.toml"),
        ("opencode", "/o.json"),
    } <= moved
    assert not [path for _, path in moved if not path.startswith("/")]


def test_each_profile_of_vs_code_has_its_own_file(tmp_path: Path) -> None:
    for name in ("b", "a*"):
        (tmp_path / ".config" / "Code" / "User" / "profiles" / name).mkdir(parents=True)
    found = [file.path for file in config_files({}, str(tmp_path), "/work", [AGENTS_BY_NAME["vscode"]], "linux")]
    folder = f"{tmp_path}/.config/Code/User"
    assert found[:4] == [
        f"{folder}/mcp.json",
        f"{folder}/profiles/a*/mcp.json",
        f"{folder}/profiles/b/mcp.json",
        f"{folder}/settings.json",
    ]


def test_one_agent_has_only_its_own_files() -> None:
    found = config_files({}, "/home/x", "/work", [AGENTS_BY_NAME["cursor"]])
    assert [file.path for file in found] == ["/home/x/.cursor/mcp.json", "/work/.cursor/mcp.json"]
    assert [file.in_project for file in found] == [False, True]


def test_no_file_is_named_twice() -> None:
    files = config_files(
        {"XDG_CONFIG_HOME": "/home/x/.config", "CODEX_HOME": "/work/.codex"}, "/home/x", "/work", platform="linux"
    )
    assert len({config_file.path for config_file in files}) == len(files)


def test_no_agent_has_the_name_of_another() -> None:
    assert len(AGENTS_BY_NAME) == len(AGENTS)


def test_the_most_general_shape_comes_last() -> None:
    assert SHAPES["JSON"][-1].path == ("mcp",)


def test_an_agent_with_a_dialect_of_ours_names_it() -> None:
    named = {agent.dialect for agent in AGENTS} - {""}
    assert named == {
        "cascade", "claude", "cline", "codex", "copilot", "cursor", "gemini", "goose", "opencode", "vscode"
    }  # fmt: skip
    assert named <= DIALECTS.keys()
    assert {agent.name for agent in AGENTS if agent.name in DIALECTS} <= named
