"""A server that repeats its credential in an error: neither its user nor the log gets it, wherever the text is cut."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from hookproxy.jsonrpc.known_secrets import PART
from tests.gateway.test_http_agents import INITIALIZE, Rig
from tests.support.http_server import Request, serving

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

TOKEN = "ghp_Zx81kQv0Lm42nB7tR9sWy3Ee"
TOKEN_OF_U = b"u:" + TOKEN.encode()
Answer = Callable[[Request, int, str], Awaitable[None]]
CUT = 500  # characters of a server's error that are shown


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def parts_in(said: str) -> list[str]:
    whole = (TOKEN, base64.b64encode(TOKEN.encode()).decode().rstrip("="), base64.b64encode(TOKEN_OF_U).decode()[3:-2])
    parts = {one[at : at + PART] for one in whole for at in range(len(one) - PART)}
    return [part for part in parts if part in said]


async def text(request: Request, padding: int, quoted: str) -> None:
    body = "x" * padding + quoted
    await request.send(
        f"HTTP/1.1 500 Error\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    )


async def error(request: Request, padding: int, quoted: str) -> None:
    message = {"code": -32000, "message": "x" * padding + quoted, "data": {"got": quoted}}
    body = json.dumps({"jsonrpc": "2.0", "id": request.message["id"], "error": message})
    await request.json(body.encode(), "403 Forbidden")


async def redirect(request: Request, padding: int, quoted: str) -> None:
    where = "https://other.example/" + "x" * (padding * 200 // CUT) + quoted
    await request.status("307 Temporary Redirect", f"Location: {where}\r\n")


async def odd_type(request: Request, padding: int, quoted: str) -> None:
    kind = "x/" + "x" * (padding * 100 // CUT) + quoted
    await request.send(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: 1\r\n\r\nx".encode())


@pytest.mark.parametrize("answer", [text, error, redirect, odd_type])
@pytest.mark.parametrize("quoted", [TOKEN, TOKEN[:14] + "…" + TOKEN[14:], base64.b64encode(TOKEN_OF_U).decode()])
async def test_no_error_shows_a_credential_or_a_part_of_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], answer: Answer, quoted: str
) -> None:
    quoted = quoted.replace("…", "%E2%80%A6")
    padding = 0

    async def respond(request: Request) -> None:
        await answer(request, padding, quoted)

    (tmp_path / "token").write_text(TOKEN)
    async with serving(respond) as server:
        table = f'url = "http://127.0.0.1:{server.port}/mcp"\nallow_http = true\n'
        table += 'credentials = { TOKEN = "file:token" }\nheaders = { Authorization = "Bearer %{TOKEN}" }\n'
        rig = Rig(tmp_path, "s", lambda: 0)
        async with rig.serving(table):
            agent = await rig.connect()
            for padding in (0, 100, *range(CUT - len(quoted), CUT, 5)):
                found = json.dumps(
                    await agent.ask({"jsonrpc": "2.0", "id": padding, "method": "initialize", "params": INITIALIZE})
                )
                assert "error" in found
                said = found + capfd.readouterr().err
                assert not parts_in(said), said
            assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"


async def test_what_a_server_prints_shows_no_part_of_its_credential(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spelled = 'echo "$TOKEN"; printf %s "$TOKEN" | cut -c1-20; printf %s "$TOKEN" | base64'
    script = f'({spelled}) >&2; echo "not JSON $TOKEN"; cat'
    (tmp_path / "token").write_text(TOKEN)
    rig = Rig(tmp_path, "s", lambda: 0)
    table = f"command = {json.dumps(['/bin/sh', '-c', script])}\n" + 'credentials = { TOKEN = "file:token" }\n'
    said = ""
    async with rig.serving(table):
        agent = await rig.connect()
        agent.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
        with anyio.fail_after(30):
            while said.count("[redacted]") < 4:
                await anyio.sleep(0.001)  # lines of a log have no event
                said += capfd.readouterr().err
    assert not parts_in(said)
