"""Tools that have another name for agents, over HTTP in both eras: headers say the name of whoever reads them."""

from __future__ import annotations

import asyncio
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.end.test_gateway_http import SERVER, HttpGateway, call, request, stateless
from tests.support.http_server import Request, serving

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

LISTED = '{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"open","inputSchema":{"type":"object"}}]}'


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def upstream(request: Request) -> None:
    """A server that says the tool's name, and refuses a call whose header names another one than its body."""
    method = request.message.get("method")
    if request.method != "POST" or "id" not in request.message:
        await request.status("202 Accepted")
    elif method == "initialize":
        await request.result('{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s"}}')
    elif method == "tools/list":
        await request.result(LISTED)
    else:
        name = request.message["params"]["name"]
        same = request.headers.get("mcp-name", name) == name
        await request.result(json.dumps({"content": [{"type": "text", "text": f"{name} {same}"}]}))


def body_of(text: str) -> dict[str, Any]:
    if text.startswith(("id:", ":", "event:")):
        text = [line[6:] for line in text.splitlines() if line.startswith("data: {")][-1]
    found: dict[str, Any] = json.loads(text)
    return found


async def test_a_renamed_tool_is_called_by_the_agents_name_in_the_header_and_the_servers_behind(tmp_path: Path) -> None:
    async with serving(upstream) as server:
        (tmp_path / "shared").mkdir()
        log = json.dumps(str(tmp_path / "shared" / "calls"))
        config = f"""
[servers.remote]
url = "http://127.0.0.1:{server.port}/mcp"
allow_http = true
[servers.remote.tools.echo]
rename = "say"
[servers.remote.tools.open]
hide = true
[servers.local]
command = {json.dumps([sys.executable, "-S", "-E", str(SERVER)])}
env = {{ E2E_LOG = {log} }}
sandbox = {{ write = ["shared"] }}
[servers.local.tools.echo]
rename = "say"
[servers.local.tools.open]
hide = true
"""
        gateway = await asyncio.to_thread(HttpGateway, tmp_path, config)
        try:
            with anyio.fail_after(120):
                for name in ("remote", "local"):
                    await _check(gateway, name)
                for sent in (one.message for one in server.requests if one.method == "POST"):
                    if sent.get("method") == "tools/call":
                        assert sent["params"]["name"] == "echo"
                calls = [json.loads(line) for line in (tmp_path / "shared" / "calls").read_text().splitlines()]
                assert {one["params"]["name"] for one in calls if one.get("method") == "tools/call"} == {"echo"}
        finally:
            gateway.kill()


async def _check(gateway: HttpGateway, server: str) -> None:
    session = await asyncio.to_thread(gateway.opened, "alice", server)

    async def ask(message: object, where: str, headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
        asked = partial(gateway.ask, "alice", message, where, server, headers=headers)
        status, _, text = await asyncio.to_thread(asked)
        return status, body_of(text)

    for modern in (False, True):
        where = "" if modern else session

        def of(name: str, modern: bool = modern) -> tuple[dict[str, object], dict[str, str]]:
            return stateless(name) if modern else (call(1, name), {})

        status, done = await ask(*_swap(of("say"), where))
        assert status == 200
        assert "error" not in done, done
        if server == "remote":
            assert done["result"]["content"][0]["text"] == "echo True"
        for name in ("echo", "open"):  # the server's own name, and one of a hidden tool
            status, refused = await ask(*_swap(of(name), where))
            assert refused["error"]["message"] == f"Unknown tool: {name}", (server, modern)
        if modern:  # the header must say what the body says, in the agent's words
            message, headers = stateless("say")
            status, refused = await ask(message, "", {**headers, "Mcp-Name": "echo"})
            assert status == 400
            assert "error" in refused
    _, listed = await ask(request(2, "tools/list"), session, {})
    names = [tool["name"] for tool in listed["result"]["tools"]]
    assert "say" in names
    assert not {"echo", "open"} & {*names}


def _swap(sent: tuple[dict[str, object], dict[str, str]], where: str) -> tuple[object, str, dict[str, str]]:
    return sent[0], where, sent[1]
