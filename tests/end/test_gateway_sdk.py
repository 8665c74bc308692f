"""The `mcp` package's client over HTTP through the gateway: it gets what the server gives it directly."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from mcp.client import Transport
from mcp.client.streamable_http import streamable_http_client

from tests.end.agent import Scene
from tests.end.test_gateway_http import HttpGateway
from tests.end.test_real_servers import ERAS, EVERYTHING, Person, connected, everything

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.usefixtures("preloaded_servers"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpGateway]:
    command = f"command = {json.dumps(EVERYTHING)}\n" + 'env = { ODD_ONE = "first\\nsecond é" }\n'
    command += 'roots = ["*"]\n'
    shared = f'{command}share = "all"\n'
    config = f"[servers.own]\n{command}[servers.all]\n{shared}[servers.of_both]\n{shared}"
    gateway = HttpGateway(tmp_path_factory.mktemp("gateway"), config)
    try:
        yield gateway
        assert gateway.end() == 0, gateway.log
    finally:
        gateway.kill()


@asynccontextmanager
async def reached(gateway: HttpGateway, server: str, user: str = "alice") -> AsyncIterator[Transport]:
    """What connects a client to a server of the gateway."""
    headers = {"Authorization": f"Bearer {gateway.tokens[user]}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        yield streamable_http_client(f"http://127.0.0.1:{gateway.port}/mcp/{server}", http_client=http)


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_with_all_features_behaves_through_the_gateway_as_it_does_directly(
    gateway: HttpGateway, scene: Scene, era: str
) -> None:
    direct = await everything(scene, era, "directly", EVERYTHING)
    async with reached(gateway, "own") as transport:
        assert json.dumps(await everything(scene, era, "own", transport)) == json.dumps(direct)
    async with reached(gateway, "all") as transport:
        assert json.dumps(await everything(scene, era, "all", transport)) == json.dumps(direct)


@pytest.mark.parametrize("era", ERAS)
async def test_progress_of_a_shared_server_goes_to_the_session_that_asked(
    gateway: HttpGateway, scene: Scene, era: str
) -> None:
    people = {"alice": Person(), "bob": Person()}

    async def progress(user: str, steps: int) -> None:
        async with (
            reached(gateway, "of_both", user) as transport,
            connected(scene, transport, era, people[user]) as client,
        ):
            await client.call_tool("progress", {"steps": steps}, progress_callback=people[user].progress)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(progress, "alice", 3)
        tasks.start_soon(progress, "bob", 5)
    totals = {
        user: {one[1] for one in person.notifications if isinstance(one, tuple)} for user, person in people.items()
    }
    assert totals == {"alice": {3.0}, "bob": {5.0}}
    assert [len(person.notifications) for person in people.values()] == [3, 5]


async def test_a_changed_list_of_a_shared_server_is_announced_to_all_sessions(
    gateway: HttpGateway, scene: Scene
) -> None:
    alice, bob = Person(), Person()
    async with (
        reached(gateway, "of_both") as to_alice,
        reached(gateway, "of_both", "bob") as to_bob,
        connected(scene, to_alice, "legacy", alice) as client,
        connected(scene, to_bob, "legacy", bob) as other,
    ):
        await other.send_ping()
        await client.call_tool("grows", {})
        with anyio.fail_after(60):
            await alice.list_changed.wait()
            await bob.list_changed.wait()
