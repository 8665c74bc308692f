"""Published servers with the profiles of their sandboxes: they do their work. Skipped where they are not installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.model.errors import UserError
from hookproxy.sandbox.available import find_sandbox
from tests.end.test_sandbox import folder_outside_of_tmp
from tests.support.gateway_process import GatewayProcess

pytestmark = pytest.mark.slow

BENCH: Final = Path(__file__).parents[2] / ".bench" / "attack"
"""Where scripts/attack_sandbox installs them."""

CALLS: Final = {
    "filesystem": (
        ("node_modules/.bin/mcp-server-filesystem", "{work}"),
        ("write_file", {"path": "{work}/made", "content": "x"}),
        ("read_text_file", {"path": "{work}/made"}),
    ),
    "git": (
        ("python/bin/mcp-server-git", "--repository", "{work}"),
        ("git_create_branch", {"repo_path": "{work}", "branch_name": "made"}),
        ("git_status", {"repo_path": "{work}"}),
    ),
    "memory": (
        ("node_modules/.bin/mcp-server-memory",),
        ("create_entities", {"entities": [{"name": "made", "entityType": "t", "observations": []}]}),
        ("read_graph", {}),
    ),
    "sqlite": (
        ("older/bin/mcp-server-sqlite", "--db-path", "{work}/made.db"),
        ("create_table", {"query": "CREATE TABLE made (x)"}),
        ("list_tables", {}),
    ),
}


class Agent:
    """An agent's session at a server that is strict about its first messages, and says things of its own."""

    def __init__(self, gateway: GatewayProcess, server: str) -> None:
        self.connection = gateway.open(f"hookproxy 1\nserver {server}\n\n".encode())
        self.file = self.connection.makefile("rb")
        assert self.file.readline().startswith(b"ok")
        client = {"name": "test", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self.send({"method": "notifications/initialized"})

    def send(self, message: Mapping[str, object]) -> None:
        self.connection.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def ask(self, method: str, params: object) -> Mapping[str, Any]:
        self.send({"id": method, "method": method, "params": params})
        while (response := json.loads(self.file.readline())).get("id") != method:
            pass
        result: Mapping[str, Any] = response["result"]
        return result

    def close(self) -> None:
        self.file.close()
        self.connection.close()


@pytest.mark.parametrize("name", CALLS)
def test_a_server_does_its_work_with_the_profile_alone(name: str) -> None:
    try:
        find_sandbox("auto")
    except UserError as problem:
        pytest.skip(problem.message)
    (program, *arguments), *calls = CALLS[name]
    if not (BENCH / program).exists() or shutil.which("git") is None:
        pytest.skip("scripts/attack_sandbox has not installed it")
    with ExitStack() as stack:
        folder = folder_outside_of_tmp(stack)
        (work := folder / "work").mkdir()
        config = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        subprocess.run(["git", "init", "-q", work], check=True)
        subprocess.run(["git", "-C", work, *config, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
        command = json.dumps([str(BENCH / program), *(word.replace("{work}", str(work)) for word in arguments)])
        gateway = GatewayProcess(
            folder, f"[servers.{name}]\ncommand = {command}\n", env={"XDG_STATE_HOME": str(folder / "state")}
        )
        stack.callback(gateway.kill)
        assert f"servers.{name}: its sandbox has the profile {name}" in gateway.log
        session = Agent(gateway, name)
        stack.callback(session.close)
        for tool, given in calls:
            filled = json.loads(json.dumps({"name": tool, "arguments": given}).replace("{work}", str(work)))
            result = session.ask("tools/call", filled)
            assert not result.get("isError"), (tool, result)
