"""A server that says of itself what a file has: for tests of what is made of that. It needs nothing but Python.

The file is JSON: `serverInfo`, `capabilities`, `instructions`, `tools`, `prompts` and `resourceTemplates` are what it
says; `pages` is how many entries a page has, `stateless` that it knows no handshake, `hangs` the method that it never
answers, `fails` the one that it answers with an error, `endless` that each page has another one behind it, `ask` the
requests that it has for the client before it lists anything; the responses are written to `heard`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

LISTS = {"tools/list": "tools", "prompts/list": "prompts", "resources/templates/list": "resourceTemplates"}


def command(path: str) -> list[str]:
    """What starts this server with what the file at `path` says."""
    return [sys.executable, "-S", "-E", __file__, path]


def main(path: str) -> None:
    """Answer until the input ends."""
    with open(path, encoding="utf-8") as file:
        said = json.load(file)
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if "id" not in message or (method and method == said.get("hangs")):
            continue
        if method is None:
            with open(said["heard"], "a", encoding="utf-8") as heard:
                heard.write(line)
            continue
        if method in LISTS and "ask" in said:
            for number, request in enumerate(said.pop("ask")):
                send({"id": f"s{number}", **request})
        send({"id": message["id"], **answer(said, method, message.get("params") or {})})


def answer(said: dict[str, Any], method: str, params: dict[str, Any]) -> dict[str, Any]:
    about = {key: said[key] for key in ("serverInfo", "capabilities", "instructions") if key in said}
    about.setdefault("capabilities", {"tools": {}, "prompts": {}, "resources": {}})
    stateless = said.get("stateless", False)
    if method == said.get("fails") or (method == "initialize" and stateless):
        return {"error": {"code": -32000, "message": "no \x1b[31m such"}}
    if method == "initialize":
        return {"result": {"protocolVersion": params["protocolVersion"], **about}}
    if method == "server/discover" and stateless:
        return {"result": {**about, "supportedVersions": ["2026-07-28"]}}
    if method not in LISTS:
        return {"error": {"code": -32601, "message": "unknown"}}
    assert not stateless or "io.modelcontextprotocol/protocolVersion" in params["_meta"]
    start = int(params.get("cursor", 0))
    size = said.get("pages", 1000)
    items = said.get(LISTS[method], [])
    if not isinstance(items, list):
        return {"result": {LISTS[method]: items}}
    has_next = start + size < len(items) or said.get("endless")
    result = {LISTS[method]: items[start : start + size], **({"nextCursor": str(start + size)} if has_next else {})}
    return {"result": result}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
