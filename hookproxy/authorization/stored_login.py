"""A login as it is stored: for which server, at which authorization server, with which tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from ..model.errors import UserError, file_hint

Method = Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]
"""How a client proves at the token endpoint who it is, in the words of RFC 8414 and OpenID Connect."""

_MAX_SECRET: Final = 65_536  # bytes of a secret or of a private key: an RSA key of 16,384 bits has 13,000


class Secrets(Struct, frozen=True):
    """What nobody may see."""

    access_token: str
    refresh_token: str = ""
    """Empty: there is none."""
    client_secret: str = ""
    """The one that the authorization server has issued; one that the user has is in a file or in the environment."""

    def __repr__(self) -> str:
        return "Secrets(…)"


class Client(Struct, frozen=True):
    """As what hookproxy is known to the authorization server."""

    id: str
    method: Method = "none"
    secret_file: str = ""
    """The user's file with the client's secret or private key. It is read for each request, so it may change."""
    secret_variable: str = ""
    """The environment variable with it."""


class StoredLogin(Struct, frozen=True):
    """A login. It is used for one server, and renewed at the one token endpoint that belongs to its issuer."""

    server: str
    """The address of the server, by `addresses.server_address`: no other server gets the token."""
    issuer: str
    token_endpoint: str
    client: Client
    grant: Literal["authorization_code", "client_credentials"]
    scope: str
    """With blanks between them; empty: the authorization server has not said."""
    resource: str
    """The resource indicator (RFC 8707); empty: none is sent."""
    issued_at: float
    """Seconds since 1970, as for `expires_at`."""
    expires_at: float | None
    """None: unknown."""
    secrets: Secrets | None
    """None: they are in the system's keyring."""
    revocation_endpoint: str = ""
    options: tuple[str, ...] = ()
    """The options of `hookproxy login` that say how to log in. Another login without such options uses them again."""


def client_secret(client: Client, environ: Mapping[str, str]) -> str:
    """The user's secret or private key of this client; empty if there is none. Raises UserError."""
    if client.secret_variable:
        secret = environ.get(client.secret_variable, "")
        if not secret:
            raise UserError(f"the environment variable {client.secret_variable} is not set", "it holds the secret")
        return secret
    if not client.secret_file:
        return ""
    try:
        with open(client.secret_file, "rb") as file:
            raw = file.read(_MAX_SECRET + 1)
        secret = raw.decode().strip()
    except OSError as error:
        hint = file_hint(client.secret_file, error)
        raise UserError(f"{client.secret_file}: cannot be read: {error.strerror}", hint) from None
    except ValueError:
        raise UserError(f"{client.secret_file}: is not UTF-8", "it holds the secret, or a private key as PEM") from None
    if not secret or len(raw) > _MAX_SECRET:
        raise UserError(f"{client.secret_file}: is empty or too long", "it holds the secret, or a private key as PEM")
    return secret
