"""Finds out where to log in at a server: RFC 9728, RFC 8414, OpenID Connect discovery; checked before it is used.

The SDK reads the documents; the checks that it leaves out are here: the scheme of each address, and support for PKCE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    get_client_metadata_scopes,
    handle_auth_metadata_response,
    handle_protected_resource_response,
    issuers_match,
    validate_metadata_issuer,
)
from mcp.shared.auth_utils import check_resource_allowed

from ..model.errors import UserError, printable
from . import addresses, challenges
from .fetch import Fetch

if TYPE_CHECKING:
    from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata

PING: Final = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
"""What is sent without a token, to see what the server demands: it begins no session and has no effect."""

_OPERATOR: Final = "tell the operator of the server"
_METADATA: Final = "resource_metadata"


class Place(NamedTuple):
    """Where and for what to log in."""

    metadata: OAuthMetadata
    issuer: str
    resource: str
    """The resource indicator; empty: the server has no metadata, so none is sent."""
    scope: str
    """What the server asks for; empty: it does not say."""


async def discover(server: str, issuer: str, fetch: Fetch) -> Place:
    """Where to log in at this server. With an `issuer`, only at that one. Raises UserError."""
    challenge = await _challenge(server, fetch)
    resource = await _resource_metadata(server, challenge.get(_METADATA), fetch)
    expected = _issuer(server, resource, issuer)
    try:
        metadata = await _issuer_metadata(server, expected, resource is not None, fetch)
    except OAuthFlowError as error:
        raise UserError(printable(str(error)), _OPERATOR) from None
    for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"):
        if getattr(metadata, name) is not None:
            addresses.check_endpoint(name, str(getattr(metadata, name)), server)
    indicator = str(resource.resource) if resource else ""
    return Place(metadata, str(metadata.issuer), indicator, _scope(challenge.get("scope"), resource, metadata))


def check_pkce(metadata: OAuthMetadata) -> None:
    """Raise UserError unless the authorization server protects codes by PKCE (RFC 7636) with SHA-256."""
    if "S256" not in (metadata.code_challenge_methods_supported or ()):
        why = f"{addresses.shown(str(metadata.issuer))} does not say that it supports PKCE with S256"
        raise UserError(why, f"without it, another program could use the login; {_OPERATOR}")


async def _challenge(server: str, fetch: Fetch) -> dict[str, str]:
    """What the server demands of a request without a token; empty if it demands nothing."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    response = await fetch.send("the address", httpx2.Request("POST", server, headers=headers, content=PING))
    if response.status_code not in (401, 403):
        return {}
    return challenges.parameters(", ".join(response.headers.get_list("www-authenticate")))


async def _resource_metadata(server: str, named: str | None, fetch: Fetch) -> ProtectedResourceMetadata | None:
    """What the server says of itself; None if it says nothing (2025-03-26). Raises UserError."""
    for url in build_protected_resource_metadata_discovery_urls(named, server):
        response = await fetch.get(_METADATA, url)
        if response.status_code >= 500 or response.status_code == 429:
            raise UserError(f"{addresses.shown(url)} responds with status {response.status_code}", "try again later")
        metadata = await handle_protected_resource_response(response)
        if metadata is None:
            continue
        if not check_resource_allowed(requested_resource=server, configured_resource=str(metadata.resource)):
            what = f"{addresses.shown(url)} is about another server: {addresses.shown(str(metadata.resource))}"
            raise UserError(what, _OPERATOR)
        return metadata
    return None


def _issuer(server: str, resource: ProtectedResourceMetadata | None, wanted: str) -> str:
    """The issuer at which to log in. Raises UserError if it is not the one that is wanted."""
    offered = [str(server) for server in resource.authorization_servers] if resource else [_origin(server)]
    if not wanted:
        return offered[0]
    for issuer in offered:
        if issuers_match(issuer, wanted):
            return issuer
    names = ", ".join(addresses.shown(issuer) for issuer in offered)
    raise UserError(f"the server has logins at {names}, not at {addresses.shown(wanted)}", "correct --issuer")


def _origin(server: str) -> str:
    """The issuer of a server that says nothing of itself, as 2025-03-26 has it."""
    return server[: server.index("/", len("https://"))]


async def _issuer_metadata(server: str, issuer: str, named: bool, fetch: Fetch) -> OAuthMetadata:
    """The metadata of the authorization server. Raises UserError and OAuthFlowError."""
    for url in build_oauth_authorization_server_metadata_discovery_urls(issuer if named else None, server):
        response = await fetch.get("the authorization server", url)
        going_on, metadata = await handle_auth_metadata_response(response)
        if not going_on:
            raise UserError(f"{addresses.shown(url)} responds with status {response.status_code}", "try again later")
        if metadata is not None:
            same = not named and issuers_match(str(metadata.issuer), issuer)  # with or without the slash at its end
            validate_metadata_issuer(metadata, str(metadata.issuer) if same else issuer)
            return metadata
    what = f"{addresses.shown(issuer)} has no metadata of an authorization server"
    raise UserError(what, "the server may need no login, or one by --header of hookproxy run")


def _scope(
    demanded: str | None, resource: ProtectedResourceMetadata | None, metadata: OAuthMetadata
) -> str:  # fmt: skip
    """The scopes to ask for: what the server demands, else all that it lists, else none.

    The SDK would also ask for all that the authorization server knows: that is more than this server needs.
    """
    if demanded is None and (resource is None or resource.scopes_supported is None):
        return ""
    return challenges.union(get_client_metadata_scopes(demanded, resource, metadata, ["refresh_token"]) or "")
