"""Sixty kinds of change to what a server says, in both eras, by `run`, `run --url` and `serve`: none passes."""

from __future__ import annotations

import copy
import json
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from hookproxy.lock import lock_file
from hookproxy.lock.description import Kind
from tests.end.agent import HOOKPROXY, STATELESS, Agent, Json, Scene
from tests.end.changing_server import result
from tests.lock.test_changes import EVIL, MEMBERS, NAMES, OTHER, PROMPT, SERVER, TEMPLATE, TOOL, described
from tests.support.gateway_process import GatewayProcess
from tests.support.http_server import Request, serving

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SCRIPT: Final = str(Path(__file__).with_name("changing_server.py"))
ERAS: Final = ("2025-11-25", "2026-07-28")
WAYS: Final = ("run", "run --url", "serve")
RECORDED: Final = {Kind.TOOL: [TOOL, OTHER], Kind.PROMPT: [PROMPT], Kind.TEMPLATE: [TEMPLATE]}


def said(tools: list[Any], server: Json | None = None, **more: Json) -> Json:
    """What the server answers, by method."""
    about = server or SERVER
    return {
        "initialize": {"protocolVersion": "2025-11-25", **about},
        "server/discover": {"resultType": "complete", "supportedVersions": ["2026-07-28"], **about},
        "tools/list": {"tools": tools},
        "prompts/list": {"prompts": [PROMPT]},
        "resources/templates/list": {"resourceTemplates": [TEMPLATE]},
        **more,
    }


def changed_tools() -> list[Json]:
    tools = []
    for change, *_ in MEMBERS:
        tool = copy.deepcopy(TOOL)
        change(tool)
        tools.append(tool)
    return [*tools, *({**copy.deepcopy(TOOL), "name": name} for name, _ in NAMES), {"name": "new", "description": EVIL}]


SAYS: Final = [
    said([TOOL, OTHER]),
    *(said([tool, OTHER]) for tool in changed_tools()),
    said([TOOL, OTHER, TOOL]),
    said([TOOL, OTHER], {**SERVER, "instructions": EVIL}),
    said([TOOL, OTHER], **{"prompts/list": {"prompts": [{**PROMPT, "description": EVIL}]}}),
    said([TOOL, OTHER], **{"resources/templates/list": {"resourceTemplates": [{**TEMPLATE, "description": EVIL}]}}),
]
TWICE, INSTRUCTIONS, OF_PROMPT, OF_TEMPLATE = range(len(SAYS) - 4, len(SAYS))


class Talk:
    """An agent of one era. `number` is what the server is to say."""

    def __init__(self, agent: Agent, era: str) -> None:
        self.agent = agent
        self.stateless = era == "2026-07-28"
        self.last = 0

    async def ask(self, number: int, method: str, **params: object) -> Json:
        self.last += 1
        meta = {**(STATELESS if self.stateless else {}), "say": number}
        message = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": {**params, "_meta": meta}}
        return await self.agent.ask(message)

    async def begin(self, number: int = 0) -> Json:
        if self.stateless:
            return await self.ask(number, "server/discover")
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        answer = await self.ask(number, "initialize", **params)
        await self.agent.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer


@asynccontextmanager
async def talking(scene: Scene, way: str, era: str, tools: str = "") -> AsyncIterator[Talk]:
    """An agent of this era whose server is locked, and is reached in this way; `tools` are tables of the settings."""
    lock = lock_file.text_of({"mail": described(RECORDED)})
    table = scene.file("says.json", json.dumps(SAYS))
    if way == "serve":
        folder = scene.folder / "gateway"
        folder.mkdir()
        (folder / "hookproxy.lock").write_text(lock)
        shutil.copy(SCRIPT, folder / "server.py")
        (folder / "says.json").write_text(json.dumps(SAYS))
        command = json.dumps([sys.executable, str(folder / "server.py"), str(folder / "says.json")])
        gateway = GatewayProcess(folder, f'[servers.mail]\ncommand = {command}\nsandbox = "off"\n{tools}')
        try:
            yield Talk(scene.start([HOOKPROXY, "connect", "--socket", str(gateway.socket), "mail"]), era)
        finally:
            gateway.kill()
        return
    config = Path(scene.file("hookproxy.toml", f"[audit]\nenabled = false\n{tools}"))
    config.with_name("hookproxy.lock").write_text(lock)
    options = [HOOKPROXY, "run", "--name=mail", "--config", str(config)]
    if way == "run":
        yield Talk(scene.start([*options, "--", sys.executable, SCRIPT, table]), era)
        return

    async def respond(request: Request) -> None:
        if request.method != "POST" or request.id is None:
            await request.status("405 Method Not Allowed" if request.method != "POST" else "202 Accepted")
        else:
            await request.result(json.dumps(result(SAYS, request.message)))

    async with serving(respond) as server:
        yield Talk(scene.start([*options, "--url", f"http://127.0.0.1:{server.port}/mcp"]), era)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", WAYS)
async def test_no_kind_of_change_reaches_the_agent(scene: Scene, way: str, era: str) -> None:
    async with talking(scene, way, era) as talk:
        first = await talk.begin()
        assert first["result"]["instructions"] == "Be kind."
        wrong = []
        for number in range(1, TWICE + 1):
            answer = await talk.ask(number, "tools/list")
            name = SAYS[number]["tools/list"]["tools"][0]["name"]
            refused = json.dumps(await talk.ask(number, "tools/call", name=name, arguments={}))
            kept = (await talk.ask(number, "tools/call", name="readFile", arguments={}))["result"]
            text = json.dumps(answer) + refused
            if answer["result"]["tools"] != [OTHER] or "EVIL" in text or "evil" in text:
                wrong.append(f"{number}: listed {answer}")
            if "error" not in refused.lower() or "ran" in refused.split("was not run")[0]:
                wrong.append(f"{number}: called {refused}")
            if kept["content"][0]["text"] != "ran readFile":
                wrong.append(f"{number}: the other tool {kept}")
            if (await talk.ask(0, "tools/list"))["result"]["tools"] != [TOOL, OTHER]:
                wrong.append(f"{number}: what is as recorded")
        assert not wrong, "\n".join(wrong)
        for number, method, member in (
            (OF_PROMPT, "prompts/list", "prompts"),
            (OF_TEMPLATE, "resources/templates/list", "resourceTemplates"),
        ):
            assert (await talk.ask(0, method))["result"][member] != []
            assert (await talk.ask(number, method))["result"][member] == []
        assert "error" in await talk.ask(0, "prompts/get", name="review")
        assert "error" in await talk.ask(0, "resources/read", uri="file:///work/x")
        again = await talk.begin(INSTRUCTIONS)
        assert "EVIL" not in json.dumps(again)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", WAYS)
async def test_a_tool_has_another_name_for_the_agent_and_its_own_for_the_server(
    scene: Scene, way: str, era: str
) -> None:
    tools = '[tools.send_mail]\nrename = "mail"\ndescription = "Mails."\n[tools.readFile]\nhide = true\n'
    async with talking(scene, way, era, tools) as talk:
        await talk.begin()
        listed = (await talk.ask(0, "tools/list"))["result"]["tools"]
        assert listed == [{**TOOL, "name": "mail", "description": "Mails."}]
        for _ in range(2):
            ran = (await talk.ask(0, "tools/call", name="mail", arguments={"to": "anna"}))["result"]
            assert ran["content"][0]["text"] == "ran send_mail"
            for name in ("send_mail", "readFile"):
                error = (await talk.ask(0, "tools/call", name=name, arguments={}))["error"]
                assert (error["code"], error["message"]) == (-32602, f"Unknown tool: {name}")


async def test_people_learn_why_there_is_no_response_and_the_agent_gets_no_word_of_the_server(scene: Scene) -> None:
    config = Path(scene.file("hookproxy.toml", "[audit]\nenabled = false\n"))
    config.with_name("hookproxy.lock").write_text(lock_file.text_of({"mail": described(RECORDED)}))

    async def respond(request: Request) -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": request.id, "error": {"code": -32000, "message": EVIL}}).encode()
        await request.json(body.replace(b'"id"', b'"no id"'), status="500 Internal Server Error")

    async with serving(respond) as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        agent = scene.start([HOOKPROXY, "run", "--name=mail", "--config", str(config), "--url", url])
        for number, method in enumerate(("initialize", "tools/list", "server/discover")):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {"_meta": STATELESS}}
            error = (await agent.ask(message))["error"]
            assert error["message"] == "The server did not say what it has. hookproxy's standard error says why."
    assert (scene.folder / "stderr0").read_text().count("HTTP status 500") == 1


async def test_an_agent_learns_which_login_a_server_with_a_lock_needs(scene: Scene) -> None:
    config = Path(scene.file("hookproxy.toml", "[audit]\nenabled = false\n"))
    config.with_name("hookproxy.lock").write_text(lock_file.text_of({"mail": described(RECORDED)}))

    async def respond(request: Request) -> None:
        await request.json(EVIL.encode(), status="401 Unauthorized")

    async with serving(respond) as server:
        url = f"http://127.0.0.1:{server.port}/mcp"
        agent = scene.start([HOOKPROXY, "run", "--name=mail", "--config", str(config), "--url", url])
        for number, method in enumerate(("initialize", "tools/list")):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {}}
            error = (await agent.ask(message))["error"]
            assert f"{url} needs a login. Tell the user to run `hookproxy login {url}`." in error["message"]


async def test_a_lock_that_was_edited_stops_the_start_with_its_line(scene: Scene) -> None:
    config = Path(scene.file("hookproxy.toml", ""))
    lock = lock_file.text_of({"mail": described(RECORDED)}).replace("Sends a mail.", "Sends it.")
    config.with_name("hookproxy.lock").write_text(lock)
    ended = scene.complete([HOOKPROXY, "run", "--config", str(config), "--", sys.executable, SCRIPT, "x"])
    assert ended.returncode == 2
    line = next(number for number, text in enumerate(lock.splitlines(), 1) if "Sends it." in text)
    message = ended.stderr.decode()
    assert "hookproxy.lock:" in message
    place = int(message.split("hookproxy.lock:")[1].split(":")[0])
    assert abs(place - line) < len(lock.splitlines())
    assert "the tool send_mail" in message
