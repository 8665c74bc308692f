"""Where agents keep their configurations: on Linux, on macOS, and in folders that variables name."""

from __future__ import annotations

from hookproxy.wrapping.known_agents import SHAPES, config_files
from hookproxy.wrapping.syntax_tree import Shape


def paths(platform: str, **environ: str) -> set[tuple[str, str]]:
    return {
        (config_file.agent, config_file.path) for config_file in config_files(environ, "/home/x", "/work", platform)
    }


def test_agents_on_linux() -> None:
    assert {
        ("Claude Code", "/home/x/.claude.json"),
        ("Claude Code", "/work/.mcp.json"),
        ("Claude Desktop", "/home/x/.config/Claude/claude_desktop_config.json"),
        ("VS Code", "/home/x/.config/Code/User/mcp.json"),
        ("VS Code", "/work/.vscode/mcp.json"),
        ("Cursor", "/home/x/.cursor/mcp.json"),
        ("Codex", "/home/x/.codex/config.toml"),
        ("goose", "/home/x/.config/goose/config.yaml"),
        ("Zed", "/home/x/.config/zed/settings.json"),
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


def test_no_file_is_named_twice() -> None:
    files = config_files(
        {"XDG_CONFIG_HOME": "/home/x/.config", "CODEX_HOME": "/work/.codex"}, "/home/x", "/work", "linux"
    )
    assert len({config_file.path for config_file in files}) == len(files)


def test_the_most_general_shape_comes_last() -> None:
    assert SHAPES["JSON"][-1] == Shape(("mcp",))
