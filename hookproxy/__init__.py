"""hookproxy puts hooks in front of any MCP server: the process between the agent and the server."""

__version__ = "0.1.0"
