"""Where agents keep their configurations, and where in these their servers are: literal tables, as of late 2026.

Each row follows the agent's own documentation or source: Claude Code (scopes of servers), Claude Desktop, Cursor,
Windsurf, Gemini CLI (configuration; GEMINI_CLI_HOME replaces the home folder), Copilot CLI (its configuration
directory; `.mcp.json` and `.github/mcp.json` of a project), Cline (the extension's storage, and CLINE_DIR of its own
CLI), VS Code (MCP configuration reference; each profile has its own mcp.json), Zed (`context_servers`), Codex
(docs/config.md), goose (configuration files; GOOSE_PATH_ROOT), opencode (configuration: locations).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from .syntax_tree import Shape

SHAPES: Final[Mapping[str, tuple[Shape, ...]]] = {
    "JSON": (
        Shape(("mcpServers",)),
        Shape(("projects", "*", "mcpServers")),  # Claude Code's servers for one project only
        Shape(("servers",)),
        Shape(("mcp", "servers")),  # VS Code's settings.json, before mcp.json
        Shape(("context_servers",)),
        Shape(("mcp",), env="environment", type="local", command_is_list=True),  # opencode
    ),
    "TOML": (Shape(("mcp_servers",)),),
    "YAML": (Shape(("extensions",), command="cmd", env="envs"),),
}
"""The shapes that a file may have, by its syntax. The last one of JSON is used only if a file has no other."""

KNOWN_KEYS: Final = "mcpServers, servers, context_servers or mcp in JSON, mcp_servers in TOML, extensions in YAML"

REMOTE_KEYS: Final = ("httpUrl", "serverUrl", "url", "uri")
"""Keys of a server that the agent does not start, but reaches at an address. The first one that is there counts."""

REMOTE_TYPES: Final = ("http", "sse", "streamable-http", "streamable_http", "streamableHttp", "remote")
"""Values of `type` or `transport` for such a server."""

HEADER_KEYS: Final = ("headers", "http_headers", "env_http_headers", "bearer_token_env_var")
"""Keys for its headers: the values themselves; in Codex, also the names of variables that have the values."""

LOGIN_KEYS: Final = ("oauth", "auth", "scopes", "oauth_resource")
"""Keys for the agent's own login to it. They mean nothing for a command."""

REMOTE_ONLY_KEYS: Final = (*REMOTE_KEYS, *HEADER_KEYS, *LOGIN_KEYS)

UNTRANSLATABLE_KEYS: Final = ("headersHelper", "authProviderType", "targetAudience", "targetServiceAccount", "socket")
"""Keys by which the agent itself makes credentials or connections, which hookproxy cannot do in its place."""

_APPLICATIONS: Final = "<applications>"
"""In the paths below: the folder for settings of desktop applications. It depends on the system."""

_VSCODE_FOLDERS: Final = tuple(
    f"{_APPLICATIONS}/{name}/User" for name in ("Code", "Code - Insiders", "Code - OSS", "VSCodium")
)
_VSCODE_FILES: Final = ("mcp.json", "profiles/*/mcp.json", "settings.json")
_CLINE_FOLDERS: Final = (
    *_VSCODE_FOLDERS,
    *(f"{_APPLICATIONS}/{name}/User" for name in ("Cursor", "Windsurf")),  # editors that run extensions of VS Code
    "~/.vscode-server/data/User",
)
_CLINE_FILE: Final = "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"


class HttpForm(Struct, frozen=True):
    """How an agent writes the entry of a server that it reaches over HTTP itself, with a token in a variable."""

    address: str = "url"
    """The key of the address."""
    under: str = "mcpServers"
    """The key of the table of all servers."""
    syntax: str = "JSON"
    type: str = ""
    """The value of `type`; empty: it has none."""
    token: str = ""
    """How a header names the variable HOOKPROXY_TOKEN."""
    token_key: str = ""
    """In place of a header, the key for the name of the variable."""
    names_variables: bool = False
    """Variables in headers are listed under `env_keys`."""


class Agent(Struct, frozen=True):
    """An agent, and the files in which it may keep servers.

    Paths begin with `~`, with a variable, or with the folder of desktop applications; `*` is each folder there.
    """

    name: str
    """Its word on our command line."""
    title: str
    """Its name for people."""
    user_files: tuple[str, ...]
    project_files: tuple[str, ...] = ()
    """Files in the project's folder."""
    dialect: str = ""
    """The dialect of the hooks that the agent runs itself, for the tools of servers too; empty: no dialect of ours."""
    http: HttpForm | None = None
    """None: it reaches no server over HTTP, or has no place for a token but the file itself."""


AGENTS: Final = (
    Agent(
        "claude-code",
        "Claude Code",
        ("~/.claude.json", "$CLAUDE_CONFIG_DIR/.claude.json"),
        (".mcp.json",),
        dialect="claude",
        http=HttpForm(type="http", token="${HOOKPROXY_TOKEN}"),
    ),
    Agent("claude-desktop", "Claude Desktop", (f"{_APPLICATIONS}/Claude/claude_desktop_config.json",)),
    Agent(
        "cursor",
        "Cursor",
        ("~/.cursor/mcp.json",),
        (".cursor/mcp.json",),
        dialect="cursor",
        http=HttpForm(token="${env:HOOKPROXY_TOKEN}"),
    ),
    Agent(
        "vscode",
        "VS Code",
        (
            *(f"{folder}/{file}" for folder in _VSCODE_FOLDERS for file in _VSCODE_FILES),
            "~/.vscode-server/data/User/mcp.json",
        ),
        (".vscode/mcp.json", ".vscode/settings.json"),
        dialect="vscode",
        http=HttpForm(under="servers", type="http", token="${env:HOOKPROXY_TOKEN}"),
    ),
    Agent(
        "codex",
        "Codex",
        ("~/.codex/config.toml", "$CODEX_HOME/config.toml"),
        (".codex/config.toml",),
        dialect="codex",
        http=HttpForm(under="mcp_servers", syntax="TOML", token_key="bearer_token_env_var"),
    ),
    Agent(
        "gemini",
        "Gemini CLI",
        ("~/.gemini/settings.json", "$GEMINI_CLI_HOME/.gemini/settings.json"),
        (".gemini/settings.json",),
        dialect="gemini",
        http=HttpForm("httpUrl", token="${HOOKPROXY_TOKEN}"),
    ),
    Agent(
        "windsurf",
        "Windsurf",
        (
            "~/.codeium/windsurf/mcp_config.json",
            "~/.codeium/windsurf-next/mcp_config.json",
            "~/.codeium/mcp_config.json",  # its plugin for JetBrains
        ),
        dialect="cascade",
        http=HttpForm("serverUrl", token="${env:HOOKPROXY_TOKEN}"),
    ),
    Agent(
        "zed",
        "Zed",
        (
            "~/.config/zed/settings.json",
            "$XDG_CONFIG_HOME/zed/settings.json",
            "~/.var/app/dev.zed.Zed/config/zed/settings.json",  # from Flathub
        ),
        (".zed/settings.json",),
    ),
    Agent(
        "goose",
        "goose",
        (
            "~/.config/goose/config.yaml",
            "$XDG_CONFIG_HOME/goose/config.yaml",
            "$GOOSE_PATH_ROOT/config/config.yaml",
        ),
        dialect="goose",
        http=HttpForm("uri", "extensions", "YAML", "streamable_http", "$HOOKPROXY_TOKEN", names_variables=True),
    ),
    Agent(
        "opencode",
        "opencode",
        (
            *(
                f"{folder}/{file}"
                for folder in ("~/.config/opencode", "$XDG_CONFIG_HOME/opencode", "$OPENCODE_CONFIG_DIR")
                for file in ("opencode.json", "opencode.jsonc", "config.json")
            ),
            "$OPENCODE_CONFIG",
        ),
        ("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
        dialect="opencode",
        http=HttpForm(under="mcp", type="remote", token="{env:HOOKPROXY_TOKEN}"),
    ),
    Agent(
        "copilot",
        "Copilot CLI",
        ("~/.copilot/mcp-config.json", "$COPILOT_HOME/mcp-config.json"),
        (".mcp.json", ".github/mcp.json"),
        dialect="copilot",
        http=HttpForm(type="http", token="${HOOKPROXY_TOKEN}"),
    ),
    Agent(
        "cline",
        "Cline",
        (
            "~/.cline/data/settings/cline_mcp_settings.json",
            "$CLINE_DIR/data/settings/cline_mcp_settings.json",
            *(f"{folder}/{_CLINE_FILE}" for folder in _CLINE_FOLDERS),
        ),
        dialect="cline",
    ),
)

AGENTS_BY_NAME: Final[Mapping[str, Agent]] = {agent.name: agent for agent in AGENTS}


class ConfigFile(Struct, frozen=True):
    """A file in which agents may keep servers."""

    path: str
    """An absolute path."""
    agents: tuple[Agent, ...]
    """The agents that read it: more than one read a project's `.mcp.json`."""
    in_project: bool
    """True if it is a file of the project in the working directory."""

    @property
    def http(self) -> HttpForm | None:
        """How all its agents write the entry of a server that they reach over HTTP; None: not all do so alike."""
        forms = {agent.http for agent in self.agents}
        return next(iter(forms)) if len(forms) == 1 else None

    @property
    def titles(self) -> str:
        """The names of its agents, for people."""
        return ", ".join(agent.title for agent in self.agents)


def config_files(
    environ: Mapping[str, str], home: str, cwd: str, agents: Sequence[Agent] = AGENTS, platform: str = sys.platform
) -> list[ConfigFile]:
    """Every file that may exist, once, in the order of the agents. Only the folders of profiles are looked up."""
    found: dict[str, ConfigFile] = {}
    for agent in agents:
        paths = [(path, False) for template in agent.user_files for path in _expand(template, environ, home, platform)]
        paths += [(os.path.join(cwd, file), True) for file in agent.project_files]
        for path, in_project in paths:
            known = found.setdefault(path := os.path.normpath(path), ConfigFile(path, (), in_project))
            if agent not in known.agents:
                found[path] = replace(known, agents=(*known.agents, agent))
    return list(found.values())


def _expand(template: str, environ: Mapping[str, str], home: str, platform: str) -> list[str]:
    """The absolute paths that a path in the tables stands for; none if it begins with a variable that is not set."""
    start, slash, rest = template.partition("/")
    if start == "~":
        folder = home
    elif start == _APPLICATIONS:
        folder = _application_folder(environ, home, platform)
    else:
        folder = environ.get(start.removeprefix("$"), "")
    if not os.path.isabs(folder):  # the XDG specification says to ignore a relative path
        return []
    before, star, after = rest.partition("*/")
    if not star:
        return [folder + slash + rest]
    try:
        return [os.path.join(folder, before, name, after) for name in sorted(os.listdir(os.path.join(folder, before)))]
    except OSError:  # there are no profiles
        return []


def _application_folder(environ: Mapping[str, str], home: str, platform: str) -> str:
    if platform == "darwin":
        return os.path.join(home, "Library/Application Support")
    folder = environ.get("XDG_CONFIG_HOME", "")
    return folder if os.path.isabs(folder) else os.path.join(home, ".config")
