"""Two gateways over HTTP with one store: who is blocked at one of them, or whose sessions end, has nothing at both."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.end.test_gateway_http import ACCEPT, SERVER, HttpGateway, request
from tests.end.test_gateway_unix import table
from tests.support.gateway_process import HOOKPROXY
from tests.support.store_process import PROGRAM, StoreProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="valkey-server or redis-server is needed"),
]

assert SERVER.exists()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HttpGateway, HttpGateway, StoreProcess]]:
    folder = tmp_path_factory.mktemp("both")
    key = folder / "seal.key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    with ExitStack() as stack:
        (folder / "store").mkdir()
        store = StoreProcess(folder / "store")
        stack.callback(store.kill)
        started = []
        for name in ("here", "there"):
            (folder / name).mkdir(mode=0o700)
            config = f"""\
seal_keys = ["{key}"]
instance = "{name}"
[gateway.store]
url = "{store.url}"
[audit]
file = "audit.jsonl"
{table("tools")}
"""
            started.append(HttpGateway(folder / name, config))
            stack.callback(started[-1].kill)
        yield started[0], started[1], store


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def admin(gateway: HttpGateway, *words: str) -> subprocess.CompletedProcess[str]:
    command = [HOOKPROXY, *words, "--socket", str(gateway.socket)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def call(gateway: HttpGateway, user: str, session: str = "") -> int:
    return gateway.ask(user, request(1, "tools/call", {"name": "echo", "arguments": {}}), session)[0]


def test_who_is_blocked_at_one_gateway_has_nothing_left_at_both(
    both: tuple[HttpGateway, HttpGateway, StoreProcess],
) -> None:
    here, there, store = both
    sessions = [(gateway, gateway.opened("alice")) for gateway in (here, there)]
    of_bob = there.opened("bob")
    stream = http.client.HTTPConnection("127.0.0.1", there.port, timeout=30)
    named = {"Authorization": f"Bearer {there.tokens['alice']}", "Mcp-Session-Id": sessions[1][1]}
    stream.request("GET", "/mcp/tools", b"", {**ACCEPT, **named, "Accept": "text/event-stream"})
    response = stream.getresponse()
    assert response.status == 200
    assert "alice is blocked" in admin(here, "users", "block", "alice").stdout
    assert response.read().count(b"event: ") == 0  # it ends, and nothing has come
    stream.close()
    for gateway, session in sessions:
        until(lambda gateway=gateway, session=session: call(gateway, "alice", session) == 403)  # type: ignore[misc]
        assert gateway.ask("alice", request(0, "initialize", {}))[0] == 403
    assert call(there, "bob", of_bob) == 200
    assert "alice" in admin(there, "users").stdout
    store.ask("DEL", "hookproxy:users")  # as if the store had lost its memory
    until(lambda: store.ask("SCARD", "hookproxy:users") != b":0\r\n")
    store.ask("SADD", "hookproxy:users", '{"user":"alice","blocked":false,"at":9e9,"by":"a forger"}')
    assert here.ask("alice", request(0, "initialize", {}))[0] == 403
    assert "allowed again" in admin(there, "users", "allow", "alice").stdout
    until(lambda: "nobody is blocked" in admin(here, "users").stderr)
    assert here.opened("alice")
    assert any("has blocked alice" in str(one.get("note")) for one in here.audit())


def test_sessions_of_all_gateways_are_listed_and_ended_from_one(
    both: tuple[HttpGateway, HttpGateway, StoreProcess],
) -> None:
    here, there, _ = both
    session = there.opened("carol")
    assert call(there, "carol", session) == 200
    listed = json.loads(admin(here, "sessions", "--user", "carol", "--json").stdout)
    [found] = listed
    assert (found["gateway"], found["calls"], found["over"]) == ("there", 1, "http")
    assert "ended the session" in admin(here, "sessions", "end", found["id"]).stdout
    until(lambda: call(there, "carol", session) == 404)
    assert any(" has ended this session" in str(one.get("note")) and one["by"] for one in there.audit())
    again = [gateway.opened("carol") for gateway in (here, there)]
    assert admin(here, "sessions", "end", "--user", "carol").stdout.count("ended the session") == 2
    for gateway, one in zip((here, there), again, strict=True):
        until(lambda gateway=gateway, one=one: call(gateway, "carol", one) == 404)  # type: ignore[misc]


def test_a_token_that_is_revoked_ends_its_sessions(both: tuple[HttpGateway, HttpGateway, StoreProcess]) -> None:
    here, there, _ = both
    here.opened("bob")
    there.opened("bob")
    tokens = str(here.folder / "tokens")
    subprocess.run([HOOKPROXY, "token", "revoke", "bob", "--file", tokens], check=True, capture_output=True)
    until(lambda: "no token in force is this user's" in here.log)
    listed = json.loads(admin(here, "sessions", "--user", "bob", "--json").stdout)
    assert {one["gateway"] for one in listed} == {"there"}  # which has a token file of its own


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    return tmp_path


def test_a_gateway_that_is_not_there_is_said(alone: Path) -> None:
    done = subprocess.run(
        [HOOKPROXY, "sessions", "--socket", str(alone / "mcp.sock")], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "cannot reach the gateway at" in done.stderr
