"""`hookproxy run --url` at a server that demands a login: errors name the command, and the run goes on after it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from msgspec.structs import replace
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from hookproxy.cli.login import open_store
from hookproxy.cli.main import main
from tests.support.oauth_server import Tenant, open_page
from tests.support.program import HOOKPROXY

pytestmark = pytest.mark.slow


def newest_only(app: ASGIApp) -> ASGIApp:
    """Refuse a request without the header of the newest version before anything looks at its token."""

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        names = {name for name, _ in scope.get("headers", ())}
        if scope["type"] != "http" or scope["path"] != "/mcp" or b"mcp-protocol-version" in names:
            await app(scope, receive, send)
            return
        error = {"code": -32020, "message": "Missing MCP-Protocol-Version header"}
        await JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 400)(scope, receive, send)

    return respond


def as_it_is(app: ASGIApp) -> ASGIApp:
    return app


@contextmanager
def server(wrapped: Callable[[ASGIApp], ASGIApp] = as_it_is) -> Iterator[tuple[str, Tenant]]:
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

    running = uvicorn.Server(uvicorn.Config(wrapped(sdk.streamable_http_app()), log_config=None, ws="none"))
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


@pytest.mark.parametrize(("mode", "wrapped"), [("auto", newest_only), ("auto", as_it_is), ("legacy", as_it_is)])
def test_an_agent_that_negotiates_reads_which_login_is_needed_and_so_does_the_person(
    mode: str, wrapped: Callable[[ASGIApp], ASGIApp], tmp_path: Path
) -> None:
    async def connect(url: str) -> None:
        run = StdioServerParameters(command=HOOKPROXY, args=["run", "--url", url], env={"HOME": str(tmp_path)})
        with (tmp_path / "errors").open("w") as errors:
            async with Client(stdio_client(run, errlog=errors), mode=mode):
                pass

    with server(wrapped) as (url, _), pytest.raises(BaseExceptionGroup) as raised:
        anyio.run(connect, url)
    (error,) = leaves(raised.value)
    assert isinstance(error, MCPError)
    assert f"Tell the user to run `hookproxy login {url}`" in str(error)
    assert (tmp_path / "errors").read_text().count(f"hookproxy login {url}") == 1


def leaves(error: BaseException) -> list[BaseException]:
    """The errors inside of exception groups."""
    return (
        [leaf for inner in error.exceptions for leaf in leaves(inner)]
        if isinstance(error, BaseExceptionGroup)
        else [error]
    )
