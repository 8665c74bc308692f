"""Who has sent a request over HTTP: the one Bearer token of its `Authorization` header decides, and nothing else.

A token in the address, a cookie or a body is never looked at. No text here, for whomever, has a token in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Final

from msgspec import Struct

from ..model.principal import Principal
from .access_tokens import IssuerUnavailable, TokenRejected, VerifiedToken
from .bearer_tokens import BearerTokens
from .resource_metadata import ProtectedResource
from .token_file import PREFIX, digest_of
from .token_issuer import TokenIssuer

Headers = Iterable[tuple[bytes, bytes]]
"""Names, in any case, and values of all headers of a request, twins included."""

_NAME: Final = b"authorization"
_NAME_LENGTH: Final = len(_NAME)
_PREFIX: Final = PREFIX.encode()
_MAX_TOKEN: Final = 16_384  # bytes, as for tokens that a login stores
_RETRY_AFTER: Final = 10  # seconds: no sooner are an issuer's keys fetched again


class Challenge(Struct, frozen=True):
    """Why a request is not answered, and what its client can do."""

    status: int
    """401: it needs a valid token; 403: its token has too few scopes; 400: it has several; 503: nobody can say now."""
    message: str
    """A sentence for the body."""
    www_authenticate: str = ""
    """The header's value; empty: there is none."""
    retry_after: int = 0
    """Seconds for the header `Retry-After`; 0: there is none."""
    reason: str = ""
    """For the log: which token, by its id or the beginning of its digest, and why it is refused."""

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers of the response that say what the client can do."""
        given = ((b"WWW-Authenticate", self.www_authenticate), (b"Retry-After", str(self.retry_after or "")))
        return [(name, value.encode("ascii")) for name, value in given if value]


class Authenticator:
    """Accepts the tokens of a file, those of an issuer, or both."""

    def __init__(self, tokens: BearerTokens | None, issuer: TokenIssuer | None) -> None:
        self._tokens = tokens
        self._issuer = issuer

    async def prepare(self) -> None:
        """Fetch the issuer's keys, so that the first request need not wait. It does not raise."""
        if self._issuer is not None:
            await self._issuer.prepare()

    def check_token_now(self, token: bytes, resource: ProtectedResource) -> Principal | Challenge:
        """Who has sent a request with this token for this server, or why nobody is known.

        Raises NotReady if keys of the issuer must be fetched first: `check` does.
        """
        if token.startswith(_PREFIX) or self._issuer is None:
            return self._of_file(token, resource)
        try:
            return _permitted(token, self._issuer.check_now(token), self._issuer, resource)
        except (TokenRejected, IssuerUnavailable) as error:
            return _refused(token, error, resource)

    async def check(self, token: bytes, resource: ProtectedResource) -> Principal | Challenge:
        """The same, after keys have been fetched if they must be. On cancel, such a request is completed first."""
        if token.startswith(_PREFIX) or self._issuer is None:
            return self._of_file(token, resource)
        try:
            return _permitted(token, await self._issuer.check(token), self._issuer, resource)
        except (TokenRejected, IssuerUnavailable) as error:
            return _refused(token, error, resource)

    def _of_file(self, token: bytes, resource: ProtectedResource) -> Principal | Challenge:
        known = self._tokens.find(token) if self._tokens else None
        if known is None or self._tokens is None:
            return _invalid(resource, "the token is not known", f"{_shown(token)} is not known")
        if known.expires != inf and self._tokens.is_expired(known):
            return _invalid(resource, "the token has expired", f"token {known.id} has expired")
        return known.principal


def bearer_token(headers: Headers, resource: ProtectedResource) -> bytes | Challenge:
    """The token of the one `Authorization` header."""
    values = [value for name, value in headers if len(name) == _NAME_LENGTH and name.lower() == _NAME]
    if not values:
        return Challenge(401, "Send a token in the header Authorization.", resource.challenge(), reason="no token")
    if len(values) > 1:
        value = resource.challenge("invalid_request", "several Authorization headers")
        return Challenge(400, "The request has several Authorization headers.", value, reason="several tokens")
    scheme, _, token = values[0].partition(b" ")
    token = token.strip(b" \t")
    if scheme.lower() != b"bearer" or not token:
        return Challenge(401, "Send a Bearer token.", resource.challenge(), reason="no Bearer token")
    if len(token) > _MAX_TOKEN:
        return _invalid(resource, "the token is too long", "a token is too long")
    return token


def _permitted(
    token: bytes, verified: VerifiedToken, issuer: TokenIssuer, resource: ProtectedResource
) -> Principal | Challenge:
    """Who the token is about, if it is for this server and has all scopes."""
    audience = issuer.settings.audience
    if resource.url not in verified.audiences and (not audience or audience not in verified.audiences):
        return _refused(token, TokenRejected("it is for another audience"), resource)
    if verified.scopes.issuperset(resource.scopes):
        return verified.principal
    missing = " ".join(scope for scope in resource.scopes if scope not in verified.scopes)
    value = resource.challenge("insufficient_scope", "the token lacks a scope")
    reason = f"{_shown(token)} lacks the scope {missing}"
    return Challenge(403, f"The token lacks a scope that is needed here: {missing}.", value, reason=reason)


def _refused(token: bytes, error: TokenRejected | IssuerUnavailable, resource: ProtectedResource) -> Challenge:
    if isinstance(error, TokenRejected):
        return _invalid(resource, "the token is not valid", f"{_shown(token)}: {error}")
    message = "The token cannot be checked now, because its issuer cannot be reached. Try again later."
    return Challenge(503, message, retry_after=_RETRY_AFTER, reason=f"{_shown(token)} cannot be checked: {error}")


def _invalid(resource: ProtectedResource, description: str, reason: str) -> Challenge:
    message = f"{description[0].upper()}{description[1:]}."
    return Challenge(401, message, resource.challenge("invalid_token", description), reason=reason)


def _shown(token: bytes) -> str:
    """The token in logs: the first characters of its digest, which says nothing about it."""
    return f"token sha256:{digest_of(token).hex()[:8]}…"
