"""How many judged calls one user may have in flight, and that nothing waits for a call that is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hookproxy.model.hooks import Event
from hookproxy.model.settings import Settings
from hookproxy.session.running_calls import OpenCalls
from tests.session.test_proxy import answer, call, cancel
from tests.support.proxy_rig import DIRECT_LOOP, Rig, rig, stub, stub_group

pytestmark = pytest.mark.anyio

JUDGED = stub_group(stub(Event.PRE_TOOL_USE), stub(Event.POST_TOOL_USE))
SAMPLING = b'{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{}}\n'
SAMPLED = b'{"jsonrpc":"2.0","id":"s1","result":{"role":"assistant"}}\n'


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


async def refused(one: Rig, number: int) -> None:
    """A further call gets an error at once, and the server never sees it."""
    await one.agent.send(call(number))
    response = await one.agent.message()
    assert response["id"] == number
    assert "calls of this user are in flight" in response["error"]["message"]
    assert "try again when one of them has ended" in response["error"]["message"]
    assert "The tool was not run." in response["error"]["message"]


async def test_a_call_beyond_the_limit_is_refused_until_one_has_ended() -> None:
    async with rig(JUDGED) as one:
        one.proxy.calls.limit(OpenCalls(lambda: 2))
        for number in (1, 2):
            await one.agent.send(call(number))
            assert (await one.server.message())["id"] == number
        await refused(one, 3)
        await refused(one, 4)
        await one.server.send(answer(1))
        assert (await one.agent.message())["id"] == 1
        await one.agent.send(call(5))
        assert (await one.server.message())["id"] == 5
        assert len([text for text in one.reports if "refused a call" in text]) == 1


async def test_a_refused_call_is_in_the_audit(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    async with rig(JUDGED, settings=Settings(audit_file=str(audit))) as one:
        one.proxy.calls.limit(OpenCalls(lambda: 1))
        await one.agent.send(call(1))
        assert (await one.server.message())["id"] == 1
        await refused(one, 2)
        await one.server.send(answer(1))
        assert (await one.agent.message())["id"] == 1
    records = {line["id"]: line for line in map(json.loads, audit.read_text().splitlines())}
    assert len({record["call"] for record in records.values()}) == 2
    assert records[1]["result"] == "ok"
    record = records[2]
    assert (record["decision"], record["result"], record["cause"]) == ("deny", "refused", "limit")
    assert record["by"] == "gateway.max_requests"
    assert "calls of this user are in flight" in record["reason"]


async def test_a_full_session_still_passes_what_calls_in_flight_wait_for() -> None:
    async with rig(JUDGED) as one:
        one.proxy.calls.limit(OpenCalls(lambda: 1))
        await one.agent.send(call(1))
        assert (await one.server.message())["id"] == 1
        await refused(one, 2)
        await one.server.send(SAMPLING)
        assert (await one.agent.message())["method"] == "sampling/createMessage"
        await one.agent.send(SAMPLED)
        assert await one.server.line() == SAMPLED
        await one.agent.send(b'{"jsonrpc":"2.0","id":9,"method":"ping"}\n')
        assert (await one.server.message())["method"] == "ping"
        await one.agent.send(cancel(1))
        assert (await one.server.message())["method"] == "notifications/cancelled"


async def test_the_calls_of_all_sessions_of_a_user_count_until_these_end() -> None:
    calls = OpenCalls(lambda: 1)
    async with rig(JUDGED) as second:
        second.proxy.calls.limit(calls)
        async with rig(JUDGED) as first:
            first.proxy.calls.limit(calls)
            await first.agent.send(call(1))
            assert (await first.server.message())["id"] == 1
            await refused(second, 1)
            first.proxy.calls.unlimit()
        await second.agent.send(call(2))
        assert (await second.server.message())["id"] == 2


async def test_requests_that_nobody_judges_are_not_counted() -> None:
    async with rig(JUDGED) as one:
        one.proxy.calls.limit(OpenCalls(lambda: 1))
        for number in range(5):
            await one.agent.send(b'{"jsonrpc":"2.0","id":%d,"method":"resources/list"}\n' % number)
            assert (await one.server.message())["id"] == number
