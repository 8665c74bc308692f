"""Law 2: a hook that does nothing changes no byte; where readers of lines could split a message, it is re-encoded."""

from __future__ import annotations

import json
import os
from typing import Final

import anyio
import anyio.lowlevel
import pytest

from hookproxy.audit.log import Audit
from hookproxy.hooks.evaluate import Hooks
from hookproxy.model.credentials import NoCredentials
from hookproxy.model.hooks import Event
from hookproxy.model.settings import Settings
from hookproxy.network.address import Address
from hookproxy.session.proxy import Proxy
from hookproxy.transports.http.agent_lines import AgentOutput
from hookproxy.transports.http.channel import HttpChannel
from hookproxy.transports.http.pool import Remote
from tests.support.http_server import Request, serving
from tests.support.proxy_rig import DIRECT_LOOP, SESSION, TIMEOUT, group, hook, rig
from tests.support.recording_channel import RecordingChannel

pytestmark = pytest.mark.anyio

NOOP: Final = group(hook("exit 0"), hook("exit 0", Event.POST_TOOL_USE))
SIGNS: Final = ("\u2028", "\u2029", "\x85")
TEXT: Final = "a" + "{b}".join(SIGNS) + "é"


@pytest.fixture
def anyio_backend() -> object:
    return DIRECT_LOOP


def call(number: int, text: str = TEXT, blank: str = "") -> bytes:
    params = f'{{"name":"echo",{blank}"arguments":{{"text":{json.dumps(text, ensure_ascii=False)}}}}}'
    return f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{params}}}'.encode()


INITIALIZE: Final = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}'
CANCEL: Final = (
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9,"reason":"\u2028"}}'.encode()
)
OTHER: Final = '{"jsonrpc":"2.0","id":5,"method":"x/y","params":{"text":"\u2028"}}'.encode()


async def bodies(hooked: bool, reads_lines: bool) -> tuple[list[bytes], list[bytes]]:
    """What a remote server gets, and what the agent gets from it."""
    result = json.dumps({"content": [{"type": "text", "text": TEXT}]}, ensure_ascii=False)

    async def respond(request: Request) -> None:
        if request.method == "POST" and "id" in request.message:
            await request.result(result if request.id else '{"protocolVersion":"2025-11-25","capabilities":{}}')
        else:
            await request.status("202 Accepted" if request.method == "POST" else "405 Method Not Allowed")

    settings = Settings()
    async with serving(respond) as server, anyio.create_task_group() as tasks:
        channel = HttpChannel(Remote(Address("http", "127.0.0.1", server.port, b"/mcp"), NoCredentials("")), print)
        agent = RecordingChannel()
        agent.reads_lines = reads_lines
        hooks = Hooks([NOOP] if hooked else [], settings, SESSION.server, os.environ)
        proxy = Proxy(agent, channel, hooks, settings, SESSION, Audit(settings), print)
        proxy.open(tasks)
        proxy.relay.start(lambda: None, lambda: None, lambda: None)
        for line, answers in (
            (INITIALIZE, 1),
            (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', 1),
            (call(1), 2),
            (call(2, "x", "\r "), 3),
            (OTHER, 4),
            (CANCEL, 4),
        ):
            agent.says(line + b"\n")
            with anyio.fail_after(TIMEOUT):
                while agent.got.count(b"\n") < answers or line not in [one.body for one in server.requests]:
                    await anyio.lowlevel.checkpoint()
        channel.close()
        tasks.cancel_scope.cancel()
    posted = [one.body for one in server.requests if one.method == "POST"]
    return posted, bytes(agent.got).splitlines(keepends=True) if reads_lines else bytes(agent.got).split(b"\n")


async def test_a_hook_that_does_nothing_changes_no_byte_on_the_way_to_a_remote_server() -> None:
    plain, _ = await bodies(hooked=False, reads_lines=False)
    hooked, _ = await bodies(hooked=True, reads_lines=False)
    assert hooked == plain
    assert call(1) in hooked
    assert CANCEL in hooked


async def test_a_hook_that_does_nothing_changes_no_byte_for_an_agent_that_reads_no_lines() -> None:
    _, plain = await bodies(hooked=False, reads_lines=False)
    _, hooked = await bodies(hooked=True, reads_lines=False)
    assert hooked == plain
    assert TEXT.encode() in b"".join(hooked)


async def test_over_pipes_a_judged_message_is_one_line_to_every_reader_and_the_same_json() -> None:
    async with rig(NOOP) as one:
        await one.agent.send(call(1) + b"\n")
        line = await one.server.line()
        assert len(line.decode().splitlines()) == 1
        assert json.loads(line) == json.loads(call(1))
        plain = call(2, "an ordinary text: é") + b"\n"
        await one.agent.send(plain)
        assert await one.server.line() == plain


def test_lines_for_agents_over_http_are_split_at_line_feeds_alone() -> None:
    lines = [b'{"a":\r1}\n', '{"b":"\u2028"}\n'.encode(), b'{"c":\r\r3}\n']
    assert AgentOutput(1000).feed(b"".join(lines)) == lines
