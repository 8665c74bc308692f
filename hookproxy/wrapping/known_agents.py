"""Where agents keep their configuration, and where in it their servers are: literal tables, as of late 2026.

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
"""By syntax, all that a file may have; the last one of JSON only where there is none of the others."""

NAMES: Final = "mcpServers, servers, context_servers or mcp in JSON, mcp_servers in TOML, extensions in YAML"

REMOTE: Final = ("url", "httpUrl", "serverUrl", "uri")
"""Keys of a server that is not started, but reached."""

_CODE: Final = ("Code", "Code - Insiders", "VSCodium")
_CLINE: Final = "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"


class Place(Struct, frozen=True):
    """A file in which an agent may keep servers."""

    agent: str
    path: str


_HOME: Final = (
    Place("Claude Code", "~/.claude.json"),
    Place("Cursor", "~/.cursor/mcp.json"),
    Place("Windsurf", "~/.codeium/windsurf/mcp_config.json"),
    Place("Gemini CLI", "~/.gemini/settings.json"),
    Place("Copilot CLI", "~/.copilot/mcp-config.json"),
    Place("Cline", "~/.cline/data/settings/cline_mcp_settings.json"),
    Place("Zed", "~/.config/zed/settings.json"),
    Place("Codex", "~/.codex/config.toml"),
    Place("goose", "~/.config/goose/config.yaml"),
    Place("opencode", "~/.config/opencode/opencode.json"),
    Place("opencode", "~/.config/opencode/opencode.jsonc"),
)
"""In the home folder, on every system."""

_MOVED: Final = (
    Place("Claude Code", "$CLAUDE_CONFIG_DIR/.claude.json"),
    Place("Copilot CLI", "$COPILOT_HOME/mcp-config.json"),
    Place("Codex", "$CODEX_HOME/config.toml"),
    Place("Zed", "$XDG_CONFIG_HOME/zed/settings.json"),
    Place("goose", "$XDG_CONFIG_HOME/goose/config.yaml"),
    Place("opencode", "$XDG_CONFIG_HOME/opencode/opencode.json"),
    Place("opencode", "$XDG_CONFIG_HOME/opencode/opencode.jsonc"),
    Place("opencode", "$OPENCODE_CONFIG"),
)
"""Where a variable says so."""

_APPLICATIONS: Final = (
    Place("Claude Desktop", "Claude/claude_desktop_config.json"),
    *(Place(f"VS Code ({code})" if code != "Code" else "VS Code", f"{code}/User/mcp.json") for code in _CODE),
    *(Place(f"VS Code ({code})" if code != "Code" else "VS Code", f"{code}/User/settings.json") for code in _CODE),
    *(Place("Cline", f"{code}/User/{_CLINE}") for code in _CODE),
)
"""Where desktop applications keep theirs: ~/.config, or on macOS ~/Library/Application Support."""

_PROJECT: Final = (
    Place("Claude Code", ".mcp.json"),
    Place("VS Code", ".vscode/mcp.json"),
    Place("Cursor", ".cursor/mcp.json"),
    Place("Gemini CLI", ".gemini/settings.json"),
    Place("Zed", ".zed/settings.json"),
    Place("Codex", ".codex/config.toml"),
    Place("opencode", "opencode.json"),
    Place("opencode", "opencode.jsonc"),
)
"""In the folder that is worked in."""


def places(environ: Mapping[str, str], home: str, cwd: str, platform: str = sys.platform) -> list[Place]:
    """Every file that may be there, once, with its absolute path."""
    applications = "Library/Application Support" if platform == "darwin" else ".config"
    settings = os.path.join(home, applications)
    if platform != "darwin" and os.path.isabs(environ.get("XDG_CONFIG_HOME", "")):
        settings = environ["XDG_CONFIG_HOME"]
    found = [Place(place.agent, os.path.join(home, place.path.removeprefix("~/"))) for place in _HOME]
    for place in _MOVED:
        variable, slash, rest = place.path.removeprefix("$").partition("/")
        if os.path.isabs(environ.get(variable, "")):
            found.append(Place(place.agent, environ[variable] + slash + rest))
    found += [Place(place.agent, os.path.join(settings, place.path)) for place in _APPLICATIONS]
    found += [Place(place.agent, os.path.join(cwd, place.path)) for place in _PROJECT]
    once = {os.path.normpath(place.path): place for place in found}
    return [Place(place.agent, path) for path, place in once.items()]
