"""Requests that stand alone, of one user to one server: real connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from hookproxy.transports.http import agent_lines, stateless_channel
from hookproxy.transports.http.stateless_channel import StatelessChannel
from tests.support.http_agent import HttpAgent, Server, agent_of, line

pytestmark = pytest.mark.anyio

VERSION: Final = "io.modelcontextprotocol/protocolVersion"
LONG: Final = "x" * (2 * 1024 * 1024)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def request(number: object, method: str = "tools/list", **params: object) -> dict[str, object]:
    meta = {VERSION: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}}


@asynccontextmanager
async def requests_of_one_user() -> AsyncIterator[tuple[StatelessChannel, Server, HttpAgent]]:
    channel, server = StatelessChannel(100 * 1024 * 1024, lambda _text: None), Server()
    channel.start(server.on_bytes, server.on_end, server.on_full, server.on_gone)
    async with agent_of(channel) as agent:
        yield channel, server, agent
        channel.close()


async def test_64_agents_that_all_use_the_same_id_get_their_own_results() -> None:
    async with requests_of_one_user() as (channel, server, agent):
        posts = [await agent.post(request(1, "tools/call", name=str(number))) for number in range(64)]
        await server.until(lambda: len(server.lines) == 64)
        assert len({one["id"] for one in server.lines}) == 64
        for one in reversed(server.lines):
            params = one["params"]
            assert isinstance(params, dict)
            channel.write(line(id=one["id"], result={"value": params["name"]}))
        for number, post in enumerate(posts):
            body = await (await post.head()).body()
            assert b'"value": "%d"' % number in body
            assert b'"id": 1' in body
        assert not channel.in_use


async def test_to_disconnect_is_to_cancel_within_100_ms() -> None:
    async with requests_of_one_user() as (channel, server, agent):
        post = await agent.post(request("a"))
        await server.until(lambda: len(server.lines) == 1)
        post.leave()
        async with asyncio.timeout(0.1):
            await server.until(lambda: len(server.lines) == 2)
        cancelled = server.lines[1]
        assert cancelled["method"] == "notifications/cancelled"
        assert cancelled["params"] == {"requestId": server.lines[0]["id"]}
        assert not channel.in_use


async def test_what_comes_for_a_request_that_was_cancelled_reaches_nobody() -> None:
    async with requests_of_one_user() as (channel, server, agent):
        post, other = await agent.post(request(1)), await agent.post(request(1))
        await server.until(lambda: len(server.lines) == 2)
        first = server.lines[0]["id"]
        post.leave()
        other_left = server.lines[1]["id"]
        await server.until(lambda: len(server.lines) == 3)
        [named] = [one["params"] for one in server.lines if one["method"] == "notifications/cancelled"]
        assert isinstance(named, dict)
        late, rest = (first, other_left) if named["requestId"] == first else (other_left, first)
        channel.write(line(id=late, result={"value": "late"}) + line(id=rest, result={"value": "own"}))
        assert b'"own"' in await (await other.head()).body()


async def test_progress_goes_to_the_request_that_asked_for_it_and_makes_a_stream() -> None:
    async with requests_of_one_user() as (channel, server, agent):
        asking = request(1, "tools/call", name="x")
        params = asking["params"]
        assert isinstance(params, dict)
        params["_meta"]["progressToken"] = "mine"
        post, other = await agent.post(asking), await agent.post(request(1))
        await server.until(lambda: len(server.lines) == 2)
        [asked] = [one for one in server.lines if one["method"] == "tools/call"]
        [plain] = [one for one in server.lines if one["method"] == "tools/list"]
        sent = asked["params"]
        assert isinstance(sent, dict)
        token = sent["_meta"]["progressToken"]
        channel.write(line(method="notifications/progress", params={"progressToken": token, "progress": 1}))
        channel.write(line(id=asked["id"], result={}) + line(id=plain["id"], result={}))
        progress = await (await post.head()).message()
        assert progress is not None
        assert progress["params"] == {"progressToken": "mine", "progress": 1}
        assert (await post.message() or {})["id"] == 1
        assert (await other.head()).headers["content-type"] == "application/json"


@pytest.mark.parametrize(("code", "status"), [(-32601, 404), (-32602, 400), (-32021, 400), (-32603, 200), (7, 200)])
async def test_an_error_has_the_status_that_the_protocol_gives_it(code: int, status: int) -> None:
    async with requests_of_one_user() as (channel, server, agent):
        post = await agent.post(request(1))
        await server.until(lambda: len(server.lines) == 1)
        channel.write(line(id=server.lines[0]["id"], error={"code": code, "message": "no"}))
        assert (await post.head()).status == status


async def test_a_result_that_contains_the_word_error_is_no_error() -> None:
    async with requests_of_one_user() as (channel, server, agent):
        post = await agent.post(request(1))
        await server.until(lambda: len(server.lines) == 1)
        channel.write(line(id=server.lines[0]["id"], result={"error": {"code": -32601, "message": "no"}}))
        assert (await post.head()).status == 200


async def test_a_subscription_is_a_stream_at_once_and_ends_with_its_connection() -> None:
    async with requests_of_one_user() as (_, server, agent):
        post = await agent.post(request(1, "subscriptions/listen", notifications={"toolsListChanged": True}))
        assert (await post.head()).headers["content-type"] == "text/event-stream"
        await server.until(lambda: len(server.lines) == 1)
        post.leave()
        await server.until(lambda: len(server.lines) == 2)
        assert server.lines[1]["method"] == "notifications/cancelled"


async def test_a_request_that_takes_long_becomes_a_stream_so_that_no_balancer_cuts_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stateless_channel, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(stateless_channel, "_STREAM_AFTER_SECONDS", 0.0)
    async with requests_of_one_user() as (channel, server, agent):
        post = await (await agent.post(request(1))).head()
        assert post.headers["content-type"] == "text/event-stream"
        assert [await post.block() for _ in range(4)] == [": "] * 4, "only comments come, again and again"
        channel.write(line(id=server.lines[0]["id"], result={}))
        assert "result" in (await post.message() or {})
        assert await post.message() is None


async def test_an_agent_that_does_not_read_holds_up_no_other_and_is_disconnected() -> None:
    async with requests_of_one_user() as (channel, server, agent):
        asking = request(1, "tools/call", name="x")
        params = asking["params"]
        assert isinstance(params, dict)
        params["_meta"]["progressToken"] = 1
        await agent.post(asking)
        await server.until(lambda: len(server.lines) == 1)
        number = server.lines[0]["id"]
        for _ in range(6):
            progress = {"progressToken": number, "progress": 1, "message": LONG}
            channel.write(line(method="notifications/progress", params=progress))
            assert not server.full
        await server.until(lambda: not channel.in_use)
        assert server.lines[-1]["method"] == "notifications/cancelled"
        post = await agent.post(request(2))
        await server.until(lambda: server.lines[-1]["method"] == "tools/list")
        channel.write(line(id=server.lines[-1]["id"], result={}))
        assert (await post.head()).status == 200


@pytest.mark.slow
async def test_many_agents_that_do_not_read_pause_the_server_until_they_are_gone() -> None:
    async with requests_of_one_user() as (channel, server, agent):
        posts = [await agent.post(request(1)) for _ in range(5)]
        await server.until(lambda: len(server.lines) == 5)
        for one in server.lines:
            channel.write(line(id=one["id"], result={"text": LONG * 4}))
        await server.until(lambda: server.full)
        for post in posts:
            post.leave()
        await server.until(lambda: not server.full)


async def test_the_end_answers_all_requests_that_wait_once() -> None:
    async with requests_of_one_user() as (channel, server, agent):
        posts = [await agent.post(request(1, "tools/call", name="x")) for _ in range(10)]
        await server.until(lambda: len(server.lines) == 10)
        channel.close()
        channel.close()
        for post in posts:
            body = await (await post.head()).body()
            assert b"has ended" in body
            assert b"may have" in body  # the tool may have run


async def test_what_comes_before_the_server_reads_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_lines, "MAX_UNREAD_LINES", 3)
    async with requests_of_one_user() as (channel, server, agent):
        channel.pause()
        message = {"jsonrpc": "2.0", "method": "notifications/x", "params": request(1)["params"]}
        statuses = [(await (await agent.post(message)).head()).status for _ in range(5)]
        assert statuses == [202, 202, 202, 429, 429]
        channel.resume()
        assert len(server.lines) <= 3
