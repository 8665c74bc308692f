"""What an issuer's access tokens are to a gateway: whose are accepted, what one says, and why one is not accepted."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ..model.principal import Principal


class IssuerSettings(Struct, frozen=True):
    """An issuer of access tokens: an OpenID Connect provider, or another OAuth authorization server."""

    issuer: str
    """Its identifier, exactly as its metadata and the claim `iss` have it."""
    audience: str = ""
    """A token with this `aud` is accepted for each server; one with the address of a server, for this server. Empty:
    only the latter."""
    user_claim: str = "sub"
    """The claim with the name under which rules know the user. Sessions belong to issuer and subject."""
    groups_claim: str = "groups"
    """The claim with the names of the user's groups: a list of texts, or one text."""
    missing_groups: Literal["doubt", "refuse", "none"] = "doubt"
    """Of a token without that claim: its user may be in any group, or is nobody, or has no groups."""
    required_scopes: tuple[str, ...] = ()
    """A token must have all of them."""
    any_type: bool = False
    """Also tokens without a type, or of the type `JWT`: for issuers that do not follow RFC 9068."""
    ca_file: str = ""
    """Certificates that are trusted besides the system's, for an issuer of the company; empty: none."""


class VerifiedToken(Struct, frozen=True):
    """What a token says whose signature, issuer and times are right."""

    principal: Principal
    audiences: frozenset[str]
    scopes: frozenset[str]
    expires: float
    """Seconds since 1970."""


class TokenRejected(Exception):
    """The token must not be accepted. The text says why, and has nothing of the token's own text."""


class UnknownKey(TokenRejected):
    """None of the keys is the one that the token names; the issuer may have a new one."""


class IssuerUnavailable(Exception):
    """Nobody can know now whether the token is valid: the issuer's keys cannot be fetched. The text says why."""
