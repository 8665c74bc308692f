"""A gateway's listener that authenticates, and our own client, which logs in by what it says."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from hookproxy.authorization.access_tokens import IssuerSettings
from hookproxy.authorization.authenticate import Authenticator, Challenge, bearer_token
from hookproxy.authorization.bearer_tokens import BearerTokens
from hookproxy.authorization.credentials import StoredCredentials
from hookproxy.authorization.resource_metadata import protected_resource
from hookproxy.authorization.token_file import create_token
from hookproxy.authorization.token_issuer import TokenIssuer
from hookproxy.cli.login import open_store
from hookproxy.cli.main import main
from hookproxy.model.credentials import NotReady
from hookproxy.model.principal import Principal
from hookproxy.transports.http.listener import Listener
from hookproxy.transports.http.request_reader import Request
from hookproxy.transports.http.responder import Responder
from tests.support.http_post import post
from tests.support.oauth_server import OAuthServer
from tests.support.signed_tokens import SigningKey

pytestmark = pytest.mark.slow


class Gateway:
    """A listener in a thread that answers with the id of whoever calls."""

    def __init__(self, folder: Path, oauth: OAuthServer) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.origin = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.key = SigningKey("one")
        self.tenant = oauth.tenant(keys=[self.key.public()], machine_secret="secret")
        self.resource = protected_resource(self.origin, "git", self.tenant.issuer, ["mcp:call"])
        self.logged: list[str] = []
        folder.chmod(0o700)
        self.own = create_token(str(folder / "tokens"), "bob", [], None, "", 0)[0]
        tokens = BearerTokens(str(folder / "tokens"), self.logged.append)
        issuer = TokenIssuer(IssuerSettings(self.tenant.issuer), self.logged.append)
        self.authenticator = Authenticator(tokens, issuer)
        self._tasks: list[asyncio.Task[None]] = []

    def handle(self, request: Request, responder: Responder) -> None:
        if request.target == self.resource.metadata_path.encode():
            responder.respond(200, [(b"Content-Type", b"application/json")], self.resource.metadata)
            return
        token = bearer_token(request.headers, self.resource)
        if isinstance(token, Challenge):
            self._respond(responder, token)
            return
        try:
            self._respond(responder, self.authenticator.check_token_now(token, self.resource))
        except NotReady:
            self._tasks.append(asyncio.get_running_loop().create_task(self._later(token, responder)))

    async def _later(self, token: bytes, responder: Responder) -> None:
        self._respond(responder, await self.authenticator.check(token, self.resource))

    def _respond(self, responder: Responder, found: Principal | Challenge) -> None:
        if isinstance(found, Principal):
            responder.respond(200, (), found.id.encode())
        else:
            self.logged.append(found.reason)
            responder.respond(found.status, found.headers, found.message.encode())

    def send(self, *headers: str, target: str = "/mcp/git") -> tuple[int, str]:
        """The status and the whole response to a request with these headers."""
        lines = [f"POST {target} HTTP/1.1", "Host: x", "Content-Length: 0", "Connection: close", *headers, "", ""]
        with socket.create_connection(self.socket.getsockname()) as client:
            client.sendall("\r\n".join(lines).encode())
            response = b"".join(iter(lambda: client.recv(65_536), b"")).decode()
        return int(response.split(" ", 2)[1]), response


@pytest.fixture
def gateway(tmp_path: Path, oauth: OAuthServer) -> Iterator[Gateway]:
    made, loop = Gateway(tmp_path, oauth), asyncio.new_event_loop()
    listener = Listener(made.handle)
    loop.run_until_complete(loop.create_server(listener, sock=made.socket))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield made
    loop.call_soon_threadsafe(listener.close)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.run_until_complete(loop.shutdown_default_executor())
    made.socket.close()
    loop.close()


def log_in(gateway: Gateway, folder: Path, **claims: Any) -> str:  # noqa: ANN401  # any JSON
    """The header that our client has after a login, for which it got only the address of the server."""
    signed = gateway.key.token(gateway.tenant.issuer, **{"sub": "bot", "aud": gateway.resource.url} | claims)
    gateway.tenant.edit_token = lambda members: members | {"access_token": signed}
    (folder / "secret").write_text("secret")
    client = ["--client-id", "bot", "--client-secret-file", str(folder / "secret"), "--issuer", gateway.tenant.issuer]
    assert main(["login", gateway.resource.url, "--client-credentials", *client]) == 0
    header = anyio.run(StoredCredentials(gateway.resource.url, open_store(), post, os.environ).value)
    assert header
    return header


def test_our_client_logs_in_by_what_the_gateway_says(gateway: Gateway, tmp_path: Path, home: Path) -> None:
    header = log_in(gateway, tmp_path, scope="mcp:call")
    status, response = gateway.send(f"Authorization: {header}")
    assert (status, response.rpartition("\r\n")[2]) == (200, f"{gateway.tenant.issuer} bot")
    [form] = gateway.tenant.forms
    assert (form["resource"], form["scope"]) == (gateway.resource.url, "mcp:call")


def test_a_token_elsewhere_or_twice_opens_nothing(gateway: Gateway) -> None:
    good = f"Authorization: Bearer {gateway.own}"
    assert gateway.send(good)[0] == 200
    for headers, target in (
        ((), f"/mcp/git?access_token={gateway.own}"),
        ((f"Cookie: Authorization=Bearer {gateway.own}",), "/mcp/git"),
        ((), "/mcp/git"),
    ):
        status, response = gateway.send(*headers, target=target)
        assert status == 401
        assert f'resource_metadata="{gateway.resource.metadata_url}", scope="mcp:call"\r\n' in response
    assert gateway.send(good, good)[0] == 400
    assert gateway.send(good, "authorization: Basic x")[0] == 400


def test_each_refusal_reaches_the_client_and_no_token_the_log(gateway: Gateway) -> None:
    issuer, resource = gateway.tenant.issuer, gateway.resource.url
    few = gateway.key.token(issuer, aud=resource, scope="other")
    elsewhere = gateway.key.token(issuer, aud=f"{gateway.origin}/mcp/other", scope="mcp:call")
    for token, status, error in ((few, 403, "insufficient_scope"), (elsewhere, 401, "invalid_token")):
        found, response = gateway.send(f"Authorization: Bearer {token}")
        assert found == status
        assert f'error="{error}"' in response
        assert token not in "".join([response, *gateway.logged])
    gateway.tenant.keys_status = 503
    assert gateway.send(f"Authorization: Bearer {SigningKey('new').token(issuer)}")[0] == 401  # keys are 0 s old


def test_an_issuer_that_is_away_is_named_as_such(gateway: Gateway) -> None:
    gateway.tenant.keys_status = 503
    status, response = gateway.send(f"Authorization: Bearer {gateway.key.token(gateway.tenant.issuer)}")
    assert status == 503
    assert "\r\nRetry-After: 10\r\n" in response
    assert "WWW-Authenticate" not in response
