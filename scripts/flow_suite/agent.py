"""A scripted agent: it starts `hookproxy run` in front of a server, calls tools, and answers what a person is asked."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HOOKPROXY = ROOT / ".venv/bin/hookproxy"
SECONDS = 120
"""A call takes milliseconds; the rest is for a busy machine, and for the servers of the twelve that start slowly."""
LONGEST_LINE = 2**26


class Agent:
    """One session. `approves` is what the person says while a call runs; `asked` are the questions of the last call."""

    def __init__(
        self, command: Sequence[str | Path], folder: Path, log: Path, capabilities: dict[str, Any] | None = None
    ) -> None:
        self._capabilities = {"elicitation": {}} if capabilities is None else capabilities
        self._command, self._folder, self._log = command, folder, log
        self._last = 0
        self.approves = True
        self.asked: list[str] = []

    async def __aenter__(self) -> Agent:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self._folder), "PWD": str(self._folder)}
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log,
                cwd=self._folder, env=environment, limit=LONGEST_LINE,
            )  # fmt: skip
        about = {"protocolVersion": "2025-06-18", "capabilities": self._capabilities,
                 "clientInfo": {"name": "scripted", "version": "1"}}  # fmt: skip
        await self.request("initialize", about)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.tools = (await self.request("tools/list", {}))["result"]["tools"]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        try:
            async with asyncio.timeout(SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def call(self, tool: str, arguments: dict[str, Any], *, approves: bool = True) -> dict[str, Any]:
        """Call a tool; the person answers every question with yes, or with no."""
        self.approves, self.asked = approves, []
        answer = await self.request("tools/call", {"name": tool, "arguments": arguments})
        return dict(answer.get("result") or {"isError": True, "error": answer["error"]})

    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request, answer the questions that come, and return the response."""
        self._last += 1
        self._send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        assert self._process.stdout
        async with asyncio.timeout(SECONDS):
            while line := await self._process.stdout.readline():
                message = json.loads(line)
                if message.get("method") == "elicitation/create":
                    self.asked.append(message["params"]["message"])
                    yes = {"action": "accept", "content": {"decision": "allow once"}}
                    no = {"action": "accept", "content": {"decision": "deny"}}
                    self._send({"jsonrpc": "2.0", "id": message["id"], "result": yes if self.approves else no})
                elif "method" in message and "id" in message:
                    self._send({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": []}})
                elif message.get("id") == self._last:
                    return dict(message)
        raise ConnectionError(f"the server ended: {self._log.read_text()[-500:]}")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
