"""Servers of the TypeScript SDK at an address, with the Python SDK's client: directly and through hookproxy."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.end.agent import HOOKPROXY, PATIENCE, Scene, group
from tests.end.test_real_servers import Person, connected, introduced, outcome, plain, texts, unnoticed

MODULES = Path(sys.prefix) / "typescript" / "node_modules"
NODE = shutil.which("node")

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(
        NODE is None or not (MODULES / "@modelcontextprotocol" / "sdk").is_dir(),
        reason="there is no Node, or no npm with which scripts/test could install the TypeScript SDK",
    ),
]

CALLS = [("echo", {"word": "é"}), ("echo", {}), ("breaks", {}), ("logs", {}), ("none", {})]


def start(scene: Scene, mode: str, log: Path) -> subprocess.Popen[bytes]:
    argv = [str(NODE), str(Path(__file__).with_name("typescript_server.mjs")), str(MODULES), mode]
    with log.open("wb") as output:
        return subprocess.Popen(argv, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=scene.env)


@asynccontextmanager
async def serving(scene: Scene, mode: str) -> AsyncIterator[str]:
    """The URL of a server of its own."""
    log = scene.folder / f"port-{mode}"
    server = start(scene, mode, log)
    try:
        with anyio.fail_after(PATIENCE):
            while not log.read_text().endswith("\n"):
                assert server.poll() is None, log.read_text()
                await anyio.sleep(0.02)
        yield f"http://127.0.0.1:{int(log.read_text())}/mcp"
    finally:
        server.kill()
        server.wait(PATIENCE)


def remote(options: Sequence[str], url: str) -> list[str]:
    return [HOOKPROXY, "run", "--name=real", *options, "--url", url]


async def everything(scene: Scene, target: Sequence[str] | str, *, asks: bool) -> object:
    """What a client gets from the server."""
    person = Person()
    async with connected(scene, target, "legacy", person) as client:
        got = [await introduced(client), *[await outcome(client.call_tool(*one)) for one in CALLS]]
        if asks:
            got.append(plain(await client.call_tool("asks", {})))
    return [got, person.requests, person.notifications]


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("mode", ["http", "json"])
async def test_a_typescript_server_behaves_through_the_proxy_as_it_does_directly(scene: Scene, mode: str) -> None:
    asks = mode == "http"  # without streams the server cannot ask while it answers
    async with serving(scene, mode) as url:
        direct = json.dumps(await everything(scene, url, asks=asks))
        for options in unnoticed(scene).values():
            assert json.dumps(await everything(scene, remote(options, url), asks=asks)) == direct
    assert "you said" in direct
    assert "it broke" in direct
    assert ("accept Ada" in direct) == asks


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_a_typescript_server_of_the_older_transport_is_reached(scene: Scene) -> None:
    hooks = scene.hooks(PreToolUse=[group("exit 2", matcher="mcp__real__breaks")], PostToolUse="true")
    async with serving(scene, "sse") as url:
        direct = remote([], url)
        assert "accept Ada" in json.dumps(await everything(scene, direct, asks=True))
        async with connected(scene, remote([hooks], url), "legacy") as client:
            assert texts(await client.call_tool("echo", {"word": "é"})) == ["you said é"]
            assert "Blocked" in texts(await client.call_tool("breaks", {}))[0]


async def test_a_session_that_a_typescript_server_has_closed_is_opened_again(scene: Scene) -> None:
    async with (
        serving(scene, "http") as url,
        connected(scene, remote([scene.hooks(PreToolUse="true")], url), "legacy") as client,
    ):
        assert texts(await client.call_tool("forgets", {})) == ["soon"]
        assert texts(await client.call_tool("echo", {"word": "again"})) == ["you said again"]
    assert "the server has lost the session" in (scene.folder / "stderr").read_text()
