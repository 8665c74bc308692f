"""An agent of a guarded account as a process of its own, with its hooks and MCP servers as children."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

from tests.support.guard_desk import CLIENT, Desk
from tests.support.program import HOOKPROXY

Json = dict[str, Any]

PROGRAM: Final = str(Path(__file__).parents[1] / "end" / "guarded_agent.py")
SERVER: Final = (sys.executable, "-S", "-E", str(Path(__file__).parents[1] / "end" / "tool_server.py"))


class GuardedAgent:
    """Claude Code, as far as hooks and servers see it."""

    def __init__(self, desk: Desk, session: str = "s", launcher: tuple[str, ...] = ()) -> None:
        """`launcher` are words before the program, as of a shell that starts it."""
        self.desk, self.session = desk, session
        self._ids = count(1)
        self.approves = "deny"
        """What the person answers to the forms that servers' approvals show."""
        words = [*launcher, sys.executable, "-S", "-E", PROGRAM]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=desk.environ)

    def order(self, **order: object) -> Any:  # noqa: ANN401  # what the order says
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def start(self, name: str, *options: str, server: tuple[str, ...] = SERVER, **env: str) -> None:
        """Start a server behind hookproxy, and shake hands."""
        command = [HOOKPROXY, "run", "--name", name, *options, "--", *server]
        self.order(server=name, command=command, env=env, errors=str(self.desk.home / f"{name}.errors"))
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "agent", "version": "1"},
        }
        self.send(name, "initialize", **hello)
        self.order(to=name, line={"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, server: str, method: str, **params: object) -> Json:
        """A request to a server, and its response."""
        line = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        answer: Json = self.order(to=server, line=line, approve=self.approves)
        return answer

    def call(self, name: str, tool: str, arguments: Json, use: str = "") -> str:
        """What the model reads of a call; `use` is the id that Claude Code gives to it."""
        meta = {"_meta": {"claudecode/toolUseId": use}} if use else {}
        answer = self.send(name, "tools/call", name=tool, arguments=arguments, **meta)
        if "error" in answer:
            return f"error: {answer['error']['message']}"
        return "".join(block.get("text", "") for block in answer["result"]["content"])

    def list_tools(self, server: str) -> None:
        """List a server's tools, and wait until the guard knows them: before, it judges otherwise than the run.

        Something must judge `typed`: such a call waits for the guard, which has got the tools by then.
        """
        self.send(server, "tools/list")
        self.call(server, "typed", {"path": "x"})

    def event(self, event: str, tool: str, arguments: Json, use: str = "", **members: object) -> tuple[str, str]:
        """Run the guard's hook for an event: the permission and the reason that Claude Code reads."""
        call = {"tool_name": tool, "tool_input": arguments, "tool_use_id": use}
        document = {"session_id": self.session, "cwd": "/", "hook_event_name": event, **call, **members}
        hook = [sys.executable, "-I", "-S", "-E", CLIENT, "claude", str(self.desk.socket), HOOKPROXY]
        status, stdout, stderr = self.order(hook=hook, document=document)
        assert status == 0, stderr
        output = json.loads(stdout).get("hookSpecificOutput", {}) if stdout else {}
        return output.get("permissionDecision", ""), output.get("permissionDecisionReason", "")

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(60)
        assert self.process.stdout
        self.process.stdout.close()


@contextmanager
def guarded_agent(desk: Desk, session: str = "s", launcher: tuple[str, ...] = ()) -> Iterator[GuardedAgent]:
    agent = GuardedAgent(desk, session, launcher)
    try:
        yield agent
    finally:
        agent.close()
