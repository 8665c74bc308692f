"""`hookproxy run --url` at a server that demands a login: errors name the command, and the run goes on after it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from msgspec.structs import replace

from hookproxy.cli.login import open_store
from hookproxy.cli.main import main
from tests.support.oauth_server import Tenant, open_page
from tests.support.program import HOOKPROXY

pytestmark = pytest.mark.slow


@contextmanager
def server() -> Iterator[tuple[str, Tenant]]:
    """The SDK's own server, which is its own authorization server."""
    listener = socket.create_server(("127.0.0.1", 0))
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    tenant = Tenant(origin, "")
    registration = ClientRegistrationOptions(enabled=True, valid_scopes=["read"], default_scopes=["read"])
    auth = AuthSettings.model_validate(
        {
            "issuer_url": origin,
            "resource_server_url": f"{origin}/mcp",
            "required_scopes": ["read"],
            "validate_token_resource": True,
            "client_registration_options": registration,
        }
    )
    sdk = MCPServer("demo", auth_server_provider=tenant, auth=auth)

    @sdk.tool()
    def hello() -> str:
        return "hello"

    running = uvicorn.Server(uvicorn.Config(sdk.streamable_http_app(), log_config=None, ws="none"))
    thread = threading.Thread(target=running.run, args=([listener],))
    thread.start()
    try:
        yield f"{origin}/mcp", tenant
    finally:
        running.should_exit = True
        thread.join()
        listener.close()


class Agent:
    """Speaks to `hookproxy run --url` line by line."""

    def __init__(self, url: str, errors: Path) -> None:
        with errors.open("w") as file:
            self.process = subprocess.Popen(
                [HOOKPROXY, "run", "--url", url],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        self._id = 0

    def send(self, method: str, params: dict[str, Any] | None = None, **members: Any) -> None:  # noqa: ANN401  # JSON
        assert self.process.stdin
        self.process.stdin.write(
            json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}} | members) + "\n"
        )
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any] | None = None) -> str:
        assert self.process.stdout
        self._id += 1
        self.send(method, params, id=self._id)
        return self.process.stdout.readline()

    def initialize(self) -> str:
        info = {"name": "agent", "version": "1"}
        return self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})

    def call(self) -> str:
        return self.ask("tools/call", {"name": "hello", "arguments": {}})


def outdate(url: str) -> None:
    """Set the stored token's end into the past."""

    async def change() -> None:
        store = open_store()
        login = await store.read(url)
        assert login is not None
        await store.write(replace(login, issued_at=0, expires_at=time.time() - 1), keyring=False)

    anyio.run(change)


def test_a_run_goes_on_after_a_login_a_renewal_and_another_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    browsers: list[threading.Thread] = []

    def browse(address: str) -> bool:
        browsers.append(threading.Thread(target=open_page, args=(address,)))
        browsers[-1].start()
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    monkeypatch.setenv("DISPLAY", ":0")
    with server() as (url, tenant):
        agent = Agent(url, tmp_path / "errors")
        try:
            assert f"Tell the user to run `hookproxy login {url}`." in agent.initialize()
            assert main(["login", url]) == 0
            assert '"serverInfo"' in agent.initialize()
            agent.send("notifications/initialized")
            assert '"hello"' in agent.call()

            tenant.access.clear()
            outdate(url)
            assert '"hello"' in agent.call()

            tenant.access.clear()
            tenant.refresh.clear()
            outdate(url)
            refused = agent.call()
            assert "invalid_grant" in refused
            assert f"`hookproxy login {url} --scope read`" in refused
            assert main(["login", url]) == 0
            assert '"hello"' in agent.call()
        finally:
            agent.process.communicate(timeout=30)
            for browser in browsers:
                browser.join()
    assert agent.process.returncode == 0
    shown = (tmp_path / "errors").read_text() + capsys.readouterr().out
    audit = Path(os.environ["HOME"]) / ".local/state/hookproxy/audit.jsonl"
    shown += audit.read_text() if audit.exists() else ""
    for secret in (*tenant.access, *tenant.refresh):
        assert secret not in shown
