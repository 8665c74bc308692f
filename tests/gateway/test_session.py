"""A session at the gateway that lasts: it keeps nothing of calls that are over."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast
from weakref import ref

import anyio
import pytest
from anyio.abc import TaskGroup

from hookproxy.config.gateway import load_gateway
from hookproxy.gateway.gateway import Gateway
from hookproxy.gateway.log import GatewayLog
from hookproxy.gateway.servers import Servers
from hookproxy.hooks.evaluate import Hooks
from hookproxy.model.principal import Principal
from hookproxy.session.proxy import Proxy
from hookproxy.session.server_end import ForeignServer
from hookproxy.transports.http.stateless_channel import StatelessChannel
from hookproxy.transports.pipe import open_channel
from tests.support.http_agent import HttpAgent, agent_of
from tests.support.proxy_rig import DIRECT_LOOP, TIMEOUT, Peer

pytestmark = pytest.mark.anyio

ALICE = Principal("uid:1000", "alice")


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def call(number: int) -> dict[str, object]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "read", "arguments": {}, "_meta": meta}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


class Rig:
    """A gateway with a session of stateless requests at work between `agents` and `server`, the test's ends."""

    def __init__(self, folder: Path) -> None:
        text = f'[audit]\nfile = "{folder}/audit.jsonl"\ncalls = "all"\n[servers.s]\ncommand = ["cat"]\n'
        (folder / "gateway.toml").write_text(f'{text}[[hooks.PreToolUse]]\nname = "guard"\nargv = ["/bin/true"]\n')
        self.config = load_gateway("gateway.toml", {}, str(folder))
        report = GatewayLog(as_json=False)
        self.gateway = Gateway(self.config, Servers(cast("TaskGroup", None), report), report)
        self.session = self.gateway.admit(ALICE, "s", is_stateless=True)
        self.agents, self.server = StatelessChannel(1_000_000, lambda _text: None), Peer()
        self.to_server = open_channel(self.server.theirs_in, self.server.theirs_out)

    async def run(self) -> None:
        await self.gateway.run_session(
            self.session, self.agents, lambda *_: (self.to_server, ForeignServer(self.to_server.close))
        )

    @property
    def proxy(self) -> Proxy:
        assert self.session._proxy is not None
        return self.session._proxy

    async def respond(self, number: int) -> None:
        await self.server.send(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"of":%d}}\n' % (number, number))


@asynccontextmanager
async def session_of(folder: Path) -> AsyncIterator[tuple[Rig, HttpAgent]]:
    rig = Rig(folder)
    try:
        with anyio.fail_after(TIMEOUT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(rig.run)
                async with agent_of(rig.agents) as agent:
                    yield rig, agent
                tasks.cancel_scope.cancel()
    finally:
        rig.server.close()


async def test_judged_calls_that_agents_have_left_do_not_fill_memory(tmp_path: Path) -> None:
    async with session_of(tmp_path) as (rig, agent):
        left = []
        for number in range(10):
            post = await agent.post(call(number))
            left.append((await rig.server.message())["id"])
            post.leave()
            assert (await rig.server.message())["params"] == {"requestId": left[-1]}
        assert not rig.proxy.router.withholds_responses
        post = await agent.post(call(0))
        for one in (*left, (await rig.server.message())["id"]):
            await rig.respond(one)
        assert b'"of":11' in await (await post.head()).body()


@pytest.mark.slow
async def test_nothing_is_left_of_a_policy_that_another_one_has_replaced(tmp_path: Path) -> None:
    async with session_of(tmp_path) as (rig, agent):
        policies: list[ref[Hooks]] = []
        for number in range(3):
            post = await agent.post(call(number))
            await rig.respond((await rig.server.message())["id"])
            await post.head()
            policies.append(ref(rig.proxy.policy.hooks))
            rig.gateway.change_policy(rig.config)
        await anyio.wait_all_tasks_blocked()  # what has used them is closed
        gc.collect()
        assert [one() for one in policies] == [None] * 3


@pytest.mark.slow
async def test_nothing_is_left_of_a_session_that_has_ended(tmp_path: Path) -> None:
    async with session_of(tmp_path) as (rig, agent):
        post = await agent.post(call(0))
        await rig.respond((await rig.server.message())["id"])
        await post.head()
        session, relay = ref(rig.session), ref(rig.proxy.relay)
        rig.agents.end()
        await rig.server.rest()
        rig.server.stop_writing()
    del rig, agent, post
    gc.collect()
    assert (session(), relay()) == (None, None)


async def test_a_server_has_started_when_it_has_said_something(tmp_path: Path) -> None:
    async with session_of(tmp_path) as (rig, agent):
        rig.gateway.starts._seconds = 1000.0
        post = await agent.post(call(0))
        message = await rig.server.message()
        starting = rig.gateway.starts._of_user[ALICE.id]
        assert len(starting.starts) == 1
        await rig.respond(message["id"])
        await post.head()
        assert not starting.starts
