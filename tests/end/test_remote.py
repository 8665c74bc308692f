"""Servers at an address: the `mcp` package's servers and clients, directly and through `hookproxy run --url`."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.end.agent import HOOKPROXY, PATIENCE, Scene, call, group, request
from tests.end.test_real_servers import ERAS, EVERYTHING, connected, everything, texts, unnoticed
from tests.support.http_server import Request
from tests.support.http_server import serving as serving_scripted

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.usefixtures("preloaded_servers")]


def start(
    scene: Scene, modes: Sequence[str], log: Path, server: Sequence[str] = EVERYTHING, **variables: str
) -> subprocess.Popen[bytes]:
    env = {**scene.env, "ODD_ONE": "first\nsecond é", **variables}
    with log.open("wb") as errors:
        return subprocess.Popen(
            [*server, "--http", *modes], stderr=errors, stdin=subprocess.DEVNULL, env=env, cwd=scene.folder
        )


@asynccontextmanager
async def serving(
    scene: Scene, *modes: str, server: Sequence[str] = EVERYTHING, **variables: str
) -> AsyncIterator[str]:
    """The URL of a server of its own, which has these environment variables."""
    log = scene.folder / f"server-{'-'.join(modes)}.log"
    process = start(scene, modes, log, server, **variables)
    try:
        with anyio.fail_after(PATIENCE):
            while not (found := re.search(r"port ([0-9]+)\n", log.read_text())):
                assert process.poll() is None, log.read_text()
                await anyio.sleep(0.02)
        yield f"http://127.0.0.1:{found[1]}/mcp"
    finally:
        process.kill()
        process.wait(PATIENCE)


def remote(options: Sequence[str], url: str) -> list[str]:
    return [HOOKPROXY, "run", "--name=real", *options, "--url", url]


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("modes", [(), ("json",), ("stateless",)], ids=str)
@pytest.mark.parametrize("era", ERAS)
async def test_a_remote_server_with_all_features_behaves_through_the_proxy_as_it_does_directly(
    scene: Scene, era: str, modes: tuple[str, ...]
) -> None:
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


async def scripted(request: Request) -> None:
    """A server with sessions, one good tool, one that is never answered, and one that breaks off."""
    if request.method != "POST":
        await request.status("405 Method Not Allowed" if request.method == "GET" else "200 OK")
    elif request.message["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}}
        await request.result(json.dumps(result), "Mcp-Session-Id: s-1\r\n")
    elif "id" not in request.message:
        await request.status("202 Accepted")
    elif request.message["params"].get("name") == "never":
        await request.closed.wait()
    elif request.message["params"].get("name") == "breaks":
        request.drop()
    else:
        text = f"you sent {request.headers.get('authorization')}"
        await request.result(json.dumps({"content": [{"type": "text", "text": text}]}))


async def test_secrets_of_headers_are_not_recorded_even_if_the_server_repeats_them(
    scene: Scene,
) -> None:
    audit = scene.folder / "audit.jsonl"
    hooks = scene.hooks(PostToolUse=[group("cat >&2; exit 2")])
    options = ["--audit", str(audit), "--header", "Authorization: Bearer ${TOKEN}", hooks]
    async with serving_scripted(scripted) as server:
        agent = scene.start(remote(options, f"http://127.0.0.1:{server.port}/mcp"), {"TOKEN": "hunter2-hunter2"})
        await agent.initialize()
        assert "hunter2-hunter2" in json.dumps(await agent.ask(call(1, "echo")))  # the agent gets what the server sends
        agent.end_input()
        assert await agent.ended() == 0
    assert audit.read_text().count("\n") == 1
    assert "hunter2" not in audit.read_text()
    assert "hunter2" not in agent.errors.read_text()


async def test_a_call_that_breaks_off_is_a_failed_call_for_hooks_and_the_audit(scene: Scene) -> None:
    audit = scene.folder / "audit.jsonl"
    hooks = scene.hooks(PostToolUseFailure=[group("echo 'look first whether it worked' >&2; exit 2")])
    async with serving_scripted(scripted) as server:
        agent = scene.start(remote(["--audit", str(audit), hooks], f"http://127.0.0.1:{server.port}/mcp"))
        await agent.initialize()
        response = json.dumps(await agent.ask(call(1, "breaks")))
        assert "It may have had an effect" in response
        assert "look first whether it worked" in response
        assert "result" in await agent.ask(call(2, "echo"))
        assert len([one for one in server.requests if one.body and one.id == 1]) == 1
    assert "error" in audit.read_text().splitlines()[0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_session_and_calls_in_flight_get_an_error(scene: Scene, number: int) -> None:
    came = anyio.Event()

    async def respond(request: Request) -> None:
        if request.body and request.id == 1:
            came.set()
        await scripted(request)

    hooks = scene.hooks(PreToolUse=[group("true")], PostToolUse=[group("true")])
    async with serving_scripted(respond) as server:
        agent = scene.start(remote([hooks], f"http://127.0.0.1:{server.port}/mcp"))
        await agent.initialize()
        await agent.send(call(1, "never"))
        with anyio.fail_after(PATIENCE):
            await came.wait()
        agent.process.send_signal(number)
        assert "hookproxy was ended by" in json.dumps(await agent.answer(1))
        assert await agent.ended() == 128 + number
        assert server.of("DELETE")


async def test_without_input_the_session_is_deleted_and_the_status_is_0(scene: Scene) -> None:
    async with serving_scripted(scripted) as server:
        agent = scene.start(remote([], f"http://127.0.0.1:{server.port}/mcp"))
        await agent.initialize()
        agent.end_input()
        assert await agent.ended() == 0
        assert [one.headers["mcp-session-id"] for one in server.of("DELETE")] == ["s-1"]


AFTER_SENDING = "The call was sent to the server, and there is no response. It may have had an effect."
KNOWN = {
    "drops": AFTER_SENDING,
    "empty": AFTER_SENDING,
    "page": AFTER_SENDING,
    "refuses": "The tool was not run.",
    "redirects": "The tool was not run.",
    "fails": "The call may have had an effect.",
    "login": "The tool was not run.",
    "long": "The tool was run, but its response is withheld",
    "gone": "The call was not sent to the server. The tool was not run.",
}
"""What is known of a call after each failure."""


async def failing(request: Request) -> None:  # noqa: C901  # one case for each failure
    """Each tool fails in the way that its name says."""
    name = request.message.get("params", {}).get("name") if request.body else None
    match name:
        case "drops":
            request.drop()
        case "empty":
            await request.status("202 Accepted")
        case "page":
            await request.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>")
        case "refuses":
            await request.json(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}', "400 Bad Request")
        case "redirects":
            await request.status("307 Temporary Redirect", "Location: http://127.0.0.2:1/\r\n")
        case "fails":
            await request.status("500 Internal Server Error")
        case "login":
            await request.status("401 Unauthorized")
        case "long":
            await request.result(json.dumps({"content": [{"type": "text", "text": "x" * 50_000}]}))
        case _:
            await scripted(request)


async def test_the_model_and_the_audit_read_the_same_about_each_failure(scene: Scene) -> None:
    audit = scene.folder / "audit.jsonl"
    options = ["--audit", str(audit), scene.hooks(PreToolUse=[group("true")])]
    options.append(scene.config("max_message_bytes = 20000\n"))
    async with serving_scripted(failing) as server:
        agent = scene.start(remote(options, f"http://127.0.0.1:{server.port}/mcp"))
        await agent.initialize()
        read = {}
        for number, name in enumerate(KNOWN):
            if name == "gone":
                await server.stop()
            read[name] = (await agent.ask(call(number, name)))["error"]["message"]
    recorded = {one["tool"]: one["reason"] for one in map(json.loads, audit.read_text().splitlines())}
    assert recorded == read
    assert {name: text for name, text in read.items() if KNOWN[name] not in text} == {}
