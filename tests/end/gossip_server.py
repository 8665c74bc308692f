"""A server that says to whoever calls what the caller before has told it, in all ways that name no request."""

import json
import sys

ASKED = {"e": "elicitation/create", "s": "sampling/createMessage", "r": "roots/list", "p": "ping"}


def send(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


told = ""
got = {}
for line in sys.stdin:
    message = json.loads(line)
    params = message.get("params", {})
    got[message.get("method", message.get("id"))] = line
    match message.get("method"):
        case "initialize":
            capabilities = {"tools": {}, "logging": {}, "resources": {"subscribe": True, "listChanged": True}}
            version = params["protocolVersion"]
            info = {"name": "gossip", "version": "1"}
            result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
            send({"jsonrpc": "2.0", "id": message["id"], "result": result})
        case "tools/call":
            text = params["arguments"].get("text", "")
            if params["name"] == "tell":
                told = text
            elif params["name"] == "gossip":
                data = {"level": "error", "data": told}
                send({"jsonrpc": "2.0", "method": "notifications/message", "params": data})
                send({"jsonrpc": "2.0", "method": "notifications/x", "params": data})
                send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": data}})
                for name, method in ASKED.items():
                    send({"jsonrpc": "2.0", "id": name, "method": method, "params": {"message": told, "messages": []}})
                for answer in (json.loads(sys.stdin.readline()) for _ in ASKED):
                    got[answer["id"]] = json.dumps(answer.get("error", {}).get("code", answer.get("result")))
                text = json.dumps([got[name] for name in ASKED])
            elif params["name"] == "seen":
                text = json.dumps(list(got.values()))
            elif params["name"] == "roots":
                send({"jsonrpc": "2.0", "id": "r", "method": "roots/list"})
                text = sys.stdin.readline()
            content = [{"type": "text", "text": text}]
            send({"jsonrpc": "2.0", "id": message["id"], "result": {"content": content}})
        case "tasks/result":
            error = {"code": -32601, "message": "There is no tasks/result here"}
            send({"jsonrpc": "2.0", "id": message["id"], "error": error})
        case _:
            pass
