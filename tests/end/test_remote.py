"""Servers at an address: the `mcp` package's servers and clients, directly and through `hookproxy run --url`."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.end.agent import HOOKPROXY, PATIENCE, Scene, group, request
from tests.end.test_real_servers import ERAS, EVERYTHING, connected, everything, texts, unnoticed

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def start(scene: Scene, modes: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    env = {**scene.env, "ODD_ONE": "first\nsecond é"}
    with log.open("wb") as errors:
        return subprocess.Popen(
            [*EVERYTHING, "--http", *modes], stderr=errors, stdin=subprocess.DEVNULL, env=env, cwd=scene.folder
        )


@asynccontextmanager
async def serving(scene: Scene, *modes: str) -> AsyncIterator[str]:
    """The URL of a server of its own."""
    log = scene.folder / f"server-{'-'.join(modes)}.log"
    server = start(scene, modes, log)
    try:
        with anyio.fail_after(PATIENCE):
            while not (found := re.search(r"port ([0-9]+)\n", log.read_text())):
                assert server.poll() is None, log.read_text()
                await anyio.sleep(0.02)
        yield f"http://127.0.0.1:{found[1]}/mcp"
    finally:
        server.kill()
        server.wait(PATIENCE)


def remote(options: Sequence[str], url: str) -> list[str]:
    return [HOOKPROXY, "run", "--name=real", *options, "--url", url]


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("modes", [(), ("json",), ("stateless",)], ids=str)
@pytest.mark.parametrize("era", ERAS)
async def test_a_remote_server_with_all_features_behaves_through_the_proxy_as_it_does_directly(
    scene: Scene, era: str, modes: tuple[str, ...]
) -> None:
    if modes and era == "legacy":
        pytest.skip("without a stream or a session, the server's questions to the agent fail in their own ways")
    got: dict[str, object] = {}
    async with serving(scene, *modes) as url:
        got["directly"] = await everything(scene, era, "directly", url)
        for name, options in unnoticed(scene).items():
            got[name] = await everything(scene, era, name, remote(options, url))
    direct = got.pop("directly")
    assert json.dumps(got) == json.dumps(dict.fromkeys(got, direct))


async def test_a_hook_denies_a_call_of_a_remote_server_and_comments_on_another(scene: Scene) -> None:
    hooks = scene.hooks(
        PreToolUse=[group("echo 'not this one' >&2; exit 2", matcher="mcp__real__unstructured")],
        PostToolUse=[group("echo 'well done' >&2; exit 2", matcher="mcp__real__text")],
    )
    async with serving(scene) as url, connected(scene, remote([hooks], url), "auto") as client:
        denied = await client.call_tool("unstructured", {"word": "x"})
        assert denied.is_error
        assert "not this one" in texts(denied)[0]
        assert texts(await client.call_tool("text", {"word": "x"}))[-1] == "well done"


async def test_without_the_server_each_request_gets_an_error_and_later_ones_work(scene: Scene) -> None:
    async with serving(scene) as url:
        pass
    agent = scene.start(remote([], url))
    message = (await agent.ask(request(1, "ping")))["error"]["message"]
    assert message.startswith(f"hookproxy could not connect to {url.removesuffix('/mcp')}: ")
    assert message.endswith("The request was not sent to the server.")
