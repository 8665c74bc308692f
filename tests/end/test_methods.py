"""Requests for resources, prompts and completions with the `mcp` package's servers and clients, in both eras."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, types
from mcp.client import Transport

from tests.end.agent import HOOKPROXY, Scene
from tests.end.test_gateway_http import HttpGateway
from tests.end.test_gateway_sdk import reached
from tests.end.test_real_servers import ERAS, EVERYTHING, connected
from tests.end.test_remote import serving

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.usefixtures("preloaded_servers")]

POLICY = """
[permissions]
deny = ["Read(**/secret)", "completion/complete"]

[[hooks.PreToolUse]]
matcher = "prompts/get"
argv = ["echo", '''{"hookSpecificOutput": {"hookEventName": "PreToolUse",
  "updatedInput": {"name": "handshake", "arguments": {"name": "Eve"}}}}''']

[[hooks.PostToolUse]]
matcher = "ReadMcpResourceTool"
command = 'echo "take care" >&2; exit 2'

[audit]
file = "audit.jsonl"
calls = "all"
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpGateway]:
    folder = tmp_path_factory.mktemp("gateway")
    gateway = HttpGateway(folder, f"{POLICY}[servers.own]\ncommand = {json.dumps(EVERYTHING)}\n")
    try:
        yield gateway
        assert gateway.end() == 0, gateway.log
    finally:
        gateway.kill()


@asynccontextmanager
async def transport(scene: Scene, way: str, gateway: HttpGateway) -> AsyncIterator[Sequence[str] | Transport]:
    (scene.folder / "hookproxy.toml").write_text(POLICY)
    options = [HOOKPROXY, "run", "--name=real", "--config", str(scene.folder / "hookproxy.toml")]
    if way == "stdio":
        yield [*options, "--", *EVERYTHING]
    elif way == "url":
        async with serving(scene) as url:
            yield [*options, "--url", url]
    else:
        async with reached(gateway, "own") as connection:
            yield connection


async def error_of(request: Awaitable[Any]) -> str:
    with pytest.raises(MCPError) as caught:
        await request
    return str(caught.value)


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", ["stdio", "url", "serve"])
async def test_methods_are_denied_rewritten_commented_on_and_recorded(
    scene: Scene, gateway: HttpGateway, way: str, era: str
) -> None:
    async with transport(scene, way, gateway) as target, connected(scene, target, era) as client:
        await _session(client)
    audit = Path(gateway.folder if way == "serve" else scene.folder) / "audit.jsonl"
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    decisions = {(line["method"], line["decision"]) for line in lines if "method" in line}
    assert {
        ("resources/read", "deny"),
        ("resources/read", "allow"),
        ("prompts/get", "allow"),
        ("completion/complete", "deny"),
        ("resources/list", "allow"),
    } <= decisions


async def _session(client: Client) -> None:
    memo, comment = (await client.read_resource("memo://5")).contents
    assert isinstance(memo, types.TextResourceContents)
    assert memo.text == "memo 5"
    assert "take care" in str(comment)
    assert "Read(**/secret)" in await error_of(client.read_resource("file://other/a/%73ecret"))
    prompt = await client.get_prompt("another", {"name": "Ada"})
    assert isinstance(prompt.messages[0].content, types.TextContent)
    assert prompt.messages[0].content.text == "Greet Eve."
    reference = types.PromptReference(type="ref/prompt", name="handshake")
    assert "completion/complete" in await error_of(client.complete(reference, {"name": "name", "value": "A"}))
    assert (await client.list_resources()).resources
