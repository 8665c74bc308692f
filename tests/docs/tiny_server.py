"""A tool server that takes any tool: it answers with the arguments that it got.

`write_file` writes as well, and the arguments of `as_result` are the whole result.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            params = request.get("params", {})
            result = call(params["name"], params["arguments"]) if request["method"] == "tools/call" else {}
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
            sys.stdout.flush()


def call(tool: str, arguments: dict[str, Any]) -> dict[str, object]:
    if tool == "as_result":
        return arguments
    if tool == "write_file":
        Path(arguments["path"]).write_text(arguments["content"], "utf-8")
    return {"content": [{"type": "text", "text": json.dumps(arguments)}]}


if __name__ == "__main__":
    main()
