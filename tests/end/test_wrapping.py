"""Configurations as agents write them: wrapped, started by a real agent with a hook in front, and unwrapped again."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
import yaml
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.end.agent import HOOKPROXY, PATIENCE, SERVER, Scene

GUARD: Final = """
[[hooks.PreToolUse]]
matcher = "mcp__my-server__echo"
command = "echo 'not that' >&2; exit 2"
"""

MCP_SERVERS: Final = """\
{
  "theme": "dark",
  "mcpServers": {
    "my-server": {
      "command": COMMAND,
      "args": [
        ARGS
      ],
      "env": { "KEY": "secret" }
    },
    "far": { "type": "http", "url": "https://example.com/mcp" }
  }
}
"""

CLAUDE_CODE: Final = """\
{
  "numStartups": 3,
  "mcpServers": {
    "my-server": {"type": "stdio", "command": COMMAND, "args": [ARGS], "env": {}}
  },
  "projects": {
    "/home/me/project": {
      "allowedTools": [],
      "mcpServers": {
        "my-server": {
          "type": "stdio",
          "command": COMMAND,
          "args": [ARGS]
        }
      }
    }
  }
}
"""

COPILOT: Final = """\
{"mcpServers":{"my-server":{"type":"local","command":COMMAND,"args":[ARGS],"tools":["*"]}}}
"""

CLINE: Final = """\
{
\t"mcpServers": {
\t\t"my-server": {
\t\t\t"autoApprove": [],
\t\t\t"disabled": false,
\t\t\t"timeout": 60,
\t\t\t"command": COMMAND,
\t\t\t"args": [ARGS],
\t\t\t"transportType": "stdio"
\t\t}
\t}
}"""

VS_CODE: Final = """\
{
  // what the agent asks for
  "inputs": [
    { "type": "promptString", "id": "key", "password": true },
  ],
  "servers": {
    // ours
    "my-server": {
      "type": "stdio",
      "command": COMMAND,
      "args": [ARGS,],
    },
  },
}
"""

ZED: Final = """\
// Zed settings
{
  "ui_font_size": 16,
  "context_servers": {
    "mcp-server-github": { "source": "extension", "settings": {} },
    "my-server": {
      "source": "custom",
      "enabled": true,
      "command": COMMAND,
      "args": [ARGS],
    },
  },
}
"""

ZED_ONCE: Final = """\
{
  "context_servers": {
    "my-server": {
      "command": { "path": COMMAND, "args": [ARGS], "env": {} },
      "settings": {}
    }
  }
}
"""

OPENCODE: Final = """\
{
  "mcp": {
    "my-server": {
      "type": "local",
      "command": [COMMAND, ARGS],
      "environment": { "KEY": "v" },
      "enabled": true
    },
    "far": { "type": "remote", "url": "https://example.com/mcp" }
  }
}
"""

CODEX: Final = """\
model = "gpt-5" # mine

[mcp_servers.my-server]
command = COMMAND # this one
args = [ARGS]
startup_timeout_sec = 20

[mcp_servers.my-server.env]
KEY = "v"

[mcp_servers.far]
url = "https://example.com/mcp"
"""

GOOSE: Final = """\
GOOSE_PROVIDER: anthropic
extensions:
  # ours
  my-server:
    enabled: true
    type: stdio
    name: My server
    cmd: COMMAND
    args: [ARGS]
    envs: {}
    timeout: 300
  developer:
    type: builtin
    enabled: true
  far:
    type: streamable_http
    uri: https://example.com/mcp
"""


def json_with_comments(text: str) -> Any:  # noqa: ANN401  # any JSON
    """As an agent reads it, by other means than ours: no text in these files looks like what goes."""
    return json.loads(re.sub(r"^\s*//.*$|,(?=\s*[}\]])", "", text, flags=re.MULTILINE))


Read = Callable[[str], Sequence[str]]


def of(*path: str, reader: Callable[[str], Any] = json.loads) -> Read:
    """Reads the command line of the server at the end of these keys."""

    def read(text: str) -> Sequence[str]:
        found = reader(text)
        for key in path:
            found = found[key]
        command = found.get("command") or found.get("cmd") or found.get("path")
        return [*command] if isinstance(command, list) else [command, *found["args"]]

    return read


FORMATS: Final[dict[str, tuple[str, str, Read]]] = {
    "Claude Desktop": ("claude_desktop_config.json", MCP_SERVERS, of("mcpServers", "my-server")),
    "Claude Code": (".claude.json", CLAUDE_CODE, of("mcpServers", "my-server")),
    "Claude Code, one project": (
        ".claude.json",
        CLAUDE_CODE,
        of("projects", "/home/me/project", "mcpServers", "my-server"),
    ),
    "Gemini CLI": ("settings.json", MCP_SERVERS, of("mcpServers", "my-server")),
    "Copilot CLI": ("mcp-config.json", COPILOT, of("mcpServers", "my-server")),
    "Cline": ("cline_mcp_settings.json", CLINE, of("mcpServers", "my-server")),
    "VS Code": ("mcp.json", VS_CODE, of("servers", "my-server", reader=json_with_comments)),
    "Zed": ("settings.json", ZED, of("context_servers", "my-server", reader=json_with_comments)),
    "Zed, once": ("settings.json", ZED_ONCE, of("context_servers", "my-server", "command")),
    "opencode": ("opencode.json", OPENCODE, of("mcp", "my-server")),
    "Codex": ("config.toml", CODEX, of("mcp_servers", "my-server", reader=tomllib.loads)),
    "goose": ("config.yaml", GOOSE, of("extensions", "my-server", reader=yaml.safe_load)),
}


def filled(template: str, command: Sequence[str]) -> str:
    """The configuration with this command line in it."""
    first, *rest = map(json.dumps, command)
    return template.replace("COMMAND", first).replace("ARGS", ", ".join(rest))


def written(file: str) -> str:
    """The content of the file now, with its line breaks."""
    return Path(file).read_bytes().decode()


async def call_tool(scene: Scene, argv: Sequence[str], tool: str) -> tuple[bool | None, str]:
    """What a real agent gets that starts the command somewhere else and calls a tool."""
    server = StdioServerParameters(command=argv[0], args=list(argv[1:]), env=scene.env, cwd="/")
    with (scene.folder / "stderr").open("a") as errors, anyio.fail_after(2 * PATIENCE):
        async with Client(stdio_client(server, errlog=errors), mode="legacy") as client:
            result = await client.call_tool(tool, {})
            return result.is_error, str(result.content)


@pytest.mark.parametrize("agent", FORMATS)
async def test_a_wrapped_server_runs_behind_hooks_and_every_byte_comes_back(scene: Scene, agent: str) -> None:
    name, template, read = FORMATS[agent]
    text = filled(template, SERVER)
    file = scene.file(name, text)
    guard = scene.file("hookproxy.toml", GUARD)
    assert tuple(read(text)) == SERVER

    wrap = scene.complete([HOOKPROXY, "wrap", file, "--config", guard], within=3 * PATIENCE)
    assert wrap.returncode == 0, wrap.stderr
    argv = read(written(file))
    assert argv[0] == HOOKPROXY
    refused, reason = await call_tool(scene, argv, "echo")
    assert refused
    assert "not that" in reason
    assert scene.calls_received() == []
    refused, _ = await call_tool(scene, argv, "typed")
    assert not refused
    assert len(scene.calls_received()) == 1

    unwrap = scene.complete([HOOKPROXY, "unwrap", file], within=3 * PATIENCE)
    assert unwrap.returncode == 0, unwrap.stderr
    assert written(file) == text
    assert not (await call_tool(scene, read(written(file)), "echo"))[0]


async def test_three_real_servers_are_wrapped_at_once(scene: Scene) -> None:
    servers = {
        "git": [sys.executable, "-m", "mcp_server_git"],
        "time": [sys.executable, "-m", "mcp_server_time"],
        "lean": list(SERVER),
    }
    text = json.dumps({"mcpServers": {name: {"command": argv[0], "args": argv[1:]} for name, argv in servers.items()}})
    file = scene.file(".mcp.json", text)
    guard = scene.file("hookproxy.toml", '[permissions]\ndeny = ["mcp__time__convert_time"]\n')
    assert scene.complete([HOOKPROXY, "wrap", file, "--config", guard], within=3 * PATIENCE).returncode == 0
    wrapped = {name: of("mcpServers", name)(written(file)) for name in servers}
    refused, reason = await call_tool(scene, wrapped["time"], "convert_time")
    assert refused
    assert "mcp__time__convert_time" in reason
    assert (await call_tool(scene, wrapped["lean"], "echo"))[0] is False
    assert "repo_path" in (await call_tool(scene, wrapped["git"], "git_status"))[1]  # an argument is missing
