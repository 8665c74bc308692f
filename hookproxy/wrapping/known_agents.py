"""Where agents keep their configurations, and where in these their servers are: literal tables, as of late 2026.

Each row follows the agent's own documentation or source: Claude Code (scopes of servers), Claude Desktop, Cursor,
Windsurf, Gemini CLI, Copilot CLI, Cline, VS Code (MCP configuration reference), Zed (`context_servers`), Codex
(docs/config.md), goose (configuration files), opencode (MCP servers).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from .syntax_tree import Shape

SHAPES: Final[Mapping[str, tuple[Shape, ...]]] = {
    "JSON": (
        Shape(("mcpServers",)),
        Shape(("projects", "*", "mcpServers")),  # Claude Code's servers for one project only
        Shape(("servers",)),
        Shape(("mcp", "servers")),  # VS Code's settings.json, before mcp.json
        Shape(("context_servers",)),
        Shape(("mcp",)),  # opencode
    ),
    "TOML": (Shape(("mcp_servers",)),),
    "YAML": (Shape(("extensions",), command="cmd"),),
}
"""The shapes that a file may have, by its syntax. The last one of JSON is used only if a file has no other."""

KNOWN_KEYS: Final = "mcpServers, servers, context_servers or mcp in JSON, mcp_servers in TOML, extensions in YAML"

REMOTE_KEYS: Final = ("url", "httpUrl", "serverUrl", "uri")
"""Keys of a server that the agent does not start, but reaches at an address."""

_VSCODE_NAMES: Final = ("Code", "Code - Insiders", "VSCodium")
_CLINE_PATH: Final = "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"


class ConfigFile(Struct, frozen=True):
    """A file in which an agent may keep servers."""

    agent: str
    path: str


_IN_HOME: Final = (
    ConfigFile("Claude Code", "~/.claude.json"),
    ConfigFile("Cursor", "~/.cursor/mcp.json"),
    ConfigFile("Windsurf", "~/.codeium/windsurf/mcp_config.json"),
    ConfigFile("Gemini CLI", "~/.gemini/settings.json"),
    ConfigFile("Copilot CLI", "~/.copilot/mcp-config.json"),
    ConfigFile("Cline", "~/.cline/data/settings/cline_mcp_settings.json"),
    ConfigFile("Zed", "~/.config/zed/settings.json"),
    ConfigFile("Codex", "~/.codex/config.toml"),
    ConfigFile("goose", "~/.config/goose/config.yaml"),
    ConfigFile("opencode", "~/.config/opencode/opencode.json"),
    ConfigFile("opencode", "~/.config/opencode/opencode.jsonc"),
)
"""Files in the home folder, on every system."""

_BY_VARIABLE: Final = (
    ConfigFile("Claude Code", "$CLAUDE_CONFIG_DIR/.claude.json"),
    ConfigFile("Copilot CLI", "$COPILOT_HOME/mcp-config.json"),
    ConfigFile("Codex", "$CODEX_HOME/config.toml"),
    ConfigFile("Zed", "$XDG_CONFIG_HOME/zed/settings.json"),
    ConfigFile("goose", "$XDG_CONFIG_HOME/goose/config.yaml"),
    ConfigFile("opencode", "$XDG_CONFIG_HOME/opencode/opencode.json"),
    ConfigFile("opencode", "$XDG_CONFIG_HOME/opencode/opencode.jsonc"),
    ConfigFile("opencode", "$OPENCODE_CONFIG"),
)
"""Files whose folder a variable names."""

_BY_APPLICATION: Final = (
    ConfigFile("Claude Desktop", "Claude/claude_desktop_config.json"),
    *(
        ConfigFile(f"VS Code ({code})" if code != "Code" else "VS Code", f"{code}/User/mcp.json")
        for code in _VSCODE_NAMES
    ),
    *(
        ConfigFile(f"VS Code ({code})" if code != "Code" else "VS Code", f"{code}/User/settings.json")
        for code in _VSCODE_NAMES
    ),
    *(ConfigFile("Cline", f"{code}/User/{_CLINE_PATH}") for code in _VSCODE_NAMES),
)
"""Files of desktop applications: in ~/.config, or on macOS in ~/Library/Application Support."""

_IN_PROJECT: Final = (
    ConfigFile("Claude Code", ".mcp.json"),
    ConfigFile("VS Code", ".vscode/mcp.json"),
    ConfigFile("Cursor", ".cursor/mcp.json"),
    ConfigFile("Gemini CLI", ".gemini/settings.json"),
    ConfigFile("Zed", ".zed/settings.json"),
    ConfigFile("Codex", ".codex/config.toml"),
    ConfigFile("opencode", "opencode.json"),
    ConfigFile("opencode", "opencode.jsonc"),
)
"""Files in the working directory."""


def config_files(environ: Mapping[str, str], home: str, cwd: str, platform: str = sys.platform) -> list[ConfigFile]:
    """Every file that may exist, once, with its absolute path."""
    applications = "Library/Application Support" if platform == "darwin" else ".config"
    settings = os.path.join(home, applications)
    if platform != "darwin" and os.path.isabs(environ.get("XDG_CONFIG_HOME", "")):
        settings = environ["XDG_CONFIG_HOME"]
    files = [
        ConfigFile(config_file.agent, os.path.join(home, config_file.path.removeprefix("~/")))
        for config_file in _IN_HOME
    ]
    for config_file in _BY_VARIABLE:
        variable, slash, rest = config_file.path.removeprefix("$").partition("/")
        if os.path.isabs(environ.get(variable, "")):
            files.append(ConfigFile(config_file.agent, environ[variable] + slash + rest))
    files += [
        ConfigFile(config_file.agent, os.path.join(settings, config_file.path)) for config_file in _BY_APPLICATION
    ]
    files += [ConfigFile(config_file.agent, os.path.join(cwd, config_file.path)) for config_file in _IN_PROJECT]
    by_path = {os.path.normpath(config_file.path): config_file for config_file in files}
    return [ConfigFile(config_file.agent, path) for path, config_file in by_path.items()]
