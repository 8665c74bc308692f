"""A small MCP server that does what the called tool's name says; it is started as a process.

Each line it gets is appended to the file that the variable E2E_LOG names, before it is handled.
Nearly every test starts one, so it imports little.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

TOOLS: list[Json] = [
    {"name": "echo", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {
        "name": "typed",
        "inputSchema": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "n": {"type": "integer"}},
            "required": ["path"],
        },
    },
    {"name": "reply", "inputSchema": {"type": "object"}},
    {"name": "open", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}},
    {
        "name": "closed",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {"n": {}}, "additionalProperties": False},
    },
]


def write(text: str) -> None:
    """Write a whole line, however slowly it is read."""
    write_raw(text + "\n")


def write_raw(text: str) -> None:
    """Write characters, with or without a line end."""
    write_bytes(text.encode())


def write_bytes(text: bytes) -> None:
    rest = memoryview(text)
    while rest:
        rest = rest[os.write(1, rest) :]


def send(message: Json) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False))


def text_result(text: str) -> Json:
    return {"content": [{"type": "text", "text": text}]}


class Options:
    """`--ignore-eof` and the like, and `--status STATUS`."""

    def __init__(self, words: list[str]) -> None:
        self.ignore_eof = self.ignore_signals = self.logging = self.float_ids = False
        self.instructions, self.status = "", "0"
        self.tools = ""  # a file with what tools/list tells
        rest = iter(words)
        for word in rest:
            name = word.removeprefix("--").replace("-", "_")
            if name not in vars(self):
                sys.exit(f"unknown option {word}")
            setattr(self, name, True if getattr(self, name) is False else next(rest))


class Server:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.log = os.open(os.environ.get("E2E_LOG", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def live(self) -> int:
        for line in sys.stdin.buffer:
            os.write(self.log, line)
            try:
                said_now = json.loads(line)
            except ValueError:
                continue
            for message in said_now if isinstance(said_now, list) else [said_now]:
                self.take(message)
        if self.options.ignore_eof:
            while True:
                signal.pause()
        return int(self.options.status)

    def take(self, message: Json) -> None:
        method, params = message.get("method", ""), message.get("params") or {}
        if "id" not in message:
            self.be_notified(method, params)
            return
        act = getattr(self, "on_" + method.replace("/", "_"), None)
        if method and act is None:
            send({"id": message["id"], "result": {"method": method, "params": params}})
        elif act is not None:
            result = act(params, message["id"])
            if result is not None:
                send({"id": float(message["id"]) if self.options.float_ids else message["id"], "result": result})

    def be_notified(self, method: str, params: Json) -> None:
        if method == "release":
            answer = {
                "jsonrpc": "2.0",
                "id": params["requestId"],
                "result": text_result("released" + params.get("pad", "")),
            }
            write(json.dumps([answer] if params.get("batch") else answer))
        elif method == "raw":
            write_raw(params["text"])
        elif method == "close":
            os.close(1)
        elif method == "quit":
            os._exit(int(params["status"]))

    def on_initialize(self, params: Json, _id: object) -> Json:
        capabilities: Json = {"tools": {}}
        if self.options.logging:
            capabilities["logging"] = {}
        result: Json = {
            "protocolVersion": params.get("protocolVersion", "2025-11-25"),
            "capabilities": capabilities,
            "serverInfo": {"name": "lean", "version": "1"},
        }
        if self.options.instructions:
            result["instructions"] = self.options.instructions
        return result

    def on_tools_list(self, _params: Json, request: object) -> Json | None:
        if not self.options.tools:
            return {"tools": TOOLS}
        with open(self.options.tools, "rb") as file:
            tools = file.read().strip()
        write_bytes(b'{"jsonrpc":"2.0","id":%b,"result":{"tools":%b}}\n' % (json.dumps(request).encode(), tools))
        return None

    def on_process(self, _params: Json, _id: object) -> Json:
        return {"pid": os.getpid(), "cwd": os.getcwd(), "argv": sys.argv, "env": dict(os.environ)}

    def on_touch(self, params: Json, _id: object) -> Json:
        with open(params["fifo"], "wb") as fifo:
            fifo.write(b"touched\n")
        return {}

    def on_ask(self, params: Json, _id: object) -> None:
        """Ask the agent, and respond when it has answered."""
        send({"id": "from-server", "method": params["method"], "params": {}})

    def on_subscriptions_listen(self, _params: Json, _id: object) -> None:
        """The subscription stays open."""

    def on_raw(self, params: Json, _id: object) -> None:
        """Send these characters, whatever they are, and no response."""
        write_raw(params["text"])

    def on_tools_call(self, params: Json, request: object) -> Json | None:
        act = getattr(self, "tool_" + str(params["name"]), None)
        arguments = params.get("arguments") or {}
        return text_result("ran " + params["name"]) if act is None else act(arguments, request)

    def tool_echo(self, arguments: Json, _id: object) -> Json:
        return text_result(json.dumps(arguments))

    def tool_reply(self, arguments: Json, _id: object) -> Json:
        result: Json = arguments["result"]
        return result

    tool_open = tool_closed = tool_reply

    def tool_raw(self, arguments: Json, _id: object) -> None:
        """Send these characters, whatever they are, instead of a response; with `status`, exit afterwards."""
        write_raw(arguments["text"])
        if "status" in arguments:
            os._exit(int(arguments["status"]))

    def tool_error(self, arguments: Json, request: object) -> None:
        send({"id": request, "error": arguments["error"]})

    def tool_hold(self, _arguments: Json, request: object) -> None:
        send({"method": "notifications/holding", "params": {"requestId": request}})

    def tool_twice(self, _arguments: Json, request: object) -> Json:
        send({"id": request, "result": text_result("once")})
        return text_result("twice")

    def tool_big(self, arguments: Json, _id: object) -> Json:
        return text_result("x" * int(arguments["size"]))

    def tool_quit(self, arguments: Json, _id: object) -> None:
        os._exit(int(arguments["status"]))

    def tool_quit_slowly(self, arguments: Json, _id: object) -> None:
        """Its output ends a while before it does."""
        os.close(1)
        time.sleep(0.3)
        os._exit(int(arguments["status"]))

    def tool_killed(self, arguments: Json, _id: object) -> None:
        os.kill(os.getpid(), int(arguments["signal"]))

    def tool_mute(self, _arguments: Json, _id: object) -> None:
        os.close(1)

    def tool_flood(self, arguments: Json, _id: object) -> Json:
        """A child prints `size` bytes of notifications, and writes to a FIFO whenever it is blocked."""
        if os.fork() == 0:
            flood(int(arguments["size"]), arguments["stuck"])
            os._exit(0)
        return text_result("flooding")

    def tool_deaf(self, arguments: Json, _id: object) -> Json:
        """Read nothing until somebody writes to a FIFO; meanwhile each line of another is a notification."""
        said_now = os.open(arguments["say"], os.O_RDWR)
        listen = os.open(arguments["listen"], os.O_RDWR)
        send({"method": "notifications/deaf"})
        while True:
            ready, _, _ = select.select([said_now, listen], [], [])
            if said_now in ready:
                send({"method": "notifications/said", "params": {"text": os.read(said_now, 100).decode()}})
            if listen in ready:
                return text_result("listening again")

    def tool_orphan(self, arguments: Json, _id: object) -> None:
        """Leave a grandchild that keeps standard output, and go."""
        if os.fork() == 0:
            os.close(0)
            while True:
                signal.pause()
        os._exit(int(arguments["status"]))


def flood(size: int, stuck: str) -> None:
    os.set_blocking(1, False)
    task_request = select.poll()
    task_request.register(1, select.POLLOUT)
    line = json.dumps({"jsonrpc": "2.0", "method": "notifications/flood", "params": {"text": "x" * 4000}}).encode()
    block = memoryview((line + b"\n") * 16)
    sent, rest, reported = 0, block, False
    while sent < size or len(rest) < len(block):
        try:
            written = os.write(1, rest)
            sent, rest = sent + written, rest[written:] or block
        except BlockingIOError:
            if not task_request.poll(None if reported else 500):
                reported = True
                with open(stuck, "w") as fifo:
                    fifo.write(f"{sent}\n")
    with open(stuck, "w") as fifo:
        fifo.write(f"{sent} in all\n")


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    options = Options(sys.argv[1:])
    if options.ignore_signals:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return Server(options).live()


if __name__ == "__main__":
    sys.exit(main())
