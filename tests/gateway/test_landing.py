"""The page for people with a token: what holds for them, nothing of others, and nothing that a browser would run."""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from msgspec import structs

from hookproxy.gateway import landing
from hookproxy.model.principal import Principal
from hookproxy.transports.http.responder import Headers
from tests.gateway.test_http_agents import Rig

pytestmark = pytest.mark.anyio

HOSTILE = "run(<script>alert[1]</script>)"
TABLE = f"""command = ["/opt/secret-program", "--password=hunter22"]
env = {{ INNER = "value-of-env" }}
credentials = {{ TOKEN = "file:token" }}
[[servers.s.permissions.for]]
users = ["alice"]
deny = ["delete_*", "{HOSTILE}", "run(*s3cr3t-token-value*)"]
ask = ["write_*"]
[[servers.s.permissions.for]]
users = ["bob"]
deny = ["only_for_bob"]
[servers.bobs]
command = ["cat"]
allow = ["bob"]
[servers.mine]
from_caller = true
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def ask(rig: Rig, path: str, *headers: str, token: bool = True, method: str = "GET") -> tuple[int, str, str]:
    """Status, head and body."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{rig.port}", *headers, "Connection: close"]
    lines += [f"Authorization: Bearer {rig.token}"] if token else []
    with anyio.fail_after(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
        writer.write("\r\n".join([*lines, "", ""]).encode())
        head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
        writer.close()
    return int(head.split()[1]), head.lower(), body


@pytest.fixture
async def rig(tmp_path: Path) -> Any:  # noqa: ANN401  # an async generator
    (tmp_path / "token").write_text("s3cr3t-token-value")
    rig = Rig(tmp_path, "s", lambda: 0)
    async with rig.serving(TABLE):
        yield rig


@pytest.mark.parametrize("path", ["/", "/servers"])
async def test_a_program_gets_json_with_what_holds_for_its_user(rig: Rig, path: str) -> None:
    status, head, body = await ask(rig, path)
    assert (status, "cache-control: no-store" in head, "application/json" in head) == (200, True, True)
    found = json.loads(body)
    assert (found["user"], found["token"]) == ("alice", "HOOKPROXY_TOKEN")
    assert [server["name"] for server in found["servers"]] == ["s", "mine"]
    server, mine = found["servers"]
    assert server["url"] == f"http://127.0.0.1:{rig.port}/mcp/s"
    assert server["command"] == f"hookproxy connect s --url http://127.0.0.1:{rig.port}"
    assert server["rules"]["deny"] == ["delete_*", HOSTILE, "run(*[redacted]*)"]
    assert server["rules"]["ask"] == ["write_*"]
    assert "url" not in mine
    for secret in ("hunter22", "secret-program", "value-of-env", "s3cr3t", "only_for_bob", "bobs", rig.token):
        assert secret not in body


async def test_the_entries_are_what_each_agent_reads(rig: Rig) -> None:
    found = json.loads((await ask(rig, "/servers"))[2])["servers"][0]
    url, agents = found["url"], found["agents"]
    assert json.loads(agents["cursor"]["entry"])["mcpServers"]["s"]["url"] == url
    assert json.loads(agents["vscode"]["entry"])["servers"]["s"]["type"] == "http"
    assert json.loads(agents["opencode"]["entry"])["mcp"]["s"]["type"] == "remote"
    assert tomllib.loads(agents["codex"]["entry"])["mcp_servers"]["s"] == {
        "url": url,
        "bearer_token_env_var": "HOOKPROXY_TOKEN",
    }
    goose = yaml.safe_load(agents["goose"]["entry"])["extensions"]["s"]
    assert (goose["uri"], goose["type"], goose["enabled"]) == (url, "streamable_http", True)
    assert "claude-desktop" not in agents


async def test_a_browser_gets_a_page_in_which_nothing_is_markup(rig: Rig) -> None:
    status, head, body = await ask(rig, "/servers", "Accept: text/html,application/xhtml+xml,*/*;q=0.8")
    assert (status, "text/html" in head, "no-store" in head) == (200, True, True)
    assert "&lt;script&gt;alert[1]&lt;/script&gt;" in body
    assert "<script" not in body
    assert "default-src 'none'" in head
    assert "s3cr3t" not in body
    assert "only_for_bob" not in body


async def test_who_comes_without_a_token_learns_only_how_to_send_one(rig: Rig) -> None:
    status, head, body = await ask(rig, "/", "Accept: text/html", token=False)
    assert (status, "no-store" in head) == (200, True)
    assert "alice" not in body
    (script,) = re.findall("<script>(.*?)</script>", body, re.DOTALL)
    assert f"script-src 'sha256-{landing._digest(script)}'".lower() in head
    for path, accept in (("/", "*/*"), ("/servers", "text/html"), ("/servers", "application/json")):
        assert (await ask(rig, path, f"Accept: {accept}", token=False))[0] == 401


@pytest.mark.parametrize(
    ("headers", "method", "status"),
    [
        (["Origin: https://evil.example"], "GET", 403),
        ([], "POST", 405),
        ([], "DELETE", 405),
        ([], "HEAD", 200),
    ],
)
async def test_other_requests_get_no_page(rig: Rig, headers: list[str], method: str, status: int) -> None:
    for token in (True, False):
        found = await ask(rig, "/", *headers, "Content-Length: 0", "Accept: text/html", method=method, token=token)
        assert (found[0], found[2] if status in (405, 200) else "") == (status, "")


async def test_a_name_that_a_web_page_gave_us_gets_no_page(rig: Rig) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", rig.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: evil.example\r\nAccept: text/html\r\nConnection: close\r\n\r\n")
    assert (await reader.read()).split()[1] == b"421"
    writer.close()


async def test_the_page_is_that_of_the_policy_in_force_and_of_the_groups_of_the_token(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "s", lambda: 0)
    async with rig.serving('command = ["cat"]\nallow = ["alice"]\n'):
        for _ in range(2):
            assert [one["name"] for one in json.loads((await ask(rig, "/servers"))[2])["servers"]] == ["s"]
        rig.table = 'command = ["cat"]\nallow = ["@trainees"]\n'
        rig.change("")
        assert json.loads((await ask(rig, "/servers"))[2])["servers"] == []
        rig.token = rig.new_token("trainees")
        assert [one["name"] for one in json.loads((await ask(rig, "/servers"))[2])["servers"]] == ["s"]


async def test_who_asks_again_and_again_costs_one_page(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []

    def respond(*arguments: Any, html: bool) -> tuple[Headers, bytes]:  # noqa: ANN401  # as they come
        made.append(html)
        return original(*arguments, html=html)

    original = landing.respond
    monkeypatch.setattr(landing, "respond", respond)
    bodies = {(await ask(rig, path))[2] for path in ("/servers", "/", "/servers")}
    assert (len(bodies), made) == (1, [False])
    for _ in range(2):
        await ask(rig, "/servers", "Accept: text/html")
    assert made == [False, True]


async def test_a_user_without_servers_is_told_so(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "s", lambda: 0)
    async with rig.serving('command = ["cat"]\nallow = ["bob"]\n'):
        assert "no server for you" in (await ask(rig, "/", "Accept: text/html"))[2]
        assert json.loads((await ask(rig, "/servers"))[2])["servers"] == []


async def test_a_gateway_through_which_nothing_may_pass_says_so(rig: Rig) -> None:
    config = structs.replace(rig._gateway.config, closed="the policy <is> too old")
    alice = Principal("token:alice", "alice")
    _, body = landing.respond(config, "https://x.example", alice, html=False)
    assert (json.loads(body)["servers"], json.loads(body)["closed"]) == ([], "the policy <is> too old")
    assert b"Nothing may pass now: the policy &lt;is&gt; too old." in landing.respond(config, "", alice, html=True)[1]


@pytest.mark.parametrize(
    ("accept", "is_html"),
    [
        (b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", True),
        (b"text/html", True),
        (b"application/json, text/html;q=0.5", False),
        (b"application/json;q=0.5, text/html", True),
        (b"text/html;q=0", False),
        (b"text/html;q=x", False),
        (b"*/*", False),
        (b"text/*", False),
        (b"application/json", False),
        (b"", False),
    ],
)
async def test_html_is_for_who_asks_for_it(accept: bytes, is_html: bool) -> None:
    assert landing.wants_html(accept) is is_html
