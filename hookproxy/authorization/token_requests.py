"""Requests to a token endpoint and its responses: OAuth 2.1 sections 3.2 and 4, RFC 7523, RFC 8707. No I/O."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from ..model.errors import UserError, printable
from . import challenges
from .stored_login import Client, Secrets, StoredLogin

_TOKEN: Final = re.compile(r"[!-~]{1,16384}")  # RFC 6749 appendix A; servers refuse headers that are much longer
_MAX_RESPONSE: Final = 262_144  # bytes; a response with two long tokens has 40,000
_MAX_LIFETIME: Final = 10 * 365 * 86_400.0  # seconds: longer ones are a mistake or an overflow, and are cut to this
_MAX_DESCRIPTION: Final = 200  # characters of the authorization server's own text in our messages
_ASSERTION_LIFETIME: Final = 300  # seconds, as in the SDK: enough for clocks that differ
_ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_SECRET_MEMBERS: Final = ("code", "code_verifier", "refresh_token", "token", "client_assertion")
_TEMPORARY: Final = {"temporarily_unavailable", "server_error", "slow_down"}


class HttpRequest(NamedTuple):
    """A POST of a form."""

    url: str
    headers: dict[str, str]
    body: bytes
    secrets: tuple[str, ...]

    def hide(self, text: str) -> str:
        """The text without what is secret in this request: an authorization server may repeat it in an error."""
        for secret in self.secrets:
            text = text.replace(secret, "…")
        return text


class Tokens(Struct, frozen=True):
    """What a token endpoint has issued."""

    access_token: str
    refresh_token: str
    """Empty: none, so the one before stays valid."""
    lifetime: float | None
    """Seconds; None: unknown."""
    scope: str
    """Empty: as requested."""

    def __repr__(self) -> str:
        return "Tokens(…)"


class TokenRefused(Exception):
    """The token endpoint refuses for good: another login is needed. The text has no secret of ours."""


class TokenUnavailable(Exception):
    """There is no usable response now; the tokens may still be valid."""


def code_request(
    endpoint: str, client: Client, secret: str, issuer: str, now: float, form: Mapping[str, str]
) -> HttpRequest:  # fmt: skip
    """The request that exchanges an authorization code; `form` has the code, its verifier and the redirect address."""
    return _request(endpoint, client, secret, issuer, now, {"grant_type": "authorization_code", **form})


def renewal_request(login: StoredLogin, secret: str, now: float) -> HttpRequest | None:
    """The request for new tokens by the refresh token, or for a machine by its own credentials. None: not possible.

    `secret` is the client's secret or private key; empty: it has none. Raises UserError for an unusable private key.
    """
    tokens = login.secrets
    if tokens is None:
        return None
    form = {"resource": login.resource} if login.resource else {}
    if login.grant == "client_credentials":
        form |= {"grant_type": "client_credentials"} | ({"scope": login.scope} if login.scope else {})
    elif tokens.refresh_token:
        form |= {"grant_type": "refresh_token", "refresh_token": tokens.refresh_token}
    else:
        return None
    return _request(login.token_endpoint, login.client, secret or tokens.client_secret, login.issuer, now, form)


def revocation_request(login: StoredLogin, secret: str, now: float) -> HttpRequest | None:
    """The request that makes the login's tokens invalid (RFC 7009). None: the authorization server has none."""
    tokens = login.secrets
    if tokens is None or not login.revocation_endpoint:
        return None
    token = tokens.refresh_token or tokens.access_token
    form = {"token": token, "token_type_hint": "refresh_token" if tokens.refresh_token else "access_token"}
    return _request(login.revocation_endpoint, login.client, secret or tokens.client_secret, login.issuer, now, form)


def _request(
    endpoint: str, client: Client, secret: str, issuer: str, now: float, form: Mapping[str, str]
) -> HttpRequest:  # fmt: skip
    """The request with the proof of who the client is."""
    members = {**form, "client_id": client.id}
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    match client.method:
        case "client_secret_basic":  # RFC 6749 section 2.3.1: both parts are encoded as in a form
            pair = f"{quote(client.id, safe='')}:{quote(secret, safe='')}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        case "client_secret_post":
            members["client_secret"] = secret
        case "private_key_jwt":
            members["client_assertion_type"] = _ASSERTION_TYPE
            members["client_assertion"] = _assertion(client.id, secret, issuer, now)
        case "none":
            pass
    hidden = {secret, *(members[name] for name in _SECRET_MEMBERS if name in members)} - {""}
    return HttpRequest(endpoint, headers, urlencode(members).encode(), tuple(sorted(hidden, key=len, reverse=True)))


def _assertion(client_id: str, key: str, issuer: str, now: float) -> str:
    """A JWT signed by the private key, which only this issuer accepts. Raises UserError."""
    from secrets import token_urlsafe

    from .jwt_signatures import sign  # takes 60 ms: only for clients that sign

    claims = {
        "iss": client_id,
        "sub": client_id,
        "aud": issuer,  # not the endpoint: another server could name that as its own
        "iat": int(now),
        "exp": int(now) + _ASSERTION_LIFETIME,
        "jti": token_urlsafe(16),
    }
    try:
        return sign(claims, key.encode())
    except ValueError:
        raise UserError(
            "the private key cannot be used", "an RSA, EC or Ed25519 key as PEM without a password"
        ) from None


def read_response(status: int, body: bytes) -> Tokens:
    """The tokens in a token endpoint's response. Raises TokenRefused or TokenUnavailable."""
    members = _members(body)
    if status in (200, 201):
        return _tokens(members)
    code = members.get("error")
    if status < 500 and status != 429 and isinstance(code, str) and code not in _TEMPORARY:
        raise TokenRefused(error_text(body))
    raise TokenUnavailable(f"the token endpoint responds with status {status}")


def error_text(body: bytes) -> str:
    """The error that an authorization server names, short and printable; empty if it names none."""
    members = _members(body)
    code, description = members.get("error"), members.get("error_description")
    if not isinstance(code, str):
        return ""
    text = f"{code}: {description}" if isinstance(description, str) and description else code
    return printable(text)[:_MAX_DESCRIPTION]


def _members(body: bytes) -> dict[str, object]:
    try:
        return msgspec.json.decode(body, type=dict[str, object]) if len(body) <= _MAX_RESPONSE else {}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def _tokens(members: Mapping[str, object]) -> Tokens:
    kind, scope = members.get("token_type"), members.get("scope")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise TokenUnavailable("the token endpoint's response has no token of type Bearer")
    return Tokens(
        access_token=_token(members.get("access_token")),
        refresh_token=_token(members["refresh_token"]) if members.get("refresh_token") else "",
        lifetime=_lifetime(members.get("expires_in")),
        scope=challenges.union(scope) if isinstance(scope, str) else "",
    )


def _token(value: object) -> str:
    """The token, which becomes part of a header: a line feed in it would begin another header."""
    if not isinstance(value, str) or not _TOKEN.fullmatch(value):
        raise TokenUnavailable("the token endpoint's response has no usable token")
    return value


def _lifetime(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, str) and value.isdecimal() and value.isascii():  # some servers put it in quotes
        value = float(value[:20])
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise TokenUnavailable("the token endpoint's response has no usable expires_in")
    return min(float(value), _MAX_LIFETIME)


def with_tokens(login: StoredLogin, tokens: Tokens, now: float) -> StoredLogin:
    """The login with new tokens. What the response leaves out stays as it was (RFC 6749 section 6)."""
    before = login.secrets or Secrets("")
    return msgspec.structs.replace(
        login,
        scope=tokens.scope or login.scope,
        issued_at=now,
        expires_at=None if tokens.lifetime is None else now + tokens.lifetime,
        secrets=Secrets(tokens.access_token, tokens.refresh_token or before.refresh_token, before.client_secret),
    )
