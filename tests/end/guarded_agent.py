"""An agent as a process of its own: it starts hooks and MCP servers as its children, as it is told on standard input.

    {"server": NAME, "command": [...], "env": {...}}   start a server; no answer
    {"to": NAME, "line": {...}, "approve": CHOICE}      send it a line; the answer is its next line with that id,
                                                        and the person answers so to what is asked until then
    {"hook": [...], "document": {...}}                  run a hook by a shell; the answer is [STATUS, STDOUT, STDERR]
    {"end": NAME}                                       close a server's input, and wait until it has ended

Each answer is one line. It imports little, as nearly every test of the guard starts one.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

servers: dict[str, subprocess.Popen[bytes]] = {}


def perform(order: dict[str, Any]) -> object:
    if "server" in order:
        with open(order["errors"], "ab") as errors:
            servers[order["server"]] = subprocess.Popen(
                order["command"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **order.get("env", {})},
            )
        return None
    if "to" in order:
        server = servers[order["to"]]
        assert server.stdin
        assert server.stdout
        server.stdin.write(json.dumps(order["line"]).encode() + b"\n")
        server.stdin.flush()
        while "id" in order["line"]:
            answer = json.loads(server.stdout.readline())
            if answer.get("method") == "elicitation/create":
                result = {"action": "accept", "content": {"decision": order["approve"]}}
                server.stdin.write(
                    json.dumps({"jsonrpc": "2.0", "id": answer["id"], "result": result}).encode() + b"\n"
                )
                server.stdin.flush()
            if answer.get("id") == order["line"]["id"]:
                return answer
        return None
    if "hook" in order:
        line = shlex.join(order["hook"])
        done = subprocess.run(
            line, shell=True, input=json.dumps(order["document"]).encode(), capture_output=True, check=False
        )
        return [done.returncode, done.stdout.decode(), done.stderr.decode()]
    server = servers.pop(order["end"])
    assert server.stdin
    server.stdin.close()
    return server.wait(30)


def main() -> None:
    for line in sys.stdin:
        sys.stdout.write(json.dumps(perform(json.loads(line))) + "\n")
        sys.stdout.flush()
    for name in list(servers):
        perform({"end": name})


main()
