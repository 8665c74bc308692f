"""A server as heavy as one in Node: it has 70 MB, and answers each request with an empty result."""

import json
import sys

kept = b"x" * 70_000_000
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        version = message.get("params", {}).get("protocolVersion", "2025-11-25")
        info = {"name": "heavy", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
        sys.stdout.flush()
