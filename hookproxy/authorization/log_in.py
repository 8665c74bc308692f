"""A login at a server, from its address to tokens: OAuth 2.1 by the pieces of the SDK. Only `login` imports this."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlencode

import anyio
from mcp.client.auth import OAuthFlowError, PKCEParameters
from mcp.client.auth.oauth2 import check_registration_usable
from mcp.client.auth.utils import (
    create_client_registration_request,
    handle_registration_response,
    is_valid_client_metadata_url,
    should_use_client_metadata_url,
    validate_authorization_response_iss,
)
from mcp.shared.auth import OAuthClientMetadata
from msgspec import Struct
from msgspec.structs import replace

from ..model.errors import UserError, printable
from . import addresses, token_requests
from .discovery import Place, check_pkce, discover
from .fetch import Fetch, fetching
from .redirect import Redirects, listening
from .stored_login import Client, Method, Secrets, StoredLogin, client_secret
from .token_requests import TokenRefused, TokenUnavailable

if TYPE_CHECKING:
    import httpx2
    from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata

_NAME: Final = "hookproxy"  # as the authorization server shows it to the person
_SECRET_METHODS: Final[tuple[Method, ...]] = ("client_secret_basic", "client_secret_post")
_ISSUER_HINT: Final = "--issuer URL names who may get the secret: the server could name anybody"

Present = Callable[[str, Redirects], Coroutine[object, object, None]]
"""Shows the person the address of the login. It may run until the login has ended, to offer what the person pastes."""


class LoginOptions(Struct, frozen=True):
    """What the person has said about a login."""

    url: str
    scope: str = ""
    """Empty: what the server asks for."""
    issuer: str = ""
    """Empty: the first that the server names."""
    client_id: str = ""
    """Empty: hookproxy registers itself."""
    client_metadata_url: str = ""
    """The address of a document that describes the client, which is then its id."""
    secret_file: str = ""
    secret_variable: str = ""
    """The file, or the variable, with the client's secret or private key."""
    method: Literal["", "client_secret", "private_key_jwt"] = ""
    """What that is; empty: there is neither."""
    machine: bool = False
    """The client's own credentials, without a person."""
    port: int = 0
    """The port of the redirect; 0: any free one."""
    timeout: float = 300.0
    """Seconds in which the person must have logged in."""
    ca_file: str = ""
    repeated: tuple[str, ...] = ()
    """As `StoredLogin.options`."""


async def log_in(options: LoginOptions, environ: Mapping[str, str], present: Present) -> StoredLogin:
    """Log in, and return the login, which is not stored yet. Raises UserError. On cancel, nothing is left behind."""
    server = addresses.server_address(options.url)
    if not server.startswith("https:") and not addresses.is_loopback(server):
        raise UserError("the address does not use https, so anybody on the way could read the token", "use https://")
    _check_options(options)
    given = Client(options.client_id, "none", options.secret_file, options.secret_variable)
    client_secret(given, environ)  # an error in it comes before the person is asked
    async with fetching(server, options.ca_file) as fetch:
        place = await discover(server, options.issuer, fetch)
        scope = options.scope or place.scope
        try:
            if options.machine:
                login = _new_login(server, place, _given_client(options, place.metadata), scope, options)
                return await _tokens_for_machine(login, environ, fetch)
            check_pkce(place.metadata)
            return await _tokens_for_person(server, place, scope, options, environ, fetch, present)
        except OAuthFlowError as error:
            raise UserError(printable(str(error))[:500], "tell the operator of the server") from None


def _check_options(options: LoginOptions) -> None:
    if options.method and not options.client_id:
        raise UserError("a secret or private key belongs to a client", "--client-id ID names it")
    if options.machine and not options.method:
        raise UserError("--client-credentials needs a secret or a private key", "--client-secret-file FILE names it")
    if options.method and not options.issuer:
        raise UserError("the secret belongs to one authorization server", _ISSUER_HINT)
    if options.client_metadata_url and not is_valid_client_metadata_url(options.client_metadata_url):
        what = f"{addresses.shown(options.client_metadata_url)}: is not the address of a client's metadata"
        raise UserError(what, "it has the form https://HOST/PATH")


def _new_login(
    server: str, place: Place, client: Client, scope: str, options: LoginOptions, secret: str = ""
) -> StoredLogin:
    return StoredLogin(
        server=server,
        issuer=place.issuer,
        token_endpoint=str(place.metadata.token_endpoint),
        client=client,
        grant="authorization_code",
        scope=scope,
        resource=place.resource,
        issued_at=0,
        expires_at=None,
        secrets=Secrets("", client_secret=secret),
        revocation_endpoint=str(place.metadata.revocation_endpoint or ""),
        options=options.repeated,
    )


# --- machines ---


async def _tokens_for_machine(login: StoredLogin, environ: Mapping[str, str], fetch: Fetch) -> StoredLogin:
    """Tokens by the client's own credentials (RFC 6749 section 4.4)."""
    login = replace(login, grant="client_credentials")
    now = time.time()
    request = token_requests.renewal_request(login, client_secret(login.client, environ), now)
    assert request is not None  # this grant needs nothing else
    return await _tokens(login, request, fetch)


async def _tokens(login: StoredLogin, request: token_requests.HttpRequest, fetch: Fetch) -> StoredLogin:
    now = time.time()
    status, body = await fetch.post(request.url, request.headers, request.body)
    try:
        tokens = token_requests.read_response(status, body)
    except TokenRefused as error:
        what = f"{addresses.shown(login.issuer)} refuses the login: {error}"
        raise UserError(request.hide(what), "check the client, its secret, and --scope") from None
    except TokenUnavailable as error:
        raise UserError(f"{addresses.shown(login.issuer)}: {error}", "try again later") from None
    return token_requests.with_tokens(login, tokens, now)


# --- people ---


async def _tokens_for_person(  # noqa: PLR0913  # what a login consists of
    server: str,
    place: Place,
    scope: str,
    options: LoginOptions,
    environ: Mapping[str, str],
    fetch: Fetch,
    present: Present,
) -> StoredLogin:
    """Tokens by a login in the browser (RFC 6749 section 4.1, RFC 7636)."""
    state = token_urlsafe(32)
    async with listening(options.port, state) as redirects:
        client, secret = await _client(place.metadata, redirects.address, scope, options, fetch)
        pkce = PKCEParameters.generate()
        address = _authorization_address(place, client.id, scope, redirects.address, state, pkce.code_challenge)
        code = await _code(address, redirects, place.metadata, options, present)
        login = _new_login(server, place, client, scope, options, secret)
        form = {"code": code, "redirect_uri": redirects.address, "code_verifier": pkce.code_verifier}
        form |= {"resource": place.resource} if place.resource else {}
        known = client_secret(client, environ) or secret
        request = token_requests.code_request(login.token_endpoint, client, known, login.issuer, time.time(), form)
        return await _tokens(login, request, fetch)


def _authorization_address(
    place: Place, client_id: str, scope: str, redirect: str, state: str, challenge: str
) -> str:  # fmt: skip
    """Where the person logs in. It has no secret: the challenge is a hash."""
    members = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": redirect,
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    members |= {"resource": place.resource} if place.resource else {}
    members |= {"scope": scope} if scope else {}
    if "offline_access" in scope.split():
        members["prompt"] = "consent"  # OpenID Connect Core section 11: without it there is no refresh token
    endpoint = str(place.metadata.authorization_endpoint)
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(members)}"


async def _code(
    address: str, redirects: Redirects, metadata: OAuthMetadata, options: LoginOptions, present: Present
) -> str:  # fmt: skip
    """The authorization code, once the person has logged in. Raises UserError and OAuthFlowError."""
    with anyio.move_on_after(options.timeout) as waiting:
        async with anyio.create_task_group() as group:
            group.start_soon(redirects.serve)
            group.start_soon(present, address, redirects)
            redirect = await redirects.first()
            group.cancel_scope.cancel()
    if waiting.cancelled_caught:
        wrong = f" ({redirects.mistaken} redirects were of another login)" if redirects.mistaken else ""
        raise UserError(
            f"nobody has logged in within {options.timeout:g} s{wrong}", "start the login again; --timeout SECONDS"
        )
    validate_authorization_response_iss(redirect.issuer, metadata)
    if redirect.error:
        what = f"{addresses.shown(str(metadata.issuer))} refuses the login: {printable(redirect.error)[:200]}"
        raise UserError(what, "log in again, or ask who administers it")
    return redirect.code


# --- the client ---


async def _client(
    metadata: OAuthMetadata, redirect: str, scope: str, options: LoginOptions, fetch: Fetch
) -> tuple[Client, str]:  # fmt: skip
    """The client and the secret that it got: the given one, its document, or a registration, in this order."""
    if options.client_id:
        return _given_client(options, metadata), ""
    if should_use_client_metadata_url(metadata, options.client_metadata_url or None):
        return Client(options.client_metadata_url), ""
    issuer = addresses.shown(str(metadata.issuer))
    if metadata.registration_endpoint is None:
        what = f"{issuer} does not let programs register themselves"
        raise UserError(what, "register hookproxy there, and name its --client-id, with --port if that is fixed")
    return await _registered(metadata, redirect, scope, fetch)


def _given_client(options: LoginOptions, metadata: OAuthMetadata) -> Client:
    """The client that the person has registered. Its secret goes where the metadata says, by default in a header."""
    method: Method = "none"
    if options.method == "private_key_jwt":
        method = "private_key_jwt"
    elif options.method:
        offered = metadata.token_endpoint_auth_methods_supported or _SECRET_METHODS
        method = next((name for name in _SECRET_METHODS if name in offered), _SECRET_METHODS[0])
    return Client(options.client_id, method, options.secret_file, options.secret_variable)


async def _registered(metadata: OAuthMetadata, redirect: str, scope: str, fetch: Fetch) -> tuple[Client, str]:
    """Register as a new client (RFC 7591). Raises UserError and OAuthFlowError."""
    offered = metadata.token_endpoint_auth_methods_supported
    wanted: list[Method] = ["none", "client_secret_post", "client_secret_basic"]
    method = next((name for name in wanted if offered is None or name in offered), "none")
    request = create_client_registration_request(
        metadata,
        OAuthClientMetadata.model_validate(
            {
                "redirect_uris": [redirect],
                "client_name": _NAME,
                "token_endpoint_auth_method": method,
                "scope": scope or None,
            }
        ),
        "",
    )
    response = await fetch.send("registration_endpoint", request)
    registered = await _read_registration(response, addresses.shown(str(metadata.issuer)))
    check_registration_usable(registered)
    got = registered.token_endpoint_auth_method
    kept: Method = next((name for name in _SECRET_METHODS if name == got), "none")
    return Client(registered.client_id, kept), (registered.client_secret or "") if kept != "none" else ""


async def _read_registration(response: httpx2.Response, issuer: str) -> OAuthClientInformationFull:
    """The client as it was registered. Raises UserError: the SDK's messages may repeat its secret."""
    if response.status_code in (200, 201):
        try:
            return await handle_registration_response(response)
        except OAuthFlowError:
            hint = "tell who administers it, or register hookproxy by hand, and name its --client-id"
            raise UserError(f"{issuer}: its response to a registration cannot be read", hint) from None
    code = token_requests.error_text(response.content) or f"status {response.status_code}"
    what = f"{issuer} refuses to register hookproxy: {code}"
    raise UserError(what, "register it there by hand, and name its --client-id")
