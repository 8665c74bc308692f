"""Serves what a file makes with the `mcp` package: on standard input and output, or over HTTP at a port that it prints.

It is started as a process: `serve_mcp.py FILE [--http [json] [stateless]]`. The file has an `MCPServer` named `server`.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer


def main(file: str, *words: str) -> None:
    server = made_by(Path(file))
    sys.stderr.write(f"{server.name} starts\n")
    if "--http" in words:
        serve_over_http(server, is_json="json" in words, is_stateless="stateless" in words)
    else:
        server.run("stdio")


def made_by(file: Path) -> MCPServer:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module  # where pydantic looks annotations up
    spec.loader.exec_module(module)
    server: MCPServer = module.server
    return server


def serve_over_http(server: MCPServer, *, is_json: bool, is_stateless: bool) -> None:
    import socket

    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    app = server.streamable_http_app(json_response=is_json, stateless_http=is_stateless)
    sys.stderr.write(f"listens on port {listener.getsockname()[1]}\n")
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    main(*sys.argv[1:])
