"""Agents that share one real server process, all with the same ids and progress tokens, each behind its own proxy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

from hookproxy.audit.log import Audit
from hookproxy.hooks.evaluate import Hooks
from hookproxy.model.settings import Settings
from hookproxy.protocol.multiplex import Multiplexer
from hookproxy.session.lifecycle import Lifecycle
from hookproxy.session.proxy import Proxy
from hookproxy.session.server_end import RemoteServer
from hookproxy.transports.pipe import open_channel
from hookproxy.transports.shared_server import SharedServer
from tests.support.proxy_rig import DIRECT_LOOP, SESSION, TIMEOUT
from tests.support.recording_channel import RecordingChannel

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

AGENTS: Final = 64
ROUNDS: Final = 5
LIMIT: Final = 4_000_000

SERVER: Final = """
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("shared")

@server.tool()
async def say(text: str, context: Context) -> str:
    await context.report_progress(1, 2, text)
    return text

@server.tool()
async def repeat(text: str, times: int) -> str:
    return text * times

@server.tool()
async def end() -> str:
    import os
    os._exit(3)

server.run()
"""


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


class Agent:
    """An agent over a channel of its own, and the proxy between it and the shared server."""

    def __init__(self, shared: SharedServer, name: str) -> None:
        self.name = name
        self.messages: list[Any] = []
        self.came = anyio.Event()
        self.channel = RecordingChannel(self.take)
        self.reports: list[str] = []
        settings = Settings()
        server = shared.open_channel()
        proxy = Proxy(
            self.channel,
            server,
            Hooks((), settings, SESSION.server, os.environ),
            settings,
            SESSION,
            Audit(settings),
            self.reports.append,
        )
        self.lifecycle = Lifecycle(proxy, RemoteServer(server), forwards_signals=False)

    def take(self, piece: bytes) -> None:
        self.messages += [json.loads(line) for line in piece.splitlines()]
        self.came.set()
        self.came = anyio.Event()

    def send(self, method: str, params: object, raw_id: int | None = 1) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if raw_id is None else {"id": raw_id})
        self.channel.says(json.dumps(message).encode() + b"\n")

    def call(self, tool: str, **arguments: object) -> None:
        self.send("tools/call", {"name": tool, "arguments": arguments, "_meta": {"progressToken": 1}})

    async def until(self, count: int) -> list[Any]:
        """The first messages, when so many have come; they are forgotten."""
        with anyio.fail_after(TIMEOUT):
            while len(self.messages) < count:
                await self.came.wait()
        found, self.messages = self.messages, []
        return found

    async def begin(self) -> None:
        info = {"name": self.name, "version": "1"}
        self.send("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info})
        (result,) = await self.until(1)
        assert result["id"] == 1
        assert result["result"]["serverInfo"]["name"] == "shared"
        self.send("notifications/initialized", {}, None)


def start(script: Path) -> tuple[subprocess.Popen[bytes], int, int]:
    """Start the server; return the descriptors of its output and its input."""
    script.write_text(SERVER)
    process = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin
    assert process.stdout
    with process.stdin, process.stdout:
        return process, os.dup(process.stdout.fileno()), os.dup(process.stdin.fileno())


@asynccontextmanager
async def sharing(folder: Path, count: int) -> AsyncIterator[tuple[SharedServer, list[Agent], list[int]]]:
    """So many agents with the handshake, and the status of each session that has ended."""
    process, source, sink = start(folder / "server.py")
    pipe = open_channel(source, sink)
    shared = SharedServer(pipe, Multiplexer(one_owner=False, report=print), LIMIT, print)
    shared.start(lambda: None)
    statuses: list[int] = []

    async def run(agent: Agent) -> None:
        statuses.append(await agent.lifecycle.run_to_end())

    agents = [Agent(shared, f"agent {one}") for one in range(count)]
    try:
        async with anyio.create_task_group() as tasks:
            for agent in agents:
                tasks.start_soon(run, agent)
            await anyio.wait_all_tasks_blocked()
            for agent in agents:
                await agent.begin()
            yield shared, agents, statuses
            tasks.cancel_scope.cancel()
    finally:
        pipe.close()
        process.kill()
        process.wait()


async def test_64_agents_that_all_use_id_1_each_get_their_own_text(tmp_path: Path) -> None:
    async with sharing(tmp_path, AGENTS) as (_, agents, _statuses):
        for round_ in range(ROUNDS):
            for agent in agents:
                agent.call("say", text=f"{agent.name}, {round_}")
            for agent in agents:
                text = f"{agent.name}, {round_}"
                progress, response = await agent.until(2)
                assert progress["params"] == {"progressToken": 1, "progress": 1, "total": 2, "message": text}
                assert response["id"] == 1
                assert response["result"]["content"][0]["text"] == text


async def test_a_long_response_ends_only_its_call(tmp_path: Path) -> None:
    async with sharing(tmp_path, 2) as (_, (one, two), _statuses):
        one.call("repeat", text="x", times=LIMIT + 1)
        two.call("say", text="fine")
        (error,) = await one.until(1)
        assert error["error"]["code"] == -32603
        assert (await two.until(2))[-1]["result"]["content"][0]["text"] == "fine"
        one.call("say", text="again")
        assert (await one.until(2))[-1]["result"]["content"][0]["text"] == "again"


async def test_an_agent_that_leaves_ends_its_session_and_no_other(tmp_path: Path) -> None:
    async with sharing(tmp_path, 3) as (shared, (one, two, three), statuses):
        two.call("say", text="last")
        two.channel.ends()
        assert (await two.until(2))[-1]["result"]["content"][0]["text"] == "last"
        with anyio.fail_after(TIMEOUT):
            while len(statuses) < 1:
                await anyio.lowlevel.checkpoint()
        assert (statuses, shared.sessions) == ([0], 2)
        for agent in (one, three):
            agent.call("say", text=agent.name)
            assert (await agent.until(2))[-1]["result"]["content"][0]["text"] == agent.name


async def test_when_the_server_dies_every_session_ends(tmp_path: Path) -> None:
    async with sharing(tmp_path, 3) as (shared, (one, two, three), statuses):
        one.call("repeat", text="x", times=1)
        await one.until(1)
        two.call("end")
        with anyio.fail_after(TIMEOUT):
            while len(statuses) < 3:
                await anyio.lowlevel.checkpoint()
        assert shared.sessions == 0
        assert one.messages == two.messages == three.messages == []
