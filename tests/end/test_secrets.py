"""No byte of a secret comes to a real client: whatever the server says it in, however it is encoded, in both eras."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, types
from mcp.client import Transport

from hookproxy.jsonrpc.known_secrets import KnownSecrets
from tests.end.agent import HOOKPROXY, Scene, request
from tests.end.test_gateway_http import HttpGateway
from tests.end.test_gateway_sdk import reached
from tests.end.test_real_servers import ERAS, Person, connected, plain
from tests.end.test_remote import serving
from tests.support import serve_mcp
from tests.support.preloaded_servers import preloaded

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.usefixtures("preloaded_servers"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

LEAK = "Kd83&xQ/+2.mT'uw=Zz9"
ENCODINGS = (
    *("plain", "json", "json twice", "escapes", "percent", "html", "hex", "base64", "base64, second place"),
    *("base64, third place", "address", "header", "variables"),
)
LEAKY = preloaded(serve_mcp.__file__, str(Path(__file__).with_name("leaky_server.py")))
POLICY = """
[secrets]
values = { LEAK = "file:leak" }

[[secrets.restore]]
tool = "compare"

[[hooks.PreToolUse]]
command = "cat >> seen"

[[hooks.PostToolUse]]
command = "cat >> seen"

[audit]
file = "audit.jsonl"
arguments = "full"
results = "full"
calls = "all"
"""
SAYS = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    result = {"content": [{"type": "text", "text": sys.argv[1]}]}
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
"""A server that always says its argument."""
PARTS = KnownSecrets([LEAK])


def assert_hidden(what: str) -> None:
    """Nothing of it is a part of the secret, in any encoding."""
    assert LEAK not in what
    for at in range(0, len(what), 7_000):
        piece = what[at : at + 8_000]
        assert PARTS.removed_from(piece) == piece


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpGateway]:
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "leak").write_text(LEAK)
    command = f"command = {json.dumps(LEAKY)}\nenv = {{ LEAK = {json.dumps(LEAK)} }}\n"
    gateway = HttpGateway(folder, f'{POLICY}[servers.own]\n{command}[servers.all]\n{command}share = "all"\n')
    try:
        yield gateway
        assert gateway.end() == 0, gateway.log
    finally:
        gateway.kill()


@asynccontextmanager
async def transport(scene: Scene, way: str, gateway: HttpGateway) -> AsyncIterator[Sequence[str] | Transport]:
    (scene.folder / "hookproxy.toml").write_text(POLICY)
    (scene.folder / "leak").write_text(LEAK)
    options = [HOOKPROXY, "run", "--name=real", "--config", str(scene.folder / "hookproxy.toml"), "--verbose"]
    if way == "stdio":
        yield [*options, "--", *LEAKY]
    elif way == "url":
        async with serving(scene, server=LEAKY, LEAK=LEAK) as url:
            yield [*options, "--url", url]
    else:
        async with reached(gateway, way) as connection:
            yield connection


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", ["stdio", "url", "own", "all"])
async def test_no_byte_of_a_secret_comes_to_a_client(scene: Scene, gateway: HttpGateway, way: str, era: str) -> None:
    person, got = Person(), []
    async with (
        transport(scene, way, gateway) as target,
        connected(scene, target, era, person, env={"LEAK": LEAK}) as client,
    ):
        got += [message async for message in everything(client)]
        if era == "legacy" and way != "all":
            got.append(plain(await client.call_tool("asks", {})))
        placeholder = re.findall(r"\{\{secret:LEAK:[0-9a-f]+\}\}", json.dumps(got))[0]
        compared = await client.call_tool("compare", {"token": placeholder})
        assert isinstance(compared.content[0], types.TextContent)
        assert compared.content[0].text.startswith(f"True {placeholder} ")
        got.append(plain(compared))
        other = await client.call_tool("say", {"how": placeholder})
        assert other.is_error
    seen = json.dumps([*got, plain(other), *person.requests, *person.notifications], ensure_ascii=False)
    assert_hidden(seen)
    assert seen.count("{{secret:LEAK:") > 30
    folder = Path(gateway.folder if way in ("own", "all") else scene.folder)
    for name in ("audit.jsonl", "seen"):
        text = (folder / name).read_text()
        assert_hidden(text)
        assert "{{secret:LEAK:" in text
    if way in ("own", "all"):
        assert_hidden(gateway.log)
    else:  # what the server itself writes there, it writes
        lines = (scene.folder / "stderr").read_text().splitlines()
        assert_hidden("\n".join(line for line in lines if line.startswith("hookproxy: ")))


async def everything(client: Client) -> AsyncIterator[Any]:
    """All that a client gets of the server."""
    yield client.instructions
    yield plain(await client.list_tools())
    for how in ENCODINGS:
        result = await client.call_tool("say", {"how": how})
        assert "{{secret:LEAK:" in str(result.content), how
        yield plain(result)
    for tool in ("split", "kinds", "fails", "notifies"):
        yield plain(await client.call_tool(tool, {}))
    with pytest.raises(MCPError) as caught:
        await client.call_tool("protocol_error", {})
    yield [caught.value.message, caught.value.data]
    yield plain(await client.get_prompt("advice", {"name": "Ada"}))
    yield plain(await client.read_resource("memo://7"))
    yield plain(await client.read_resource("data://blob"))


def test_a_reload_reads_values_anew_and_ends_sessions_of_which_the_agent_knows_the_other_half(tmp_path: Path) -> None:
    (tmp_path / "leak").write_text(LEAK)
    (tmp_path / "server.py").write_text(SAYS)
    command = f"command = {json.dumps([sys.executable, '-S', '-E', str(tmp_path / 'server.py'), LEAK])}\n"
    hiding = '[secrets]\nvalues = {{ LEAK = "file:{}" }}\nskip = ["*"]\n'
    server = f"[servers.tools]\n{command}"
    gateway = HttpGateway(tmp_path, hiding.format("leak") + server)
    say = request(1, "tools/call", name="say", arguments={"how": "plain"})
    try:
        session = gateway.opened("alice")
        assert_hidden(gateway.ask("alice", say, session)[2])
        (tmp_path / "leak").write_text("another-value-7")
        gateway.reload(hiding.format("leak") + server)
        assert LEAK in gateway.ask("alice", {**say, "id": 2}, session)[2]  # it is no secret any more
        gateway.reload(hiding.format("gone") + server, "secrets.values.LEAK")
        assert gateway.ask("alice", {**say, "id": 3}, session)[0] == 200  # the former policy stays in force
        gateway.reload(server, "hides no secrets")
        assert gateway.ask("alice", {**say, "id": 4}, session)[0] == 404
        session = gateway.opened("alice")
        gateway.reload(hiding.format("leak") + server, "hides secrets, and")
        assert gateway.ask("alice", {**say, "id": 5}, session)[0] == 404
        assert gateway.end() == 0, gateway.log
    finally:
        gateway.kill()


def test_a_value_that_cannot_be_had_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "hookproxy.toml").write_text('[secrets]\nvalues = { X = "env:NO_SUCH_VARIABLE" }\n')
    (tmp_path / "gateway.toml").write_text(
        '[secrets]\nvalues = { X = "env:NO_SUCH_VARIABLE" }\n'
        '[gateway]\nlisten = ["unix:s"]\n[servers.a]\ncommand = ["cat"]\n'
    )
    for words in (["run", "--config", "hookproxy.toml", "--", "cat"], ["serve", "--config", "gateway.toml"]):
        ended = subprocess.run(
            [HOOKPROXY, *words], cwd=tmp_path, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        assert (ended.returncode, ended.stdout) == (2, "")
        assert "secrets.values.X: the environment variable NO_SUCH_VARIABLE is not set" in ended.stderr
