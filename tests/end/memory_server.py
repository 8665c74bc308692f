"""An MCP server whose tools take memory: `grow` in its own process, `child` in one that detaches itself."""

import json
import os
import sys
import time

kept = []


def child(size: int) -> None:
    """Take memory in a grandchild that nobody waits for, in a session of its own, and say when it is there."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            time.sleep(2)  # whoever looks meanwhile finds the grandchild by its parent
            os._exit(0)
        kept.append(b"x" * size)
        os.write(writer, b"x")
        os.close(0)
        os.close(1)
        time.sleep(60)
        os._exit(0)
    os.read(reader, 1)


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result: object = {"tools": []}
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": "memory", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif message["method"] == "tools/call":
        name, arguments = message["params"]["name"], message["params"]["arguments"]
        if name == "grow":
            kept.append(b"x" * arguments["size"])
        elif name == "child":
            child(arguments["size"])
        result = {"content": [{"type": "text", "text": f"{name} {os.getpid()}"}]}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
    sys.stdout.flush()
