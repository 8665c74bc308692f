"""The MCP server of the harness: the tools of a scenario with their prescribed results, and a log of all calls."""

import json
import sys
from typing import Any


def answer(method: str, params: dict[str, Any], tools: list[dict[str, Any]], log: str) -> dict[str, Any]:
    """The result of a request. A call of a tool is logged."""
    if method == "initialize":
        about = {"name": "scenario", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [{"name": tool["name"], "inputSchema": {"type": "object"}} for tool in tools]}
    arguments = params["arguments"]
    with open(log, "a") as file:
        file.write(json.dumps({"name": params["name"], "args": arguments}) + "\n")
    tool = next(tool for tool in tools if tool["name"] == params["name"])
    behavior = next(one for one in tool["behavior"] if one.get("when_args", arguments) == arguments)
    value = behavior["return"]
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": behavior.get("is_error", False)}
    return result if isinstance(value, str) else {**result, "structuredContent": value}


def main() -> None:
    """Answer each request on standard input, until that ends."""
    with open(sys.argv[1]) as file:
        tools = json.load(file)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(message["method"], message.get("params", {}), tools, sys.argv[2])
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


main()
