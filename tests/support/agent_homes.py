"""A home folder with the configuration of every known agent, in the agent's own format and place."""

from __future__ import annotations

from pathlib import Path
from typing import Final

MCP_SERVERS: Final = '{\r\n\t"mcpServers": {\r\n\t\t"git": { "command": "mcp-server-git" }\r\n\t}\r\n}'

FILES: Final = {
    "claude-code": (
        "~/.claude.json",
        '{"numStartups": 3, "mcpServers": {},'
        ' "projects": {"/p": {"mcpServers": {"git": {"command": "g", "args": []}}}}}',
    ),
    "claude-desktop": ("~/.config/Claude/claude_desktop_config.json", MCP_SERVERS),
    "cursor": (
        ".cursor/mcp.json",
        '\ufeff{\n  // mine\n  "mcpServers": {\n'
        '    "git": {"command": "uvx", "args": ["mcp-server-git", "-v",], "env": {"A": "b"}},\n'
        '    "far": {"url": "https://example.com/mcp"},\n  },\n}\n',
    ),
    "vscode": (
        "~/.config/Code/User/mcp.json",
        '{\n\t"inputs": [],\n\t"servers": {\n\t\t"git": {"type": "stdio", "command": "uvx", "args": ["git"]}\n\t}\n}\n',
    ),
    "codex": (
        "~/.codex/config.toml",
        'model = "x" # mine\n\n[mcp_servers.git]\ncommand = "uvx"\n'
        'args = [\n  "git", # last\n]\n\n[profiles.a]\nmodel = "y"',
    ),
    "gemini": (
        "~/.gemini/settings.json",
        '{"theme": "dark", "mcp": {"allowed": ["git"]}, "mcpServers": {"git": {"command": "git"}}}',
    ),
    "windsurf": (
        "~/.codeium/windsurf/mcp_config.json",
        '{"mcpServers": {"git": {"args": ["a"], "command": "x"}, "f": {"serverUrl": "u"}}}',
    ),
    "zed": (
        "~/.config/zed/settings.json",
        '// Zed\n{\n  "context_servers": {\n    "git": {"source": "custom", "command": "x", "args": []},\n'
        '    "ext": {"settings": {}},\n  },\n}\n',
    ),
    "goose": (
        "~/.config/goose/config.yaml",
        "# mine\nextensions:\n  git:\n    cmd: uvx\n"
        "    args:\n    - mcp-server-git\n    type: stdio\n  developer:\n    type: builtin\n",
    ),
    "opencode": (
        "~/.config/opencode/opencode.jsonc",
        '{\n  "$schema": "https://opencode.ai/config.json",\n'
        '  "mcp": {"git": {"type": "local", "command": ["uvx", "git"]}}\n}\n',
    ),
    "copilot": (
        "~/.copilot/mcp-config.json",
        '{"mcpServers":{"git":{"type":"local","command":"x","args":[],"tools":["*"]}}}',
    ),
    "cline": (
        "~/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        '{"mcpServers": {"--server": {"disabled": false, "autoApprove": [], "command": "x"}}}',
    ),
}
"""For each agent: one of its files, `~` being the home folder and anything else in the project; and the file's text."""


def write_all(home: Path, project: Path) -> dict[Path, bytes]:
    """Write the configuration of every agent. Returns the content of each file."""
    return dict(write(agent, home, project) for agent in FILES)


def write(agent: str, home: Path, project: Path) -> tuple[Path, bytes]:
    """Write the configuration of one agent."""
    place, text = FILES[agent]
    file = home / place.removeprefix("~/") if place.startswith("~/") else project / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file, text.encode()


def content(files: dict[Path, bytes]) -> dict[Path, bytes]:
    """What these files contain now."""
    return {file: file.read_bytes() for file in files}
