"""What agents read to log in by themselves: the metadata of a server behind the gateway (RFC 9728), and the challenge
that leads to it (RFC 6750 section 3). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct

from ..model.errors import UserError, printable
from . import addresses, challenges

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
"""What comes before a resource's own path in the path of its metadata."""


class ProtectedResource(Struct, frozen=True):
    """One server of the gateway, as OAuth sees it."""

    url: str
    """Its identifier: the address that agents use."""
    scopes: tuple[str, ...] = ()
    """All that a token must have."""
    metadata_url: str = ""
    """Where its metadata is; empty: no issuer is known, so there is none."""
    metadata_path: str = ""
    """The path of `metadata_url`."""
    metadata: bytes = b""
    """The document, as JSON."""

    def challenge(self, error: str = "", description: str = "") -> str:
        """The value of `WWW-Authenticate`. `description` is ASCII, without quotation marks and backslashes."""
        parameters = {
            "resource_metadata": self.metadata_url,
            "scope": " ".join(self.scopes),
            "error": error,
            "error_description": description,
        }
        # With no parameter at all, it would not be a challenge (RFC 6750 section 3).
        given = {name: value for name, value in parameters.items() if value} or {"realm": "hookproxy"}
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in given.items())


def protected_resource(public_url: str, name: str, issuer: str, scopes: Sequence[str] = ()) -> ProtectedResource:
    """The server `name` of the gateway at `public_url`. `issuer` empty: only tokens of a file are accepted.

    Raises UserError for an address or a scope that has no place in a header.
    """
    for scope in scopes:
        if challenges.scopes(scope) != (scope,):
            hint = "one word of visible ASCII characters, without quotation marks and backslashes"
            raise UserError(f"{printable(scope)!r} is not a scope", hint)
    base = addresses.server_address(public_url)
    if "?" in base or '"' in base:
        raise UserError(f"{addresses.shown(public_url)} cannot be used", "without a query and quotation marks")
    url = f"{base.rstrip('/')}/mcp/{quote(name, safe='')}"
    if not issuer:
        return ProtectedResource(url)
    parts = urlsplit(url)
    path = WELL_KNOWN + parts.path  # RFC 9728 section 3.1: between the host and the path
    document = {
        "resource": url,
        "authorization_servers": [issuer],
        "bearer_methods_supported": ["header"],
        **({"scopes_supported": list(scopes)} if scopes else {}),
    }
    metadata_url = f"{parts.scheme}://{parts.netloc}{path}"
    return ProtectedResource(url, tuple(scopes), metadata_url, path, msgspec.json.encode(document))
