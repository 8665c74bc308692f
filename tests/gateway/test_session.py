"""A session at the gateway that lasts: it keeps nothing of calls that are over."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import anyio
import pytest

from hookproxy.config.gateway import load_gateway
from hookproxy.gateway.gateway import Gateway
from hookproxy.gateway.log import GatewayLog
from hookproxy.gateway.servers import Servers
from hookproxy.model.principal import Principal
from hookproxy.session.server_end import ForeignServer
from hookproxy.transports.http.stateless_channel import StatelessChannel
from hookproxy.transports.pipe import open_channel
from tests.support.http_agent import agent_of
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


async def test_judged_calls_that_agents_have_left_do_not_fill_memory(tmp_path: Path) -> None:
    config = f'[audit]\nfile = "{tmp_path}/audit.jsonl"\ncalls = "all"\n[servers.s]\ncommand = ["cat"]\n'
    (tmp_path / "gateway.toml").write_text(config)
    gateway = Gateway(load_gateway("gateway.toml", {}, str(tmp_path)), cast("Servers", None), GatewayLog(as_json=False))
    session = gateway.admit(ALICE, "s", is_stateless=True)
    agents, server = StatelessChannel(1_000_000, lambda _text: None), Peer()
    to_server = open_channel(server.theirs_in, server.theirs_out)
    with anyio.fail_after(TIMEOUT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(gateway.run, session, agents, lambda *_: (to_server, ForeignServer(to_server.close)))
            async with agent_of(agents) as agent:
                left = []
                for number in range(10):
                    post = await agent.post(call(number))
                    left.append((await server.message())["id"])
                    post.leave()
                    assert (await server.message())["params"] == {"requestId": left[-1]}
                assert session._proxy is not None
                assert not session._proxy.router.withholds_responses
                post = await agent.post(call(0))
                for one in (*left, (await server.message())["id"]):
                    await server.send(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"of":%d}}\n' % (one, one))
                assert b'"of":11' in await (await post.head()).body()
            tasks.cancel_scope.cancel()
    server.close()
