"""A server that runs command lines, as widely used ones do: the tool `start_process` of Desktop Commander."""

from __future__ import annotations

import subprocess

from mcp.server import MCPServer

server = MCPServer("desktop-commander")


@server.tool()
def start_process(command: str, timeout_ms: int) -> str:
    """Run a command line, and give what it prints."""
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=timeout_ms / 1000)
    return ended.stdout + ended.stderr


if __name__ == "__main__":
    server.run()
