"""Whether a JWT is an access token of an issuer, and what it says: RFC 7519, RFC 8725, RFC 9068. No I/O."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from typing import Final, cast

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import Key, RSAKey
from joserfc.jws import deserialize_compact
from msgspec import Struct

from ..model.principal import Principal
from .access_tokens import IssuerSettings, TokenRejected, UnknownKey, VerifiedToken
from .jwt_signatures import ALGORITHMS, MAX_HEADER, REGISTRY

_KINDS: Final = {kind.key_type: kind for kind in ALGORITHMS.values()}  # by their names in a JWK
_CURVES: Final = ("P-256", "P-384", "P-521", "Ed25519")
_MIN_RSA: Final = 2048  # bits, as RFC 7518 section 3.3 requires
_LEEWAY: Final = 30.0  # seconds by which clocks may differ: machines with NTP differ by less than one
_LAST_TIME: Final = 253_402_300_799  # the end of the year 9999: any more is not a time, and a float may not hold it
_MAX_TEXT: Final = 512  # characters of a subject (255 in OpenID Connect), of a name or of a group
_MAX_GROUPS: Final = 1000  # of a token: more do not fit into its length
_SEPARATORS: Final = ", "
"""What stands between groups in $HOOKPROXY_GROUPS, or where a script splits them: one group must not pass for two."""
_JWT: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_ERRORS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)  # of JSON that cannot be read
_ACCESS_TOKEN: Final = "at+jwt"
_ANY_TOKEN: Final = ("", "jwt")  # the types of tokens from issuers that do not follow RFC 9068
_NOT_FOR_ACCESS: Final = ("at_hash", "c_hash", "s_hash", "events")
"""Claims of ID tokens and logout tokens, which say who somebody is, or was, but allow nothing."""

_USES: Final = {"token_use": ("access",), "typ": ("Bearer", "at+jwt")}
"""Claims with which Cognito and Keycloak say what their tokens are for, and their values in access tokens."""


class _KeySet(Struct):
    keys: list[object]


class _LeftOut(ValueError):
    """A key that is not used; the text says why."""


# --- keys ---


def read_keys(document: bytes) -> tuple[list[Key], list[str]]:
    """The keys for signatures in a JWK Set (RFC 7517), and for each other one why it is left out. Raises ValueError."""
    keys: list[Key] = []
    left_out: list[str] = []
    try:
        members = msgspec.json.decode(document, type=_KeySet).keys
    except _ERRORS:
        raise ValueError("it is not a JWK Set") from None
    for number, member in enumerate(members, 1):
        try:
            keys.append(_key(member))
        except _LeftOut as error:
            left_out.append(f"key {number} is not used: {error}")
        except (JoseError, ValueError, TypeError, KeyError):
            left_out.append(f"key {number} is not used: it is not valid")
    return keys, left_out


def _key(member: object) -> Key:
    """The key. Raises _LeftOut with the reason, and what joserfc raises."""
    if not isinstance(member, dict):
        raise _LeftOut("it is not an object")
    if member.get("use", "sig") != "sig" or "verify" not in member.get("key_ops", ("verify",)):
        raise _LeftOut("it is not for signatures")
    kind = _KINDS.get(str(member.get("kty")))
    if kind is None:
        raise _LeftOut(f"its type is not one of {', '.join(_KINDS)}")
    if "d" in member:
        raise _LeftOut("it is a private key, which its issuer must replace")
    if kind is not RSAKey and member.get("crv") not in _CURVES:
        raise _LeftOut(f"its curve is not one of {', '.join(_CURVES)}")
    if kind is RSAKey and len(_decoded(str(member.get("n", ""))).lstrip(b"\0")) * 8 < _MIN_RSA:
        raise _LeftOut(f"it has fewer than {_MIN_RSA} bits")
    return kind.import_key(member)


# --- tokens ---


def verify(token: str, keys: Sequence[Key], settings: IssuerSettings, now: float) -> VerifiedToken:
    """What the token says, if one of the issuer's keys has signed it, and if it is valid now (seconds since 1970).

    Its audience and scopes are for the caller to compare. Raises TokenRejected, and UnknownKey.
    """
    if not _JWT.fullmatch(token):
        raise TokenRejected("it is not a JWT")
    header = _header(token)
    _check_type(header, settings)
    claims = _claims(token, header, keys)
    if claims.get("iss") != settings.issuer:
        raise TokenRejected("it is from another issuer")
    _check_use(claims)
    expires = _check_times(claims, now)
    return VerifiedToken(_principal(claims, settings), frozenset(_texts(claims, "aud")), _scopes(claims), expires)


def _header(token: str) -> dict[str, object]:
    """The header, before anybody knows whether it is true. It says which key to try, and nothing else."""
    encoded = token.partition(".")[0]
    try:
        if len(encoded) > MAX_HEADER:
            raise ValueError
        header = _members(_decoded(encoded))
    except ValueError:
        raise TokenRejected("its header cannot be read") from None
    algorithm, kid = header.get("alg"), header.get("kid", "")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS or not isinstance(kid, str):
        raise TokenRejected("its signature is of no accepted kind")
    if "crit" in header or "b64" in header:  # extensions that must be understood (RFC 7515 section 4.1.11)
        raise TokenRejected("its header has an extension")
    return header


def _check_type(header: Mapping[str, object], settings: IssuerSettings) -> None:
    name = header.get("typ", "")
    kind = name.lower().removeprefix("application/") if isinstance(name, str) else "?"
    if kind == _ACCESS_TOKEN or (settings.any_type and kind in _ANY_TOKEN):
        return
    if kind in _ANY_TOKEN:
        raise TokenRejected("its type is not at+jwt (RFC 9068), and gateway.oidc.any_type is not set")
    raise TokenRejected("its type is not that of an access token")


def _claims(token: str, header: Mapping[str, object], keys: Sequence[Key]) -> dict[str, object]:
    """The claims, if one of the keys that the token can mean has signed them."""
    algorithm, kid = str(header["alg"]), header.get("kid")
    kind = ALGORITHMS[algorithm]
    fitting = [key for key in keys if isinstance(key, kind) and key.get("alg", algorithm) == algorithm]
    meant = [key for key in fitting if kid is None or key.kid == kid]
    if not meant:
        raise UnknownKey("it names a key that the issuer does not have")
    if kid is None and len(meant) > 1:
        raise TokenRejected("it does not say which key has signed it")
    for key in meant:
        try:
            signed = deserialize_compact(token, key, registry=REGISTRY)
            return _members(signed.payload or b"")
        except (JoseError, ValueError, TypeError, RecursionError):  # of another key, or wrongly encoded
            continue
    raise TokenRejected("its signature is wrong, or its claims cannot be read")


def _check_use(claims: Mapping[str, object]) -> None:
    """Raise TokenRejected unless whoever has the token may use it for access."""
    other_use = any(claims.get(name, values[0]) not in values for name, values in _USES.items())
    if other_use or any(name in claims for name in _NOT_FOR_ACCESS):
        raise TokenRejected("it is not an access token")
    if "cnf" in claims:  # RFC 7800: to have it is not enough
        raise TokenRejected("it is bound to a key of its client, which cannot be checked here")


def _check_times(claims: Mapping[str, object], now: float) -> float:
    """When the token ends. Raises TokenRejected unless it is valid now."""
    expires = _time(claims, "exp")
    if expires is None:
        raise TokenRejected("it does not say when it expires")
    if now >= expires + _LEEWAY:
        raise TokenRejected("it has expired")
    begins, issued = _time(claims, "nbf"), _time(claims, "iat")
    if max(begins or 0.0, issued or 0.0) > now + _LEEWAY:
        raise TokenRejected("it is not valid yet")
    return expires


def _time(claims: Mapping[str, object], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LAST_TIME:
        raise TokenRejected(f"its {name} is not a time")
    return float(value)


def _principal(claims: Mapping[str, object], settings: IssuerSettings) -> Principal:
    """Who the token is about. Raises TokenRejected."""
    if settings.user_claim == "email" and claims.get("email_verified") is not True:
        raise TokenRejected("its issuer has not verified the email address")  # anybody may have entered it
    subject, name = _text(claims, "sub"), _text(claims, settings.user_claim)
    elsewhere = claims.get("_claim_names")  # OpenID Connect Core section 5.6.2; Entra has it for more than 200 groups
    if claims.get("hasgroups") or (isinstance(elsewhere, dict) and settings.groups_claim in elsewhere):
        raise TokenRejected("its groups are not in it")  # a rule may deny one of them
    is_missing = claims.get(settings.groups_claim) is None
    if is_missing and settings.missing_groups == "refuse":
        raise TokenRejected(f"it has no {settings.groups_claim}")
    groups = tuple(sorted(set(_texts(claims, settings.groups_claim))))  # another order makes nobody another user
    if len(groups) > _MAX_GROUPS or not all(map(_is_usable, groups)):
        raise TokenRejected(f"its {settings.groups_claim} cannot be used")
    if any(separator in group for group in groups for separator in _SEPARATORS):
        raise TokenRejected(f"its {settings.groups_claim} has a group with a comma or a blank in its name")
    in_doubt = is_missing and settings.missing_groups == "doubt"
    return Principal(f"{settings.issuer} {subject}", name, groups, in_doubt)


def _text(claims: Mapping[str, object], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not _is_usable(value):
        raise TokenRejected(f"it has no usable {name}")
    return value


def _is_usable(text: str) -> bool:
    """Short, and without characters that end a line or a variable: it goes into the audit and the environment."""
    return 0 < len(text) <= _MAX_TEXT and text.isprintable() and text == text.strip()


def _texts(claims: Mapping[str, object], name: str) -> list[str]:
    """The texts of a claim that is one or a list of them; none if it is absent. Raises TokenRejected."""
    value = claims.get(name, [])
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(text, str) for text in values):
        raise TokenRejected(f"its {name} is neither a text nor a list of texts")
    return cast("list[str]", values)


def _scopes(claims: Mapping[str, object]) -> frozenset[str]:
    """The scopes: `scope` with blanks between them (RFC 8693), or `scp` as some issuers call it."""
    name = "scope" if "scope" in claims else "scp"
    return frozenset(scope for text in _texts(claims, name) for scope in text.split(" ") if scope)


def _decoded(text: str) -> bytes:
    """The bytes that the text encodes in base64url. Raises ValueError."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _members(document: bytes) -> dict[str, object]:
    """The members of a JSON object. Raises ValueError."""
    try:
        return msgspec.json.decode(document, type=dict[str, object])
    except _ERRORS:
        raise ValueError from None
