"""The table of known agents and their files in docs/agents.md."""

from tables import row

from hookproxy.wrapping.known_agents import AGENTS

FORMS = {
    "claude-code": "`mcpServers`, also those of single projects",
    "vscode": "`servers` in mcp.json, `mcp.servers` in settings.json",
    "codex": "TOML, `mcp_servers`",
    "zed": "`context_servers`",
    "goose": "YAML, `extensions`",
    "opencode": "`mcp`, the command being a list",
}
"""What differs from `mcpServers` in JSON."""


def agents() -> str:
    """A row for each agent."""
    rows = [row("name", "agent", "your files", "a project's files", "servers"), row(*["---"] * 5)]
    for agent in AGENTS:
        places = [", ".join(f"`{path}`" for path in paths) for paths in (agent.user_files, agent.project_files)]
        rows.append(row(f"`{agent.name}`", agent.title, *places, FORMS.get(agent.name, "`mcpServers`")))
    return "\n".join(rows)
