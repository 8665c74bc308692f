"""What a session has read does not reach sinks that its labels may not reach; the test is the agent and the server."""

from __future__ import annotations

import json
from pathlib import Path
from time import localtime, strftime
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from hookproxy.audit.log import Audit
from hookproxy.audit.records import CallRecord, read
from hookproxy.audit.view import one_call
from hookproxy.hooks.evaluate import Hooks
from hookproxy.model.flow import FlowMatch, Sink, Source
from hookproxy.model.settings import OnAsk, OnFailure, Settings
from tests.audit.view.test_table import PLAIN
from tests.support.data_flow import AwayLabels, answer, call, text_of
from tests.support.proxy_rig import DIRECT_LOOP, Rig, rig

pytestmark = pytest.mark.anyio

READS = FlowMatch(tools=("read_file",), paths=("**/.ssh/**",))
SENDS = FlowMatch(tools=("fetch",))


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def policy(action: Literal["ask", "deny", "comment"] = "ask") -> Settings:
    """What is read from `.ssh` is secret, and must not reach `fetch`."""
    source = Source(READS, ("secret",), "flow.sources[0]", place="hookproxy.toml:1: flow.sources[0]")
    return Settings(flow_sources=(source,), flow_sinks=(Sink(SENDS, ("secret",), "flow.sinks[0]", action),))


async def read_secret(proxy: Rig) -> None:
    await call(proxy, 1, "read_file", path="/home/u/.ssh/config")
    assert text_of(await answer(proxy, "Host a")) == "Host a"


async def test_a_sink_gets_nothing_after_a_source_was_read() -> None:
    async with rig(settings=policy(action="deny")) as proxy:
        await read_secret(proxy)
        await call(proxy, 2, "fetch", url="https://example.com/?q=1")
        text = text_of(await proxy.agent.message())
        assert "flow.sinks[0]" in text
        assert "this call would send what `read_file` read from `/home/u/.ssh/config` (label secret, " in text
        assert "to `fetch` at example.com" in text


async def test_a_sink_gets_calls_before_anything_was_read_from_a_source() -> None:
    async with rig(settings=policy(action="deny")) as proxy:
        await call(proxy, 1, "read_file", path="/home/u/notes")
        await answer(proxy, "nothing")
        await call(proxy, 2, "fetch", url="https://example.com/")
        assert text_of(await answer(proxy, "page")) == "page"


async def test_a_comment_lets_the_call_pass_and_tells_the_model() -> None:
    async with rig(settings=policy(action="comment")) as proxy:
        await read_secret(proxy)
        await call(proxy, 2, "fetch", url="https://example.com/")
        assert text_of(await answer(proxy, "page")).startswith("Note: this call would send what `read_file` read")


@pytest.mark.parametrize("settings", [
    {"on_ask": OnAsk.ALLOW}, {"on_ask_fallback": OnFailure.ALLOW}, {"on_ask": OnAsk.DENY},
])  # fmt: skip
async def test_where_nobody_is_asked_the_call_is_refused_whatever_is_said_of_other_approvals(
    settings: dict[str, Any],
) -> None:
    async with rig(settings=replace(policy(), **settings)) as proxy:
        await read_secret(proxy)
        await call(proxy, 2, "fetch", url="https://example.com/")
        response = await proxy.agent.message()
        assert response["result"]["isError"]
        assert "requires the user's approval: this call would send" in text_of(response)


async def test_a_call_that_was_sent_before_the_result_of_a_source_came_carries_nothing() -> None:
    async with rig(settings=policy(action="deny")) as proxy:
        await call(proxy, 1, "read_file", path="/home/u/.ssh/config")
        source = await proxy.server.message()
        await call(proxy, 2, "fetch", url="https://example.com/")
        assert text_of(await answer(proxy, "page")) == "page"
        result = {"content": [{"type": "text", "text": "Host a"}]}
        await proxy.server.send(json.dumps({"jsonrpc": "2.0", "id": source["id"], "result": result}).encode() + b"\n")
        await proxy.agent.message()
        await call(proxy, 3, "fetch", url="https://example.com/")
        assert "Blocked" in text_of(await proxy.agent.message())


async def test_an_error_of_a_source_is_read_as_well() -> None:
    async with rig(settings=policy(action="deny")) as proxy:
        await call(proxy, 1, "read_file", path="/home/u/.ssh/config")
        await proxy.server.message()
        await proxy.server.send(b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"bad line: Host a"}}\n')
        await proxy.agent.message()
        await call(proxy, 2, "fetch", url="https://example.com/")
        assert "Blocked" in text_of(await proxy.agent.message())


async def test_labels_outlast_a_new_policy() -> None:
    settings = policy(action="deny")
    async with rig(settings=settings) as proxy:
        await read_secret(proxy)
        proxy.proxy.change_policy(Hooks((), settings, "files", {}), settings, Audit(settings))
        await call(proxy, 2, "fetch", url="https://example.com/")
        assert "Blocked" in text_of(await proxy.agent.message())


async def test_labels_outlast_a_policy_without_sinks_and_sources() -> None:
    settings = policy(action="deny")
    async with rig(settings=settings) as proxy:
        await read_secret(proxy)
        for later in (Settings(), Settings(), settings):
            proxy.proxy.change_policy(Hooks((), later, "files", {}), later, Audit(later))
        await call(proxy, 2, "fetch", url="https://example.com/")
        assert "Blocked" in text_of(await proxy.agent.message())


async def test_the_audit_has_the_labels_of_a_result_and_the_chain_of_a_refused_call(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    async with rig(settings=replace(policy("deny"), audit_file=str(audit))) as proxy:
        await read_secret(proxy)
        await call(proxy, 2, "fetch", url="https://example.com/?q=1")
        await proxy.agent.message()
        await proxy.finish()
    first, second = [record for record in read(str(audit)) if isinstance(record, CallRecord)]
    assert first.labels == ("secret",)
    assert first.chains == ()
    assert (second.decision, second.cause, second.by) == ("deny", "flow", "flow.sinks[0]")
    (chain,) = second.chains
    assert (chain.sink, chain.tool, chain.place, chain.labels) == ("flow.sinks[0]", "fetch", "example.com", ("secret",))
    (reading,) = chain.readings
    assert (reading.tool, reading.place, reading.call) == ("read_file", "/home/u/.ssh/config", first.call)
    shown = "\n".join(one_call.text_of([second], PLAIN))
    assert f"read_file of files /home/u/.ssh/config (secret, {strftime('%H:%M', localtime(reading.at))}, call " in shown
    assert "└▶ fetch of files example.com (flow.sinks[0])" in shown


async def test_a_result_that_nobody_could_label_does_not_reach_the_agent() -> None:
    async with rig(settings=policy("deny")) as proxy:
        flow = proxy.proxy.policy.hooks.flow
        assert flow is not None
        flow.labels = AwayLabels()
        await call(proxy, 1, "read_file", path="/home/u/.ssh/config")
        response = await answer(proxy, "Host a")
        assert "its labels are kept in a store that cannot be reached" in json.dumps(response)
        assert "Host a" not in json.dumps(response)
