"""A home folder with the configuration of every known agent, in the agent's own format and place."""

from __future__ import annotations

from collections.abc import Mapping
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

_STANDARD: Final = '{"mcpServers": {"far": {"url": "https://example.com/mcp", "headers": {"X-Key": "REFERENCE"}}}}'

REMOTE: Final = {
    "claude-code": ("~/.claude.json", '{"mcpServers": {"far": {"type": "http", "url": "https://example.com/mcp",\n'
                    ' "headers": {"X-Key": "${KEY:-none}"}, "oauth": {"clientId": "c"}}}}'),
    "claude-desktop": ("~/.config/Claude/claude_desktop_config.json", _STANDARD.replace("REFERENCE", "k0123456789")),
    "cursor": (".cursor/mcp.json", _STANDARD.replace("REFERENCE", "${env:KEY}")),
    "vscode": (
        "~/.config/Code/User/mcp.json",
        '{\n\t// mine\n\t"inputs": [{"type": "promptString", "id": "key", "password": true}],\n\t"servers": {\n'
        '\t\t"far": {\n\t\t\t"type": "http", // there\n\t\t\t"url": "https://example.com/mcp",\n'
        '\t\t\t"headers": {"X-Key": "${input:key}"},\n\t\t},\n\t},\n}\n',
    ),
    "codex": (
        "~/.codex/config.toml",
        'model = "x" # mine\n\n[mcp_servers.far]\nurl = "https://example.com/mcp" # there\n'
        'env_http_headers = { X-Key = "KEY" }\ntool_timeout_sec = 3\n\n[profiles.a]\nmodel = "y"',
    ),
    "gemini": (
        "~/.gemini/settings.json",
        '{"mcpServers": {"far": {"httpUrl": "https://example.com/mcp", "headers": {"X-Key": "$KEY"}, "trust": true}}}',
    ),
    "windsurf": (
        "~/.codeium/windsurf/mcp_config.json",
        '{"mcpServers": {"far": {"serverUrl": "https://example.com/mcp", "headers": {"X-Key": "${env:KEY}"}}}}',
    ),
    "zed": (
        "~/.config/zed/settings.json",
        '// Zed\n{\n  "context_servers": {\n    "far": {\n      "source": "custom",\n'
        '      "url": "https://example.com/mcp",\n      "headers": { "X-Key": "k0123456789" },\n    },\n  },\n}\n',
    ),
    "goose": (
        "~/.config/goose/config.yaml",
        "# mine\nextensions:\n  far:\n    type: streamable_http\n    uri: https://example.com/mcp\n"
        "    headers:\n      X-Key: $KEY  # in the keyring\n    env_keys:\n    - KEY\n    envs: {}\n    timeout: 300\n",
    ),
    "opencode": (
        "~/.config/opencode/opencode.jsonc",
        '{\n  "mcp": {"far": {"type": "remote", "url": "https://example.com/mcp", "enabled": true,\n'
        '    "headers": {"X-Key": "{env:KEY}"}, "oauth": false}}\n}\n',
    ),
    "copilot": (
        "~/.copilot/mcp-config.json",
        '{"mcpServers":{"far":{"type":"http","url":"https://example.com/mcp","headers":{"X-Key":"${KEY}"},"tools":["*"]}}}',
    ),
    "cline": (
        "~/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        '{"mcpServers": {"far": {"type": "streamableHttp", "url": "https://example.com/mcp", "disabled": false,'
        ' "headers": {"X-Key": "k0123456789"}}}}',
    ),
}  # fmt: skip
"""The same with a server at an address, which gets a header `X-Key`, as the agent's documentation writes it."""


def write_all(home: Path, project: Path, files: Mapping[str, tuple[str, str]] = FILES) -> dict[Path, bytes]:
    """Write the configuration of every agent. Returns the content of each file."""
    return dict(write(agent, home, project, files) for agent in files)


def write(agent: str, home: Path, project: Path, files: Mapping[str, tuple[str, str]] = FILES) -> tuple[Path, bytes]:
    """Write the configuration of one agent."""
    place, text = files[agent]
    file = home / place.removeprefix("~/") if place.startswith("~/") else project / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file, text.encode()


def content(files: dict[Path, bytes]) -> dict[Path, bytes]:
    """What these files contain now."""
    return {file: file.read_bytes() for file in files}
