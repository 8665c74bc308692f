"""A server that does whatever it is told, as a tool that an attacker drives: it runs Python code or a command line."""

from __future__ import annotations

import json
import subprocess
import sys


def run_python(code: str) -> str:
    names: dict[str, object] = {}
    try:
        exec(code, names)
    except BaseException as error:
        return f"refused: {type(error).__name__}: {error}"
    return json.dumps(bool(names.get("reached")))


def run_shell(command: str) -> str:
    ended = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
    )
    return ended.stdout + ended.stderr


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "initialize":
            result: object = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "probe", "version": "1"},
            }
        elif message.get("method") == "tools/call":
            text = message["params"]["arguments"]["text"]
            shown = run_python(text) if message["params"]["name"] == "python" else run_shell(text)
            result = {"content": [{"type": "text", "text": shown}]}
        elif message.get("method") == "tools/list":
            result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("python", "shell")]}
        else:
            continue
        if "id" in message:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
            sys.stdout.flush()


main()
