"""An OAuth authorization server and a server that demands its tokens, on loopback, by the SDK's own pieces.

One process-wide listener serves any number of `Tenant`s, each at a path of its own, so that a test has its own counters
and its own faults.
"""

from __future__ import annotations

import json
import secrets
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from joserfc import jwt
from joserfc.jwk import ECKey
from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import ClientAuthenticator
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
)
from mcp.server.auth.routes import build_metadata
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from hookproxy.authorization.addresses import server_address
from hookproxy.authorization.stored_login import Client, Secrets, StoredLogin

Provider = OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]


def _same(members: dict[str, Any]) -> dict[str, Any]:
    return members


@dataclass
class Tenant(Provider):
    """An authorization server at `issuer`, and the server at `url` that belongs to it."""

    origin: str
    name: str
    lifetime: int | None = 3600
    scopes: list[str] | None = None  # what the server lists
    demanded: str = ""  # what its challenge demands
    edit_resource: Callable[[dict[str, Any]], dict[str, Any]] = _same
    edit_metadata: Callable[[dict[str, Any]], dict[str, Any]] = _same
    edit_token: Callable[[dict[str, Any]], dict[str, Any]] = _same
    edit_redirect: Callable[[dict[str, str]], list[dict[str, str]]] = lambda members: [members]
    token_status: int = 0  # instead of a response of the token endpoint
    demands_login: bool = True
    openid: bool = False  # its metadata is that of OpenID Connect only
    machine_secret: str = ""
    machine_key: str = ""  # the public key, of the curve P-256
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    refresh: dict[str, RefreshToken] = field(default_factory=dict)
    access: dict[str, AccessToken] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)  # METHOD PATH?QUERY of all requests
    forms: list[dict[str, str]] = field(default_factory=list)  # of the token endpoint
    authorizations: list[AuthorizationParams] = field(default_factory=list)
    revoked: list[str] = field(default_factory=list)
    held: threading.Event | None = None  # the token endpoint waits for it
    keys: list[dict[str, Any]] = field(default_factory=list)  # its JWK Set
    keys_status: int = 200
    keys_held: threading.Event | None = None  # the address of the keys waits for it

    @property
    def url(self) -> str:
        return f"{self.origin}/{self.name}/mcp"

    @property
    def issuer(self) -> str:
        return f"{self.origin}/{self.name}"

    @property
    def key_requests(self) -> int:
        return sum(f"/{self.name}/jwks?" in request for request in self.requests)

    @property
    def renewals(self) -> int:
        return sum(form.get("grant_type") == "refresh_token" for form in self.forms)

    def login(self, *, ends_in: float | None = 3600, scope: str = "read") -> StoredLogin:
        """A login as `hookproxy login` would have stored it, whose token ends then, by this machine's clock."""
        client = OAuthClientInformationFull(client_id=secrets.token_hex(4), token_endpoint_auth_method="none")
        self.clients[client.client_id] = client
        tokens = self._issue(client.client_id, scope.split(), None)
        assert tokens.refresh_token
        now = time.time()
        return StoredLogin(
            server=server_address(self.url),
            issuer=self.issuer,
            token_endpoint=f"{self.issuer}/token",
            client=Client(client.client_id),
            grant="authorization_code",
            scope=scope,
            resource=self.url,
            issued_at=now - 3600,
            expires_at=None if ends_in is None else now + ends_in,
            secrets=Secrets(tokens.access_token, tokens.refresh_token),
        )

    def accepts(self, header: str | None) -> bool:
        """The server accepts a request with this header."""
        return header is not None and header.removeprefix("Bearer ") in self.access

    # --- what the SDK asks of its provider ---

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        self.authorizations.append(params)
        code = secrets.token_urlsafe(20)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True,
            resource=params.resource,
        )
        *wrong, last = self.edit_redirect({"code": code, "state": params.state or ""})
        for members in wrong:  # a page in the same browser
            await anyio.to_thread.run_sync(open_page, f"{params.redirect_uri}?{urlencode(members)}")
        return f"{params.redirect_uri}?{urlencode(last)}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._issue(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        return self._issue(client.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.revoked.append(token.token)

    def _issue(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = f"access-{secrets.token_urlsafe(16)}", f"refresh-{secrets.token_urlsafe(16)}"
        self.access[access] = AccessToken(token=access, client_id=client_id, scopes=scopes, resource=resource)
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes, resource=resource)
        scope = " ".join(scopes) or None
        return OAuthToken(access_token=access, expires_in=self.lifetime, scope=scope, refresh_token=refresh)

    # --- HTTP ---

    async def respond(self, request: Request, path: str) -> Response:
        self.requests.append(f"{request.method} {request.url.path}?{request.url.query}")
        match path:
            case "mcp":
                return self._resource(request.headers.get("authorization"))
            case "resource":
                listed = {} if self.scopes is None else {"scopes_supported": self.scopes}
                members = {"resource": self.url, "authorization_servers": [self.issuer]} | listed
                return _document(self.edit_resource(members))
            case "metadata" | "openid" if self.openid is (path == "openid"):
                return _document(self.edit_metadata(self._metadata()))
            case "jwks":
                if self.keys_held is not None:
                    await anyio.to_thread.run_sync(self.keys_held.wait, 30)
                return JSONResponse({"keys": self.keys}, status_code=self.keys_status)
            case _:
                return await self._endpoint(request, path)

    async def _endpoint(self, request: Request, path: str) -> Response:
        authenticator = ClientAuthenticator(self)
        match path:
            case "authorize":
                return await AuthorizationHandler(self).handle(request)
            case "register":
                return await RegistrationHandler(self, ClientRegistrationOptions(enabled=True)).handle(request)
            case "revoke":
                return await self._revoke(request, authenticator)
            case "token":
                return await self._token(request, authenticator)
            case _:
                return Response(status_code=404)

    async def _revoke(self, request: Request, authenticator: ClientAuthenticator) -> Response:
        """Not by the SDK's handler, which requires a secret of every client."""
        client = await authenticator.authenticate_request(request)
        token = str((await request.form())["token"])
        known = self.refresh.get(token) or self.access[token]
        if known.client_id == client.client_id:
            await self.revoke_token(known)
        return Response()

    def _metadata(self) -> dict[str, Any]:
        enabled = ClientRegistrationOptions(enabled=True), RevocationOptions(enabled=True)
        made = build_metadata(AnyHttpUrl(self.issuer), None, *enabled)
        methods = ["none", "client_secret_basic", "private_key_jwt"]
        more = {"token_endpoint_auth_methods_supported": methods, "jwks_uri": f"{self.issuer}/jwks"}
        return made.model_dump(mode="json", exclude_none=True) | more

    def _resource(self, header: str | None) -> Response:
        if self.accepts(header) or not self.demands_login:
            return JSONResponse({"jsonrpc": "2.0", "id": 1, "result": {}})
        metadata = f"{self.origin}/.well-known/oauth-protected-resource/{self.name}/mcp"
        scope = f', scope="{self.demanded}"' if self.demanded else ""
        challenge = f'Bearer error="invalid_token", resource_metadata="{metadata}"{scope}'
        return Response(status_code=401, headers={"WWW-Authenticate": challenge})

    async def _token(self, request: Request, authenticator: ClientAuthenticator) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        self.forms.append(form | {"authorization": request.headers.get("authorization", "")})
        if self.held is not None:
            await anyio.to_thread.run_sync(self.held.wait, 30)
        if self.token_status:
            return Response("<html>", status_code=self.token_status)
        if form.get("grant_type") == "client_credentials":
            if not self._is_machine(form, request.headers.get("authorization", "")):
                return JSONResponse({"error": "invalid_client"}, status_code=401)
            made = self._issue(form["client_id"], form.get("scope", "").split(), form.get("resource"))
            return _document(self.edit_token(made.model_dump(exclude_none=True, exclude={"refresh_token"})))
        response: Response = await TokenHandler(self, authenticator).handle(request)
        if response.status_code != 200:
            return response
        return _document(self.edit_token(json.loads(bytes(response.body))))

    def _is_machine(self, form: Mapping[str, str], header: str) -> bool:
        if self.machine_key:
            claims = jwt.decode(form["client_assertion"], ECKey.import_key(self.machine_key), ["ES256"]).claims
            jwt.JWTClaimsRegistry(aud={"essential": True, "value": self.issuer}).validate(claims)
            return bool(claims["sub"] == claims["iss"] == form["client_id"])
        from base64 import b64encode

        pair = b64encode(f"{form['client_id']}:{self.machine_secret}".encode()).decode()
        return bool(self.machine_secret) and header == f"Basic {pair}"


def _document(members: dict[str, Any]) -> Response:
    return JSONResponse(members, status_code=members.pop("status", 200)) if members else Response(status_code=404)


def open_page(url: str) -> str:
    """What a browser would show, redirects included; empty for an error."""
    try:
        with urllib.request.urlopen(url, context=ssl._create_unverified_context()) as response:
            return str(response.read().decode())
    except urllib.error.HTTPError as error:
        error.close()
        return ""


class OAuthServer:
    """The listener, and its tenants by name."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self._tenants: dict[str, Tenant] = {}
        self._names = map(str, count())

    def tenant(self, **faults: Any) -> Tenant:  # noqa: ANN401  # any field
        name = next(self._names)
        self._tenants[name] = Tenant(self.origin, name, **faults)
        return self._tenants[name]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        words = request.url.path.strip("/").split("/")
        match words:
            case [".well-known", "oauth-protected-resource", name, "mcp"]:
                path = "resource"
            case [".well-known", "oauth-authorization-server", name]:
                path = "metadata"
            case [name, ".well-known", "openid-configuration"]:
                path = "openid"
            case [name, path]:
                pass
            case _:
                name = path = ""
        tenant = self._tenants.get(name)
        response = await tenant.respond(request, path) if tenant else Response(status_code=404)
        await response(scope, receive, send)


@contextmanager
def serving(certificate: str | None = None) -> Iterator[OAuthServer]:
    """A listener in a thread of this process; with a file that has a certificate and its key, for https."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = OAuthServer(f"http{'s' if certificate else ''}://127.0.0.1:{listener.getsockname()[1]}")
    config = uvicorn.Config(
        app, log_level="critical", lifespan="off", ws="none", interface="asgi3", ssl_certfile=certificate
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield app
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def self_signed(path: Path) -> str:
    """A file with a key, and with its certificate for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(key, SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(secret + certificate.public_bytes(Encoding.PEM))
    return str(path)
